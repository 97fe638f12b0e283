/**
 * DFT and STFT, on the host: a fast transform where lengths are powers of two. Before opset 20 DFT has its axis as an
 * attribute, which counts from 1.
 */
import { dimAdd, dimFloorDiv, dimMul, dimSub, formatShape, type Dim } from "../core/dim.ts";
import * as evaluate from "../evaluate/fourier.ts";
import { defineOp, int, type TypeInfo } from "../graph/op.ts";
import { elementsOf } from "./element-values.ts";
import { checkType } from "./element-wise.ts";
import { numberIn, numbersOfInput, without } from "./spelling.ts";

const scalarOf = (t: TypeInfo | undefined): Dim | undefined => elementsOf(t)?.[0];
/** The bins of a one-sided spectrum. */
const half = (length: Dim): Dim => dimAdd(dimFloorDiv(length, 2), 1);

export const DFT = defineOp({
  type: "DFT", domain: "", since: 20, evaluate: evaluate.DFT,
  inputs: { input: "required", dft_length: "optional", axis: "optional" }, integers: ["dft_length", "axis"],
  attributes: { inverse: int(0), onesided: int(0) },
  fusionKind: "opaque",
  infer: ({ input, dft_length, axis }, { inverse, onesided }, context) => {
    checkType(context, input, "input", "float");
    const rank = input.shape.length, parts = input.shape[rank - 1], given = axis ? scalarOf(axis) : -2;
    if (rank < 2 || (typeof parts === "number" && parts !== 1 && parts !== 2)) context.fail("OF3010", `needs a signal whose last axis holds 1 or 2 numbers, got ${formatShape(input.shape)}`);
    if (onesided && !inverse && parts === 2) context.fail("OF3012", "a one-sided transform needs a real signal");
    const last = inverse && onesided ? 1 : 2;
    if (typeof given !== "number") return [{ dtype: input.dtype, shape: [...input.shape.slice(0, -1).map((_, i) => context.fresh(`d${i}`)), last] }];
    const at = given < 0 ? given + rank : given;
    if (at < 0 || at >= rank - 1) context.fail("OF3012", `axis ${given} is out of range for a signal of rank ${rank}`);
    const size = input.shape[at] ?? 1, missing = inverse && onesided ? dimMul(2, dimSub(size, 1)) : size;
    const length = dft_length ? scalarOf(dft_length) ?? context.fresh("length") : missing;
    return [{ dtype: input.dtype, shape: input.shape.map((d, i) => (i === rank - 1 ? last : i !== at ? d : onesided && !inverse ? half(length) : length)) }];
  },
  read: (node, opset) => {
    if (opset >= 20) return node;
    const axis = { literal: { dtype: "int64" as const, dims: [], data: BigInt64Array.of(BigInt(numberIn(node.attributes.axis) ?? 1)) } };
    return { ...node, inputs: [node.inputs[0], node.inputs[1], axis], attributes: without(node.attributes, "axis") };
  },
  write: (node, opset) => {
    if (opset >= 20) return node;
    const [input, length, axis] = node.inputs, at = axis ? numbersOfInput(axis)?.[0] : -2;
    return at === undefined ? undefined : { ...node, inputs: [input, length], attributes: { ...node.attributes, axis: at } };
  },
});

export const STFT = defineOp({
  type: "STFT", domain: "", since: 17, evaluate: evaluate.STFT,
  inputs: { signal: "required", frame_step: "required", window: "optional", frame_length: "optional" }, integers: ["frame_step", "frame_length"], oneType: [["signal", "window"]],
  attributes: { onesided: int(1) },
  fusionKind: "opaque",
  infer: ({ signal, frame_step, window, frame_length }, { onesided }, context) => {
    checkType(context, signal, "signal", "float");
    const [batch = 1, length = 1, parts] = signal.shape;
    if (signal.shape.length < 2 || signal.shape.length > 3) context.fail("OF3010", `needs a signal [batch, length, 1 or 2], got ${formatShape(signal.shape)}`);
    if (onesided && parts === 2) context.fail("OF3012", "a one-sided transform needs a real signal");
    const frame = frame_length ? scalarOf(frame_length) : window ? window.shape[0] : length, step = scalarOf(frame_step);
    const frames = frame !== undefined && typeof step === "number" && step > 0 ? dimAdd(dimFloorDiv(dimSub(length, frame), step), 1) : context.fresh("frames");
    const bins = frame === undefined ? context.fresh("bins") : onesided ? half(frame) : frame;
    return [{ dtype: signal.dtype, shape: [batch, frames, bins, 2] }];
  },
});
