/**
 * A small integer tensor whose elements are expressions over the model's symbolic sizes. Stands for the shape
 * arithmetic that computed it, which thereby disappears. Not an ONNX operator: a graph that holds it is for compiling.
 */
import { dimFromJson, dimToJson, type DimJson } from "../core/dim-json.ts";
import type { Dim } from "../core/dim.ts";
import type { DType } from "../core/dtype.ts";
import { rowMajorStrides } from "../core/tensor.ts";
import { defineOp, required, type Attributes } from "../graph/op.ts";
import { add, cast, computeScalar, constant, dimExpr, eq, i32, mul, select, type Expr } from "../kernel/expr.ts";

export const KnownElements = defineOp({
  type: "KnownElements",
  domain: "onnxfuse",
  since: 1,
  inputs: {},
  attributes: { dtype: required("string"), dims: required("ints"), elements: required("strings") },
  fusionKind: "injective",
  infer: ({}, attributes) => [{ dtype: attributes.dtype as DType, shape: attributes.dims, elements: elementsOf(attributes) }],
  lower: ({}, attributes) => [(...indices) => elementAt(attributes.dims, elementsOf(attributes), attributes.dtype as DType, indices)],
});

/** Attributes of a node that stands for these elements, row-major. */
export const knownElements = (dtype: DType, dims: readonly number[], elements: readonly Dim[]): Attributes =>
  ({ dtype, dims, elements: elements.map((e) => JSON.stringify(dimToJson(e))) });

const elementsOf = ({ elements }: { readonly elements: readonly string[] }): Dim[] => elements.map((e) => dimFromJson(JSON.parse(e) as DimJson));

function elementAt(dims: readonly number[], elements: readonly Dim[], dtype: DType, indices: readonly Expr[]): Expr {
  const strides = rowMajorStrides(dims);
  const at = indices.reduce((sum, index, d) => add(sum, mul(index, strides[d] ?? 1)), constant(0, i32));
  const values = elements.map((e) => cast(dimExpr(e), computeScalar(dtype)));
  const last = values.pop() ?? cast(constant(0, i32), computeScalar(dtype));
  return values.reduceRight((otherwise, value, i) => select(eq(at, i), value, otherwise), last);
}
