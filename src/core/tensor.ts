/** Dense tensors as all parts exchange them, and their elements as numbers and bytes. */
import { allocate, bitsOf, byteSize, dtypes, is64, isInteger, type DType, type TensorData, type TypedArray } from "./dtype.ts";
import { decoderOf, encoderOf } from "./float-bits.ts";
import { invariant } from "./assert.ts";

/** A dense row-major tensor with known sizes. `data.length` is the product of `dims`. */
export interface Tensor {
  readonly dtype: DType;
  readonly dims: readonly number[];
  readonly data: TensorData;
}

export const sizeOf = (dims: readonly number[]): number => dims.reduce((n, d) => n * d, 1);
export const byteLength = (t: Tensor): number => sizeOf(t.dims) * byteSize(t.dtype);

/** Row-major strides in elements. */
export function rowMajorStrides(dims: readonly number[]): number[] {
  const strides = new Array<number>(dims.length).fill(1);
  for (let d = dims.length - 2; d >= 0; d--) strides[d] = (strides[d + 1] ?? 1) * (dims[d + 1] ?? 1);
  return strides;
}

/** A tensor around existing storage. */
export function tensor(dtype: DType, dims: readonly number[], data: TensorData): Tensor {
  invariant(data.length === sizeOf(dims), `tensor of [${dims}] needs ${sizeOf(dims)} elements, got ${data.length}`);
  return { dtype, dims, data };
}

/** A zero-filled tensor (empty strings for string). */
export function zeros(dtype: DType, dims: readonly number[]): Tensor {
  const n = sizeOf(dims);
  return { dtype, dims, data: dtype === "string" ? new Array<string>(n).fill("") : allocate(dtype, n) };
}

/** The storage, which the caller knows to be numeric. */
export function numericData(t: Tensor): TypedArray {
  invariant(t.dtype !== "string", "numeric data of a string tensor");
  return t.data as TypedArray;
}

/** The elements, which the caller knows to be strings. */
export function stringsOf(t: Tensor): readonly string[] {
  invariant(t.dtype === "string", "strings of a numeric tensor");
  return t.data as readonly string[];
}

/**
 * Elements as numbers: floats stored as bits decoded, bool as 0 or 1, 64-bit integers converted
 * (exact up to 2^53). A view without copy where the storage already holds numbers.
 */
export function toNumbers(t: Tensor): ArrayLike<number> {
  const data = numericData(t);
  const decode = decoderOf(t.dtype);
  if (decode) return Float64Array.from(data as Uint16Array, (bits) => decode(bits));
  if (is64(t.dtype)) return Float64Array.from(data as BigInt64Array, Number);
  return data as Exclude<TypedArray, BigInt64Array | BigUint64Array>;
}

/** Elements as exact integers; for integer and bool dtypes. */
export function toBigInts(t: Tensor): bigint[] {
  const data = numericData(t);
  return is64(t.dtype) ? [...(data as BigInt64Array)] : Array.from(data as Int32Array, BigInt);
}

/**
 * A tensor from numbers, rounded once to the dtype: floats to nearest even, integers truncated
 * toward zero then wrapped, bool is `value !== 0`.
 */
export function fromNumbers(dtype: DType, dims: readonly number[], values: ArrayLike<number>): Tensor {
  const out = zeros(dtype, dims);
  const data = numericData(out);
  if ((dtype === "float32" || dtype === "float64") && values instanceof Float64Array) (data as Float32Array | Float64Array).set(values.subarray(0, data.length));
  else if (dtype === "float32" || dtype === "float64") for (let i = 0; i < values.length; i++) data[i] = values[i] ?? 0;
  else for (let i = 0; i < values.length; i++) setNumber(data, dtype, i, values[i] ?? 0);
  return out;
}

/** Writes one element, rounding as `fromNumbers` does. */
export function setNumber(data: TypedArray, dtype: DType, i: number, value: number): void {
  const encode = encoderOf(dtype);
  if (encode) data[i] = encode(value);
  else if (dtype === "bool") data[i] = value !== 0 ? 1 : 0;
  else if (is64(dtype)) (data as BigInt64Array)[i] = Number.isFinite(value) ? BigInt.asIntN(64, BigInt(Math.trunc(value))) : 0n;
  else data[i] = bitsOf(dtype) < 8 ? wrapInteger(value, dtype) : value;
}
/** A number truncated and wrapped to an integer dtype of up to 32 bits. */
export function wrapInteger(value: number, dtype: DType): number {
  const away = 32 - bitsOf(dtype), top = value << away;
  return dtypes[dtype].kind === "int" ? top >> away : top >>> away;
}

/** A tensor from exact integers, wrapped to the dtype. */
export function fromBigInts(dtype: DType, dims: readonly number[], values: readonly bigint[]): Tensor {
  const out = zeros(dtype, dims);
  const data = numericData(out), bits = isInteger(dtype) ? 32 : 64;
  values.forEach((v, i) => {
    if (is64(dtype)) (data as BigInt64Array)[i] = v;
    else setNumber(data, dtype, i, Number(BigInt.asIntN(bits, v)));
  });
  return out;
}

/** Bit equality of dtype, dims and elements (NaN equals NaN of the same bits). */
export function sameTensor(a: Tensor, b: Tensor): boolean {
  if (a.dtype !== b.dtype || a.dims.length !== b.dims.length || a.dims.some((d, i) => d !== b.dims[i])) return false;
  if (a.dtype === "string") return (a.data as readonly string[]).every((s, i) => s === b.data[i]);
  return sameBytes(bytesOf(a), bytesOf(b));
}

/** Equality of bytes, sixteen at a time where both lie so. */
export function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  if (a.buffer === b.buffer && a.byteOffset === b.byteOffset) return true;
  let at = 0;
  if (a.byteOffset % 4 === 0 && b.byteOffset % 4 === 0) {
    const count = a.length >> 2, x = new Int32Array(a.buffer, a.byteOffset, count), y = new Int32Array(b.buffer, b.byteOffset, count);
    let i = 0;
    for (; i + 4 <= count; i += 4) {
      const unlike = ((x[i] ?? 0) ^ (y[i] ?? 0)) | ((x[i + 1] ?? 0) ^ (y[i + 1] ?? 0)) | ((x[i + 2] ?? 0) ^ (y[i + 2] ?? 0)) | ((x[i + 3] ?? 0) ^ (y[i + 3] ?? 0));
      if (unlike !== 0) return false;
    }
    at = 4 * i;
  }
  for (; at < a.length; at++) if (a[at] !== b[at]) return false;
  return true;
}

/** The storage as bytes, without copying. */
export function bytesOf(t: Tensor): Uint8Array {
  const data = numericData(t);
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}
