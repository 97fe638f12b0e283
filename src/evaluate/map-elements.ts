/**
 * Element-wise evaluation: floats in float64 rounded once to the dtype, integers exactly and then wrapped. Operands
 * broadcast as numpy's do.
 */
import { present } from "../core/assert.ts";
import { fail } from "../core/diagnostic.ts";
import { isFloat, type DType } from "../core/dtype.ts";
import { broadcastDims, broadcastSources } from "../core/strided.ts";
import { fromBigInts, fromNumbers, numericData, toBigInts, toNumbers, zeros, type Tensor } from "../core/tensor.ts";

/** f of each element as a number, rounded to `dtype`. */
export const mapNumbers = (t: Tensor, f: (x: number) => number, dtype: DType = t.dtype): Tensor => {
  const x = toNumbers(t), y = new Float64Array(x.length);
  for (let i = 0; i < y.length; i++) y[i] = f(x[i] ?? 0);
  return fromNumbers(dtype, t.dims, y);
};

/** f of each element: floats in float64, integers and bools exactly, wrapped to the dtype. */
export const mapElements = (t: Tensor, float: (x: number) => number, integer: (x: bigint) => bigint): Tensor =>
  isFloat(t.dtype) ? mapNumbers(t, float) : wrapped(t.dtype, t.dims, toBigInts(t).map(integer));

/** Exact integers wrapped to the dtype; bool is `value !== 0`. */
export function wrapped(dtype: DType, dims: readonly number[], values: readonly bigint[]): Tensor {
  if (dtype === "uint64") return fromBigInts(dtype, dims, values.map((v) => BigInt.asUintN(64, v)));
  if (dtype === "int64") return fromBigInts(dtype, dims, values.map((v) => BigInt.asIntN(64, v)));
  if (dtype === "bool") return fromNumbers(dtype, dims, values.map((v) => (v !== 0n ? 1 : 0)));
  return fromNumbers(dtype, dims, values.map((v) => Number(BigInt.asIntN(32, v))));
}

/** f(a, b) of broadcast operands of one dtype: floats in float64, integers exactly; the result of `dtype`. */
export function zipElements(a: Tensor, b: Tensor, float: (x: number, y: number) => number, integer: (x: bigint, y: bigint) => bigint, dtype: DType = a.dtype): Tensor {
  const dims = broadcastDims(a.dims, b.dims);
  const i = broadcastSources(a.dims, dims), j = broadcastSources(b.dims, dims);
  if (isFloat(a.dtype)) {
    const x = toNumbers(a), y = toNumbers(b);
    return fromNumbers(dtype, dims, Float64Array.from(i, (at, n) => float(x[at] ?? 0, y[j[n] ?? 0] ?? 0)));
  }
  const x = toBigInts(a), y = toBigInts(b);
  return wrapped(dtype, dims, Array.from(i, (at, n) => integer(x[at] ?? 0n, y[j[n] ?? 0] ?? 0n)));
}

/** Copies one element of `from` to `to`, whatever the dtype; both have the same. */
export function copier(from: Tensor, to: Tensor): (source: number, target: number) => void {
  if (from.dtype === "string") {
    const x = from.data as readonly string[], y = to.data as string[];
    return (i, j) => { y[j] = x[i] ?? ""; };
  }
  const x = numericData(from), y = numericData(to);
  switch (x.BYTES_PER_ELEMENT) {
    case 1: return copyBits(new Uint8Array(x.buffer, x.byteOffset, x.length), new Uint8Array(y.buffer, y.byteOffset, y.length));
    case 2: return copyBits(new Uint16Array(x.buffer, x.byteOffset, x.length), new Uint16Array(y.buffer, y.byteOffset, y.length));
    case 4: return copyBits(new Uint32Array(x.buffer, x.byteOffset, x.length), new Uint32Array(y.buffer, y.byteOffset, y.length));
    default: {
      const p = new BigUint64Array(x.buffer, x.byteOffset, x.length), q = new BigUint64Array(y.buffer, y.byteOffset, y.length);
      return (i, j) => { q[j] = p[i] ?? 0n; };
    }
  }
}
const copyBits = <T extends Uint8Array | Uint16Array | Uint32Array>(x: T, y: T) => (i: number, j: number): void => { y[j] = x[i] ?? 0; };

/** The tensor of `dims` whose element i is `t`'s element `sources[i]`; a negative source leaves zero. */
export function pick(t: Tensor, dims: readonly number[], sources: ArrayLike<number>): Tensor {
  const out = zeros(t.dtype, dims), copy = copier(t, out);
  for (let i = 0; i < sources.length; i++) { const at = sources[i] ?? 0; if (at >= 0) copy(at, i); }
  return out;
}

/** The tensor of `dims` whose every element is the only one of `t`, bit for bit. */
export function filled(t: Tensor, dims: readonly number[]): Tensor {
  const out = zeros(t.dtype, dims);
  if (t.dtype === "string") (out.data as string[]).fill((t.data as readonly string[])[0] ?? "");
  else {
    const x = numericData(t), y = numericData(out), one = new Uint8Array(x.buffer, x.byteOffset, x.BYTES_PER_ELEMENT), bytes = new Uint8Array(y.buffer, y.byteOffset, y.byteLength);
    bytes.set(one.subarray(0, bytes.length));
    // What is filled is doubled.
    for (let done = one.length; done < bytes.length; done *= 2) bytes.copyWithin(done, 0, Math.min(done, bytes.length - done));
  }
  return out;
}

/** The tensor broadcast to `dims`. */
export const broadcastTo = (t: Tensor, dims: readonly number[]): Tensor => pick(t, dims, broadcastSources(t.dims, dims));

/** Axis counted from the front. Fails with OF7014 for one that is fed and that there is not. */
export const normalAxis = (axis: number, rank: number): number => {
  const a = axis < 0 ? axis + rank : axis;
  if (!(a >= 0 && a < Math.max(rank, 1))) fail("OF7014", `there is no axis ${axis} in a tensor of rank ${rank}`, { hint: "check the axis that is fed" });
  return a;
};

/** The input, which the operator's schema requires. */
export const input = (inputs: readonly (Tensor | undefined)[], i: number): Tensor => present(inputs[i], `input ${i}`);
