/**
 * Element types of tensors, with their ONNX numbers and the typed array each is stored in.
 * float16 and bfloat16 are stored as their bits in a Uint16Array; bool as 0 or 1 in a Uint8Array; floats of 8 and 4 bits
 * as their bits in a Uint8Array; integers of 4 and 2 bits one a byte (packed.ts puts them together).
 */
import { fail } from "./diagnostic.ts";

export type DType =
  | "float32" | "float64" | "float16" | "bfloat16"
  | "int8" | "int16" | "int32" | "int64"
  | "uint8" | "uint16" | "uint32" | "uint64"
  | "bool" | "string"
  | "float8e4m3fn" | "float8e4m3fnuz" | "float8e5m2" | "float8e5m2fnuz" | "float8e8m0" | "float4e2m1"
  | "int4" | "uint4" | "int2" | "uint2";

export type TypedArray =
  | Float32Array | Float64Array | Uint16Array | Int8Array | Int16Array | Int32Array
  | Uint8Array | Uint32Array | BigInt64Array | BigUint64Array;

/** What a tensor's elements are stored in; strings are UTF-16 JavaScript strings. */
export type TensorData = TypedArray | readonly string[];

interface DTypeInfo {
  /** TensorProto.DataType */
  readonly onnx: number;
  /** Bytes an element in memory; 0 for string. */
  readonly size: number;
  /** Bits of an element, where they are fewer than 8. */
  readonly bits?: number;
  readonly kind: "float" | "int" | "uint" | "bool" | "string";
}

export const dtypes: Readonly<Record<DType, DTypeInfo>> = {
  float32: { onnx: 1, size: 4, kind: "float" },
  uint8: { onnx: 2, size: 1, kind: "uint" },
  int8: { onnx: 3, size: 1, kind: "int" },
  uint16: { onnx: 4, size: 2, kind: "uint" },
  int16: { onnx: 5, size: 2, kind: "int" },
  int32: { onnx: 6, size: 4, kind: "int" },
  int64: { onnx: 7, size: 8, kind: "int" },
  string: { onnx: 8, size: 0, kind: "string" },
  bool: { onnx: 9, size: 1, kind: "bool" },
  float16: { onnx: 10, size: 2, kind: "float" },
  float64: { onnx: 11, size: 8, kind: "float" },
  uint32: { onnx: 12, size: 4, kind: "uint" },
  uint64: { onnx: 13, size: 8, kind: "uint" },
  bfloat16: { onnx: 16, size: 2, kind: "float" },
  float8e4m3fn: { onnx: 17, size: 1, kind: "float" },
  float8e4m3fnuz: { onnx: 18, size: 1, kind: "float" },
  float8e5m2: { onnx: 19, size: 1, kind: "float" },
  float8e5m2fnuz: { onnx: 20, size: 1, kind: "float" },
  uint4: { onnx: 21, size: 1, bits: 4, kind: "uint" },
  int4: { onnx: 22, size: 1, bits: 4, kind: "int" },
  float4e2m1: { onnx: 23, size: 1, bits: 4, kind: "float" },
  float8e8m0: { onnx: 24, size: 1, kind: "float" },
  uint2: { onnx: 25, size: 1, bits: 2, kind: "uint" },
  int2: { onnx: 26, size: 1, bits: 2, kind: "int" },
};

export const byteSize = (dtype: DType): number => dtypes[dtype].size;
/** Bits of an element's value. */
export const bitsOf = (dtype: DType): number => dtypes[dtype].bits ?? 8 * dtypes[dtype].size;
export const isFloat = (dtype: DType): boolean => dtypes[dtype].kind === "float";
/** Types that the standard only stores, moves, casts and quantises: floats of 8 bits and all of fewer. */
export const isStorageOnly = (dtype: DType): boolean => bitsOf(dtype) < 8 && dtype !== "string" || (isFloat(dtype) && byteSize(dtype) === 1);
/** Signed or unsigned integer; bool is not one. */
export const isInteger = (dtype: DType): boolean => dtypes[dtype].kind === "int" || dtypes[dtype].kind === "uint";
export const is64 = (dtype: DType): dtype is "int64" | "uint64" => dtype === "int64" || dtype === "uint64";

/** The least and the largest value of an integer dtype, exact up to 2^53. */
export function integerRange(dtype: DType): readonly [least: number, most: number] {
  const bits = bitsOf(dtype);
  return dtypes[dtype].kind === "uint" ? [0, 2 ** bits - 1] : [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1];
}

/** The dtype with this TensorProto.DataType number, or undefined when it is not supported. */
export function dtypeFromOnnx(code: number): DType | undefined {
  return (Object.keys(dtypes) as DType[]).find((d) => dtypes[d].onnx === code);
}

/** Refuses a number of elements that no memory here holds, with OF3016. */
export function checkElementCount(count: number, bytesEach: number): void {
  if (!(count >= 0 && count * bytesEach <= 2 ** 32)) fail("OF3016", `a tensor of ${count} elements ${count < 0 ? "makes no sense" : "is too large"}`, { hint: "check the shapes and values that say its size" });
}

/** Zero-filled storage for `length` elements. Fails with OF3016 beyond 4 GiB. */
export function allocate(dtype: DType, length: number): TypedArray {
  checkElementCount(length, byteSize(dtype));
  switch (dtype) {
    case "float32": return new Float32Array(length);
    case "float64": return new Float64Array(length);
    case "float16": case "bfloat16": case "uint16": return new Uint16Array(length);
    case "int8": case "int4": case "int2": return new Int8Array(length);
    case "int16": return new Int16Array(length);
    case "int32": return new Int32Array(length);
    case "uint8": case "bool": case "uint4": case "uint2": case "float4e2m1":
    case "float8e4m3fn": case "float8e4m3fnuz": case "float8e5m2": case "float8e5m2fnuz": case "float8e8m0":
      return new Uint8Array(length);
    case "uint32": return new Uint32Array(length);
    case "int64": return new BigInt64Array(length);
    case "uint64": return new BigUint64Array(length);
    case "string": throw new TypeError("strings have no typed array");
  }
}

/** A typed view of raw little-endian bytes; copies only when the bytes are not aligned for the dtype. */
export function viewBytes(dtype: DType, bytes: Uint8Array): TypedArray {
  const size = byteSize(dtype);
  const aligned = bytes.byteOffset % size === 0 ? bytes : new Uint8Array(bytes);
  const length = Math.floor(bytes.byteLength / size);
  const { buffer, byteOffset } = aligned;
  switch (dtype) {
    case "float32": return new Float32Array(buffer, byteOffset, length);
    case "float64": return new Float64Array(buffer, byteOffset, length);
    case "float16": case "bfloat16": case "uint16": return new Uint16Array(buffer, byteOffset, length);
    case "int8": case "int4": case "int2": return new Int8Array(buffer, byteOffset, length);
    case "int16": return new Int16Array(buffer, byteOffset, length);
    case "int32": return new Int32Array(buffer, byteOffset, length);
    case "uint8": case "bool": case "uint4": case "uint2": case "float4e2m1":
    case "float8e4m3fn": case "float8e4m3fnuz": case "float8e5m2": case "float8e5m2fnuz": case "float8e8m0":
      return new Uint8Array(buffer, byteOffset, length);
    case "uint32": return new Uint32Array(buffer, byteOffset, length);
    case "int64": return new BigInt64Array(buffer, byteOffset, length);
    case "uint64": return new BigUint64Array(buffer, byteOffset, length);
    case "string": throw new TypeError("strings have no byte view");
  }
}
