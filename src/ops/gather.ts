/**
 * Operators that read at indices held in tensors: Gather, GatherElements, GatherND. Negative indices count from the end.
 * Indices out of range are the model's error: kernels rely on their guards.
 */
import { formatShape, shapeEqual, type Dim } from "../core/dim.ts";
import * as evaluate from "../evaluate/gather.ts";
import { defineOp, int, optional, type InferContext, type TypeInfo } from "../graph/op.ts";
import { constant, i32, type Expr } from "../kernel/expr.ts";
import { agreeSizes } from "./agree-sizes.ts";
import { elementsOf, movedElements, numbersKnown, typeWith } from "./element-values.ts";
import { axisIn, frontAxis, indexFrom } from "./index-map.ts";

/** Reports OF3012 where a known index is out of range. */
function checkIndices(indices: TypeInfo, size: Dim, context: InferContext): void {
  if (typeof size !== "number") return;
  const bad = elementsOf(indices)?.find((i) => typeof i === "number" && (i < -size || i >= size));
  if (bad !== undefined) context.fail("OF3012", `index ${String(bad)} is out of range for size ${size}`);
}
/** Whether some index may count from the end. */
const mayBeNegative = (indices: TypeInfo): boolean => {
  if (indices.dtype.startsWith("uint")) return false;
  const known = numbersKnown(indices);
  return !known || known.some((i) => i < 0);
};

export const Gather = defineOp({
  type: "Gather", domain: "", since: 1, evaluate: evaluate.Gather,
  inputs: { data: "required", indices: "required" }, integers: ["indices"],
  attributes: { axis: int(0) },
  fusionKind: "injective",
  infer: ({ data, indices }, { axis }, context) => {
    const at = axisIn(context, axis, data.shape.length);
    checkIndices(indices, data.shape[at] ?? 1, context);
    const shape = [...data.shape.slice(0, at), ...indices.shape, ...data.shape.slice(at + 1)];
    return [typeWith(data.dtype, shape, movedElements(evaluate.Gather, [data, indices], [0], { axis: at }, 1)?.[0])];
  },
  lowerable: ({ data }) => data.dtype !== "string",
  guards: ({ data }, { axis }) => [{ input: 1, axes: [data.shape[frontAxis(axis, data.shape.length)] ?? 1] }],
  lower: ({ data, indices }, { axis }) => {
    const at = frontAxis(axis, data.shape.length), rank = indices.shape.length, signed = mayBeNegative(indices);
    const only = numbersKnown(indices), size = data.shape[at] ?? 1;
    return [(...position) => {
      const [single] = only ?? [];
      const index = only?.length === 1 && single !== undefined && (single >= 0 || typeof size === "number")
        ? constant(single < 0 && typeof size === "number" ? single + size : single, i32)
        : indexFrom(indices.at(...position.slice(at, at + rank)), size, signed);
      return data.at(...position.slice(0, at), index, ...position.slice(at + rank));
    }];
  },
});

export const GatherElements = defineOp({
  type: "GatherElements", domain: "", since: 11, evaluate: evaluate.GatherElements,
  inputs: { data: "required", indices: "required" }, integers: ["indices"],
  attributes: { axis: int(0) },
  fusionKind: "injective",
  infer: ({ data, indices }, { axis }, context) => {
    if (data.shape.length !== indices.shape.length) context.fail("OF3010", `ranks differ: ${formatShape(data.shape)} and ${formatShape(indices.shape)}`);
    const at = axisIn(context, axis, data.shape.length);
    checkIndices(indices, data.shape[at] ?? 1, context);
    agreeSizes(context, "indices", indices, data.shape.map((d, i) => (i === at ? indices.shape[i] ?? d : d)), "within");
    return [typeWith(data.dtype, indices.shape, movedElements(evaluate.GatherElements, [data, indices], [0], { axis }, 1)?.[0])];
  },
  lowerable: ({ data }) => data.dtype !== "string",
  guards: ({ data }, { axis }) => [{ input: 1, axes: [data.shape[frontAxis(axis, data.shape.length)] ?? 1] }],
  lower: ({ data, indices }, { axis }) => {
    const at = frontAxis(axis, data.shape.length);
    return [(...position) => data.at(...position.map((p, i) => (i === at ? indexFrom(indices.at(...position), data.shape[at] ?? 1, mayBeNegative(indices)) : p)))];
  },
});

/** The last axis of `indices` holds the leading indices into `data`, past the batch axes. */
export const GatherND = defineOp({
  type: "GatherND", domain: "", since: 11, evaluate: evaluate.GatherND,
  inputs: { data: "required", indices: "required" }, integers: ["indices"],
  attributes: { batch_dims: optional("int") },
  fusionKind: "injective",
  infer: ({ data, indices }, { batch_dims = 0 }, context) => {
    if (batch_dims < 0 || batch_dims >= Math.min(data.shape.length, indices.shape.length)) context.fail("OF3012", `batch_dims is ${batch_dims} for ranks ${data.shape.length} and ${indices.shape.length}`);
    const depth = indexDepth(indices, data, batch_dims, context);
    if (!shapeEqual(data.shape.slice(0, batch_dims), indices.shape.slice(0, batch_dims)) && data.shape.slice(0, batch_dims).some((d, i) => typeof d === "number" && typeof indices.shape[i] === "number" && d !== indices.shape[i]))
      context.fail("OF3011", `batch axes differ: ${formatShape(data.shape)} and ${formatShape(indices.shape)}`);
    const shape = [...indices.shape.slice(0, -1), ...data.shape.slice(batch_dims + depth)];
    return [typeWith(data.dtype, shape, movedElements(evaluate.GatherND, [data, indices], [0], { batch_dims }, 1)?.[0])];
  },
  lowerable: ({ data }) => data.dtype !== "string",
  guards: ({ data, indices }, { batch_dims = 0 }) => {
    const depth = Number(indices.shape[indices.shape.length - 1]);
    return depth > 0 ? [{ input: 1, axes: data.shape.slice(batch_dims, batch_dims + depth), each: true }] : [];
  },
  lower: ({ data, indices }, { batch_dims = 0 }) => {
    const rows = indices.shape.length - 1, depth = indices.shape[rows];
    const signed = mayBeNegative(indices);
    return [(...position) => {
      const row = position.slice(0, rows);
      const named = Array.from({ length: typeof depth === "number" ? depth : 0 }, (_, k): Expr => indexFrom(indices.at(...row, constant(k, i32)), data.shape[batch_dims + k] ?? 1, signed));
      return data.at(...row.slice(0, batch_dims), ...named, ...position.slice(rows));
    }];
  },
});

/** How many axes each row of `indices` names; reports where it is not known or too many. */
export function indexDepth(indices: TypeInfo, data: TypeInfo, batch: number, context: InferContext): number {
  const depth = indices.shape[indices.shape.length - 1];
  if (typeof depth !== "number") return context.fail("OF3014", "the last axis of the indices must have a known size", "fix the sizes with --input_shape");
  if (batch + depth > data.shape.length) context.fail("OF3011", `indices name ${depth} axes past ${batch} of ${formatShape(data.shape)}`);
  return depth;
}
