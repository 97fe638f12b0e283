/** Clip, and its spelling before opset 11, which had the bounds as attributes. */
import { dimMax, dimMin } from "../core/dim.ts";
import { Clip as evaluate } from "../evaluate/activation.ts";
import { defineOp, type Operand, type SpellingInput } from "../graph/op.ts";
import { binary, cast, constant, i32, type Expr } from "../kernel/expr.ts";
import { elementsOf, typeWith } from "./element-values.ts";
import { checkType } from "./element-wise.ts";
import { numberIn, numbersOfInput, scalarInput, without } from "./spelling.ts";

/** min(max(x, min), max) with scalar bounds; NaN stays, and where min > max the result is max. Bounds given for opsets before 11 are float32 whatever the type of X. */
export const Clip = defineOp({
  type: "Clip", domain: "", since: 11, evaluate,
  inputs: { input: "required", min: "optional", max: "optional" }, oneType: [["input", "min", "max"]],
  attributes: {},
  fusionKind: "elementwise",
  infer: ({ input, min, max }, _, context) => {
    checkType(context, input, "input", "numeric");
    for (const bound of [min, max]) {
      if (bound && bound.shape.length > 0 && !(bound.shape.length === 1 && bound.shape[0] === 1)) context.fail("OF3010", "bounds must be scalars");
    }
    const low = elementsOf(min)?.[0], high = elementsOf(max)?.[0];
    const known = (!min || low !== undefined) && (!max || high !== undefined);
    return [typeWith(input.dtype, input.shape, known ? elementsOf(input)?.map((x) => {
      const y = low === undefined ? x : dimMax(x, low);
      return high === undefined ? y : dimMin(y, high);
    }) : undefined)];
  },
  lower: ({ input, min, max }) => [(...indices) => {
    const x = input.at(...indices), { scalar } = x.type;
    const bound = (t: Operand): Expr => cast(t.at(...t.shape.map(() => constant(0, i32))), scalar);
    const above = min ? binary("pmax", x, bound(min)) : x;
    return max ? binary("pmin", above, bound(max)) : above;
  }],
  read: (node, opset) => {
    if (opset >= 11) return node;
    const bound = (name: string): SpellingInput | undefined => { const value = numberIn(node.attributes[name]); return value === undefined ? undefined : scalarInput(value); };
    return { ...node, inputs: [node.inputs[0], bound("min"), bound("max")], attributes: without(node.attributes, "min", "max") };
  },
  write: (node, opset) => {
    if (opset >= 11) return node;
    const [x, ...bounds] = node.inputs;
    const [min, max] = bounds.map((b) => numbersOfInput(b)?.[0]);
    if ((bounds[0] && min === undefined) || (bounds[1] && max === undefined)) return undefined;
    return { ...node, inputs: [x], attributes: { ...(min === undefined ? {} : { min }), ...(max === undefined ? {} : { max }) } };
  },
});
