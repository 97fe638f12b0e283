/**
 * Tensors of onnxruntime-common ↔ ours, sharing their elements. onnxruntime itself is not needed: its Tensor class is
 * passed in, and its tensors are known by their shape.
 */
import { fail } from "../core/diagnostic.ts";
import { dtypes, type DType, type TensorData } from "../core/dtype.ts";
import { Tensor, type TensorLike } from "./tensor.ts";

/** A class whose tensors are made like onnxruntime-common's. */
export type TensorClass<T> = new (type: never, data: never, dims: readonly number[]) => T;

/** The element types that onnxruntime-common has. */
const known: ReadonlySet<DType> = new Set<DType>([
  "float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool", "string", "int4", "uint4",
]);

/** Ours around the elements of an onnxruntime tensor. Fails with OF7003 where they lie outside the CPU's memory. */
export function fromOnnxruntime(tensor: TensorLike & { readonly location?: string }): Tensor {
  const { location = "cpu", type } = tensor;
  if (location !== "cpu" && location !== "cpu-pinned") fail("OF7003", `the elements of this tensor lie in '${location}'`, { hint: "await its getData() first" });
  if (!isDType(type)) return fail("OF7003", `there is no tensor type '${type}'`);
  return new Tensor(type, tensor.data as never, tensor.dims);
}

/** An onnxruntime tensor around the elements of ours; those of a kept result are copied. Fails with OF7003 for types it lacks. */
export function toOnnxruntime<T>(tensor: Tensor, type: TensorClass<T>): T {
  if (!known.has(tensor.type)) fail("OF7003", `onnxruntime-common has no ${tensor.type} tensors`, { hint: "cast the output in the model" });
  const data: TensorData = tensor.data;
  return new type(tensor.type as never, data as never, tensor.dims);
}

const isDType = (name: string): name is DType => Object.hasOwn(dtypes, name);
