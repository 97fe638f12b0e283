/** TfIdfVectorizer: counts of n-grams, a column each. Runs on the host. */
import { formatShape } from "../core/dim.ts";
import { defineOp, optional, required } from "../graph/op.ts";
import { TfIdfVectorizer as evaluate } from "../evaluate/tf-idf-vectorizer.ts";

const modes: readonly string[] = ["TF", "IDF", "TFIDF"];

export const TfIdfVectorizer = defineOp({
  type: "TfIdfVectorizer", domain: "", since: 9, fusionKind: "opaque", evaluate,
  inputs: { X: "required" },
  attributes: {
    max_gram_length: required("int"), max_skip_count: required("int"), min_gram_length: required("int"), mode: required("string"), ngram_counts: required("ints"),
    ngram_indexes: required("ints"), pool_int64s: optional("ints"), pool_strings: optional("strings"), weights: optional("floats"),
  },
  infer({ X }, { mode, ngram_counts, ngram_indexes, pool_int64s, pool_strings }, context) {
    if (!["string", "int32", "int64"].includes(X.dtype)) context.fail("OF3013", `input 'X' is ${X.dtype}, must be string, int32 or int64`);
    if (X.shape.length < 1 || X.shape.length > 2) context.fail("OF3010", `needs [C] or [N, C], got ${formatShape(X.shape)}`);
    if (!modes.includes(mode)) context.fail("OF3012", `unknown mode '${mode}'`, `it is one of ${modes.join(", ")}`);
    const pool = X.dtype === "string" ? pool_strings : pool_int64s;
    if (!pool || (pool_strings && pool_int64s)) return context.fail("OF3003", `needs one of 'pool_strings' and 'pool_int64s', for items of type ${X.dtype}`);
    if (ngram_counts.some((n, i) => n < (ngram_counts[i - 1] ?? 0) || n > pool.length)) context.fail("OF3012", `ngram_counts [${ngram_counts.join(", ")}] do not lie in a pool of ${pool.length} items`);
    const grams = ngram_counts.reduce((sum, start, i) => sum + Math.floor(((ngram_counts[i + 1] ?? pool.length) - start) / (i + 1)), 0);
    if (grams !== ngram_indexes.length || ngram_indexes.some((n) => n < 0)) context.fail("OF3012", `ngram_indexes needs ${grams} columns, got [${ngram_indexes.join(", ")}]`);
    return [{ dtype: "float32", shape: [...X.shape.slice(0, -1), Math.max(-1, ...ngram_indexes) + 1] }];
  },
});
