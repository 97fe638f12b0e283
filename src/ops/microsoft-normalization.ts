/**
 * SimplifiedLayerNormalization, which onnxruntime adds to the standard domain, and com.microsoft's
 * EmbedLayerNormalization, also of tables of 8 bits; compiled as the operators they were fused from.
 */
import { formatShape, type Dim } from "../core/dim.ts";
import { fromNumbers } from "../core/tensor.ts";
import * as evaluate from "../evaluate/com-microsoft-normalization.ts";
import { defineOp, float, int, type TypeInfo } from "../graph/op.ts";
import { Add, Div, Mul } from "./arithmetic.ts";
import { axesFrom, axisWithin } from "./axis-reduction.ts";
import { Cast } from "./cast.ts";
import { checkType } from "./element-wise.ts";
import { Expansion, listOf, scalarOf } from "./expansion.ts";
import { ConstantOfShape } from "./fill.ts";
import { Gather } from "./gather.ts";
import { indicesAlong, sizeAlong } from "./heads.ts";
import { LayerNormalization, RMSNormalization } from "./layer-normalization.ts";
import { Equal } from "./logic.ts";
import { DequantizeLinear } from "./quantize-linear.ts";
import { ReduceMean, ReduceSum } from "./reduce.ts";
import { Reshape } from "./reshape.ts";
import { Sqrt } from "./unary-math.ts";

export const SimplifiedLayerNormalization = defineOp({
  type: "SimplifiedLayerNormalization", domain: "", since: 1, evaluate: evaluate.SimplifiedLayerNormalization, fusionKind: "opaque",
  inputs: { X: "required", scale: "required" },
  attributes: { axis: int(-1), epsilon: float(1e-5), stash_type: int(1) },
  infer({ X }, { axis }, context) {
    checkType(context, X, "X", "float");
    const first = axisWithin(axis, X.shape.length, context);
    return [{ dtype: X.dtype, shape: X.shape }, { dtype: "float32", shape: X.shape.map((d, i): Dim => (i < first ? d : 1)) }];
  },
  expand: ({ inputs: [X, scale], inputTypes: [x], outputs }, { axis, epsilon, stash_type }) => {
    if (!x) return undefined;
    const to = new Expansion(), rank = x.shape.length;
    to.add(RMSNormalization, [X, scale], { axis, epsilon, stash_type }, outputs[0]);
    if (outputs[1] === undefined) return to.nodes;
    const wide = to.add(Cast, [X], { to: 1 }), square = to.add(ReduceMean, [to.add(Mul, [wide, wide]), listOf(...axesFrom(axis < 0 ? axis + rank : axis, rank))]);
    to.add(Div, [scalarOf("float32", 1), to.add(Sqrt, [to.add(Add, [square, scalarOf("float32", epsilon)])])], {}, outputs[1]);
    return to.nodes;
  },
});

export const EmbedLayerNormalization = defineOp({
  type: "EmbedLayerNormalization", domain: "com.microsoft", since: 1, evaluate: evaluate.EmbedLayerNormalization, fusionKind: "opaque",
  inputs: {
    input_ids: "required", segment_ids: "optional", word_embedding: "required", position_embedding: "required", segment_embedding: "optional",
    gamma: "required", beta: "required", mask: "optional", position_ids: "optional",
  },
  attributes: { epsilon: float(1e-12), mask_index_type: int(0) },
  infer({ input_ids, word_embedding, segment_ids, segment_embedding }, _, context) {
    if (input_ids.shape.length !== 2 || word_embedding.shape.length !== 2) context.fail("OF3010", `needs tokens and embeddings of rank 2, got ${formatShape(input_ids.shape)} and ${formatShape(word_embedding.shape)}`);
    if (segment_ids && !segment_embedding) context.fail("OF3001", "segments need segment_embedding");
    const [batch = 1, sequence = 1] = input_ids.shape, whole: TypeInfo = { dtype: word_embedding.dtype, shape: [batch, sequence, word_embedding.shape[1] ?? 1] };
    return [whole, { dtype: "int32", shape: [batch] }, whole];
  },
  expand: ({ inputs, inputTypes, outputs }, { epsilon }) => {
    const [ids, segments, words, positions, segmentTable, gamma, beta, mask, positionIds] = inputs, to = new Expansion();
    const row = (table: string | undefined, index: string | undefined): string => to.add(Gather, [table, index], { axis: 0 });
    const rows = [row(words, ids), row(positions, positionIds ?? indicesAlong(to, ids, 1)), ...(segments === undefined ? [] : [row(segmentTable, segments)])];
    addEmbedding(to, { rows, gamma, beta, ids, mask, maskType: inputTypes[7], epsilon, outputs });
    return to.nodes;
  },
});

interface Embedding {
  /** What is added. */
  readonly rows: readonly string[];
  readonly gamma: string | undefined;
  readonly beta: string | undefined;
  readonly ids: string | undefined;
  readonly mask: string | undefined;
  readonly maskType: TypeInfo | undefined;
  readonly epsilon: number;
  /** The normalised sum, how many tokens the mask counts, and the sum. */
  readonly outputs: readonly (string | undefined)[];
}
function addEmbedding(to: Expansion, { rows, gamma, beta, ids, mask, maskType, epsilon, outputs }: Embedding): void {
  const last = rows.length - 1, sum = rows.slice(1).reduce((a, b, i) => to.add(Add, [a, b], {}, i + 1 === last ? outputs[2] : undefined), rows[0] ?? "");
  to.add(LayerNormalization, [sum, gamma, beta], { axis: -1, epsilon }, outputs[0]);
  if (outputs[1] === undefined) return;
  if (mask === undefined || !maskType) to.add(ConstantOfShape, [sizeAlong(to, ids, 0)], { value: fromNumbers("int32", [1], [0]) }, outputs[1]);
  else to.add(ReduceSum, [to.add(Cast, [to.add(Equal, [mask, scalarOf(maskType.dtype, 1)])], { to: 6 }), listOf(1)], { keepdims: 0 }, outputs[1]);
}

/** EmbedLayerNormalization of tables and parameters of 8 bits, which are dequantised first. */
export const QEmbedLayerNormalization = defineOp({
  type: "QEmbedLayerNormalization", domain: "com.microsoft", since: 1, evaluate: evaluate.QEmbedLayerNormalization, fusionKind: "opaque",
  inputs: {
    input_ids: "required", segment_ids: "optional", word_embedding_quant: "required", position_embedding_quant: "required", segment_embedding: "optional", gamma_quant: "required", beta_quant: "required",
    mask: "optional", word_embedding_scale: "required", position_embedding_scale: "required", segment_embedding_scale: "optional", gamma_scale: "required", beta_scale: "required",
    word_embedding_zero_point: "required", position_embedding_zero_point: "required", segment_embedding_zero_point: "optional", gamma_zero_point: "required", beta_zero_point: "required",
  },
  integers: ["input_ids", "segment_ids", "mask"],
  attributes: { epsilon: float(1e-12) },
  infer({ input_ids, word_embedding_quant, segment_ids, segment_embedding, segment_embedding_scale, segment_embedding_zero_point }, _, context) {
    if (segment_embedding && (!segment_embedding_scale || !segment_embedding_zero_point)) context.fail("OF3001", "segment_embedding needs its scale and zero point");
    if (input_ids.shape.length !== 2 || word_embedding_quant.shape.length !== 2) context.fail("OF3010", `needs tokens and embeddings of rank 2, got ${formatShape(input_ids.shape)} and ${formatShape(word_embedding_quant.shape)}`);
    if (segment_ids && !segment_embedding) context.fail("OF3001", "segments need segment_embedding");
    const [batch = 1, sequence = 1] = input_ids.shape;
    return [{ dtype: "float32", shape: [batch, sequence, word_embedding_quant.shape[1] ?? 1] }, { dtype: "int32", shape: [batch] }];
  },
  expand: ({ inputs, inputTypes, outputs }, { epsilon }) => {
    const [ids, segments, words, positions, segmentTable, gamma, beta, mask] = inputs, to = new Expansion(), scalar = (x: string | undefined): string => to.add(Reshape, [x, listOf()]);
    const real = (x: string | undefined, scale: number): string => to.add(DequantizeLinear, [x, scalar(inputs[scale]), scalar(inputs[scale + 5])]);
    const row = (table: string | undefined, index: string | undefined, scale: number): string => real(to.add(Gather, [table, index], { axis: 0 }), scale);
    const rows = [row(words, ids, 8), row(positions, indicesAlong(to, ids, 1), 9), ...(segments === undefined ? [] : [row(segmentTable, segments, 10)])];
    addEmbedding(to, { rows, gamma: real(gamma, 11), beta: real(beta, 12), ids, mask, maskType: inputTypes[7], epsilon, outputs });
    return to.nodes;
  },
});
