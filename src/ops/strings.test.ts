import { describe, expect, it } from "vitest";
import { tensor, type Tensor } from "../core/tensor.ts";
import { fromNumbers } from "../core/tensor.ts";
import type { Attributes, OpDef } from "../graph/op.ts";
import { GraphBuilder } from "../../test/support/graph-builder.ts";
import { interpretData } from "../reference/interpret.ts";
import { RegexFullMatch, StringConcat, StringNormalizer, StringSplit } from "./strings.ts";
import { TfIdfVectorizer } from "./tf-idf-vectorizer.ts";

const text = (dims: readonly number[], ...strings: string[]): Tensor => tensor("string", dims, strings);
function run(op: OpDef, inputs: readonly Tensor[], attributes: Attributes = {}, outputs = 1): readonly unknown[] {
  const b = new GraphBuilder();
  const values = inputs.map((t, i) => b.input(`x${i}`, t.dims, t.dtype));
  b.graph.setOutputs(b.nodes(op, values, attributes, outputs));
  return Object.values(interpretData(b.graph, Object.fromEntries(inputs.map((t, i) => [`x${i}`, t]))));
}

describe("operators on strings", () => {
  it("join with broadcasting", () => {
    expect(run(StringConcat, [text([2, 1], "a", "b"), text([2], "x", "é")])).toEqual([text([2, 2], "ax", "aé", "bx", "bé")]);
    expect(() => run(StringConcat, [text([2], "a", "b"), fromNumbers("int64", [2], [1, 2])])).toThrow(/OF3013/);
  });
  it("split as Python does", () => {
    const counts = (...n: number[]): Tensor => fromNumbers("int64", [n.length], n);
    expect(run(StringSplit, [text([2], "  a b\tc ", "")], {}, 2)).toEqual([text([2, 3], "a", "b", "c", "", "", ""), counts(3, 0)]);
    expect(run(StringSplit, [text([1], " a  b c ")], { maxsplit: 1 }, 2)).toEqual([text([1, 2], "a", "b c "), counts(2)]);
    expect(run(StringSplit, [text([2], "a,,b", "")], { delimiter: "," }, 2)).toEqual([text([2, 3], "a", "", "b", "", "", ""), counts(3, 1)]);
    expect(run(StringSplit, [text([1], "a,b,c")], { delimiter: ",", maxsplit: 1 }, 2)).toEqual([text([1, 2], "a", "b,c"), counts(2)]);
  });
  it("drop words and change their case", () => {
    const words = text([3], "Mon", "tue", "MON");
    expect(run(StringNormalizer, [words], { stopwords: ["mon"], case_change_action: "UPPER" })).toEqual([text([1], "TUE")]);
    expect(run(StringNormalizer, [words], { stopwords: ["Mon"], is_case_sensitive: 1 })).toEqual([text([2], "tue", "MON")]);
    expect(run(StringNormalizer, [text([1, 1], "a")], { stopwords: ["A"] })).toEqual([text([1, 1], "")]);
    expect(run(StringNormalizer, [text([1], "I")], { case_change_action: "LOWER", locale: "tr_TR" })).toEqual([text([1], "ı")]);
    expect(() => run(StringNormalizer, [text([2, 1], "a", "b")])).toThrow(/OF3010/);
  });
  it("match patterns, and refuse what is none", () => {
    expect(run(RegexFullMatch, [text([2], "ab", "abx")], { pattern: "a(?i)B" })).toEqual([fromNumbers("bool", [2], [1, 0])]);
    expect(() => run(RegexFullMatch, [text([1], "a")], { pattern: "(" })).toThrow(/OF3012/);
  });
  it("count n-grams, weighted", () => {
    const attributes = { min_gram_length: 1, max_gram_length: 2, max_skip_count: 1, ngram_counts: [0, 2], ngram_indexes: [2, 0, 1], pool_strings: ["a", "b", "a", "b"], weights: [10, 20, 30] };
    const rows = text([2, 4], "a", "c", "b", "b", "a", "b", "a", "b");
    const counted = (...n: number[]): Tensor => fromNumbers("float32", [2, 3], n);
    expect(run(TfIdfVectorizer, [rows], { ...attributes, mode: "TF" })).toEqual([counted(2, 1, 1, 2, 2, 2)]);
    expect(run(TfIdfVectorizer, [rows], { ...attributes, mode: "IDF" })).toEqual([counted(10, 20, 30, 10, 20, 30)]);
    expect(run(TfIdfVectorizer, [rows], { ...attributes, mode: "TFIDF" })).toEqual([counted(20, 20, 30, 20, 40, 60)]);
    expect(() => run(TfIdfVectorizer, [rows], { ...attributes, mode: "TF", ngram_indexes: [0] })).toThrow(/OF3012/);
  });
});
