/**
 * ScatterND and ScatterElements. Where ScatterND's indices are constant and fill a box of the result, as exporters' slice
 * assignments do, an element comes from the updates inside the box and from the data outside. All others are copies with
 * stores where data says.
 */
import { formatShape, isStatic } from "../core/dim.ts";
import { rowMajorStrides, sizeOf } from "../core/tensor.ts";
import type { DType } from "../core/dtype.ts";
import * as evaluate from "../evaluate/gather.ts";
import { ScatterRows as evaluateRows } from "../evaluate/onnxfuse-scatter-rows.ts";
import { defineOp, int, optional, type TypeInfo } from "../graph/op.ts";
import { add, and, div, eq, load, lt, rem, select, binary, type Expr } from "../kernel/expr.ts";
import { integerAt, movedElements, typeWith } from "./element-values.ts";
import { agreeSizes } from "./agree-sizes.ts";
import { checkSameType, narrow } from "./element-wise.ts";
import { axisIn, frontAxis, origin } from "./index-map.ts";
import { indexDepth } from "./gather.ts";
import { columnOf, combine, scatterLoops } from "./scatter-loops.ts";

const reductions = ["none", "add", "mul", "max", "min"];

/** Component c of row u is start + step·u[axis]; without an axis it is start. */
interface Line { readonly start: number; readonly step: number; readonly axis: number | undefined; readonly count: number }

/**
 * The box that constant indices fill: one line a component, each axis of the rows in exactly one; undefined where they
 * fill none. Where that has been asked before, `isBox` says that they do.
 */
function boxOf(indices: TypeInfo, data: TypeInfo, isBox = false): readonly Line[] | undefined {
  const value = integerAt(indices);
  if (!value || !isStatic(indices.shape) || indices.shape.includes(0)) return undefined;
  const rows = indices.shape.slice(0, -1), depth = indices.shape[indices.shape.length - 1] ?? 0, strides = rowMajorStrides(rows);
  const used = new Set<number>(), lines: Line[] = [], all = sizeOf(rows);
  for (let c = 0; c < depth; c++) {
    const size = data.shape[c];
    const at = (row: number): number => { const v = value(row * depth + c); return v < 0 && typeof size === "number" ? v + size : v; };
    const start = at(0);
    const axis = rows.findIndex((n, d) => n > 1 && !used.has(d) && at(strides[d] ?? 0) !== start);
    const step = axis < 0 ? 0 : at(strides[axis] ?? 0) - start, count = axis < 0 ? 1 : rows[axis] ?? 1, stride = strides[axis] ?? 1;
    if (start < 0 || step < 0) return undefined;
    if (!isBox) for (let row = 0; row < all; row++) if (at(row) !== start + (axis < 0 ? 0 : step * (Math.floor(row / stride) % count))) return undefined;
    if (axis >= 0) used.add(axis);
    lines.push({ start, step, axis: axis < 0 ? undefined : axis, count });
  }
  return rows.every((n, d) => n === 1 || used.has(d)) ? lines : undefined;
}

export const ScatterND = defineOp({
  type: "ScatterND", domain: "", since: 11, evaluate: evaluate.ScatterND,
  inputs: { data: "required", indices: "required", updates: "required" }, integers: ["indices"], oneType: [["data", "updates"]],
  attributes: { reduction: optional("string") },
  fusionKind: "injective",
  infer: ({ data, indices, updates }, { reduction = "none" }, context) => {
    checkSameType(context, [data, updates]);
    if (!reductions.includes(reduction)) context.fail("OF3012", `unknown reduction '${reduction}'`);
    const depth = indexDepth(indices, data, 0, context), expected = indices.shape.length - 1 + data.shape.length - depth;
    if (updates.shape.length !== expected) context.fail("OF3010", `updates ${formatShape(updates.shape)} must have rank ${expected}`);
    agreeSizes(context, "updates", updates, [...indices.shape.slice(0, -1), ...data.shape.slice(depth)]);
    const elements = reduction === "none" ? movedElements(evaluate.ScatterND, [data, indices, updates], [0, 2], {}, 1)?.[0] : undefined;
    return [typeWith(data.dtype, data.shape, elements)];
  },
  lowerable: ({ data, indices }) => data.dtype !== "string" && boxOf(indices, data) !== undefined,
  lower: ({ data, indices, updates }, { reduction = "none" }) => {
    const lines = boxOf(indices, data, true) ?? [], rows = indices.shape.length - 1;
    return [(...position) => {
      const row: Expr[] = Array.from({ length: rows }, () => origin), inside: Expr[] = [];
      lines.forEach(({ start, step, axis, count }, c) => {
        const p = position[c] ?? origin, size = data.shape[c];
        if (axis === undefined) { if (size !== 1) inside.push(eq(p, start)); return; }
        const offset = start === 0 ? p : add(p, -start);
        if (start > 0) inside.push(binary("ge", p, start));
        if (typeof size !== "number" || start + step * count < size) inside.push(lt(p, start + step * (count - 1) + 1));
        if (step > 1) inside.push(eq(rem(offset, step), 0));
        row[axis] = step > 1 ? div(offset, step) : offset;
      });
      const old = data.at(...position), [first, ...rest] = inside;
      const update = narrow(combine(reduction, old, updates.at(...row, ...position.slice(lines.length))), data.dtype);
      return first ? select(rest.reduce(and, first), update, old) : update;
    }];
  },
  expand: ({ inputs, inputTypes: [data], outputs }, attributes) => (data && canStore(data.dtype, attributes.reduction) ? [{ op: ScatterRows, inputs, outputs, attributes }] : undefined),
});

/** Whether a kernel can combine elements of a type. */
const canStore = (dtype: DType, reduction = "none"): boolean => dtype !== "string" && (reduction === "none" || dtype !== "bool");

/** ScatterND whose places only running can tell. */
export const ScatterRows = defineOp({
  type: "ScatterRows", domain: "onnxfuse", since: 1, evaluate: evaluateRows,
  inputs: { data: "required", indices: "required", updates: "required" },
  attributes: { reduction: optional("string") },
  fusionKind: "opaque",
  infer: ({ data }) => [{ dtype: data.dtype, shape: data.shape }],
  lowerable: ({ data, indices }, { reduction }) => canStore(data.dtype, reduction) && typeof indices.shape[indices.shape.length - 1] === "number",
  whole: ({ data, indices, updates }, { reduction = "none" }, [out]) => {
    const rows = indices.buffer(), last = indices.shape[indices.shape.length - 1], depth = typeof last === "number" ? last : 0;
    const given = Array.from({ length: depth }, (_, c) => ({ axis: c, at: (update: readonly Expr[]) => columnOf(rows, update, c) }));
    return scatterLoops({ data, updates, out, reduction, given, plain: (axis, update) => update[indices.shape.length - 1 + axis - depth] ?? origin });
  },
});

export const ScatterElements = defineOp({
  type: "ScatterElements", domain: "", since: 11, evaluate: evaluate.ScatterElements,
  inputs: { data: "required", indices: "required", updates: "required" }, integers: ["indices"], oneType: [["data", "updates"]],
  attributes: { axis: int(0), reduction: optional("string") },
  fusionKind: "opaque",
  infer: ({ data, indices, updates }, { axis, reduction = "none" }, context) => {
    checkSameType(context, [data, updates]);
    if (!reductions.includes(reduction)) context.fail("OF3012", `unknown reduction '${reduction}'`);
    if (indices.shape.length !== data.shape.length || updates.shape.length !== data.shape.length) context.fail("OF3010", "data, indices and updates must have one rank");
    const at = axisIn(context, axis, data.shape.length);
    agreeSizes(context, "updates", updates, indices.shape);
    agreeSizes(context, "indices", indices, data.shape.map((d, i) => (i === at ? indices.shape[i] ?? d : d)), "within");
    return [{ dtype: data.dtype, shape: data.shape }];
  },
  lowerable: ({ data }, { reduction }) => canStore(data.dtype, reduction),
  whole: ({ data, indices, updates }, { axis, reduction = "none" }, [out]) => {
    const places = indices.buffer();
    return scatterLoops({ data, updates, out, reduction, given: [{ axis: frontAxis(axis, data.shape.length), at: (update) => load(places, update) }], plain: (own, update) => update[own] ?? origin });
  },
  expand: ({ inputs, outputs }, { axis, reduction = "none" }) => (reduction === "none" ? [{ op: Scatter, inputs, outputs, attributes: { axis } }] : undefined),
});
/** The spelling of ScatterElements before opset 11. */
export const Scatter = defineOp({
  type: "Scatter", domain: "", since: 9, evaluate: evaluate.Scatter,
  inputs: { data: "required", indices: "required", updates: "required" }, integers: ["indices"], oneType: [["data", "updates"]],
  attributes: { axis: int(0) },
  fusionKind: "opaque",
  infer: ({ data }) => [{ dtype: data.dtype, shape: data.shape }],
  read: (node) => ({ ...node, type: "ScatterElements" }),
});
