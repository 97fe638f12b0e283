/**
 * Sequences of tensors that share one type and shape, held as one tensor with the sequence along a new first axis. They
 * stand for state that operators change one after the other, so nothing is fused across them; they run on the host.
 */
import { dimAdd, dimEqual, dimMul, dimSub, formatShape, shapeEqual, type Dim } from "../core/dim.ts";
import { dtypeFromOnnx } from "../core/dtype.ts";
import { defineOp, int, required, type InferContext, type TypeInfo } from "../graph/op.ts";
import * as evaluate from "../evaluate/sequence.ts";
import { axisWithin } from "./axis-reduction.ts";

const common = { domain: "", since: 11, fusionKind: "opaque", sideEffects: true } as const;

/** Whether nothing is known of the sequence's tensors, since it has none. */
const isUntyped = (sequence: TypeInfo): boolean => sequence.shape.length === 1 && sequence.shape[0] === 0;

/** The shape of a sequence's tensors once `added` is among them. */
function tensorShape(sequence: TypeInfo, added: TypeInfo, context: InferContext): readonly Dim[] {
  if (isUntyped(sequence)) return added.shape;
  const own = sequence.shape.slice(1);
  if (sequence.dtype !== added.dtype || !shapeEqual(own, added.shape))
    context.fail("OF3015", `a sequence of ${sequence.dtype}${formatShape(own)} cannot hold ${added.dtype}${formatShape(added.shape)}`, "sequences of tensors of different shapes are not supported");
  return own;
}

export const SequenceConstruct = defineOp({
  ...common, type: "SequenceConstruct", inputs: { inputs: "variadic" }, attributes: {},
  infer({ inputs }, _, context) {
    const first = inputs[0] ?? context.fail("OF3001", "needs at least one tensor");
    const shape = inputs.reduce((own, t) => tensorShape({ dtype: first.dtype, shape: [1, ...own] }, t, context), first.shape);
    return [{ dtype: first.dtype, shape: [inputs.length, ...shape] }];
  },
  evaluate: evaluate.SequenceConstruct,
});

export const SequenceEmpty = defineOp({
  ...common, type: "SequenceEmpty", inputs: {}, attributes: { dtype: int(1) },
  infer: (_, { dtype }, context) => [{ dtype: dtypeFromOnnx(dtype) ?? context.fail("OF3012", `type ${dtype} is not supported`), shape: [0] }],
  evaluate: evaluate.SequenceEmpty,
});

export const SequenceInsert = defineOp({
  ...common, type: "SequenceInsert", inputs: { input_sequence: "required", tensor: "required", position: "optional" }, attributes: {},
  infer: ({ input_sequence, tensor }, _, context) =>
    [{ dtype: tensor.dtype, shape: [dimAdd(input_sequence.shape[0] ?? 0, 1), ...tensorShape(input_sequence, tensor, context)] }],
  evaluate: evaluate.SequenceInsert,
});

export const SequenceErase = defineOp({
  ...common, type: "SequenceErase", inputs: { input_sequence: "required", position: "optional" }, attributes: {},
  infer({ input_sequence }, _, context) {
    const [count = 0, ...shape] = input_sequence.shape;
    if (dimEqual(count, 0)) context.fail("OF3012", "the sequence is empty");
    return [{ dtype: input_sequence.dtype, shape: [dimSub(count, 1), ...shape] }];
  },
  evaluate: evaluate.SequenceErase,
});

export const SequenceAt = defineOp({
  ...common, type: "SequenceAt", inputs: { input_sequence: "required", position: "required" }, attributes: {},
  infer({ input_sequence }, _, context) {
    if (isUntyped(input_sequence)) context.fail("OF3012", "the sequence is empty");
    return [{ dtype: input_sequence.dtype, shape: input_sequence.shape.slice(1) }];
  },
  evaluate: evaluate.SequenceAt,
});

export const SequenceLength = defineOp({
  ...common, type: "SequenceLength", inputs: { input_sequence: "required" }, attributes: {},
  infer: ({ input_sequence }) => [{ dtype: "int64", shape: [], elements: [input_sequence.shape[0] ?? 0] }],
  evaluate: evaluate.SequenceLength,
});

export const ConcatFromSequence = defineOp({
  ...common, type: "ConcatFromSequence", inputs: { input_sequence: "required" }, attributes: { axis: required("int"), new_axis: int(0) },
  infer({ input_sequence }, { axis: given, new_axis }, context) {
    if (isUntyped(input_sequence)) context.fail("OF3012", "the sequence is empty");
    const [count = 0, ...shape] = input_sequence.shape;
    const axis = axisWithin(given, shape.length + (new_axis ? 1 : 0), context);
    const joined = new_axis ? [count] : [dimMul(count, shape[axis] ?? 1)];
    return [{ dtype: input_sequence.dtype, shape: [...shape.slice(0, axis), ...joined, ...shape.slice(new_axis ? axis : axis + 1)] }];
  },
  evaluate: evaluate.ConcatFromSequence,
});
