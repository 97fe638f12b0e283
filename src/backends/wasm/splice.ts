/**
 * Code for threads: a module that shares the kernels of the plain one, byte for byte, and has its own memory (imported,
 * shared), and its own functions around them. An artifact holds only what differs: the sections in front of the bodies,
 * and the bodies after the kernels'.
 */

/** What a module for threads has of its own. */
export interface OwnParts {
  /** All sections in front of the functions' bodies. */
  readonly head: Uint8Array;
  /** Bodies after those of the kernels. */
  readonly tail: Uint8Array;
  /** Number of functions, kernels included. */
  readonly functions: number;
  /** Where the kernels' bodies lie in the plain module. */
  readonly kernels: { readonly from: number; readonly to: number };
}

const fields = 5;

/** The parts in one piece: five u32 (length of the head, of the tail, functions, the kernels' place), head, tail. */
export function packParts({ head, tail, functions, kernels }: OwnParts): Uint8Array {
  const out = new Uint8Array(4 * fields + head.length + tail.length);
  const view = new DataView(out.buffer);
  [head.length, tail.length, functions, kernels.from, kernels.to].forEach((n, i) => view.setUint32(4 * i, n, true));
  out.set(head, 4 * fields);
  out.set(tail, 4 * fields + head.length);
  return out;
}

/** The module for threads that goes with `plain`; undefined where the two do not fit. */
export function splice(plain: Uint8Array, packed: Uint8Array): Uint8Array<ArrayBuffer> | undefined {
  if (packed.length < 4 * fields) return undefined;
  const view = new DataView(packed.buffer, packed.byteOffset, packed.byteLength);
  const [head = 0, tail = 0, functions = 0, from = 0, to = 0] = Array.from({ length: fields }, (_, i) => view.getUint32(4 * i, true));
  if (4 * fields + head + tail !== packed.length || from > to || to > plain.length) return undefined;
  const start = 4 * fields, count = leb(functions), section = [10, ...leb(count.length + to - from + tail), ...count];
  const out = new Uint8Array(head + section.length + to - from + tail);
  out.set(packed.subarray(start, start + head));
  out.set(section, head);
  out.set(plain.subarray(from, to), head + section.length);
  out.set(packed.subarray(start + head), head + section.length + to - from);
  return out;
}

function leb(n: number): number[] {
  const out: number[] = [];
  for (; n > 127; n = Math.floor(n / 128)) out.push((n % 128) | 128);
  return [...out, n];
}
