/** Concat and Split: joins tensors along an axis, and takes one apart. */
import { dimAdd, dimCeilDiv, dimExactDiv, dimMax, dimMin, dimMul, dimSub, formatShape, isStatic, type Dim } from "../core/dim.ts";
import { Concat as evaluateConcat, Split as evaluateSplit } from "../evaluate/movement.ts";
import { defineOp, int, optional, required, type Operand, type TypeInfo } from "../graph/op.ts";
import { dimExpr, lt, select, type Expr } from "../kernel/expr.ts";
import { elementsOf, movedElements, typeWith } from "./element-values.ts";
import { checkSameType } from "./element-wise.ts";
import { axisIn, frontAxis, minusDim, origin, plusDim } from "./index-map.ts";
import { listAttributeToInput, listInputToAttribute, without } from "./spelling.ts";

const replaced = <T>(list: readonly T[], at: number, value: T): T[] => list.map((x, i) => (i === at ? value : x));

export const Concat = defineOp({
  type: "Concat", domain: "", since: 4, evaluate: evaluateConcat,
  inputs: { inputs: "variadic" },
  attributes: { axis: required("int") },
  fusionKind: "injective",
  infer: ({ inputs }, { axis }, context) => {
    const [first] = inputs;
    if (!first) return context.fail("OF3001", "needs at least one input");
    checkSameType(context, inputs);
    const at = axisIn(context, axis, first.shape.length);
    const shape = inputs.slice(1).reduce<readonly Dim[]>((joined, t) => {
      if (t.shape.length !== joined.length) context.fail("OF3010", `ranks differ: ${formatShape(joined)} and ${formatShape(t.shape)}`);
      return joined.map((d, i) => {
        const own = t.shape[i] ?? 1;
        if (i === at) return dimAdd(d, own);
        if (typeof d === "number" && typeof own === "number" && d !== own) context.fail("OF3011", `sizes of axis ${i} differ: ${formatShape(joined)} and ${formatShape(t.shape)}`);
        context.agree?.(d, own, "equal");
        return typeof own === "number" ? own : d;
      });
    }, first.shape);
    return [typeWith(first.dtype, shape, movedElements(evaluateConcat, inputs, inputs.map((_, i) => i), { axis: at }, 1)?.[0])];
  },
  lowerable: ({ inputs }) => inputs[0]?.dtype !== "string",
  lower: ({ inputs }, { axis }) => {
    const at = frontAxis(axis, inputs[0]?.shape.length ?? 1);
    const parts: { readonly t: Operand; readonly begin: Dim; readonly end: Dim }[] = [];
    let before: Dim = 0;
    for (const t of inputs) {
      const size: Dim = t.shape[at] ?? 1;
      if (size === 0) continue;
      parts.push({ t, begin: before, end: dimAdd(before, size) });
      before = dimAdd(before, size);
    }
    const last = parts.pop() ?? (inputs[0] && { t: inputs[0], begin: 0, end: 0 });
    return [(...indices) => {
      const i = indices[at] ?? origin;
      const read = (p: { readonly t: Operand; readonly begin: Dim }): Expr => p.t.at(...replaced(indices, at, minusDim(i, p.begin)));
      return parts.reduceRight<Expr>((rest, p) => select(lt(i, dimExpr(p.end)), read(p), rest), read(last as typeof parts[number]));
    }];
  },
});

/** More parts no Split makes. */
const mostParts = 2 ** 16;

/** Sizes of a Split's parts along its axis. */
function partSizes(size: Dim, count: number, given: readonly Dim[] | undefined): readonly Dim[] {
  if (given) return given;
  const even = dimExactDiv(size, count);
  if (even !== undefined) return new Array<Dim>(count).fill(even);
  const each = dimCeilDiv(size, count);
  return Array.from({ length: count }, (_, i) => dimMax(0, dimMin(each, dimSub(size, dimMul(i, each)))));
}

/** Without sizes the parts are equal; the last is smaller where they cannot be. */
export const Split = defineOp({
  type: "Split", domain: "", since: 13, evaluate: evaluateSplit,
  inputs: { input: "required", split: "optional" }, integers: ["split"],
  attributes: { axis: int(0), num_outputs: optional("int") },
  fusionKind: "injective",
  infer: ({ input, split }, { axis, num_outputs }, context) => {
    const at = axisIn(context, axis, input.shape.length), size = input.shape[at] ?? 1;
    const given = split && elementsOf(split);
    const count = given?.length ?? (split && typeof split.shape[0] === "number" ? split.shape[0] : num_outputs ?? context.outputCount);
    const [parts] = split?.shape ?? [];
    if (parts !== undefined && typeof parts !== "number") context.agree?.(parts, count, "equal");
    if (count > mostParts) context.fail("OF3012", `splits into ${count} parts, more than ${mostParts}`);
    if (count < context.outputCount) context.fail("OF3012", `splits into ${count} parts, ${context.outputCount} are used`);
    if (given && isStatic(given) && typeof size === "number" && given.reduce((n, d) => n + d, 0) !== size) context.fail("OF3011", `parts [${given.join(", ")}] do not add up to ${size}`);
    const sizes: readonly Dim[] = split && !given ? Array.from({ length: count }, (_, i) => context.fresh(`part${i}`)) : partSizes(size, count, given);
    const elements = !split || given ? movedElements(evaluateSplit, [input, split], [0], { axis: at, num_outputs: count }, count) : undefined;
    return sizes.map((part, i): TypeInfo => typeWith(input.dtype, replaced(input.shape, at, part), elements?.[i]));
  },
  lowerable: ({ input, split }) => input.dtype !== "string" && (!split || elementsOf(split) !== undefined),
  lower: ({ input, split }, { axis, num_outputs }, context) => {
    const at = frontAxis(axis, input.shape.length), given = split && elementsOf(split);
    const sizes = partSizes(input.shape[at] ?? 1, num_outputs ?? context.outputs.length, given);
    let before: Dim = 0;
    return context.outputs.map((_, k) => {
      const begin = before;
      before = dimAdd(before, sizes[k] ?? 0);
      return (...indices: readonly Expr[]) => input.at(...replaced(indices, at, plusDim(indices[at] ?? origin, begin)));
    });
  },
  read: (node, opset) => (opset >= 13 ? node : listAttributeToInput(node, "split", 1)),
  write: (node, opset) => {
    const plain = opset >= 18 ? node : { ...node, attributes: without(node.attributes, "num_outputs") };
    return opset >= 13 ? plain : listInputToAttribute(plain, "split", 1);
  },
});
