/**
 * Bytes in their order, from wherever they come, each read once: what is in memory is handed out as views, what comes
 * from outside is read to where it is wanted, so that nothing is held twice.
 */

export interface ByteSource {
  /** How many bytes there are in all; undefined where only their end tells. */
  readonly length: number | undefined;
  /** The next bytes, fewer than `count` where the source ends. A view may be good until the next call only. */
  take(count: number): Uint8Array | Promise<Uint8Array>;
  /** Fills `into` with the next bytes; how many there were. */
  fill(into: Uint8Array): number | Promise<number>;
}

/** Bytes in memory. */
export class MemorySource implements ByteSource {
  readonly #bytes: Uint8Array;
  #at = 0;
  constructor(bytes: Uint8Array) {
    // A plain view: slices of Node's Buffers share memory.
    this.#bytes = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }
  get length(): number { return this.#bytes.length; }
  take(count: number): Uint8Array {
    const taken = this.#bytes.subarray(this.#at, this.#at + count);
    this.#at += taken.length;
    return taken;
  }
  fill(into: Uint8Array): number {
    const taken = this.take(into.length);
    into.set(taken);
    return taken.length;
  }
}

/** Reads the next bytes into the front of `into` and says how many, at least one unless there are no more. */
export type Refill = (into: Uint8Array) => Promise<number>;

/** Bytes that are read when they are wanted: few at a time by way of a buffer, many straight to where they belong. */
export class BufferedSource implements ByteSource {
  readonly length: number | undefined;
  readonly #refill: Refill;
  readonly #buffer: Uint8Array;
  #from = 0;
  #to = 0;
  /** Holds what `take` hands out beyond the buffer's size. */
  #large = new Uint8Array(0);

  constructor(refill: Refill, length: number | undefined, buffer = 1 << 18) {
    this.#refill = refill;
    this.length = length;
    this.#buffer = new Uint8Array(buffer);
  }

  async take(count: number): Promise<Uint8Array> {
    if (count <= this.#buffer.length) {
      if (this.#to - this.#from < count) await this.#load(count);
      const taken = this.#buffer.subarray(this.#from, Math.min(this.#from + count, this.#to));
      this.#from += taken.length;
      return taken;
    }
    if (this.#large.length < count) this.#large = new Uint8Array(count);
    const into = this.#large.subarray(0, count);
    return into.subarray(0, await this.fill(into));
  }

  async fill(into: Uint8Array): Promise<number> {
    const ready = this.#buffer.subarray(this.#from, Math.min(this.#to, this.#from + into.length));
    into.set(ready);
    this.#from += ready.length;
    let done = ready.length;
    if (into.length - done < this.#buffer.length && done < into.length) {
      const rest = await this.take(into.length - done);
      into.set(rest, done);
      return done + rest.length;
    }
    while (done < into.length) {
      const read = await this.#refill(into.subarray(done));
      if (read === 0) break;
      done += read;
    }
    return done;
  }

  /** Has `count` bytes in the buffer, or all that are left. */
  async #load(count: number): Promise<void> {
    this.#buffer.copyWithin(0, this.#from, this.#to);
    this.#to -= this.#from;
    this.#from = 0;
    while (this.#to < count) {
      const read = await this.#refill(this.#buffer.subarray(this.#to));
      if (read === 0) return;
      this.#to += read;
    }
  }
}
