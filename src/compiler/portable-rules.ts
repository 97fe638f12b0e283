/**
 * Which built-in rules and regions serve emitted models. Runtimes have their own ways with quantised models, which they find by the
 * pairs of QuantizeLinear and DequantizeLinear around the operators; rules that bring such models to the form of our
 * kernels would hide those. Nor does it help others to cut a product in two, or to compute before a view.
 */
import type { Node } from "../graph/graph.ts";
import { Expand } from "../ops/index.ts";
import { refuse, type Rule } from "../rewrite/rule.ts";
import type { Refusal } from "../rewrite/site.ts";
import {
  combineScales, computeBeforeView, dequantizeAfterTranspose, integerConv, integerGemm, integerMatmul, quantizeBeforeMovement, quantizeConv, quantizeMatmul, quantizeReduction, quantizeSelection, quantizeSplit, splitGatedProduct, tabulateQuantized, widenWeights, mergeSiblingProducts, mergeSlices, recogniseAttention,
} from "../rules/index.ts";

const forOwnKernels: ReadonlySet<Rule> = new Set([
  combineScales, computeBeforeView, dequantizeAfterTranspose, integerConv, integerGemm, integerMatmul, quantizeBeforeMovement, quantizeConv, quantizeMatmul, quantizeReduction, quantizeSelection, quantizeSplit, splitGatedProduct, tabulateQuantized, widenWeights,
]);

/** What would hide attention from onnxruntime's optimiser, which makes one operator of it and its projections. */
const hidingAttention: ReadonlySet<Rule> = new Set([recogniseAttention, mergeSiblingProducts]);

/**
 * Whether a rule is worth its while in a model for other runtimes. Slices of slices are merged only where nodes are
 * counted: onnxruntime makes something slower of what a picture's even and odd rows and columns become. With
 * `asAttention`, attention stays as it is written.
 */
export const servesOthers = (level: "standard" | "functions" | "ort", asAttention = false) => (rule: Rule): boolean =>
  !forOwnKernels.has(rule) && (level === "standard" || rule !== mergeSlices) && !(asAttention && hidingAttention.has(rule));

/** Why nodes are better no function: the size that an Expand takes from a value is not inferred within one, and what follows loses its shape. */
export function hidesSize(nodes: readonly Node[]): Refusal | undefined {
  const expand = nodes.length > 1 ? nodes.find((n) => n.op === Expand && n.inputs[1]?.constant === undefined) : undefined;
  return expand && refuse("size-hidden", `the size of '${expand.name}' is computed, and a function would hide it from the runtime's inference`, "give the model fixed sizes");
}
