/**
 * Which built-in rules serve emitted models. Runtimes have their own ways with quantised models, which they find by the
 * pairs of QuantizeLinear and DequantizeLinear around the operators; rules that bring such models to the form of our
 * kernels would hide those.
 */
import type { Rule } from "../rewrite/rule.ts";
import {
  combineScales, dequantizeAfterTranspose, integerConv, integerGemm, integerMatmul, quantizeBeforeMovement, quantizeConv, quantizeMatmul, quantizeSelection, quantizeSplit, tabulateQuantized, widenWeights,
} from "../rules/index.ts";

const forOwnKernels: ReadonlySet<Rule> = new Set([
  combineScales, dequantizeAfterTranspose, integerConv, integerGemm, integerMatmul, quantizeBeforeMovement, quantizeConv, quantizeMatmul, quantizeSelection, quantizeSplit, tabulateQuantized, widenWeights,
]);

/** Whether a rule is worth its while in a model for other runtimes. */
export const servesOthers = (rule: Rule): boolean => !forOwnKernels.has(rule);
