/** Operators that keep the row-major order of elements and change the shape: Reshape, Flatten, Squeeze, Unsqueeze. */
import { dimEqual, dimExactDiv, dimFloorDiv, dimProduct, formatShape, isStatic, mostAxes, type Dim } from "../core/dim.ts";
import * as evaluate from "../evaluate/shape.ts";
import { defineOp, int, optional, type InferContext, type LowerContext, type Operand, type TypeInfo } from "../graph/op.ts";
import type { Expr } from "../kernel/expr.ts";
import { elementsOf, typeWith } from "./element-values.ts";
import { outputOf } from "./element-wise.ts";
import { axisIn, reshapedIndices } from "./index-map.ts";
import { listAttributeToInput, listInputToAttribute } from "./spelling.ts";

const reshaped = (x: Operand, context: LowerContext) => [(...indices: readonly Expr[]) => x.at(...reshapedIndices(x.shape, outputOf(context).shape, indices))];
const withShape = (t: TypeInfo, shape: readonly Dim[]): TypeInfo => typeWith(t.dtype, shape, elementsOf(t));

/** The sizes a Reshape gives; reports OF3011 where they cannot hold the elements. */
function targetShape(from: readonly Dim[], target: readonly Dim[], keepZero: boolean, context: InferContext): readonly Dim[] {
  const copied = target.map((d, i) => (d === 0 && !keepZero ? from[i] ?? context.fail("OF3011", `target ${formatShape(target)} copies a size that ${formatShape(from)} does not have`) : d));
  const free = copied.indexOf(-1);
  if (copied.lastIndexOf(-1) !== free) context.fail("OF3011", `target ${formatShape(target)} leaves more than one size open`);
  if (free < 0) {
    if (isStatic(from) && isStatic(copied) && dimProduct(from) !== dimProduct(copied)) context.fail("OF3011", `cannot reshape ${formatShape(from)} to ${formatShape(target)}`);
    return copied;
  }
  const left = [...from], divisors: Dim[] = [];
  for (const d of copied.filter((_, i) => i !== free)) {
    const same = left.findIndex((f) => dimEqual(f, d));
    if (same >= 0 && d !== 0) left.splice(same, 1);
    else divisors.push(d);
  }
  const total = dimProduct(left), divisor = dimProduct(divisors);
  const exact = divisor === 0 ? 0 : dimExactDiv(total, divisor);
  if (exact === undefined && typeof total === "number" && typeof divisor === "number") context.fail("OF3011", `cannot reshape ${formatShape(from)} to ${formatShape(target)}`);
  return copied.map((d, i) => (i === free ? exact ?? dimFloorDiv(total, divisor) : d));
}

/** A target size of 0 copies the input's (unless allowzero), −1 takes what is left. */
export const Reshape = defineOp({
  type: "Reshape", domain: "", since: 5, evaluate: evaluate.Reshape,
  inputs: { data: "required", shape: "required" }, integers: ["shape"],
  attributes: { allowzero: optional("int") },
  fusionKind: "injective",
  infer: ({ data, shape }, { allowzero }, context) => {
    const target = elementsOf(shape);
    if (target) {
      const result = targetShape(data.shape, target, Boolean(allowzero), context);
      context.agree?.(dimProduct(data.shape), dimProduct(result), "equal");
      return [withShape(data, result)];
    }
    return [{ dtype: data.dtype, shape: openShape(shape, context) }];
  },
  lowerable: ({ data, shape }) => data.dtype !== "string" && elementsOf(shape) !== undefined,
  lower: ({ data }, _, context) => reshaped(data, context),
});

/** As many unknown sizes as a shape tensor has elements; reports OF3014 where their number is not known. */
export function openShape(shape: TypeInfo, context: InferContext): readonly Dim[] {
  const [rank] = shape.shape;
  if (shape.shape.length !== 1 || typeof rank !== "number") return context.fail("OF3014", "the number of result axes is not known", "fix the sizes with --input_shape");
  if (rank > mostAxes) context.fail("OF3020", `its result would have ${rank} axes`, `tensors have at most ${mostAxes}`);
  return Array.from({ length: rank }, (_, i) => context.fresh(`d${i}`));
}

/** A matrix: axes before `axis` are its rows. */
export const Flatten = defineOp({
  type: "Flatten", domain: "", since: 1, evaluate: evaluate.Flatten,
  inputs: { input: "required" },
  attributes: { axis: int(1) },
  fusionKind: "injective",
  infer: ({ input }, { axis }, context) => {
    const rank = input.shape.length;
    const at = axis === rank ? rank : axisIn(context, axis, Math.max(rank, 1));
    return [withShape(input, [dimProduct(input.shape.slice(0, at)), dimProduct(input.shape.slice(at))])];
  },
  lowerable: ({ input }) => input.dtype !== "string",
  lower: ({ input }, _, context) => reshaped(input, context),
});

/** Axes that a parameter names, where they are known. */
function axesOf(axes: TypeInfo, rank: number, context: Pick<InferContext, "fail">): readonly number[] | undefined {
  const known = elementsOf(axes);
  return known && isStatic(known) ? known.map((a) => axisIn(context, a, rank)) : undefined;
}
/** How many axes a parameter names; reports OF3014 where that is not known. */
function axisCount(axes: TypeInfo, context: InferContext): number {
  if (axes.shape.length > 1) context.fail("OF3010", `axes needs rank 1, got ${formatShape(axes.shape)}`);
  const count = axes.shape.length === 0 ? 1 : axes.shape[0];
  if (typeof count === "number" && count > mostAxes) context.fail("OF3020", `${count} axes are named`, `tensors have at most ${mostAxes}`);
  return typeof count === "number" ? count : context.fail("OF3014", "the number of axes is not known", "fix the sizes with --input_shape");
}
const openSizes = (data: TypeInfo, rank: number, context: InferContext): TypeInfo => ({ dtype: data.dtype, shape: Array.from({ length: Math.max(0, rank) }, (_, i) => context.fresh(`d${i}`)) });
const axesKnown = (axes: TypeInfo | undefined): boolean => !axes || elementsOf(axes) !== undefined;

/** Without `axes`, every axis of size 1 goes. */
export const Squeeze = defineOp({
  type: "Squeeze", domain: "", since: 13, evaluate: evaluate.Squeeze,
  inputs: { data: "required", axes: "optional" }, integers: ["axes"],
  attributes: {},
  fusionKind: "injective",
  infer: ({ data, axes }, _, context) => {
    const gone = axes ? axesOf(axes, data.shape.length, context) : data.shape.flatMap((d, i) => (d === 1 ? [i] : []));
    if (!gone) return [openSizes(data, data.shape.length - (axes ? axisCount(axes, context) : 0), context)];
    for (const a of gone) if (typeof data.shape[a] === "number" && data.shape[a] !== 1) context.fail("OF3011", `axis ${a} of ${formatShape(data.shape)} has not size 1`);
    return [withShape(data, data.shape.filter((_, i) => !gone.includes(i)))];
  },
  lowerable: ({ data, axes }) => data.dtype !== "string" && axesKnown(axes),
  lower: ({ data }, _, context) => reshaped(data, context),
  read: (node, opset) => (opset >= 13 ? node : listAttributeToInput(node, "axes", 1)),
  write: (node, opset) => (opset >= 13 ? node : listInputToAttribute(node, "axes", 1)),
});

export const Unsqueeze = defineOp({
  type: "Unsqueeze", domain: "", since: 13, evaluate: evaluate.Unsqueeze,
  inputs: { data: "required", axes: "required" }, integers: ["axes"],
  attributes: {},
  fusionKind: "injective",
  infer: ({ data, axes }, _, context) => {
    const rank = data.shape.length + axisCount(axes, context), added = axesOf(axes, rank, context);
    if (!added) return [openSizes(data, rank, context)];
    if (new Set(added).size !== added.length) context.fail("OF3012", `axes [${added.join(", ")}] repeat one`);
    let next = 0;
    return [withShape(data, Array.from({ length: rank }, (_, i): Dim => (added.includes(i) ? 1 : data.shape[next++] ?? 1)))];
  },
  lowerable: ({ data, axes }) => data.dtype !== "string" && axesKnown(axes),
  lower: ({ data }, _, context) => reshaped(data, context),
  read: (node, opset) => (opset >= 13 ? node : listAttributeToInput(node, "axes", 1)),
  write: (node, opset) => (opset >= 13 ? node : listInputToAttribute(node, "axes", 1)),
});
