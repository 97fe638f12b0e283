/** Slice, with steps of either sign and bounds that may be symbolic. */
import { dimAdd, dimCeilDiv, dimEqual, dimMax, dimMin, dimRange, dimSub, type Dim, formatShape } from "../core/dim.ts";
import { toNumbers } from "../core/tensor.ts";
import { Slice as evaluate } from "../evaluate/movement.ts";
import { defineOp, type InferContext, type TypeInfo } from "../graph/op.ts";
import { mul, type Expr } from "../kernel/expr.ts";
import { elementsOf, movedElements, typeWith } from "./element-values.ts";
import { axisIn, frontAxis, plusDim } from "./index-map.ts";
import { listInput, numbersIn, numbersOfInput, without } from "./spelling.ts";

/** One sliced axis: element i of the result reads `start` + i·`step`. */
interface Cut { readonly axis: number; readonly start: Dim; readonly step: number; readonly size: Dim }
interface Bounds { readonly data: TypeInfo; readonly starts: TypeInfo; readonly ends: TypeInfo; readonly axes?: TypeInfo | undefined; readonly steps?: TypeInfo | undefined }

/** Bounds as Dims; huge constants (INT64_MAX) as they round. */
const boundsOf = (t: TypeInfo): readonly Dim[] | undefined => elementsOf(t) ?? (t.constant && Array.from(toNumbers(t.constant)));

/** A bound counted from the front and clamped to [least, most]; undefined where its sign is not known. */
function clamped(bound: Dim, size: Dim, least: Dim, most: Dim): Dim | undefined {
  if (typeof bound === "number" && Math.abs(bound) >= 2 ** 31 - 1) return bound > 0 ? most : dimMin(least, most);
  const { lower, upper } = dimRange(bound);
  if (lower < 0 && upper >= 0) return undefined;
  return dimMin(dimMax(lower < 0 ? dimAdd(bound, size) : bound, least), most);
}

/** The cuts, or undefined where a bound is not known. */
function cutsOf({ data, starts, ends, axes, steps }: Bounds): readonly Cut[] | undefined {
  const from = boundsOf(starts), to = boundsOf(ends), by = steps && elementsOf(steps), at = axes && elementsOf(axes);
  if (!from || !to || (steps && !by) || (axes && !at)) return undefined;
  const cuts: Cut[] = [];
  for (const [i, first] of from.entries()) {
    const axis = at ? at[i] : i, step = by ? by[i] : 1, end = to[i];
    if (typeof axis !== "number" || typeof step !== "number" || step === 0 || end === undefined) return undefined;
    const front = frontAxis(axis, data.shape.length), size = data.shape[front];
    if (size === undefined) return undefined;
    const last = dimSub(size, 1);
    const start = step > 0 ? clamped(first, size, 0, size) : clamped(first, size, 0, last);
    const stop = step > 0 ? clamped(end, size, 0, size) : clamped(end, size, -1, last);
    if (start === undefined || stop === undefined) return undefined;
    const span = step > 0 ? dimSub(stop, start) : dimSub(start, stop);
    cuts.push({ axis: front, start, step, size: dimEqual(span, size) && Math.abs(step) === 1 ? size : dimCeilDiv(dimMax(0, span), Math.abs(step)) });
  }
  return cuts;
}

function checkCuts({ data, starts, axes, steps }: Bounds, context: InferContext): void {
  if (starts.shape.length !== 1) context.fail("OF3010", `starts needs rank 1, got ${formatShape(starts.shape)}`);
  const at = axes && elementsOf(axes);
  at?.forEach((a) => { if (typeof a === "number") axisIn(context, a, data.shape.length); });
  if (!axes && typeof starts.shape[0] === "number" && starts.shape[0] > data.shape.length) context.fail("OF3011", `slices ${starts.shape[0]} axes of ${data.shape.length}`);
  if (steps && elementsOf(steps)?.includes(0)) context.fail("OF3012", "a step is 0");
}

/** Axes that may change, where the bounds are not known. */
function openAxes({ data, starts, axes }: Bounds): readonly number[] {
  const at = axes ? elementsOf(axes) : undefined;
  if (at) return at.flatMap((a) => (typeof a === "number" ? [frontAxis(a, data.shape.length)] : data.shape.map((_, i) => i)));
  const count = axes ? data.shape.length : typeof starts.shape[0] === "number" ? starts.shape[0] : data.shape.length;
  return Array.from({ length: count }, (_, i) => i);
}

export const Slice = defineOp({
  type: "Slice", domain: "", since: 10, evaluate,
  inputs: { data: "required", starts: "required", ends: "required", axes: "optional", steps: "optional" }, integers: ["starts", "ends", "axes", "steps"],
  attributes: {},
  fusionKind: "injective",
  infer: (inputs, _, context) => {
    const { data, starts, ends, axes, steps } = inputs;
    checkCuts(inputs, context);
    const cuts = cutsOf(inputs), open = cuts ? [] : openAxes(inputs);
    const shape = data.shape.map((d, i): Dim => cuts?.find((c) => c.axis === i)?.size ?? (open.includes(i) ? context.fresh(`d${i}`) : d));
    return [typeWith(data.dtype, shape, cuts && movedElements(evaluate, [data, starts, ends, axes, steps], [0], {}, 1)?.[0])];
  },
  lowerable: (inputs) => inputs.data.dtype !== "string" && cutsOf(inputs) !== undefined,
  lower: (inputs) => {
    const { data } = inputs, cuts = cutsOf(inputs) ?? [];
    return [(...indices) => data.at(...indices.map((index, i): Expr => {
      const cut = cuts.find((c) => c.axis === i);
      if (!cut) return index;
      const scaled = cut.step === 1 ? index : mul(index, cut.step);
      return plusDim(scaled, cut.start);
    }))];
  },
  read: (node, opset) => {
    if (opset >= 10) return node;
    const list = (name: string) => { const values = numbersIn(node.attributes[name]); return values && listInput(values); };
    return { ...node, inputs: [node.inputs[0], list("starts"), list("ends"), list("axes")], attributes: without(node.attributes, "starts", "ends", "axes") };
  },
  write: (node, opset) => {
    if (opset >= 10) return node;
    const [data, ...bounds] = node.inputs, [starts, ends, axes, steps] = bounds.map(numbersOfInput);
    if (!starts || !ends || (bounds[2] && !axes) || (bounds[3] && !steps?.every((s) => s === 1))) return undefined;
    return { ...node, inputs: [data], attributes: { ...node.attributes, starts, ends, ...(axes ? { axes } : {}) } };
  },
});
