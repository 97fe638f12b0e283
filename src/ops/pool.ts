/** Pooling over windows: MaxPool, AveragePool, LpPool. */
import { dimAdd, type Dim } from "../core/dim.ts";
import type { DType } from "../core/dtype.ts";
import { defineOp, int, required, type AttributeSpec, type InferContext, type Pooling, type TypeInfo } from "../graph/op.ts";
import { add, binary, cast, computeScalar, constant, dimExpr, div, eq, max, min, mul, or, reduce, scalarType, select, sqrt, sub, unary, type Expr, type Type } from "../kernel/expr.ts";
import { AveragePool as evaluateAveragePool, LpPool as evaluateLpPool, MaxPool as evaluateMaxPool } from "../evaluate/pool.ts";
import { checkType } from "./element-wise.ts";
import { checkWindows, guarded, insideOf, operand, positionOf, readWindow, windowAttributes, windowsOf, type Window, type WindowOptions } from "./window.ts";

/** The attributes of a pool over windows. */
export const poolAttributes = { ...windowAttributes, ceil_mode: int(0), kernel_shape: required("ints") } as const satisfies Record<string, AttributeSpec>;

export interface PoolOptions extends WindowOptions { readonly kernel_shape: readonly number[] }

/** The windows of a pool over `x`, channels in axis 1. */
export const poolWindows = (x: { readonly shape: readonly Dim[] }, options: PoolOptions): readonly Window[] => windowsOf(x.shape.slice(2), options.kernel_shape, options);

function inferPool(x: TypeInfo, options: PoolOptions, context: InferContext): readonly Dim[] {
  const rank = x.shape.length - 2;
  checkWindows(rank, options, context);
  if (options.kernel_shape.length !== rank) context.fail("OF3012", `kernel_shape needs ${rank} values, got ${options.kernel_shape.length}`);
  return [...x.shape.slice(0, 2), ...poolWindows(x, options).map((w) => w.output)];
}

/** Taps along each axis. */
export const taps = (windows: readonly Window[]): readonly number[] => windows.map((w) => w.kernel);

/** The windows of a pool that may run on rows as they are computed: of two axes, floats, without steps between taps. */
function windowsOnRows(x: TypeInfo, options: PoolOptions): Pooling["windows"] | undefined {
  if (x.dtype !== "float32" || x.shape.length !== 4) return undefined;
  const [outer, inner] = poolWindows(x, options).map(({ kernel, stride, dilation, padBegin }) => (dilation === 1 && typeof padBegin === "number" ? { taps: kernel, stride, pad: padBegin } : undefined));
  return outer && inner && [outer, inner];
}

/** The least value of a dtype, which a maximum over padding alone gives. */
function lowest(dtype: DType, type: Type): number | bigint {
  if (dtype === "int8") return -128;
  if (dtype === "uint8") return 0;
  return type.scalar === "f32" || type.scalar === "f64" ? -Infinity : -(2 ** 31);
}

export const MaxPool = defineOp({
  type: "MaxPool",
  domain: "",
  since: 10,
  inputs: { X: "required" },
  attributes: { ...poolAttributes, storage_order: int(0) },
  fusionKind: "reduction",
  infer({ X }, attributes, context) {
    const shape = inferPool(X, attributes, context);
    return [{ dtype: X.dtype, shape }, { dtype: "int64", shape }];
  },
  evaluate: evaluateMaxPool,
  pooling({ X }, attributes) {
    const windows = windowsOnRows(X, attributes);
    return windows && { reduce: "max", windows };
  },
  lower({ X }, attributes) {
    const windows = poolWindows(X, attributes);
    const type = scalarType(computeScalar(X.dtype)), least = lowest(X.dtype, type);
    const maximum = (indices: readonly Expr[]): Expr => reduce("max", taps(windows), (...k) =>
      readWindow(windows, indices.slice(2), k, (p) => X.at(operand(indices, 0), operand(indices, 1), ...p), least), constant(least, type));
    return [
      (...indices) => maximum(indices),
      (...indices) => cast(firstMaximum(X, windows, indices, maximum(indices), attributes.storage_order === 1), "i64"),
    ];
  },
  write: (node, opset) => {
    if (opset >= 10) return node;
    const { ceil_mode, dilations, ...attributes } = node.attributes;
    const plain = !ceil_mode && (!Array.isArray(dilations) || dilations.every((d) => d === 1));
    return plain && opset >= 8 ? { ...node, attributes } : undefined;
  },
});

/** The flat index in X of the first tap that holds the maximum (the first NaN, when that is the maximum). */
function firstMaximum(X: { readonly shape: readonly Dim[]; at(...i: readonly Expr[]): Expr }, windows: readonly Window[], indices: readonly Expr[], maximum: Expr, columnMajor: boolean): Expr {
  const none = constant(2 ** 31 - 1, scalarType("i32"));
  const n = operand(indices, 0), c = operand(indices, 1);
  const found = reduce("min", taps(windows), (...k) => {
    const positions = windows.map((w, d) => positionOf(w, operand(indices, d + 2), operand(k, d)));
    const value = X.at(n, c, ...positions);
    const floating = value.type.scalar === "f32" || value.type.scalar === "f64";
    const same = floating ? or(eq(value, maximum), unary("isnan", value)) : eq(value, maximum);
    const order = columnMajor ? [...positions.keys()].reverse() : [...positions.keys()];
    const flat = order.reduce((sum, d) => add(mul(sum, dimExpr(operand(windows, d).input)), operand(positions, d)), constant(0, scalarType("i32")));
    return guarded(windows.flatMap((w, d) => insideOf(w, operand(positions, d))), select(same, flat, none), none);
  });
  const plane = add(mul(n, dimExpr(X.shape[1] ?? 1)), c);
  return add(windows.reduce((sum, w) => mul(sum, dimExpr(w.input)), plane), found);
}

/** How many taps of the window at output index `o` count: those inside the input, or inside it with its padding. */
function countedTaps(w: Window, o: Expr, withPadding: boolean): Expr | number {
  const over = withPadding ? overrunsPadding(w) : w.mayOverrun;
  if (!over && (withPadding || !w.mayUnderrun)) return w.kernel;
  const start = positionOf({ ...w, kernel: 1 }, o, constant(0, scalarType("i32")));
  const end = withPadding ? dimAdd(w.input, w.padEnd) : w.input;
  const stepsUp = (distance: Expr): Expr => (w.dilation === 1 ? distance : div(add(distance, w.dilation - 1), w.dilation));
  const last = over ? min(constant(w.kernel, scalarType("i32")), stepsUp(sub(dimExpr(end), start))) : constant(w.kernel, scalarType("i32"));
  const first = !withPadding && w.mayUnderrun ? stepsUp(max(constant(0, scalarType("i32")), sub(constant(0, scalarType("i32")), start))) : undefined;
  return first ? sub(last, first) : last;
}

/** How many elements the window at these output positions averages, as a number of `type`. */
export function tapCount(windows: readonly Window[], output: readonly Expr[], withPadding: boolean, type: Type): Expr {
  const counts = windows.map((w, d) => countedTaps(w, operand(output, d), withPadding));
  const fixed = counts.reduce<number>((n, c) => (typeof c === "number" ? n * c : n), 1);
  const varying = counts.filter((c) => typeof c !== "number");
  const count = varying.reduce((product, c) => mul(product, c), constant(fixed, scalarType("i32")));
  return varying.length ? cast(count, type.scalar) : constant(fixed, type);
}

/** ceil_mode may let the last window hang over the padded input. */
function overrunsPadding(w: Window): boolean {
  if (typeof w.output !== "number" || typeof w.input !== "number" || typeof w.padBegin !== "number" || typeof w.padEnd !== "number") return w.mayOverrun;
  return (w.output - 1) * w.stride - w.padBegin + (w.kernel - 1) * w.dilation >= w.input + w.padEnd;
}

export const AveragePool = defineOp({
  type: "AveragePool",
  domain: "",
  since: 19,
  inputs: { X: "required" },
  attributes: { ...poolAttributes, count_include_pad: int(0) },
  fusionKind: "reduction",
  infer: ({ X }, attributes, context) => [{ dtype: X.dtype, shape: inferPool(X, attributes, context) }],
  evaluate: evaluateAveragePool,
  pooling({ X }, attributes) {
    const windows = windowsOnRows(X, attributes), [down, across] = attributes.kernel_shape;
    const inside = poolWindows(X, attributes).every((w) => !w.mayUnderrun && !w.mayOverrun);
    return windows && inside && down !== undefined && across !== undefined ? { reduce: "add", divisor: down * across, windows } : undefined;
  },
  lower({ X }, attributes) {
    const windows = poolWindows(X, attributes);
    return [(...indices) => {
      const total = reduce("add", taps(windows), (...k) => readWindow(windows, indices.slice(2), k, (p) => X.at(operand(indices, 0), operand(indices, 1), ...p), 0));
      return div(total, tapCount(windows, indices.slice(2), attributes.count_include_pad !== 0, total.type));
    }];
  },
  write: (node, opset) => {
    if (opset >= 19) return node;
    const { dilations, ...attributes } = node.attributes;
    if (Array.isArray(dilations) && dilations.some((d) => d !== 1)) return undefined;
    if (opset >= 10) return { ...node, attributes };
    const { ceil_mode, ...older } = attributes;
    return ceil_mode || opset < 7 ? undefined : { ...node, attributes: older };
  },
});

/** (Σ |x|^p)^(1/p) of terms already raised to p. */
function root(total: Expr, p: number): Expr {
  if (p === 1) return total;
  return p === 2 ? sqrt(total) : binary("pow", total, constant(1 / p, total.type));
}
function powered(x: Expr, p: number): Expr {
  if (p === 2) return mul(x, x);
  const magnitude = unary("abs", x);
  return p === 1 ? magnitude : binary("pow", magnitude, constant(p, x.type));
}

export const LpPool = defineOp({
  type: "LpPool",
  domain: "",
  since: 18,
  inputs: { X: "required" },
  attributes: { ...poolAttributes, p: int(2) },
  fusionKind: "reduction",
  infer: ({ X }, attributes, context) => {
    checkType(context, X, "X", "float");
    return [{ dtype: X.dtype, shape: inferPool(X, attributes, context) }];
  },
  evaluate: evaluateLpPool,
  lower({ X }, attributes) {
    const windows = poolWindows(X, attributes);
    return [(...indices) => root(reduce("add", taps(windows), (...k) =>
      readWindow(windows, indices.slice(2), k, (p) => powered(X.at(operand(indices, 0), operand(indices, 1), ...p), attributes.p), 0)), attributes.p)];
  },
  write: (node, opset) => {
    if (opset >= 18) return node;
    const { dilations, ceil_mode, ...attributes } = node.attributes;
    const plain = !ceil_mode && (!Array.isArray(dilations) || dilations.every((d) => d === 1));
    return plain && opset >= 2 ? { ...node, attributes } : undefined;
  },
});
