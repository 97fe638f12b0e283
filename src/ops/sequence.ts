/**
 * Sequences of tensors. They stand for state that operators change one after the other, so nothing is fused across the
 * operators that change one; all of them run on the host.
 */
import { formatContainer, joinItems, sequenceOf, type Container, type ItemType } from "../core/container.ts";
import { dimAdd, dimCeilDiv, dimEqual, dimMul, dimSub, isSymbolic, type Dim } from "../core/dim.ts";
import { dtypeFromOnnx } from "../core/dtype.ts";
import { containerType, itemOf, itemType, unranked } from "../graph/container-type.ts";
import { defineOp, int, required, type InferContext, type TypeInfo } from "../graph/op.ts";
import * as evaluate from "../evaluate/sequence.ts";
import { axisWithin } from "./axis-reduction.ts";
import { elementsOf } from "./element-values.ts";

/** Reads a sequence, or makes one anew. */
const reads = { domain: "", since: 11, fusionKind: "opaque", containers: true, anyRank: true } as const;
/** Changes a sequence: what is computed before and after it stays apart. */
const changes = { ...reads, sideEffects: true } as const;

type Sequence = Extract<Container, { kind: "sequence" }>;
const sequence = (item: ItemType, length: Dim | undefined): TypeInfo => containerType({ kind: "sequence", item, ...(length === undefined ? {} : { length }) });

function sequenceIn({ container, dtype }: TypeInfo, context: InferContext): Sequence {
  if (container?.kind === "optional") return sequenceOf(container.item.container);
  return container?.kind === "sequence" ? container : context.fail("OF3018", `needs a sequence, got ${container ? `a ${formatContainer(container)}` : `a ${dtype} tensor`}`);
}
/** The items once `added` is among them. */
function itemWith(own: Sequence, added: TypeInfo, context: InferContext): ItemType {
  const item = own.length === 0 && own.item.dtype === added.dtype ? itemOf(added) : joinItems(own.item, itemOf(added));
  return item ?? context.fail("OF3015", `a ${formatContainer(own)} cannot hold a ${added.container ? formatContainer(added.container) : `${added.dtype} tensor`}`);
}
function nonEmpty(own: Sequence, context: InferContext): Sequence {
  return own.length === 0 ? context.fail("OF3012", "the sequence is empty") : own;
}

export const SequenceConstruct = defineOp({
  ...changes, type: "SequenceConstruct", inputs: { inputs: "variadic" }, attributes: {},
  infer({ inputs }, _, context) {
    const first = inputs[0] ?? context.fail("OF3001", "needs at least one tensor");
    const item = inputs.reduce((own, t) => itemWith({ kind: "sequence", item: own }, t, context), itemOf(first));
    return [sequence(item, inputs.length)];
  },
  evaluateData: evaluate.SequenceConstruct,
});

export const SequenceEmpty = defineOp({
  ...changes, type: "SequenceEmpty", inputs: {}, attributes: { dtype: int(1) },
  infer: (_, { dtype }, context) => [sequence({ dtype: dtypeFromOnnx(dtype) ?? context.fail("OF3012", `type ${dtype} is not supported`) }, 0)],
  evaluateData: evaluate.SequenceEmpty,
});

export const SequenceInsert = defineOp({
  ...changes, type: "SequenceInsert", inputs: { input_sequence: "required", tensor: "required", position: "optional" }, integers: ["position"], attributes: {},
  infer({ input_sequence, tensor }, _, context) {
    const own = sequenceIn(input_sequence, context);
    return [sequence(itemWith(own, tensor, context), own.length === undefined ? undefined : dimAdd(own.length, 1))];
  },
  evaluateData: evaluate.SequenceInsert,
});

export const SequenceErase = defineOp({
  ...changes, type: "SequenceErase", inputs: { input_sequence: "required", position: "optional" }, integers: ["position"], attributes: {},
  infer({ input_sequence }, _, context) {
    const own = nonEmpty(sequenceIn(input_sequence, context), context);
    return [sequence(own.item, own.length === undefined ? undefined : dimSub(own.length, 1))];
  },
  evaluateData: evaluate.SequenceErase,
});

export const SequenceAt = defineOp({
  ...changes, type: "SequenceAt", inputs: { input_sequence: "required", position: "required" }, integers: ["position"], attributes: {},
  infer: ({ input_sequence }, _, context) => [itemType(nonEmpty(sequenceIn(input_sequence, context), context).item, "item", context)],
  evaluateData: evaluate.SequenceAt,
});

export const SequenceLength = defineOp({
  ...reads, type: "SequenceLength", inputs: { input_sequence: "required" }, attributes: {},
  infer({ input_sequence }, _, context) {
    const { length } = sequenceIn(input_sequence, context);
    return [{ dtype: "int64", shape: [], ...(length === undefined ? {} : { elements: [length] }) }];
  },
  evaluateData: evaluate.SequenceLength,
});

export const ConcatFromSequence = defineOp({
  ...reads, type: "ConcatFromSequence", inputs: { input_sequence: "required" }, attributes: { axis: required("int"), new_axis: int(0) },
  infer({ input_sequence }, { axis: given, new_axis }, context) {
    const { item, length } = nonEmpty(sequenceIn(input_sequence, context), context);
    const sizes = item.shape;
    if (!sizes) return [unranked(item.dtype)];
    const axis = axisWithin(given, sizes.length + (new_axis ? 1 : 0), context);
    const own = sizes[axis];
    const joined = new_axis ? length : own === null || own === undefined || length === undefined ? undefined : dimMul(length, own);
    const known = sizes.map((d, i) => (d === null && (new_axis || i !== axis) ? context.fresh(`item_${i}`) : d ?? 0));
    return [{ dtype: item.dtype, shape: [...known.slice(0, axis), joined ?? context.fresh("joined"), ...known.slice(new_axis ? axis : axis + 1)] }];
  },
  evaluateData: evaluate.ConcatFromSequence,
});

export const SplitToSequence = defineOp({
  ...reads, anyRank: false, type: "SplitToSequence", since: 24, inputs: { input: "required", split: "optional" }, integers: ["split"], attributes: { axis: int(0), keepdims: int(1) },
  infer({ input, split }, { axis: given, keepdims }, context) {
    const axis = axisWithin(given, input.shape.length, context), size = input.shape[axis] ?? 1;
    if (!split) return [sequence({ dtype: input.dtype, shape: keepdims === 0 ? input.shape.toSpliced(axis, 1) : input.shape.with(axis, 1) }, size)];
    if (split.shape.length > 1) context.fail("OF3010", `the sizes of parts are a scalar or a list, got rank ${split.shape.length}`);
    const parts = elementsOf(split), [first] = parts ?? [];
    const scalar = split.shape.length === 0;
    const even = first !== undefined && (scalar ? !isSymbolic(size) && !isSymbolic(first) && first > 0 && size % first === 0 : parts?.every((p) => dimEqual(p, first)) === true);
    const length = !scalar ? split.shape[0] : first === undefined || isSymbolic(first) || first <= 0 ? undefined : dimCeilDiv(size, first);
    return [sequence({ dtype: input.dtype, shape: (input.shape as readonly (Dim | null)[]).with(axis, even ? first : null) }, length)];
  },
  evaluateData: evaluate.SplitToSequence,
});
