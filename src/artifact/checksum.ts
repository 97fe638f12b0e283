/**
 * XXH32 (Yann Collet's xxHash, 32 bits): finds accidental damage at memory speed; not a signature. Stripes are summed by
 * WebAssembly: a page's first checksums are of a model that shall run at once, long before JavaScript would be quick.
 */
import { checksumCode } from "./checksum-code.ts";

const p1 = 0x9e3779b1, p2 = 0x85ebca77, p3 = 0xc2b2ae3d, p4 = 0x27d4eb2f, p5 = 0x165667b1;
const rotate = (x: number, by: number): number => (x << by) | (x >>> (32 - by));
const stripe = 16;
/** Where bytes wait in the module's memory, behind the four lanes. */
const data = 64;

/** Needs SIMD, as artifacts do. */
export const stripesModule = (): Uint8Array<ArrayBuffer> => Uint8Array.from(atob(checksumCode), (c) => c.charCodeAt(0));

/** The 32-bit checksum of `bytes`, not negative; `by` where there is one that is between two sums. */
export const checksum = (bytes: Uint8Array, by = new Checksum()): number => by.update(bytes).take();

/** Checksums of bytes that come in pieces: however they are cut, it is that of the whole. */
export class Checksum {
  /** The module's memory: the lanes, then what came after the last whole stripe. */
  readonly #memory: DataView;
  readonly #bytes: Uint8Array;
  readonly #stripes: (from: number, to: number) => void;
  #length = 0;
  #pending = 0;

  constructor() {
    const { memory, stripes } = new WebAssembly.Instance(new WebAssembly.Module(stripesModule())).exports as unknown as Exports;
    this.#bytes = new Uint8Array(memory.buffer);
    this.#memory = new DataView(memory.buffer);
    this.#stripes = stripes;
    this.#restart();
  }

  /** Takes the next bytes. */
  update(bytes: Uint8Array): this {
    this.#length += bytes.length;
    for (let from = 0; from < bytes.length;) {
      const part = bytes.subarray(from, from + this.#bytes.length - data - this.#pending), end = this.#pending + part.length, whole = end - (end % stripe);
      this.#bytes.set(part, data + this.#pending);
      if (whole > 0) {
        this.#stripes(data, data + whole);
        this.#bytes.copyWithin(data, data + whole, data + end);
      }
      this.#pending = end - whole;
      from += part.length;
    }
    return this;
  }

  /** The checksum of all that came since the last one was taken, not negative. */
  take(): number {
    const view = this.#memory, end = data + this.#pending, lane = (i: number, by: number): number => rotate(view.getInt32(4 * i, true), by);
    let hash = this.#length >= stripe ? (lane(0, 1) + lane(1, 7) + lane(2, 12) + lane(3, 18)) | 0 : p5;
    hash = (hash + this.#length) | 0;
    let at = data;
    for (; at + 4 <= end; at += 4) hash = Math.imul(rotate((hash + Math.imul(view.getInt32(at, true), p3)) | 0, 17), p4);
    for (; at < end; at++) hash = Math.imul(rotate((hash + Math.imul(view.getUint8(at), p5)) | 0, 11), p1);
    hash = Math.imul(hash ^ (hash >>> 15), p2);
    hash = Math.imul(hash ^ (hash >>> 13), p3);
    this.#restart();
    return (hash ^ (hash >>> 16)) >>> 0;
  }

  #restart(): void {
    [p1 + p2, p2, 0, -p1].forEach((lane, i) => this.#memory.setInt32(4 * i, lane, true));
    this.#length = this.#pending = 0;
  }
}

/** What scripts/code/checksum.ts says that the module exports. */
interface Exports { readonly memory: WebAssembly.Memory; readonly stripes: (from: number, to: number) => void }
