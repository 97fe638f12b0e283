/**
 * com.microsoft's mixtures of experts, with weights of floats and of packed integers. Those of float32 with constant weights
 * are said by gathers, products and scatters of their own for each expert; others run on the host.
 */
import { dimEqual, formatDim, formatShape, type Dim } from "../core/dim.ts";
import * as evaluate from "../evaluate/com-microsoft-experts.ts";
import { defineOp, float, int, optional, string, type InferContext, type TypeInfo } from "../graph/op.ts";
import { checkType } from "./element-wise.ts";
import { expandExperts, floatLayer, givenWeights, packedLayer, softmaxWeights } from "./experts-in-parts.ts";

const common = { domain: "com.microsoft", since: 1, fusionKind: "opaque" } as const;
const options = {
  k: int(1), activation_type: string("relu"), activation_alpha: float(1), activation_beta: float(0), normalize_routing_weights: int(0),
  swiglu_fusion: int(0), swiglu_limit: optional("float"), use_sparse_mixer: int(0),
} as const;

interface Layers {
  readonly input: TypeInfo;
  readonly router: TypeInfo;
  /** Weights [experts, outputs, inputs]. */
  readonly first: readonly Dim[];
  readonly second: readonly Dim[];
  readonly third: readonly Dim[] | undefined;
}
interface Options { readonly k: number; readonly activation_type: string; readonly swiglu_fusion: number; readonly use_sparse_mixer: number }

function inferExperts({ input, router, first, second, third }: Layers, { k, activation_type, swiglu_fusion, use_sparse_mixer }: Options, context: InferContext): readonly TypeInfo[] {
  checkType(context, input, "input", "float");
  if (input.shape.length !== 2 && input.shape.length !== 3) context.fail("OF3010", `the input needs rank 2 or 3, got ${formatShape(input.shape)}`);
  if (router.shape.length !== 2) context.fail("OF3010", `router_probs need rank 2, got ${formatShape(router.shape)}`);
  for (const weights of [first, second, ...(third ? [third] : [])]) if (weights.length !== 3) context.fail("OF3010", `the experts' weights need rank 3, got ${formatShape(weights)}`);
  if (!["relu", "gelu", "silu", "swiglu", "identity"].includes(activation_type)) context.fail("OF3012", `unknown activation_type '${activation_type}'`, "it is relu, gelu, silu, swiglu or identity");
  if (use_sparse_mixer) context.fail("OF3012", "use_sparse_mixer is not supported", "export the model with routing by softmax");
  const [experts = 1, rows = 1, width = 1] = first, [others = 1, outputs = 1, inner = 1] = second;
  if (typeof experts === "number" && (k < 1 || k > experts)) context.fail("OF3012", `k of ${k} does not choose among ${experts} experts`);
  const isSplit = activation_type === "swiglu" && !third;
  if (isSplit && swiglu_fusion !== 1 && swiglu_fusion !== 2) context.fail("OF3001", "swiglu needs fc3's weights where swiglu_fusion is 0");
  const together = (a: Dim, b: Dim, what: string): void => {
    if (typeof a === "number" && typeof b === "number" && a !== b) context.fail("OF3011", `${what} differ: ${formatDim(a)} and ${formatDim(b)}`);
    if (!dimEqual(a, b)) context.agree?.(a, b, "equal");
  };
  together(router.shape[1] ?? 1, experts, "the numbers of experts");
  together(experts, others, "the numbers of experts");
  together(input.shape.at(-1) ?? 1, width, "the sizes of a token and of fc1's inputs");
  together(outputs, width, "the sizes of a token and of fc2's outputs");
  if (typeof rows === "number" && typeof inner === "number") together(isSplit ? rows / 2 : rows, inner, "the sizes of what fc1 gives and fc2 takes");
  return [{ dtype: input.dtype, shape: input.shape }];
}

export const MoE = defineOp({
  ...common, type: "MoE", attributes: options, evaluate: evaluate.MoE,
  inputs: {
    input: "required", router_probs: "required", fc1_experts_weights: "required", fc1_experts_bias: "optional", fc2_experts_weights: "required", fc2_experts_bias: "optional",
    fc3_experts_weights: "optional", fc3_experts_bias: "optional",
  },
  infer: ({ input, router_probs, fc1_experts_weights, fc2_experts_weights, fc3_experts_weights }, given, context) =>
    inferExperts({ input, router: router_probs, first: fc1_experts_weights.shape, second: fc2_experts_weights.shape, third: fc3_experts_weights?.shape }, given, context),
  expand(context, given) {
    const [, , w1, b1, w2, b2, w3, b3] = context.inputTypes, first = floatLayer(w1, b1), second = floatLayer(w2, b2), gated = w3 && floatLayer(w3, b3), count = w1?.shape[0];
    if (!first || !second || (w3 && !gated) || typeof count !== "number") return undefined;
    return expandExperts(context, count, { first, second, gated }, softmaxWeights(given.normalize_routing_weights !== 0), given);
  },
});

/** accuracy_level allows onnxruntime to round activations to 8 bits; here they stay as they are. */
export const QMoE = defineOp({
  ...common, type: "QMoE", evaluate: evaluate.QMoE,
  attributes: { ...options, expert_weight_bits: int(4), block_size: int(0), quant_type: string("int"), weights_prepacked: int(-1), accuracy_level: int(0) },
  inputs: {
    input: "required", router_probs: "required", fc1_experts_weights: "required", fc1_scales: "optional", fc1_experts_bias: "optional", fc2_experts_weights: "required", fc2_scales: "optional",
    fc2_experts_bias: "optional", fc3_experts_weights: "optional", fc3_scales: "optional", fc3_experts_bias: "optional", fc1_zero_points: "optional", fc2_zero_points: "optional",
    fc3_zero_points: "optional", router_weights: "optional",
  },
  infer({ input, router_probs, fc1_experts_weights, fc1_scales, fc2_experts_weights, fc2_scales, fc3_experts_weights, fc3_scales }, given, context) {
    const { expert_weight_bits: bits, quant_type, weights_prepacked } = given;
    if (quant_type !== "int") context.fail("OF3012", `quant_type '${quant_type}' is not supported`, "quantise the experts to integers");
    if (bits !== 2 && bits !== 4 && bits !== 8) context.fail("OF3012", `weights of ${bits} bits are not supported`, "quantise them to 2, 4 or 8 bits");
    if (weights_prepacked === 1) context.fail("OF3012", "weights in the layout of one execution provider are not supported", "export the model with weights_prepacked 0");
    if (!fc1_scales || !fc2_scales || !fc3_experts_weights !== !fc3_scales) context.fail("OF3001", "packed weights need their scales");
    const whole = ({ shape }: TypeInfo): readonly Dim[] => shape.map((d, i) => (i === 2 && typeof d === "number" ? (d * 8) / bits : d));
    return inferExperts({ input, router: router_probs, first: whole(fc1_experts_weights), second: whole(fc2_experts_weights), third: fc3_experts_weights && whole(fc3_experts_weights) }, given, context);
  },
  expand(context, given) {
    const [, , w1, s1, b1, w2, s2, b2, w3, s3, b3, z1, z2, z3, own] = context.inputTypes, bits = given.expert_weight_bits, count = w1?.shape[0], weights = context.inputs[14];
    const first = packedLayer(w1, s1, z1, b1, bits), second = packedLayer(w2, s2, z2, b2, bits), gated = w3 && packedLayer(w3, s3, z3, b3, bits);
    if (!first || !second || (w3 && !gated) || typeof count !== "number" || (own && own.dtype !== "float32")) return undefined;
    return expandExperts(context, count, { first, second, gated }, weights === undefined ? softmaxWeights(true) : givenWeights(weights, given.normalize_routing_weights !== 0), given);
  },
});
