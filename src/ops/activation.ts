/**
 * Activation functions. Each passes NaN on, but for those that are 0 where a comparison does not hold. Bounds are taken with pmin and pmax, which keep x where it is NaN or equals
 * the bound, as one instruction each.
 */
import { formatShape } from "../core/dim.ts";
import * as evaluate from "../evaluate/activation.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { isFloat, type DType } from "../core/dtype.ts";
import { defineOp, float, string, type AttributeSpec, type Attributes, type OpDef } from "../graph/op.ts";
import { add, binary, div, exp, gt, lt, max, mul, neg, select, sub, unary, type Expr } from "../kernel/expr.ts";
import { Add, Div, Mul, Pow } from "./arithmetic.ts";
import { agreeSizes } from "./agree-sizes.ts";
import { checkSameType, checkType, narrow, outputOf, readBroadcast, unaryOp, type Allowed } from "./element-wise.ts";
import { Expansion, scalarOf } from "./expansion.ts";
import { Erf, Tanh } from "./unary-math.ts";

const pmin = (a: Expr, b: Expr | number): Expr => binary("pmin", a, b);
const pmax = (a: Expr, b: Expr | number): Expr => binary("pmax", a, b);
const abs = (x: Expr): Expr => unary("abs", x);
/** 1 / (1 + e^(−x)) */
export const sigmoid = (x: Expr): Expr => div(1, add(exp(neg(x)), 1));
/** ln(1 + eˣ) without overflow. */
const softplus = (x: Expr): Expr => add(max(x, 0), unary("log", add(exp(neg(abs(x))), 1)));
const hardSigmoid = (x: Expr, alpha: number, beta: number): Expr => pmin(pmax(add(mul(x, alpha), beta), 0), 1);

type Floats = Readonly<Record<string, AttributeSpec<"float", true>>>;
type FloatsOf<S extends Floats> = { readonly [K in keyof S]: number };
/** An element-wise operator with float attributes; integers run on the host. */
const activation = <const S extends Floats>(type: string, since: number, attributes: S, evaluate: Evaluate, lower: (x: Expr, attributes: FloatsOf<S>) => Expr, allowed: Allowed = "float"): OpDef => defineOp({
  type, domain: "", since, attributes, evaluate,
  inputs: { X: "required" },
  fusionKind: "elementwise",
  infer: ({ X }, _, context) => { checkType(context, X, "X", allowed); return [{ dtype: X.dtype, shape: X.shape }]; },
  lowerable: ({ X }) => isFloat(X.dtype),
  lower: ({ X }, given) => [(...indices) => lower(X.at(...indices), given as FloatsOf<S>)],
});

/** The operator with what says it in older opsets: nodes that end in `output`. */
const saidBy = (op: OpDef, say: (to: Expansion, x: string | undefined, dtype: DType, output: string | undefined, attributes: Attributes) => void): OpDef => ({
  ...op,
  expand: ({ inputs, inputTypes, outputs }, attributes) => {
    const to = new Expansion();
    say(to, inputs[0], inputTypes[0]?.dtype ?? "float32", outputs[0], attributes);
    return to.nodes;
  },
});

/** x < 0 ? 0 : x */
export const Relu: OpDef = unaryOp("Relu", 6, "numeric", evaluate.Relu, (x, dtype) => (dtype.startsWith("uint") ? x : pmax(x, 0)));
export const LeakyRelu: OpDef = activation("LeakyRelu", 6, { alpha: float(0.01) }, evaluate.LeakyRelu, (x, { alpha }) => select(lt(x, 0), mul(x, alpha), x));
export const Sigmoid: OpDef = unaryOp("Sigmoid", 6, "float", evaluate.Sigmoid, sigmoid);
export const HardSigmoid: OpDef = activation("HardSigmoid", 6, { alpha: float(0.2), beta: float(0.5) }, evaluate.HardSigmoid, (x, { alpha, beta }) => hardSigmoid(x, alpha, beta));
export const HardSwish: OpDef = saidBy(
  unaryOp("HardSwish", 14, "float", evaluate.HardSwish, (x) => mul(x, hardSigmoid(x, 1 / 6, 0.5))),
  (to, x, _, output) => { to.add(Mul, [x, to.add(HardSigmoid, [x], { alpha: 1 / 6, beta: 0.5 })], {}, output); },
);
export const Elu: OpDef = activation("Elu", 6, { alpha: float(1) }, evaluate.Elu, (x, { alpha }) => select(lt(x, 0), mul(sub(exp(x), 1), alpha), x));
export const Selu: OpDef = activation("Selu", 6, { alpha: float(1.6732632423543772), gamma: float(1.0507009873554805) }, evaluate.Selu,
  (x, { alpha, gamma }) => mul(select(lt(x, 0), mul(sub(exp(x), 1), alpha), x), gamma));
export const Celu: OpDef = activation("Celu", 12, { alpha: float(1) }, evaluate.Celu, (x, { alpha }) => select(lt(x, 0), mul(sub(exp(div(x, alpha)), 1), alpha), x));
/** As its function body says: what is not above alpha is 0, NaN too. */
export const ThresholdedRelu: OpDef = activation("ThresholdedRelu", 10, { alpha: float(1) }, evaluate.ThresholdedRelu, (x, { alpha }) => select(gt(x, alpha), x, 0));
export const Softplus: OpDef = unaryOp("Softplus", 1, "float", evaluate.Softplus, softplus);
export const Softsign: OpDef = unaryOp("Softsign", 1, "float", evaluate.Softsign, (x) => div(x, add(abs(x), 1)));
/** x·tanh(ln(1 + n)) with n = eˣ is x·(n² + 2n) / (n² + 2n + 2); from 20 on it is x to float32. */
export const Mish: OpDef = saidBy(
  unaryOp("Mish", 18, "float", evaluate.Mish, (x) => {
    const n = exp(pmin(x, 20));
    const square = mul(n, add(n, 2));
    return select(gt(x, 20), x, mul(x, div(square, add(square, 2))));
  }),
  (to, x, _, output) => { to.add(Mul, [x, to.add(Tanh, [to.add(Softplus, [x])])], {}, output); },
);
export const Swish: OpDef = saidBy(
  activation("Swish", 24, { alpha: float(1) }, evaluate.Swish, (x, { alpha }) => (alpha === 1 ? unary("silu", x) : div(x, add(exp(neg(mul(x, alpha))), 1)))),
  (to, x, dtype, output, { alpha }) => {
    const inner = typeof alpha === "number" && alpha !== 1 ? to.add(Mul, [x, scalarOf(dtype, alpha)]) : x;
    to.add(Mul, [x, to.add(Sigmoid, [inner])], {}, output);
  },
);
/** NaN is on neither side: 0. Integers run on the host. */
export const Shrink: OpDef = activation("Shrink", 9, { lambd: float(0.5), bias: float(0) }, evaluate.Shrink,
  (x, { lambd, bias }) => select(lt(x, -lambd), add(x, bias), select(gt(x, lambd), sub(x, bias), 0)), "numeric");

export const Gelu: OpDef = saidBy(defineOp({
  type: "Gelu", domain: "", since: 20,
  inputs: { X: "required" },
  attributes: { approximate: string("none") },
  fusionKind: "elementwise",
  evaluate: evaluate.Gelu,
  infer: ({ X }, { approximate }, context) => {
    checkType(context, X, "X", "float");
    if (approximate !== "none" && approximate !== "tanh") context.fail("OF3012", `unknown approximate '${approximate}'`, "it is 'none' or 'tanh'");
    return [{ dtype: X.dtype, shape: X.shape }];
  },
  lower: ({ X }, { approximate }) => [(...indices) => (approximate === "tanh" ? geluTanh : geluErf)(X.at(...indices))],
}), (to, x, dtype, output, { approximate }) => {
  const times = (a: string | undefined, factor: number): string => to.add(Mul, [a, scalarOf(dtype, factor)]);
  // As onnxruntime's optimiser expects it, which puts the operator together again.
  const cube = (): string => to.add(Pow, [x, scalarOf(dtype, 3)]);
  const inner = approximate === "tanh" ? to.add(Tanh, [times(to.add(Add, [x, times(cube(), 0.044715)]), Math.sqrt(2 / Math.PI))]) : to.add(Erf, [to.add(Div, [x, scalarOf(dtype, Math.SQRT2)])]);
  to.add(Mul, [times(x, 0.5), to.add(Add, [inner, scalarOf(dtype, 1)])], {}, output);
});
const geluErf = (x: Expr): Expr => unary("gelu", x);
/** (1 + tanh u) / 2 is 1 / (1 + e^-2u), which keeps its digits where u is negative. */
const geluTanh = (x: Expr): Expr => div(x, add(exp(neg(mul(x, add(mul(mul(x, x), 0.044715 * tanhScale), tanhScale)))), 1));
const tanhScale = 2 * Math.sqrt(2 / Math.PI);

/** The slope broadcasts to X, never X to the slope. */
export const PRelu = defineOp({
  type: "PRelu", domain: "", since: 7,
  inputs: { X: "required", slope: "required" }, oneType: [["X", "slope"]],
  attributes: {},
  fusionKind: "broadcast",
  evaluate: evaluate.PRelu,
  infer: ({ X, slope }, _, context) => {
    checkType(context, X, "X", "numeric");
    checkSameType(context, [X, slope]);
    if (slope.shape.length > X.shape.length) context.fail("OF3011", `slope ${formatShape(slope.shape)} does not broadcast to ${formatShape(X.shape)}`);
    agreeSizes(context, "slope", slope, X.shape.slice(X.shape.length - slope.shape.length), "broadcast");
    return [{ dtype: X.dtype, shape: X.shape }];
  },
  lower: ({ X, slope }, _, context) => {
    const { shape, dtype } = outputOf(context);
    return [(...indices) => {
      const x = X.at(...indices);
      return dtype.startsWith("uint") ? x : select(lt(x, 0), narrow(mul(x, readBroadcast(slope, shape, indices)), dtype), x);
    }];
  },
});
