/** Normalisation within an instance: InstanceNormalization, GroupNormalization, LpNormalization, LRN, MeanVarianceNormalization. */
import { dimExactDiv, formatDim, type Dim, formatShape } from "../core/dim.ts";
import { defineOp, float, int, ints, required, type InferContext, type Operand, type TypeInfo } from "../graph/op.ts";
import { checkType } from "./element-wise.ts";
import { add, and, binary, cast, constant, dimExpr, div, eq, ge, i32, lt, mul, reduce, select, sqrt, sub, unary, type Expr } from "../kernel/expr.ts";
import {
  GroupNormalization as evaluateGroup, InstanceNormalization as evaluateInstance, LRN as evaluateLrn,
  LpNormalization as evaluateLp, MeanVarianceNormalization as evaluateMeanVariance,
} from "../evaluate/normalization.ts";
import { axesFrom, axisWithin, momentsOver, overAxes } from "./axis-reduction.ts";
import { operand } from "./window.ts";

const same = (X: TypeInfo): readonly TypeInfo[] => [{ dtype: X.dtype, shape: X.shape }];

function checkChannels(of: TypeInfo, count: Dim, name: string, context: InferContext): void {
  const [size] = of.shape;
  if (of.shape.length !== 1 || (typeof size === "number" && typeof count === "number" && size !== count))
    context.fail("OF3011", `${name} must have ${formatDim(count)} elements, got [${of.shape.map(formatDim).join(", ")}]`);
  context.agree?.(count, size ?? count, "equal");
}

/** Batch and channels come first. */
function checkRank(X: TypeInfo, context: InferContext): void {
  if (X.shape.length < 2) context.fail("OF3010", `needs rank 2 or more, got ${formatShape(X.shape)}`);
}

/** (x − mean) · scale / √(variance + ε) + bias */
function affine(x: Expr, mean: Expr, variance: Expr, epsilon: number, scale: Expr, bias: Expr): Expr {
  const factor = div(cast(scale, x.type.scalar), sqrt(add(variance, constant(epsilon, x.type))));
  return add(mul(sub(x, mean), factor), cast(bias, x.type.scalar));
}

export const InstanceNormalization = defineOp({
  type: "InstanceNormalization",
  domain: "",
  since: 6,
  inputs: { input: "required", scale: "required", B: "required" }, oneType: [["input", "scale", "B"]],
  attributes: { epsilon: float(1e-5) },
  fusionKind: "reduction",
  infer({ input, scale, B }, _, context) {
    checkType(context, input, "input", "float");
    checkRank(input, context);
    checkChannels(scale, input.shape[1] ?? 1, "scale", context);
    checkChannels(B, input.shape[1] ?? 1, "B", context);
    return same(input);
  },
  evaluate: evaluateInstance,
  lower: ({ input, scale, B }, { epsilon }) => [(...indices) => {
    const { mean, variance } = momentsOver(input, axesFrom(2, input.shape.length), indices);
    const c = operand(indices, 1);
    return affine(input.at(...indices), mean, variance, epsilon, scale.at(c), B.at(c));
  }],
});

/** Moments of a group of channels: X seen as [N, groups, channels a group, …]. */
function groupMoments(X: Operand, groups: number, indices: readonly Expr[]): { group: Expr; mean: Expr; variance: Expr } {
  const perGroup = dimExactDiv(X.shape[1] ?? 1, groups) ?? 1;
  const group = div(operand(indices, 1), dimExpr(perGroup));
  const seen: Operand = {
    dtype: X.dtype,
    shape: [X.shape[0] ?? 1, groups, perGroup, ...X.shape.slice(2)],
    at: (...i) => X.at(operand(i, 0), add(mul(operand(i, 1), dimExpr(perGroup)), operand(i, 2)), ...i.slice(3)),
  };
  const at = [operand(indices, 0), group, constant(0, i32), ...indices.slice(2)];
  return { group, ...momentsOver(seen, axesFrom(2, seen.shape.length), at) };
}

export const GroupNormalization = defineOp({
  type: "GroupNormalization",
  domain: "",
  since: 21,
  inputs: { X: "required", scale: "required", bias: "required" }, oneType: [["X", "scale", "bias"]],
  /** `per_group` 1 (opset 18): scale and bias have one element a group. */
  attributes: { epsilon: float(1e-5), num_groups: required("int"), stash_type: int(1), per_group: int(0) },
  fusionKind: "reduction",
  infer({ X, scale, bias }, { num_groups, per_group }, context) {
    checkType(context, X, "X", "float");
    checkRank(X, context);
    const channels = X.shape[1] ?? 1;
    if (num_groups < 1 || dimExactDiv(channels, num_groups) === undefined) context.fail("OF3012", `${formatDim(channels)} channels do not divide into ${num_groups} groups`);
    checkChannels(scale, per_group ? num_groups : channels, "scale", context);
    checkChannels(bias, per_group ? num_groups : channels, "bias", context);
    return same(X);
  },
  evaluate: evaluateGroup,
  lower: ({ X, scale, bias }, { epsilon, num_groups, per_group }) => [(...indices) => {
    const { group, mean, variance } = groupMoments(X, num_groups, indices);
    const c = per_group ? group : operand(indices, 1);
    return affine(X.at(...indices), mean, variance, epsilon, scale.at(c), bias.at(c));
  }],
  read: (node, opset) => (opset < 21 ? { ...node, attributes: { ...node.attributes, per_group: 1 } } : node),
  write: (node, opset) => {
    const { per_group, stash_type, ...attributes } = node.attributes;
    if (opset >= 21) return per_group ? undefined : { ...node, attributes: { ...attributes, stash_type } };
    return per_group && opset >= 18 ? { ...node, attributes } : undefined;
  },
});

export const LpNormalization = defineOp({
  type: "LpNormalization",
  domain: "",
  since: 1,
  inputs: { input: "required" },
  attributes: { axis: int(-1), p: int(2) },
  fusionKind: "reduction",
  infer({ input }, { axis, p }, context) {
    checkType(context, input, "input", "float");
    axisWithin(axis, input.shape.length, context);
    if (p !== 1 && p !== 2) context.fail("OF3012", `p must be 1 or 2, got ${p}`);
    return same(input);
  },
  evaluate: evaluateLp,
  lower: ({ input }, { axis, p }) => {
    const axes = [axis < 0 ? axis + input.shape.length : axis];
    return [(...indices) => {
      const x = input.at(...indices);
      const total = overAxes("add", input.shape, axes, indices, (i) => {
        const e = input.at(...i);
        return p === 1 ? unary("abs", e) : mul(e, e);
      });
      const norm = p === 1 ? total : sqrt(total), zero = constant(0, x.type);
      return select(eq(norm, zero), zero, div(x, norm));
    }];
  },
});

export const LRN = defineOp({
  type: "LRN",
  domain: "",
  since: 1,
  inputs: { X: "required" },
  attributes: { alpha: float(1e-4), beta: float(0.75), bias: float(1), size: required("int") },
  fusionKind: "reduction",
  infer: ({ X }, { size }, context) => {
    checkType(context, X, "X", "float");
    checkRank(X, context);
    if (size < 1) context.fail("OF3012", `size is ${size}`, "it is at least 1");
    return same(X);
  },
  evaluate: evaluateLrn,
  lower: ({ X }, { alpha, beta, bias, size }) => [(...indices) => {
    const c = operand(indices, 1), x = X.at(...indices), before = Math.floor((size - 1) / 2);
    const squares = reduce("add", [size], (...taps) => {
      const channel = sub(add(c, operand(taps, 0)), before);
      const neighbour = X.at(operand(indices, 0), channel, ...indices.slice(2));
      return select(and(ge(channel, 0), lt(channel, dimExpr(X.shape[1] ?? 1))), mul(neighbour, neighbour), constant(0, x.type));
    });
    const base = add(constant(bias, x.type), mul(squares, constant(alpha / size, x.type)));
    return div(x, binary("pow", base, constant(beta, x.type)));
  }],
});

export const MeanVarianceNormalization = defineOp({
  type: "MeanVarianceNormalization",
  domain: "",
  since: 9,
  inputs: { X: "required" },
  attributes: { axes: ints([0, 2, 3]) },
  fusionKind: "reduction",
  infer({ X }, { axes }, context) {
    checkType(context, X, "X", "float");
    for (const axis of axes) axisWithin(axis, X.shape.length, context);
    return same(X);
  },
  evaluate: evaluateMeanVariance,
  lower: ({ X }, { axes }) => [(...indices) => {
    const { mean, variance } = momentsOver(X, axes.map((a) => (a < 0 ? a + X.shape.length : a)), indices);
    const x = X.at(...indices);
    return div(sub(x, mean), add(sqrt(variance), constant(1e-9, x.type)));
  }],
});
