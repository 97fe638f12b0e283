/** Operators that pass their input on. */
import { checkType } from "./element-wise.ts";
import { isHeld } from "../core/container.ts";
import { Dropout as evaluateDropout, Identity as evaluateIdentity } from "../evaluate/identity.ts";
import { defineOp, optional, type TypeInfo } from "../graph/op.ts";
import { bool, constant } from "../kernel/expr.ts";
import { numbersKnown } from "./element-values.ts";
import { numberIn, numbersOfInput, scalarInput, without } from "./spelling.ts";

export const Identity = defineOp({
  type: "Identity", domain: "", since: 1, evaluateData: evaluateIdentity, containers: true, anyRank: true,
  inputs: { input: "required" },
  attributes: {},
  fusionKind: "elementwise",
  infer: ({ input }) => [input],
  lowerable: ({ input }) => !isHeld(input),
  lower: ({ input }) => [(...indices) => input.at(...indices)],
});

/** Whether a Dropout drops nothing: not told to train, or with ratio 0. */
export const dropsNothing = (ratio: TypeInfo | undefined, training: TypeInfo | undefined): boolean =>
  !training || numbersKnown(training)?.[0] === 0 || (ratio !== undefined && numbersKnown(ratio)?.[0] === 0);

/**
 * Inference form: the data, and a mask of true. In training mode the result is random and the node runs on the host;
 * whether it trains is an input, so the operator as a whole counts as not deterministic (`dropsNothing` tells).
 */
export const Dropout = defineOp({
  type: "Dropout", domain: "", since: 12, evaluate: evaluateDropout,
  inputs: { data: "required", ratio: "optional", training_mode: "optional" },
  attributes: { seed: optional("int") },
  fusionKind: "elementwise",
  deterministic: false,
  infer: ({ data, ratio, training_mode }, _, context) => {
    checkType(context, data, "data", "float");
    return [dropsNothing(ratio, training_mode) ? data : { dtype: data.dtype, shape: data.shape }, { dtype: "bool", shape: data.shape }];
  },
  lowerable: ({ ratio, training_mode }) => dropsNothing(ratio, training_mode),
  lower: ({ data }) => [(...indices) => data.at(...indices), () => constant(1, bool)],
  read: (node, opset) => {
    if (opset >= 12) return node;
    const ratio = numberIn(node.attributes.ratio);
    return { ...node, inputs: [node.inputs[0], ...(ratio === undefined ? [] : [scalarInput(ratio)])], attributes: without(node.attributes, "ratio", "is_test", "consumed_inputs") };
  },
  write: (node, opset) => {
    if (opset >= 12) return node;
    const [data, ratioInput, training] = node.inputs, ratio = numbersOfInput(ratioInput)?.[0];
    if (training && numbersOfInput(training)?.[0] !== 0) return undefined;
    if (ratioInput && ratio === undefined) return undefined;
    return { ...node, inputs: [data], attributes: { ...without(node.attributes, "seed"), ...(ratio === undefined ? {} : { ratio }) } };
  },
});
