/** LayerNormalization and RMSNormalization: each row of the last axes by its own moments. */
import type { Dim } from "../core/dim.ts";
import { dtypeFromOnnx, dtypes, type DType } from "../core/dtype.ts";
import { defineOp, float, int, type ExpandContext, type ExpansionNode, type InferContext, type Operand, type TypeInfo } from "../graph/op.ts";
import { add, cast, constant, div, mul, sqrt, sub, type Expr } from "../kernel/expr.ts";
import { LayerNormalization as evaluateLayer, RMSNormalization as evaluateRms } from "../evaluate/normalization.ts";
import { Add, Div, Mul, Pow, Sub } from "./arithmetic.ts";
import { axesFrom, axisWithin, meanOver, momentsOver } from "./axis-reduction.ts";
import { agreeSizes } from "./agree-sizes.ts";
import { checkType } from "./element-wise.ts";
import { broadcastIndices } from "./broadcast-read.ts";
import { Cast } from "./cast.ts";
import { Expansion, listOf, scalarOf } from "./expansion.ts";
import { ReduceMean } from "./reduce.ts";
import { Sqrt } from "./unary-math.ts";

/**
 * Both normalisations by reductions and element-wise operators. Rows of float16 and bfloat16 go through float32, as
 * `stash_type` has it; otherwise undefined where the statistics want another dtype.
 */
function expandRows({ inputs, inputTypes, outputs }: ExpandContext, { axis, epsilon, stash_type }: { axis: number; epsilon: number; stash_type: number }, centred: boolean): readonly ExpansionNode[] | undefined {
  const X = inputTypes[0], stash = dtypeFromOnnx(stash_type);
  if (!X || !stash) return undefined;
  const axes = listOf(...axesFrom(firstAxis(axis, X.shape.length), X.shape.length));
  const to = new Expansion();
  const cast = (x: string | undefined, dtype: DType, output?: string): string => to.add(Cast, [x], { to: dtypes[dtype].onnx }, output);
  const widened = stash !== X.dtype;
  const x = widened ? cast(inputs[0], stash) : inputs[0];
  const mean = centred ? to.add(ReduceMean, [x, axes], {}, outputs[1]) : undefined;
  const centre = mean === undefined ? x : to.add(Sub, [x, mean]);
  // Squared as onnxruntime's optimiser expects it, which puts the operator together again.
  const variance = to.add(ReduceMean, [to.add(Pow, [centre, scalarOf(stash, 2)]), axes]);
  const deviation = to.add(Sqrt, [to.add(Add, [variance, scalarOf(stash, epsilon)])]);
  if (outputs[2] !== undefined) to.add(Div, [scalarOf(stash, 1), deviation], {}, outputs[2]);
  const quotient = to.add(Div, [centre, deviation]);
  const result = inputTypes[1]?.dtype ?? X.dtype;
  const normal = result === stash ? quotient : cast(quotient, result);
  const scaled = to.add(Mul, [normal, inputs[1]], {}, inputs[2] === undefined ? outputs[0] : undefined);
  if (inputs[2] !== undefined) to.add(Add, [scaled, inputs[2]], {}, outputs[0]);
  return to.nodes;
}

const firstAxis = (axis: number, rank: number): number => (axis < 0 ? axis + rank : axis);

/** Reports scale or bias that does not broadcast to X one way. */
function checkBroadcast(X: TypeInfo, parameter: TypeInfo | undefined, name: string, context: InferContext): void {
  const skip = X.shape.length - (parameter?.shape.length ?? 0);
  if (skip < 0) context.fail("OF3011", `${name} does not broadcast to the input`);
  agreeSizes(context, name, parameter, X.shape.slice(skip), "broadcast");
}

const parameter = (of: Operand, X: Operand, indices: readonly Expr[], like: Expr): Expr =>
  cast(of.at(...broadcastIndices(of.shape, X.shape, indices)), like.type.scalar);

/** Where X and Scale are of two dtypes, as onnxruntime has it before opset 17, the result is of Scale's. */
export const LayerNormalization = defineOp({
  type: "LayerNormalization",
  domain: "",
  since: 17,
  inputs: { X: "required", Scale: "required", B: "optional" }, oneType: [["Scale", "B"]],
  attributes: { axis: int(-1), epsilon: float(1e-5), stash_type: int(1) },
  fusionKind: "reduction",
  infer({ X, Scale, B }, { axis, stash_type }, context) {
    const first = axisWithin(axis, X.shape.length, context);
    checkType(context, X, "X", "float");
    checkType(context, Scale, "Scale", "float");
    checkBroadcast(X, Scale, "Scale", context);
    checkBroadcast(X, B, "B", context);
    const statistics: TypeInfo = {
      dtype: dtypeFromOnnx(stash_type) ?? context.fail("OF3012", `unknown stash_type ${stash_type}`),
      shape: X.shape.map((d, i): Dim => (i < first ? d : 1)),
    };
    return [{ dtype: Scale.dtype, shape: X.shape }, statistics, statistics];
  },
  evaluate: evaluateLayer,
  expand: (context, attributes) => expandRows(context, attributes, true),
  lower({ X, Scale, B }, { axis, epsilon }, { outputs }) {
    const axes = axesFrom(firstAxis(axis, X.shape.length), X.shape.length);
    const inverse = (variance: Expr): Expr => div(constant(1, variance.type), sqrt(add(variance, constant(epsilon, variance.type))));
    const statistic = (value: Expr): Expr => (outputs[1]?.dtype === "float32" || outputs[2]?.dtype === "float32" ? cast(value, "f32") : value);
    return [
      (...indices) => {
        const { mean, variance } = momentsOver(X, axes, indices);
        const x = X.at(...indices), normal = cast(mul(sub(x, mean), inverse(variance)), Scale.dtype === "float64" ? "f64" : "f32");
        const scaled = mul(normal, parameter(Scale, X, indices, normal));
        return B ? add(scaled, parameter(B, X, indices, scaled)) : scaled;
      },
      (...indices) => statistic(momentsOver(X, axes, indices).mean),
      (...indices) => statistic(inverse(momentsOver(X, axes, indices).variance)),
    ];
  },
});

export const RMSNormalization = defineOp({
  type: "RMSNormalization",
  domain: "",
  since: 23,
  inputs: { X: "required", scale: "required" },
  attributes: { axis: int(-1), epsilon: float(1e-5), stash_type: int(1) },
  fusionKind: "reduction",
  infer({ X, scale }, { axis }, context) {
    checkType(context, X, "X", "float");
    checkType(context, scale, "scale", "float");
    axisWithin(axis, X.shape.length, context);
    checkBroadcast(X, scale, "scale", context);
    return [{ dtype: X.dtype, shape: X.shape }];
  },
  evaluate: evaluateRms,
  expand: (context, attributes) => expandRows(context, attributes, false),
  lower({ X, scale }, { axis, epsilon }) {
    const axes = axesFrom(firstAxis(axis, X.shape.length), X.shape.length);
    return [(...indices) => {
      const x = X.at(...indices);
      const meanSquare = meanOver(X.shape, axes, indices, (i) => mul(X.at(...i), X.at(...i)));
      const inverse = div(constant(1, x.type), sqrt(add(meanSquare, constant(epsilon, x.type))));
      return mul(mul(x, inverse), parameter(scale, X, indices, x));
    }];
  },
});
