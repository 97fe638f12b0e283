/**
 * What spelled-out normalisations of rows share: their patterns, the axes they reduce, and scales and biases in the
 * shape of what is normalised.
 */
import { isStatic, shapeEqual, type Dim } from "../core/dim.ts";
import type { DType } from "../core/dtype.ts";
import { fromNumbers, sizeOf, toNumbers } from "../core/tensor.ts";
import { broadcastSources } from "../core/strided.ts";
import type { Node, Value } from "../graph/graph.ts";
import { typeWithConstant } from "../graph/infer-node.ts";
import { Add, Div, Mul, Pow, ReduceMean } from "../ops/index.ts";
import { reducedAxes } from "../ops/reduce.ts";
import { isConstant } from "../rewrite/match.ts";
import { anyOf, anything, commuted, literal, op, optionalInput, scalar, value, type ConstantValue, type Pattern } from "../rewrite/pattern.ts";
import { isRefusal, refuse, type Editor } from "../rewrite/rule.ts";
import type { Refusal } from "../rewrite/site.ts";
import { inverted, rooted, squared } from "./spellings.ts";

/** The mean over some axes, which must be kept with size 1: dropped, they would broadcast another way. */
export const meanOf = <B extends object, const N extends string>(x: Pattern<B>, as: N): Pattern<B & { readonly [K in N]: Node }> =>
  op(ReduceMean, [x, optionalInput(anything())], {
    as, attributes: { wants: "keepdims 1", code: "keepdims", holds: (a) => a["keepdims"] === 1 },
  }) as Pattern<B & { readonly [K in N]: Node }>;

/** What `x` is divided by to have unit variance: x / √(mean(x²) + ε), in its spellings. */
export function byItsDeviation<B extends object>(x: Pattern<B>): Pattern<B & { readonly square: Node; readonly epsilon: ConstantValue }> {
  const variance = commuted(Add, [meanOf(squared(x), "square"), scalar("epsilon")]);
  return anyOf(
    op(Div, [x, rooted(variance)]),
    commuted(Mul, [x, inverted(rooted(variance))]),
    commuted(Mul, [x, op(Pow, [variance, literal(-0.5)])]),
  ) as Pattern<B & { readonly square: Node; readonly epsilon: ConstantValue }>;
}

/** `normal`, perhaps scaled and shifted: the longest first. */
export const scaledAndShifted = <B extends object>(normal: Pattern<B>): Pattern<B & { readonly gamma: Value | undefined; readonly beta: Value | undefined }> => anyOf(
  commuted(Add, [commuted(Mul, [normal, value("gamma")]), value("beta")]),
  commuted(Mul, [normal, value("gamma")]),
  commuted(Add, [normal, value("beta")]),
  normal,
) as Pattern<B & { readonly gamma: Value | undefined; readonly beta: Value | undefined }>;

/** The first of the axes that means are taken over, which must be the last axes, the same for all of them. */
export function normalisedFrom(x: Value, ...means: readonly Node[]): number | Refusal {
  const rank = x.type.shape.length;
  let first: number | undefined;
  for (const mean of means) {
    const axes = reducedAxes(rank, mean.inputs[1] && typeWithConstant(mean.inputs[1]), { noop_with_empty_axes: Number(mean.attributes["noop_with_empty_axes"]) });
    if (!axes) return refuse("not-constant", `the axes of '${mean.name}' are computed`, "make them constant");
    const start = rank - axes.length;
    if (axes.length === 0 || axes.some((a, i) => a !== start + i)) return refuse("axes", `'${mean.name}' reduces axes [${axes.join(", ")}] of rank ${rank}, which are not the last ones`, "transpose the normalised axes to the end");
    if (first !== undefined && first !== start) return refuse("axes", `'${mean.name}' reduces from axis ${start}, another mean from ${first}`, "reduce the same axes");
    first = start;
  }
  return first ?? refuse("axes", "nothing is reduced", "reduce the last axes");
}

export const storesFloat32: ReadonlySet<DType> = new Set<DType>(["float32", "float16", "bfloat16"]);

/**
 * A scale or bias in exactly the normalised shape: itself, or a constant broadcast to it. `absent` fills it where there
 * is none. A function, so that nothing is made before all is known to fit.
 */
export function parameterOf(given: Value | undefined, absent: number, x: Value, axis: number, what: string, edit: Editor): (() => Value) | Refusal {
  const shape = x.type.shape.slice(axis);
  if (given && shapeEqual(given.type.shape, shape)) return () => given;
  if (!isStatic(shape)) return refuse("unknown-size", `the normalised size is not known, and ${what} ${given ? `'${given.name}' has another shape` : "is absent"}`, "give the last dimensions fixed sizes");
  const filled = (values: ArrayLike<number>): (() => Value) => () => edit.constant(fromNumbers(x.type.dtype, shape, values), `${edit.root.name}_${what}`);
  if (!given) return filled(new Float64Array(sizeOf(shape)).fill(absent));
  if (!isConstant(given) || !widens(given.type.shape, shape))
    return refuse("parameter-shape", `${what} '${given.name}' has shape [${given.type.shape.map(String).join(", ")}], the normalised axes are [${shape.join(", ")}]`, `give ${what} the normalised shape`);
  const values = toNumbers(given.constant), dims = given.constant.dims.slice(Math.max(0, given.constant.dims.length - shape.length));
  return filled(Float64Array.from(broadcastSources(dims, shape), (at) => values[at] ?? NaN));
}
/** Whether broadcasting `from` to `to` repeats elements and does nothing else. */
function widens(from: readonly Dim[], to: readonly number[]): boolean {
  const skip = to.length - from.length;
  return from.every((d, i) => d === 1 || (i + skip >= 0 && d === to[i + skip]));
}

export interface NormalisationMatch {
  readonly gamma: Value | undefined;
  readonly beta?: Value | undefined;
}
/** Scale and bias of a match; a refusal when one does not fit. */
export function parametersOf(m: NormalisationMatch, x: Value, axis: number, edit: Editor): { readonly scale: () => Value; readonly bias: (() => Value) | undefined } | Refusal {
  const scale = parameterOf(m.gamma, 1, x, axis, "scale", edit);
  if (isRefusal(scale)) return scale;
  const bias = m.beta && parameterOf(m.beta, 0, x, axis, "bias", edit);
  return isRefusal(bias) ? bias : { scale, bias };
}
