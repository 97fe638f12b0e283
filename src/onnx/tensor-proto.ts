/**
 * TensorProto ↔ Tensor. Sizes are checked against the bytes at hand before they are believed; raw data becomes a view
 * of the file wherever alignment allows.
 */
import { create } from "@bufbuild/protobuf";
import { fail, type Place } from "../core/diagnostic.ts";
import { mostAxes } from "../core/dim.ts";
import { allocate, byteSize, dtypeFromOnnx, dtypes, viewBytes, type DType, type TensorData } from "../core/dtype.ts";
import { isPacked, packedBytes, packElements, unpackElements } from "../core/packed.ts";
import { bytesOf, numericData, type Tensor } from "../core/tensor.ts";
import type { ExternalFiles } from "./external-data.ts";
import { TensorProto_DataLocation, TensorProto_DataType, TensorProtoSchema, type TensorProto } from "./schema/onnx_pb.ts";

/** Fails with OF2010 (dtype), OF2011 (size), or as ExternalFiles does. */
export function readTensor(proto: TensorProto, files: ExternalFiles, place: Place = {}): Tensor {
  const at: Place = proto.name === "" ? place : { ...place, value: proto.name };
  const dtype = readDType(proto.dataType, at);
  const dims = readDims(proto.dims, at);
  if (proto.segment) fail("OF2011", "tensors in segments are not supported", { place: at });
  const size = dims.reduce((n, d) => n * d, 1);
  if (!Number.isSafeInteger(size * Math.max(1, byteSize(dtype)))) fail("OF2011", `a tensor of [${dims}] is too large`, { place: at });
  if (dtype === "string") return { dtype, dims, data: readStrings(proto, size, at) };
  if (proto.dataLocation === TensorProto_DataLocation.EXTERNAL) return { dtype, dims, data: fromBytes(dtype, files.bytes(proto, packedBytes(dtype, size), at), size) };
  if (hasTypedData(proto)) return { dtype, dims, data: readTyped(proto, dtype, size, at) };
  checkSize(proto.rawData.byteLength, packedBytes(dtype, size), "bytes", dims, dtype, at);
  return { dtype, dims, data: fromBytes(dtype, proto.rawData, size) };
}

/** The dtype with this number, or a diagnostic that names it. */
export function readDType(code: number, place: Place): DType {
  const dtype = dtypeFromOnnx(code);
  if (dtype) return dtype;
  const name = Object.entries(TensorProto_DataType).find(([, value]) => value === code)?.[0];
  return fail("OF2010", `tensors of type ${name ?? `number ${code}`} are not supported`, { place });
}

function readDims(dims: readonly bigint[], place: Place): number[] {
  if (dims.length > mostAxes) fail("OF3020", `a tensor has ${dims.length} axes`, { place, hint: `tensors have at most ${mostAxes}` });
  return dims.map((d) => {
    if (d < 0n || d > BigInt(Number.MAX_SAFE_INTEGER)) fail("OF2011", `a tensor's size of ${d} makes no sense`, { place });
    return Number(d);
  });
}

function checkSize(have: number, want: number, unit: string, dims: readonly number[], dtype: DType, place: Place): void {
  if (have !== want) fail("OF2011", `a ${dtype} tensor of [${dims}] needs ${want} ${unit}, the file has ${have}`, { place, hint: "the file is damaged or cut off" });
}

/** Bools that hold anything but 0 and 1 are brought to 1. */
function fromBytes(dtype: DType, bytes: Uint8Array, size: number): TensorData {
  if (isPacked(dtype)) return unpackElements(dtype, bytes, size);
  if (dtype === "bool" && bytes.some((b) => b > 1)) return bytes.map((b) => (b === 0 ? 0 : 1));
  return viewBytes(dtype, bytes);
}

function readStrings(proto: TensorProto, size: number, place: Place): string[] {
  checkSize(proto.stringData.length, size, "strings", proto.dims.map(Number), "string", place);
  const decoder = new TextDecoder();
  return proto.stringData.map((bytes) => decoder.decode(bytes));
}

const hasTypedData = (p: TensorProto): boolean =>
  p.floatData.length > 0 || p.int32Data.length > 0 || p.int64Data.length > 0 || p.doubleData.length > 0 || p.uint64Data.length > 0;

/** The typed field that the format assigns to each dtype. */
function readTyped(proto: TensorProto, dtype: DType, size: number, place: Place): TensorData {
  const field: readonly number[] | readonly bigint[] =
    dtype === "float32" ? proto.floatData : dtype === "float64" ? proto.doubleData
    : dtype === "int64" ? proto.int64Data : dtype === "uint64" || dtype === "uint32" ? proto.uint64Data : proto.int32Data;
  checkSize(field.length, isPacked(dtype) ? packedBytes(dtype, size) : size, "elements", proto.dims.map(Number), dtype, place);
  if (isPacked(dtype)) return unpackElements(dtype, proto.int32Data, size);
  const data = allocate(dtype, size);
  for (let i = 0; i < size; i++) {
    const value = field[i] ?? 0;
    data[i] = data instanceof BigInt64Array || data instanceof BigUint64Array ? BigInt(value) : dtype === "bool" ? Number(Number(value) !== 0) : Number(value);
  }
  return data;
}

/** A tensor with raw data (or string data), under `name`. */
export function writeTensor(tensor: Tensor, name = ""): TensorProto {
  const shared = { name, dims: tensor.dims.map(BigInt), dataType: dtypes[tensor.dtype].onnx };
  if (isPacked(tensor.dtype)) return create(TensorProtoSchema, { ...shared, rawData: packElements(tensor.dtype, numericData(tensor)) });
  if (tensor.dtype !== "string") return create(TensorProtoSchema, { ...shared, rawData: bytesOf(tensor) });
  const encoder = new TextEncoder();
  return create(TensorProtoSchema, { ...shared, stringData: (tensor.data as readonly string[]).map((s) => encoder.encode(s)) });
}
