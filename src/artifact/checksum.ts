/** XXH32 (Yann Collet's xxHash, 32 bits): finds accidental damage at memory speed; not a signature. */

const p1 = 0x9e3779b1, p2 = 0x85ebca77, p3 = 0xc2b2ae3d, p4 = 0x27d4eb2f, p5 = 0x165667b1;
const rotate = (x: number, by: number): number => (x << by) | (x >>> (32 - by));
const round = (lane: number, word: number): number => Math.imul(rotate((lane + Math.imul(word, p2)) | 0, 13), p1);
const stripe = 16;
const littleEndian = new Uint8Array(Uint32Array.of(1).buffer)[0] === 1;

/** The 32-bit checksum of `bytes`, not negative. */
export function checksum(bytes: Uint8Array): number {
  return new Checksum().update(bytes).value;
}

/** The checksum of bytes that come in pieces: however they are cut, it is that of the whole. */
export class Checksum {
  #a = (p1 + p2) | 0;
  #b = p2;
  #c = 0;
  #d = -p1 | 0;
  #length = 0;
  /** What came after the last whole stripe. */
  readonly #rest = new Uint8Array(stripe);
  #pending = 0;

  /** Takes the next bytes. */
  update(bytes: Uint8Array): this {
    this.#length += bytes.length;
    let from = 0;
    if (this.#pending > 0) {
      from = Math.min(stripe - this.#pending, bytes.length);
      this.#rest.set(bytes.subarray(0, from), this.#pending);
      this.#pending += from;
      if (this.#pending < stripe) return this;
      this.#stripes(this.#rest);
    }
    const whole = bytes.length - ((bytes.length - from) % stripe);
    if (whole > from) this.#stripes(bytes.subarray(from, whole));
    this.#rest.set(bytes.subarray(whole));
    this.#pending = bytes.length - whole;
    return this;
  }

  /** The checksum of all that came, not negative. */
  get value(): number {
    const view = new DataView(this.#rest.buffer), end = this.#pending;
    let hash = this.#length >= stripe ? (rotate(this.#a, 1) + rotate(this.#b, 7) + rotate(this.#c, 12) + rotate(this.#d, 18)) | 0 : p5;
    hash = (hash + this.#length) | 0;
    let at = 0;
    for (; at + 4 <= end; at += 4) hash = Math.imul(rotate((hash + Math.imul(view.getInt32(at, true), p3)) | 0, 17), p4);
    for (; at < end; at++) hash = Math.imul(rotate((hash + Math.imul(view.getUint8(at), p5)) | 0, 11), p1);
    hash = Math.imul(hash ^ (hash >>> 15), p2);
    hash = Math.imul(hash ^ (hash >>> 13), p3);
    return (hash ^ (hash >>> 16)) >>> 0;
  }

  #stripes(bytes: Uint8Array): void {
    const words = wordsOf(bytes);
    let a = this.#a, b = this.#b, c = this.#c, d = this.#d;
    for (let i = 0; i + 4 <= words.length; i += 4) {
      a = round(a, words[i] ?? 0);
      b = round(b, words[i + 1] ?? 0);
      c = round(c, words[i + 2] ?? 0);
      d = round(d, words[i + 3] ?? 0);
    }
    this.#a = a;
    this.#b = b;
    this.#c = c;
    this.#d = d;
  }
}

/** Little-endian words of a multiple of 4 bytes: a view where they lie so. */
function wordsOf(bytes: Uint8Array): Int32Array {
  const count = bytes.length / 4;
  if (littleEndian) return bytes.byteOffset % 4 === 0 ? new Int32Array(bytes.buffer, bytes.byteOffset, count) : new Int32Array(bytes.slice().buffer);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Int32Array.from({ length: count }, (_, i) => view.getInt32(4 * i, true));
}
