/**
 * Memory beyond a program's fixed part: the arena of programs with symbolic sizes and kept results. First fit over a
 * sorted list of free blocks that are joined when they touch, so that equal work in a loop does not grow memory.
 */
import { fail } from "../core/diagnostic.ts";
import { align } from "../memory/place.ts";

const pageBytes = 65536;
const limit = 2 ** 32;

export class Heap {
  readonly memory: WebAssembly.Memory;
  /** Free blocks below `#end`, by address. */
  #free: { from: number; to: number }[] = [];
  #used = new Map<number, number>();
  #end: number;
  #bytes: Uint8Array;

  constructor(memory: WebAssembly.Memory, start: number) {
    this.memory = memory;
    this.#end = align(start);
    this.#bytes = new Uint8Array(memory.buffer);
  }

  /** All of memory. Growing detaches earlier views, so take it anew after `allocate`. */
  get bytes(): Uint8Array {
    if (this.#bytes.buffer !== this.memory.buffer) this.#bytes = new Uint8Array(this.memory.buffer);
    return this.#bytes;
  }

  /** Address of a new block, a multiple of 64. Fails with OF7010 beyond 4 GiB or what the engine gives. */
  allocate(bytes: number): number {
    const size = Math.max(align(bytes), 64);
    const at = this.#free.findIndex((f) => f.to - f.from >= size);
    const block = this.#free[at];
    if (block) {
      const from = block.from;
      if (block.to - block.from === size) this.#free.splice(at, 1);
      else block.from += size;
      this.#used.set(from, size);
      return from;
    }
    const last = this.#free[this.#free.length - 1];
    const from = last && last.to === this.#end ? last.from : this.#end;
    this.#grow(from + size, size);
    if (from !== this.#end) this.#free.pop();
    this.#end = from + size;
    this.#used.set(from, size);
    return from;
  }

  free(address: number): void {
    const size = this.#used.get(address);
    if (size === undefined) return;
    this.#used.delete(address);
    const at = this.#free.findIndex((f) => f.from > address);
    this.#free.splice(at < 0 ? this.#free.length : at, 0, { from: address, to: address + size });
    const joined: { from: number; to: number }[] = [];
    for (const f of this.#free) {
      const before = joined[joined.length - 1];
      if (before && before.to === f.from) before.to = f.to;
      else joined.push(f);
    }
    this.#free = joined;
  }

  #grow(end: number, wanted: number): void {
    const missing = end - this.memory.buffer.byteLength;
    if (missing <= 0) return;
    const mib = (n: number): string => (n / 2 ** 20).toFixed(0);
    const refuse = (): never => fail("OF7010", `these input sizes need ${mib(wanted)} MiB more memory, ${mib(end)} MiB in all; there is no room for it`, { hint: "feed smaller inputs, or dispose kept results" });
    if (end > limit) refuse();
    try {
      this.memory.grow(Math.ceil(missing / pageBytes));
    } catch {
      refuse();
    }
  }
}
