/**
 * Operators on quantised values that onnxruntime's quantiser writes (com.microsoft). Each is compiled as DequantizeLinear,
 * the operator itself and QuantizeLinear, which become one kernel that reads and writes 8 bits; those that read an element
 * several times reduce the integers themselves.
 */
import { broadcastShapes, formatShape } from "../core/dim.ts";
import { dtypes } from "../core/dtype.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { defineOp, float, int, named, required, type AttributeSpec, type Attributes, type ElementFunction, type ExpandContext, type Operand, type OpDef, type TypeInfo } from "../graph/op.ts";
import * as evaluate from "../evaluate/com-microsoft-qlinear.ts";
import { LeakyRelu, Sigmoid } from "./activation.ts";
import { Concat } from "./concat.ts";
import { agreeBroadcast, checkType } from "./element-wise.ts";
import { Expansion } from "./expansion.ts";
import { GlobalAveragePool } from "./global-pool.ts";
import { AveragePool, type PoolOptions } from "./pool.ts";
import { averageElement, keepsOrder, quantizedUnary, singleScales, softmaxElement, standsInFew, type QuantizedUnary } from "./qlinear-reductions.ts";
import { checkQuantized, isSingle } from "./quantization.ts";
import { DequantizeLinear, QuantizeLinear } from "./quantize-linear.ts";
import { Softmax } from "./softmax.ts";
import { Transpose } from "./transpose.ts";
import { Where } from "./where.ts";

const common = { domain: "com.microsoft", since: 1, fusionKind: "opaque" } as const;

/** What dequantising a value gives. */
const floating = (t: TypeInfo, shape = t.shape): TypeInfo => ({ dtype: "float32", shape });

/** Adds the quantisation of `x` as the expansion's result. */
function finish(to: Expansion, x: string, { inputs, inputTypes, outputs }: ExpandContext, [scale, zero]: readonly [number, number], like: number): void {
  const dtype = inputTypes[like]?.dtype ?? "uint8";
  to.add(QuantizeLinear, [x, inputs[scale], inputs[zero]], inputs[zero] === undefined ? { output_dtype: dtypes[dtype].onnx } : {}, outputs[0]);
}

interface Unary {
  readonly type: string;
  readonly evaluate: Evaluate;
  readonly of: OpDef;
  readonly attributes?: Readonly<Record<string, AttributeSpec>>;
  /** The operator's own attributes, from the node's. */
  readonly own?: (attributes: Attributes) => Attributes;
}
/** An operator of one operand. */
const unary = ({ type, evaluate: definition, of, attributes = {}, own = (a) => a }: Unary): OpDef => defineOp({
  ...common, type, attributes, evaluate: definition,
  inputs: { X: "required", X_scale: "required", X_zero_point: "optional", Y_scale: "required", Y_zero_point: "optional" },
  oneType: [["X", "X_zero_point", "Y_zero_point"], ["X_scale", "Y_scale"]],
  infer({ X }, options, context) {
    const rank = X.shape.length, given: Attributes = options, last = Boolean(given["channels_last"]);
    const before = last ? [...X.shape.slice(0, 1), ...X.shape.slice(-1), ...X.shape.slice(1, -1)] : X.shape;
    const [y] = of.infer(named<TypeInfo>(of, [floating(X, before)]), own(given), context), shape = y?.shape ?? before;
    return [{ dtype: checkQuantized(X.dtype, context), shape: last && rank > 2 ? [...shape.slice(0, 1), ...shape.slice(2), ...shape.slice(1, 2)] : shape }];
  },
  expand(context, options) {
    const to = new Expansion(), [x, scale, zero] = context.inputs, given: Attributes = options;
    const rank = context.inputTypes[0]?.shape.length ?? 0, inner = Array.from({ length: rank - 2 }, (_, d) => d + 1);
    const value = to.add(DequantizeLinear, [x, scale, zero]), last = Boolean(given["channels_last"]);
    const result = to.add(of, [last ? to.add(Transpose, [value], { perm: [0, rank - 1, ...inner] }) : value], own(given));
    finish(to, last ? to.add(Transpose, [result], { perm: [0, ...inner.map((d) => d + 1), 1] }) : result, context, [3, 4], 0);
    return to.nodes;
  },
});

/** The operator with a kernel of its own, where scales are single and `when` holds; else it is compiled as its parts. */
const onIntegers = (op: OpDef, element: (operands: QuantizedUnary<Operand>, attributes: Attributes) => ElementFunction, when: (types: QuantizedUnary<TypeInfo>, attributes: Attributes) => boolean): OpDef => ({
  ...op, fusionKind: "reduction",
  lower: (operands, attributes) => [element(quantizedUnary(operands), attributes)],
  lowerable: (types, attributes) => { const own = quantizedUnary(types); return singleScales(own) && when(own, attributes); },
});

/** A pool's attributes, as its windows take them. */
export function poolOptions(attributes: Attributes): PoolOptions & { readonly count_include_pad: number } {
  const list = (name: string): readonly number[] | undefined => { const v = attributes[name]; return isNumbers(v) ? v : undefined; };
  return {
    auto_pad: String(attributes["auto_pad"] ?? "NOTSET"), ceil_mode: Number(attributes["ceil_mode"] ?? 0), count_include_pad: Number(attributes["count_include_pad"] ?? 0),
    kernel_shape: list("kernel_shape") ?? [], dilations: list("dilations"), pads: list("pads"), strides: list("strides"),
  };
}
const isNumbers = (v: Attributes[string]): v is readonly number[] => Array.isArray(v) && v.every((x) => typeof x === "number");

const withoutLayout = ({ channels_last: _, ...rest }: Attributes): Attributes => rest;

export const QLinearSigmoid: OpDef = unary({ type: "QLinearSigmoid", evaluate: evaluate.QLinearSigmoid, of: Sigmoid });
export const QLinearLeakyRelu: OpDef = unary({ type: "QLinearLeakyRelu", evaluate: evaluate.QLinearLeakyRelu, of: LeakyRelu, attributes: { alpha: float(0.01) } });
export const QLinearSoftmax: OpDef = onIntegers(unary({
  type: "QLinearSoftmax", evaluate: evaluate.QLinearSoftmax, of: Softmax, attributes: { axis: int(-1), opset: required("int") },
  own: ({ axis, opset }) => ({ axis, flatten: Number(opset) < 13 ? 1 : 0 }),
}), (operands, { axis, opset }) => softmaxElement(operands, { axis: Number(axis), flatten: Number(opset) < 13 ? 1 : 0 }), keepsOrder);
export const QLinearAveragePool: OpDef = onIntegers(unary({
  type: "QLinearAveragePool", evaluate: evaluate.QLinearAveragePool, of: AveragePool, own: withoutLayout,
  attributes: { ...AveragePool.attributes, channels_last: int(0) },
}), (operands, options) => averageElement(operands, poolOptions(options), Boolean(options["channels_last"])), (_, options) => standsInFew(poolOptions(options)));
export const QLinearGlobalAveragePool: OpDef = unary({
  type: "QLinearGlobalAveragePool", evaluate: evaluate.QLinearGlobalAveragePool, of: GlobalAveragePool, own: withoutLayout, attributes: { channels_last: int(0) },
});

/** Operands come in threes: elements, scale, zero point. */
export const QLinearConcat = defineOp({
  ...common, type: "QLinearConcat", evaluate: evaluate.QLinearConcat,
  inputs: { Y_scale: "required", Y_zero_point: "required", inputs: "variadic" }, attributes: { axis: required("int") },
  infer({ Y_zero_point, inputs }, { axis }, context) {
    if (inputs.length === 0 || inputs.length % 3 !== 0) context.fail("OF3001", `needs inputs in threes (elements, scale, zero point), got ${inputs.length}`);
    const parts = inputs.filter((_, i) => i % 3 === 0).map((t) => floating(t)), [y] = Concat.infer({ inputs: parts }, { axis }, context);
    return [{ dtype: checkQuantized(Y_zero_point.dtype, context), shape: y?.shape ?? [] }];
  },
  expand(context, { axis }) {
    const to = new Expansion(), [scale, zero, ...inputs] = context.inputs;
    const parts = inputs.flatMap((x, i) => (i % 3 === 0 ? [to.add(DequantizeLinear, [x, inputs[i + 1], inputs[i + 2]])] : []));
    to.add(QuantizeLinear, [to.add(Concat, parts, { axis }), scale, zero], {}, context.outputs[0]);
    return to.nodes;
  },
});

export const QLinearWhere = defineOp({
  ...common, type: "QLinearWhere", evaluate: evaluate.QLinearWhere,
  inputs: {
    condition: "required", X: "required", x_scale: "required", x_zero_point: "required", Y: "required", y_scale: "required", y_zero_point: "required",
    z_scale: "required", z_zero_point: "required",
  },
  oneType: [["X", "x_zero_point", "Y", "y_zero_point", "z_zero_point"], ["x_scale", "y_scale", "z_scale"]],
  attributes: {},
  infer({ condition, X, Y, ...parameters }, _, context) {
    for (const [name, t] of Object.entries(parameters)) if (!isSingle(t)) context.fail("OF3011", `${name} must have one element, got ${formatShape(t.shape)}`);
    checkType(context, condition, "condition", "bool");
    checkType(context, parameters.x_scale, "x_scale", "float");
    const shapes = [condition.shape, X.shape, Y.shape];
    const shape = broadcastShapes(...shapes) ?? context.fail("OF3011", `${shapes.map(formatShape).join(", ")} do not broadcast`);
    agreeBroadcast(context, shapes);
    return [{ dtype: checkQuantized(X.dtype, context), shape }];
  },
  expand(context) {
    const to = new Expansion(), [condition, x, xScale, xZero, y, yScale, yZero] = context.inputs;
    finish(to, to.add(Where, [condition, to.add(DequantizeLinear, [x, xScale, xZero]), to.add(DequantizeLinear, [y, yScale, yZero])]), context, [7, 8], 1);
    return to.nodes;
  },
});
