/**
 * Operators that order, count or select: ArgMax and ArgMin are two reductions in a kernel; TopK, NonZero, Compress and
 * Unique run on the host.
 */
import { dimProduct, formatShape, type Dim } from "../core/dim.ts";
import { isFloat } from "../core/dtype.ts";
import { Compress as evaluateCompress, NonZero as evaluateNonZero } from "../evaluate/gather.ts";
import * as evaluate from "../evaluate/order.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { defineOp, int, optional, type OpDef, type Spelling } from "../graph/op.ts";
import { binary, cast, dimExpr, eq, reduce, select, unary, type Expr } from "../kernel/expr.ts";
import { elementsOf } from "./element-values.ts";
import { checkType } from "./element-wise.ts";
import { axisIn, frontAxis, origin } from "./index-map.ts";
import { listInput, numberIn, numbersOfInput, without } from "./spelling.ts";

/** The index of the extreme along an axis: the first, or with select_last_index the last, of equal ones. NaN counts as the extreme. */
const extremeIndex = (type: string, op: "max" | "min", evaluate: Evaluate): OpDef => defineOp({
  type, domain: "", since: 1, evaluate,
  inputs: { data: "required" },
  attributes: { axis: int(0), keepdims: int(1), select_last_index: optional("int") },
  fusionKind: "reduction",
  infer: ({ data }, { axis, keepdims }, context) => {
    checkType(context, data, "data", "numeric");
    const at = axisIn(context, axis, data.shape.length);
    return [{ dtype: "int64", shape: keepdims ? data.shape.map((d, i): Dim => (i === at ? 1 : d)) : data.shape.filter((_, i) => i !== at) }];
  },
  lower: ({ data }, { axis, keepdims, select_last_index }) => {
    const at = frontAxis(axis, data.shape.length), size = data.shape[at] ?? 1;
    return [(...indices) => {
      const outer = keepdims ? indices : [...indices.slice(0, at), origin, ...indices.slice(at)];
      const read = (k: Expr): Expr => data.at(...outer.map((index, i) => (i === at ? k : index)));
      const best = reduce(op, [size], read);
      const isBest = (k: Expr): Expr => (isFloat(data.dtype) ? binary("or", eq(read(k), best), unary("isnan", read(k))) : eq(read(k), best));
      const found = select_last_index ? reduce("max", [size], (k) => select(isBest(k), k, -1)) : reduce("min", [size], (k) => select(isBest(k), k, dimExpr(size)));
      return cast(found, "i64");
    }];
  },
});
export const ArgMax: OpDef = extremeIndex("ArgMax", "max", evaluate.ArgMax);
export const ArgMin: OpDef = extremeIndex("ArgMin", "min", evaluate.ArgMin);

/** The k largest (or smallest) along an axis, sorted, with their indices. */
export const TopK = defineOp({
  type: "TopK", domain: "", since: 11, evaluate: evaluate.TopK,
  inputs: { X: "required", K: "required" }, integers: ["K"],
  attributes: { axis: int(-1), largest: int(1), sorted: int(1) },
  fusionKind: "opaque",
  infer: ({ X, K }, { axis }, context) => {
    checkType(context, X, "X", "numeric");
    if (K.shape.length > 1 || (K.shape.length === 1 && typeof K.shape[0] === "number" && K.shape[0] !== 1)) context.fail("OF3011", `K must have one element, got ${formatShape(K.shape)}`);
    const at = axisIn(context, axis, X.shape.length), count = elementsOf(K)?.[0] ?? context.fresh("k"), size = X.shape[at];
    if (typeof count === "number" && typeof size === "number" && (count < 0 || count > size)) context.fail("OF3012", `k is ${count}, the axis has ${size} elements`);
    const shape = X.shape.map((d, i) => (i === at ? count : d));
    return [{ dtype: X.dtype, shape }, { dtype: "int64", shape }];
  },
  read: (node, opset) => {
    if (opset >= 10) return node;
    const k = numberIn(node.attributes.k);
    return { ...node, inputs: [node.inputs[0], ...(k === undefined ? [] : [listInput([k])])], attributes: without(node.attributes, "k") };
  },
  write: (node, opset) => {
    if (opset >= 11) return node;
    if (node.attributes.largest === 0 || node.attributes.sorted === 0) return undefined;
    const older: Spelling = { ...node, attributes: without(node.attributes, "largest", "sorted") };
    if (opset >= 10) return older;
    const k = numbersOfInput(node.inputs[1])?.[0];
    return k === undefined ? undefined : { ...older, inputs: [node.inputs[0]], attributes: { ...older.attributes, k } };
  },
});

export const NonZero = defineOp({
  type: "NonZero", domain: "", since: 9, evaluate: evaluateNonZero,
  inputs: { X: "required" },
  attributes: {},
  fusionKind: "opaque",
  infer: ({ X }, _, context) => [{ dtype: "int64", shape: [X.shape.length, context.fresh("nonzero")] }],
});

export const Compress = defineOp({
  type: "Compress", domain: "", since: 9, evaluate: evaluateCompress,
  inputs: { input: "required", condition: "required" },
  attributes: { axis: optional("int") },
  fusionKind: "opaque",
  infer: ({ input, condition }, { axis }, context) => {
    checkType(context, condition, "condition", "bool");
    const kept = elementsOf(condition)?.reduce<number | undefined>((n, c) => (n === undefined || typeof c !== "number" ? undefined : n + c), 0);
    const size = kept ?? context.fresh("kept");
    if (axis === undefined) return [{ dtype: input.dtype, shape: [size] }];
    const at = axisIn(context, axis, input.shape.length);
    return [{ dtype: input.dtype, shape: input.shape.map((d, i) => (i === at ? size : d)) }];
  },
});

/** Distinct values with their first positions, the inverse and counts. */
export const Unique = defineOp({
  type: "Unique", domain: "", since: 11, evaluate: evaluate.Unique,
  inputs: { X: "required" },
  attributes: { axis: optional("int"), sorted: int(1) },
  fusionKind: "opaque",
  infer: ({ X }, { axis }, context) => {
    const at = axis === undefined ? undefined : axisIn(context, axis, X.shape.length), count = context.fresh("unique");
    const all = at === undefined ? dimProduct(X.shape) : X.shape[at] ?? context.fail("OF3010", `no axis in ${formatShape(X.shape)}`);
    return [
      { dtype: X.dtype, shape: at === undefined ? [count] : X.shape.map((d, i) => (i === at ? count : d)) },
      { dtype: "int64", shape: [count] }, { dtype: "int64", shape: [all] }, { dtype: "int64", shape: [count] },
    ];
  },
});
