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
import { Add, Div, Mul, Pow, ReduceMean, Transpose } from "../ops/index.ts";
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

/** The axes that are normalised: the last ones from `first` on, or else `first` alone, which then is moved there. */
export interface NormalisedAxes { readonly first: number; readonly moved: boolean }

/** The axes that means are taken over, the same for all of them: the last axes, or a single one. */
export function normalisedAxes(x: Value, ...means: readonly Node[]): NormalisedAxes | Refusal {
  const rank = x.type.shape.length;
  let found: { readonly axes: readonly number[]; readonly of: Node } | undefined;
  for (const mean of means) {
    const axes = reducedAxes(rank, mean.inputs[1] && typeWithConstant(mean.inputs[1]), { noop_with_empty_axes: Number(mean.attributes["noop_with_empty_axes"]) });
    if (!axes) return refuse("not-constant", `the axes of '${mean.name}' are computed`, "make them constant");
    const start = rank - axes.length;
    if (axes.length === 0 || (axes.length > 1 && axes.some((a, i) => a !== start + i))) return refuse("axes", `'${mean.name}' reduces axes [${axes.join(", ")}] of rank ${rank}, which are neither the last ones nor a single one`, "transpose the normalised axes to the end");
    if (found && (found.axes.length !== axes.length || found.axes[0] !== axes[0])) return refuse("axes", `'${mean.name}' reduces axes [${axes.join(", ")}], '${found.of.name}' [${found.axes.join(", ")}]`, "reduce the same axes");
    found = { axes, of: mean };
  }
  const [first] = found?.axes ?? [];
  return first === undefined ? refuse("axes", "nothing is reduced", "reduce the last axes") : { first, moved: found?.axes.length === 1 && first !== rank - 1 };
}

/**
 * `x` and a scale or bias of it as rows along the normalised axes. A single axis, such as the channels of a picture,
 * becomes the last one, which is a view: where channels lie side by side already, rows are read in place.
 */
export class Rows {
  readonly x: Value;
  readonly axes: NormalisedAxes;
  readonly shape: readonly Dim[];
  constructor(x: Value, axes: NormalisedAxes) {
    const { shape } = x.type, { first, moved } = axes;
    this.x = x;
    this.axes = axes;
    this.shape = moved ? [shape[first] ?? 1] : shape.slice(first);
  }

  get #order(): readonly number[] {
    const { first } = this.axes;
    return [...this.x.type.shape.keys()].filter((d) => d !== first).concat(first);
  }

  /** A node's result for rows, in the shape of `x`. */
  apply(edit: Editor, make: (rows: Value, axis: number) => Value): Value {
    if (!this.axes.moved) return make(this.x, -this.shape.length);
    const order = this.#order, perm = order.map((_, d) => order.indexOf(d)), { name } = edit.root;
    return edit.insert(Transpose, [make(edit.insert(Transpose, [this.x], { perm: order }, { name: `${name}_rows` }), -1)], { perm }, { name: `${name}_back` });
  }

  /** The sizes of a scale or bias for rows; undefined where it differs along an axis that is not normalised. */
  sizesOf(shape: readonly Dim[]): readonly Dim[] | undefined {
    if (!this.axes.moved) return shape;
    const at = shape.length - this.x.type.shape.length + this.axes.first;
    return shape.every((d, i) => i === at || d === 1) ? [shape[at] ?? 1] : undefined;
  }
}

export const storesFloat32: ReadonlySet<DType> = new Set<DType>(["float32", "float16", "bfloat16"]);

/**
 * A scale or bias in exactly the normalised shape: itself, or a constant broadcast to it. `absent` fills it where there
 * is none. A function, so that nothing is made before all is known to fit.
 */
export function parameterOf(given: Value | undefined, absent: number, rows: Rows, what: string, edit: Editor): (() => Value) | Refusal {
  const { shape, x, axes } = rows;
  if (given && !axes.moved && shapeEqual(given.type.shape, shape)) return () => given;
  if (!isStatic(shape)) return refuse("unknown-size", `the normalised size is not known, and ${what} ${given ? `'${given.name}' has another shape` : "is absent"}`, "give the last dimensions fixed sizes");
  const filled = (values: ArrayLike<number>): (() => Value) => () => edit.constant(fromNumbers(x.type.dtype, shape, values), `${edit.root.name}_${what}`);
  if (!given) return filled(new Float64Array(sizeOf(shape)).fill(absent));
  const sizes = rows.sizesOf(given.type.shape)?.map(Number);
  if (!isConstant(given) || !sizes || !widens(sizes, shape))
    return refuse("parameter-shape", `${what} '${given.name}' has shape [${given.type.shape.map(String).join(", ")}], the normalised axes are [${shape.join(", ")}]`, `give ${what} the normalised shape`);
  const values = toNumbers(given.constant), dims = sizes.slice(Math.max(0, sizes.length - shape.length));
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
export function parametersOf(m: NormalisationMatch, rows: Rows, edit: Editor): { readonly scale: () => Value; readonly bias: (() => Value) | undefined } | Refusal {
  const scale = parameterOf(m.gamma, 1, rows, "scale", edit);
  if (isRefusal(scale)) return scale;
  const bias = m.beta && parameterOf(m.beta, 0, rows, "bias", edit);
  return isRefusal(bias) ? bias : { scale, bias };
}
