/** The optimizers of ai.onnx.preview.training: one step for any number of variables, element by element. */
import { formatShape, shapeEqual } from "../core/dim.ts";
import type { Evaluate } from "../core/evaluate.ts";
import * as evaluate from "../evaluate/ai-onnx-preview-training-optimizers.ts";
import { defineOp, float, required, string, type AttributeSpec, type OpDef, type Operand } from "../graph/op.ts";
import { add, binary, cast, constant, div, gt, mul, select, sqrt, sub, type Expr } from "../kernel/expr.ts";
import { checkType } from "./element-wise.ts";
import { origin } from "./index-map.ts";

type Values = Readonly<Record<string, number | string>>;
/** What a step knows besides its variable: the rate and the count of updates, in the variable's type. */
interface StepContext { readonly rate: Expr; readonly count: Expr; number(name: string): Expr; readonly mode: string }
/** The new values of a variable and its states, from the old ones with the gradient second. */
type Step = (context: StepContext, own: readonly Expr[]) => readonly Expr[];

const scalarAt = (t: Operand): Expr => t.at(...t.shape.map(() => origin));

function optimizer(type: string, kinds: number, own: Readonly<Record<string, AttributeSpec>>, of: Evaluate, step: Step): OpDef {
  return defineOp({
    type, domain: "ai.onnx.preview.training", since: 1, evaluate: of,
    inputs: { R: "required", T: "required", inputs: "variadic" },
    attributes: own, fusionKind: "opaque",
    infer: ({ inputs }, _, context) => {
      if (inputs.length === 0 || inputs.length % kinds !== 0) context.fail("OF3001", `needs ${kinds} inputs for each variable besides R and T, got ${inputs.length}`);
      const variables = inputs.length / kinds;
      inputs.forEach((t, i) => {
        const variable = inputs[i % variables] ?? t;
        checkType(context, t, "inputs", "float");
        if (t.dtype !== variable.dtype || !shapeEqual(t.shape, variable.shape)) context.fail("OF3011", `input ${i + 2} is ${formatShape(t.shape)}, its variable ${formatShape(variable.shape)}`);
      });
      return inputs.filter((_t, i) => Math.floor(i / variables) !== 1).map((t) => ({ dtype: t.dtype, shape: t.shape }));
    },
    lower: ({ R, T, inputs }, given) => {
      const variables = inputs.length / kinds, values = given as Values;
      return Array.from({ length: kinds - 1 }, (_, k) => Array.from({ length: variables }, (_v, v) => (...indices: readonly Expr[]): Expr => {
        const old = Array.from({ length: kinds }, (_o, i) => inputs[i * variables + v]).filter((t) => t !== undefined).map((t) => t.at(...indices));
        const [x = origin] = old, { scalar } = x.type;
        const context: StepContext = { rate: cast(scalarAt(R), scalar), count: cast(scalarAt(T), scalar), number: (name) => constant(Number(values[name]), x.type), mode: String(values["mode"]) };
        return step(context, old)[k] ?? x;
      })).flat();
    },
  });
}

const regularised = ({ number }: StepContext, x: Expr, g: Expr): Expr => add(mul(number("norm_coefficient"), x), g);

export const Momentum: OpDef = optimizer("Momentum", 3, { alpha: required("float"), beta: required("float"), norm_coefficient: required("float"), mode: string("standard") }, evaluate.Momentum, (c, [x = origin, g = origin, v = origin]) => {
  const gradient = regularised(c, x, g), beta = select(gt(c.count, 0), c.number("beta"), 1);
  const momentum = add(mul(c.number("alpha"), v), mul(beta, gradient));
  return [sub(x, mul(c.rate, c.mode === "nesterov" ? add(gradient, mul(c.number("alpha"), momentum)) : momentum)), momentum];
});

export const Adam: OpDef = optimizer("Adam", 4, { alpha: float(Math.fround(0.9)), beta: float(Math.fround(0.999)), epsilon: float(Math.fround(1e-6)), norm_coefficient: float(0), norm_coefficient_post: float(0) }, evaluate.Adam, (c, [x = origin, g = origin, v = origin, h = origin]) => {
  const gradient = regularised(c, x, g), alpha = c.number("alpha"), beta = c.number("beta");
  const momentum = add(mul(alpha, v), mul(sub(1, alpha), gradient)), square = add(mul(beta, h), mul(sub(1, beta), mul(gradient, gradient)));
  // 1 − β^T cancels: it is computed in float64.
  const count = cast(c.count, "f64"), left = (factor: Expr): Expr => sub(1, binary("pow", cast(factor, "f64"), count));
  const rate = select(gt(c.count, 0), cast(div(mul(cast(c.rate, "f64"), sqrt(left(beta))), left(alpha)), x.type.scalar), c.rate);
  const next = sub(x, div(mul(rate, momentum), add(sqrt(square), c.number("epsilon"))));
  return [mul(sub(1, c.number("norm_coefficient_post")), next), momentum, square];
});

export const Adagrad: OpDef = optimizer("Adagrad", 3, { decay_factor: float(0), epsilon: float(Math.fround(1e-6)), norm_coefficient: float(0) }, evaluate.Adagrad, (c, [x = origin, g = origin, h = origin]) => {
  const gradient = regularised(c, x, g), square = add(h, mul(gradient, gradient));
  const rate = div(c.rate, add(mul(c.count, c.number("decay_factor")), 1));
  return [sub(x, div(mul(rate, gradient), add(sqrt(square), c.number("epsilon")))), square];
});
