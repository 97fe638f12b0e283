/** The catalogue's normalisations and reductions. */
import { row, type CatalogueSection } from "./catalogue.ts";

export const normalisation: CatalogueSection = {
  title: "Normalisation and reductions",
  rows: [
    row("LayerNorm from mean, difference, square, root and quotient", "rule", "square as power or product, root as divisor, factor or power, with or without scale and bias; last axes or a single one, keepdims 1", "recognise-layer-normalization"),
    row("LayerNorm between casts to float32 and back", "partition", "one call: the casts are in its loads and stores"),
    row("LayerNorm over channels between two transpositions", "layout", "the transpositions are views, so it is one call"),
    row("LayerNorm over a leading axis, spelled out", "rule", "LayerNormalization of the axis moved to the end: a view, which channels last makes rows in place", "recognise-layer-normalization", "recognise-rms-normalization"),
    row("LayerNorm and the addition of a bias", "rule", "the bias is part of the pattern", "recognise-layer-normalization"),
    row("RMSNorm, also with 1 + γ folded", "rule", "as LayerNorm; γ may be any constant that broadcasts, and 1 + γ of a constant is folded before", "recognise-rms-normalization"),
    row("addition of a residual, then LayerNorm or RMSNorm", "partition", "the addition joins the kernel of the product before it where there is one; else one kernel stores a row of it, where it lies if the sum is used again and in working memory if not, and normalises that row. Rows of fewer than 16 elements are better run side by side: two calls"),
    row("embedding look-ups, their sum, LayerNorm", "partition", "one call; two for rows of fewer than 16 elements"),
    row("GroupNorm from Reshape, InstanceNormalization, Reshape, scale and bias", "partition", "two calls: the reshapes are views, scale and bias are one kernel"),
    row("GroupNorm with SiLU", "partition", "activations join a normalisation's last pass"),
    row("InstanceNorm and GroupNorm as LayerNorm", "kernel", "each has its loops over planes"),
    row("mean-variance normalisation from its parts", "operator", "MeanVarianceNormalization is taken apart, and its parts are loops over rows"),
    row("division by the root of the sum of squares", "partition", "one call: a row's sum is taken and used in the same loop over rows"),
    row("ReduceL1, L2, SumSquare, LogSum, LogSumExp from their parts", "partition", "element-wise work is pulled into the reduction: one call. LogSumExp stays as written, since the operator's shift by the maximum changes what overflows"),
    row("ReduceMean over the plane as GlobalAveragePool, and back", "kernel", "both are the same loops"),
    row("two reductions after each other as one", "rule", "maxima, norms and integers everywhere; float sums, means and products where approximations are allowed: in another order they may overflow", "merge-reductions", "merge-sums"),
    row("a reduction and Unsqueeze, Squeeze or Reshape", "layout", "a view of the result"),
    row("adaptive pooling", "operator", "exporters write fixed windows or a mean, which are read as such"),
    row("pooled sums, strides moved into pools", "none", "it changes which elements are read; no model here has it"),
    row("RMSNorm of queries and keys before their rotation", "partition", "a call for each normalisation, the rotation in one kernel"),
    row("norms and exponentials kept in float32", "kernel", "float16 is a storage type: all arithmetic is float32"),
    row("mean and variance in one pass", "none", "the mean of squares less the squared mean cancels; means are taken first"),
    row("Softmax and LogSoftmax spelled out with the maximum subtracted", "rule", "one axis, keepdims 1; without the maximum it stays as written, since overflow would differ", "recognise-softmax"),
  ],
};
