/** QuantizeLinear and DequantizeLinear: per tensor, per axis, or in blocks along an axis. */
import { dimAdd, dimFloorDiv, formatShape, type Dim } from "../core/dim.ts";
import { dtypeFromOnnx, isFloat, type DType } from "../core/dtype.ts";
import { defineOp, int, type AttributeSpec, type InferContext, type Operand, type OpDef, type Spelling, type TypeInfo } from "../graph/op.ts";
import { add, cast, constant, div, mul, scalarType, sub, type Expr } from "../kernel/expr.ts";
import { DequantizeLinear as evaluateDequantize, QuantizeLinear as evaluateQuantize } from "../evaluate/quantize.ts";
import { floatFormats } from "../core/small-floats.ts";
import { axisWithin } from "./axis-reduction.ts";
import { castElement } from "./cast.ts";
import { checkQuantized, quantized, scaleIndices, isSingle, single } from "./quantization.ts";
import { typeOfInput } from "./spelling.ts";

const attributes = { axis: int(1), block_size: int(0), output_dtype: int(0) } as const satisfies Record<string, AttributeSpec>;
interface Options { readonly axis: number; readonly block_size: number; readonly output_dtype: number }

/** Reports scales or zero points whose shape fits none of the three ways. */
function checkScale(X: TypeInfo, { shape }: TypeInfo, { axis, block_size: block }: Options, context: InferContext, what: "scales" | "zero points" = "scales"): void {
  if (shape.length === 0 || (shape.length === 1 && shape[0] === 1 && block === 0)) return;
  const along = axisWithin(axis, X.shape.length, context);
  const fits = block > 0 ? shape.length === X.shape.length && shape.every((size, d) => (d === along ? mayCount(size, X.shape[d], block) : mayCount(size, X.shape[d], 1))) : shape.length === 1 && mayCount(shape[0], X.shape[along], 1);
  if (!fits) context.fail("OF3011", `${what} of ${formatShape(shape)} do not fit a tensor of ${formatShape(X.shape)} along axis ${axis}`);
  shape.forEach((size, d) => {
    const own = X.shape[block > 0 ? d : along] ?? size;
    context.agree?.(block > 0 && d === along ? dimFloorDiv(dimAdd(own, block - 1), block) : own, size, "equal");
  });
}

/** Whether so many blocks may be what an axis of this size has. */
const mayCount = (blocks: Dim | undefined, size: Dim | undefined, block: number): boolean => typeof blocks !== "number" || typeof size !== "number" || blocks === Math.ceil(size / block);

function givenDtype(code: number, context: InferContext, attribute = "output_dtype"): DType | undefined {
  return code === 0 ? undefined : (dtypeFromOnnx(code) ?? context.fail("OF3012", `${attribute} ${code} is no element type`));
}

const axisOfScale = (axis: number, rank: number): number => (axis < 0 ? axis + rank : axis);

/** The zero point of an element as `scalar`. */
function zeroOf(zero: Operand | undefined, { axis, block_size }: Options, indices: readonly Expr[], scalar: "i32" | "f32" = "i32"): Expr {
  return zero ? cast(zero.at(...scaleIndices(zero.shape, axisOfScale(axis, indices.length), block_size, indices)), scalar) : constant(0, scalarType(scalar));
}

/** Leaves out what says the usual, and before opset 13, whose scales are single, the axis; when others came is the writer's knowledge. Integers of 16 bits came with opset 21. */
function write(node: Spelling, opset: number): Spelling | undefined {
  if (opset < 21 && node.inputs.some((i) => { const dtype = typeOfInput(i)?.dtype; return dtype === "int16" || dtype === "uint16"; })) return undefined;
  const { axis, ...rest } = node.attributes;
  const usual = Object.entries(rest).filter(([name, value]) => value !== (name === "saturate" ? 1 : 0));
  return { ...node, attributes: { ...(opset >= 13 ? { axis } : {}), ...Object.fromEntries(usual) } };
}

/** Reports a dtype that QuantizeLinear does not give. */
const checkTarget = (dtype: DType, context: InferContext): DType => (floatFormats[dtype] ? dtype : checkQuantized(dtype, context));

/** A float32 quotient rounded to the precision that divisions are made in. */
const rounded = (quotient: Expr, precision: DType): Expr => (precision === "float16" || precision === "bfloat16" ? castElement(quotient, "float32", precision) : quotient);

export const QuantizeLinear = defineOp({
  type: "QuantizeLinear",
  domain: "",
  since: 21,
  inputs: { x: "required", y_scale: "required", y_zero_point: "optional" },
  attributes: { ...attributes, precision: int(0), saturate: int(1) },
  fusionKind: "broadcast", quantizes: true,
  infer({ x, y_scale, y_zero_point }, options, context) {
    checkScale(x, y_scale, options, context);
    if (y_zero_point) checkScale(x, y_zero_point, options, context, "zero points");
    const dtype = y_zero_point?.dtype ?? givenDtype(options.output_dtype, context) ?? "uint8";
    if (options.precision !== 0) givenDtype(options.precision, context, "precision");
    return [{ dtype: checkTarget(dtype, context), shape: x.shape }];
  },
  evaluate: evaluateQuantize,
  lower: ({ x, y_scale, y_zero_point }, options, { outputs }) => [(...indices) => {
    const scale = isSingle(y_scale) ? single(y_scale) : y_scale.at(...scaleIndices(y_scale.shape, axisOfScale(options.axis, indices.length), options.block_size, indices));
    const value = rounded(div(cast(x.at(...indices), "f32"), cast(scale, "f32")), dtypeFromOnnx(options.precision) ?? y_scale.dtype);
    const dtype = outputs[0]?.dtype ?? "uint8";
    if (!isFloat(dtype)) return quantized(value, zeroOf(y_zero_point, options, indices), dtype);
    return castElement(y_zero_point ? add(value, zeroOf(y_zero_point, options, indices, "f32")) : value, "float32", dtype, options.saturate !== 0);
  }],
  write,
});

export const DequantizeLinear = defineOp({
  type: "DequantizeLinear",
  domain: "",
  since: 21,
  inputs: { x: "required", x_scale: "required", x_zero_point: "optional" }, oneType: [["x", "x_zero_point"]],
  attributes,
  fusionKind: "broadcast", quantizes: true,
  infer({ x, x_scale, x_zero_point }, options, context) {
    if (!isFloat(x_scale.dtype)) context.fail("OF3013", `input 'x_scale' is ${x_scale.dtype}, must be float`);
    checkScale(x, x_scale, options, context);
    if (x_zero_point) checkScale(x, x_zero_point, options, context, "zero points");
    const given = givenDtype(options.output_dtype, context);
    if (given !== undefined && !isFloat(given)) context.fail("OF3013", `cannot dequantise to ${given}`);
    return [{ dtype: given ?? x_scale.dtype, shape: x.shape }];
  },
  evaluate: evaluateDequantize,
  lower: ({ x, x_scale, x_zero_point }, options) => [(...indices) => {
    const scale = x_scale.at(...scaleIndices(x_scale.shape, axisOfScale(options.axis, indices.length), options.block_size, indices));
    const scalar = isFloat(x.dtype) ? "f32" : "i32", steps = sub(cast(x.at(...indices), scalar), zeroOf(x_zero_point, options, indices, scalar));
    return mul(cast(steps, "f32"), cast(scale, "f32"));
  }],
  write,
});

/** The com.microsoft forms of the same operators: they know `axis` alone. */
const axisOnly = (node: Spelling): Spelling => ({ ...node, attributes: { axis: node.attributes["axis"] } });
export const MicrosoftQuantizeLinear: OpDef = { ...QuantizeLinear, domain: "com.microsoft", since: 1, write: axisOnly };
export const MicrosoftDequantizeLinear: OpDef = { ...DequantizeLinear, domain: "com.microsoft", since: 1, write: axisOnly };
