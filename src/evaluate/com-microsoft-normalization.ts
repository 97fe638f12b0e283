/** SimplifiedLayerNormalization and EmbedLayerNormalization, as onnxruntime defines them. */
import { present } from "../core/assert.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, sizeOf, toNumbers, type Tensor } from "../core/tensor.ts";
import { LayerNormalization, RMSNormalization } from "./normalization.ts";
import { numberOf } from "./read-attribute.ts";
import { at } from "./window.ts";

/** RMSNormalization; also the factor of each row, in float32. */
export const SimplifiedLayerNormalization: Evaluate = ([X, scale], attributes, context) => {
  const x = present(X, "X"), axis = numberOf(attributes, "axis"), first = axis < 0 ? axis + x.dims.length : axis, size = sizeOf(x.dims.slice(first)), values = toNumbers(x);
  const rows = x.dims.slice(0, first), factors = Float64Array.from({ length: sizeOf(rows) }, (_, r) => {
    let sum = 0;
    for (let i = 0; i < size; i++) sum += (values[r * size + i] ?? 0) ** 2;
    return 1 / Math.sqrt(sum / size + numberOf(attributes, "epsilon"));
  });
  return [...RMSNormalization([x, scale], attributes, context), fromNumbers("float32", x.dims.map((d, i) => (i < first ? d : 1)), factors)];
};

/** Embeddings of words, positions and segments, added and normalised; how many tokens the mask counts; and the sum. */
export const EmbedLayerNormalization: Evaluate = ([ids, segments, words, positions, segmentTable, gamma, beta, mask, positionIds], attributes) => {
  const tokens = present(ids, "input_ids"), table = present(words, "word_embedding"), [batch = 0, sequence = 0] = tokens.dims, width = at(table.dims, 1);
  const row = (t: Tensor | undefined, index: number, i: number): number => (t ? toNumbers(t)[index * width + i] ?? 0 : 0);
  const word = toNumbers(tokens), segment = segments && toNumbers(segments), position = positionIds && toNumbers(positionIds);
  const sum = new Float64Array(batch * sequence * width);
  for (let t = 0; t < batch * sequence; t++) for (let i = 0; i < width; i++) {
    const place = position ? position[position.length === sequence ? t % sequence : t] ?? 0 : t % sequence;
    sum[t * width + i] = row(table, word[t] ?? 0, i) + row(positions, place, i) + (segment ? row(segmentTable, segment[t] ?? 0, i) : 0);
  }
  const dims = [batch, sequence, width], given = fromNumbers("float64", dims, sum), options = { axis: -1, epsilon: numberOf(attributes, "epsilon"), stash_type: 11 };
  const [normal] = LayerNormalization([given, gamma, beta], options, { outputCount: 1 }), seen = mask && toNumbers(mask);
  const counts = Array.from({ length: batch }, (_, b) => (seen ? Array.from({ length: sequence }, (_, s) => Number(seen[b * sequence + s] === 1)).reduce((a, c) => a + c, 0) : 0));
  return [fromNumbers(table.dtype, dims, toNumbers(present(normal, "normalised"))), fromNumbers("int32", [batch], counts), fromNumbers(table.dtype, dims, sum)];
};

/** EmbedLayerNormalization of what is quantised to 8 bits with one scale each. */
export const QEmbedLayerNormalization: Evaluate = (inputs, attributes, context) => {
  const real = (x: number, scale: number, zero: number): Tensor | undefined => {
    const t = inputs[x], s = inputs[scale], z = inputs[zero];
    if (!t) return undefined;
    const by = toNumbers(present(s, "scale"))[0] ?? 1, from = z ? toNumbers(z)[0] ?? 0 : 0;
    return fromNumbers("float32", t.dims, Array.from(toNumbers(t), (v) => (v - from) * by));
  };
  const [y, counts] = EmbedLayerNormalization([inputs[0], inputs[1], real(2, 8, 13), real(3, 9, 14), real(4, 10, 15), real(5, 11, 16), real(6, 12, 17), inputs[7], undefined], attributes, context);
  return [present(y, "normalised"), present(counts, "counts")];
};
