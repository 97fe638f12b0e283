/** The catalogue: attention and transformer blocks. */
import { attention } from "../../scripts/pages/catalogue-attention.ts";
import type { GraphBuilder } from "../../src/graph/build.ts";
import type { Value } from "../../src/graph/graph.ts";
import * as op from "../../src/ops/index.ts";
import { fuses, keeps, testCatalogue } from "../support/catalogue-cases.ts";
import { add, concat, matmul, mul, relu, reshape, rows, slice, split, transpose } from "../support/catalogue-parts.ts";

const rule = "recognise-attention";
/** NaN and infinities among scores: a masked row gives NaN or not, as the order of blocks decides. */
const finite = { without: ["special"], bound: 1e-4 } as const;
const softmax = (b: GraphBuilder, x: Value, axis = -1): Value => b.add(op.Softmax, [x], { axis });
const product = (b: GraphBuilder, x: Value, y: Value): Value => b.add(op.MatMul, [x, y]);
const heads = (b: GraphBuilder, name: string, length: number, count = 2): Value => b.input(name, ["n", count, length, 8]);
const [root, half] = [1 / Math.sqrt(8), 8 ** -0.25];
interface Form {
  readonly q?: (q: Value) => Value; readonly k?: (k: Value) => Value; readonly score?: (s: Value) => Value; readonly weights?: (w: Value) => Value; readonly axis?: number;
}
const same = (x: Value): Value => x;
/** Attention of 5 queries to 7 keys in 2 heads, scaled where `form` says. */
function attend(b: GraphBuilder, { q = same, k = (x) => transpose(b, x, 0, 1, 3, 2), score = same, weights = same, axis }: Form): Value {
  const scores = score(product(b, q(heads(b, "q", 5)), k(heads(b, "k", 7))));
  return product(b, weights(softmax(b, scores, axis)), heads(b, "v", 7));
}
const scaled = (b: GraphBuilder, more: (s: Value) => Value = same): Form => ({ score: (s) => more(mul(b, s, root)) });
const projected = (b: GraphBuilder, x: Value): Value => transpose(b, reshape(b, add(b, matmul(b, x, [16, 16]), b.random([16])), 0, -1, 2, 8), 0, 2, 1, 3);
const joined = (b: GraphBuilder, x: Value): Value => reshape(b, transpose(b, x, 0, 2, 1, 3), 0, -1, 16);
/** As exporters write batched products: three projections, of which the keys' has no bias, and two products over batch and heads in one axis. */
function mergedAttention(b: GraphBuilder, scores: (s: Value) => Value): Value {
  const x = b.input("x", ["n", 5, 16]), q = mul(b, add(b, matmul(b, x, [16, 16]), b.random([16])), root), k = matmul(b, x, [16, 16]), v = add(b, matmul(b, x, [16, 16]), b.random([16]));
  const merged = (y: Value): Value => reshape(b, transpose(b, reshape(b, y, 0, -1, 2, 8), 0, 2, 1, 3), -1, 5, 8);
  const weights = softmax(b, scores(product(b, merged(q), transpose(b, merged(k), 0, 2, 1))));
  return matmul(b, joined(b, reshape(b, product(b, weights, merged(v)), -1, 2, 5, 8)), [16, 16]);
}
/** Heads turned by halves. */
function rotated(b: GraphBuilder, x: Value): Value {
  const turned = concat(b, -1, b.add(op.Neg, [slice(b, x, -1, 4, 8)]), slice(b, x, -1, 0, 4));
  return add(b, mul(b, x, b.input("cos", [5, 8])), mul(b, turned, b.input("sin", [5, 8])));
}
const causal = (queries: number, keys: number): readonly number[] => Array.from({ length: queries * keys }, (_, i) => (i % keys > Math.floor(i / keys) + keys - queries ? -1e9 : 0));

testCatalogue(attention, {
  "MatMul, scale, mask, Softmax, Dropout, MatMul": {
    "with a mask": fuses(1, (b) => attend(b, scaled(b, (s) => add(b, s, b.input("m", ["n", 1, 5, 7])))), rule, finite),
    "of one head without scale": fuses(1, (b) => product(b, softmax(b, product(b, b.input("q", ["n", 5, 8]), b.input("k", ["n", 8, 7]))), b.input("v", ["n", 7, 4])), rule, finite),
    "with Dropout": fuses(1, (b) => attend(b, { ...scaled(b), weights: (w) => b.add(op.Dropout, [w, 0.1]) }), rule, finite),
    "not: over the queries": keeps(3, (b) => attend(b, { ...scaled(b), axis: 2 }), rule, finite),
    "not: the probabilities are a result too": keeps(3, (b) => { const s = softmax(b, mul(b, product(b, heads(b, "q", 5), transpose(b, heads(b, "k", 7), 0, 1, 3, 2)), root)); return [s, reshape(b, product(b, s, heads(b, "v", 7)), 0, -1)]; }, rule, finite),
    "not: something between Softmax and the values": keeps(3, (b) => attend(b, { ...scaled(b), weights: (w) => mul(b, w, b.input("g", ["n", 2, 5, 7])) }), rule, finite),
  },
  "the scale on the query, the keys, both, or the scores, before or behind the mask": {
    "a quotient of the scores": fuses(1, (b) => attend(b, { score: (s) => b.add(op.Div, [s, Math.sqrt(8)]) }), rule, finite),
    "on the query": fuses(1, (b) => attend(b, { q: (q) => mul(b, q, root) }), rule, finite),
    "on the keys": fuses(1, (b) => attend(b, { k: (k) => transpose(b, mul(b, k, root), 0, 1, 3, 2) }), rule, finite),
    "on the transposed keys": fuses(1, (b) => attend(b, { k: (k) => mul(b, transpose(b, k, 0, 1, 3, 2), root) }), rule, finite),
    "half on both": fuses(1, (b) => attend(b, { q: (q) => mul(b, q, half), k: (k) => mul(b, transpose(b, k, 0, 1, 3, 2), half) }), rule, finite),
    "behind the mask": fuses(1, (b) => attend(b, { score: (s) => mul(b, add(b, s, b.input("m", ["n", 1, 1, 7])), root) }), rule, finite),
    "not: a scale for each head": keeps(3, (b) => attend(b, { score: (s) => mul(b, s, b.input("s", [2, 1, 1])) }), [], finite),
  },
  "keys transposed by the split of heads, by a Transpose of their own, or given transposed": {
    "in the split of heads": fuses(1, (b) => product(b, softmax(b, mul(b, product(b, heads(b, "q", 5), transpose(b, b.input("k", ["n", 7, 2, 8]), 0, 2, 3, 1)), root)), heads(b, "v", 7)), rule, finite),
    "given transposed": fuses(1, (b) => product(b, softmax(b, mul(b, product(b, heads(b, "q", 5), b.input("k", ["n", 2, 8, 7])), root)), heads(b, "v", 7)), rule, finite),
    "between two Reshapes": fuses(1, (b) => attend(b, { ...scaled(b), k: (k) => reshape(b, transpose(b, reshape(b, k, -1, 7, 8), 0, 2, 1), -1, 2, 8, 7) }), rule, finite),
  },
  "masks added once or twice, chosen by Where with −∞ or a finite number": {
    "twice": fuses(1, (b) => attend(b, scaled(b, (s) => add(b, add(b, s, b.input("m", ["n", 1, 5, 7])), b.input("bias", [2, 5, 7])))), rule, finite),
    "chosen, with a finite number": fuses(1, (b) => attend(b, scaled(b, (s) => b.add(op.Where, [b.input("m", ["n", 1, 5, 7], "bool"), s, -1e4]))), rule, { ...finite, without: ["special", "large"] }),
    "chosen, with the smallest number": fuses(1, (b) => attend(b, scaled(b, (s) => b.add(op.Where, [b.input("m", ["n", 1, 1, 7], "bool"), -3.4e38, s]))), rule, { ...finite, without: ["special", "large"] }),
    "from ones and zeros": fuses(2, (b) => { const m = mul(b, b.add(op.Sub, [1, b.add(op.Cast, [b.input("m", ["n", 1, 1, 7], "int64")], { to: 1 })]), -1e4); return attend(b, scaled(b, (s) => add(b, s, m))); }, rule, finite),
    "not: a mask that enlarges the scores": keeps(3, (b) => product(b, softmax(b, add(b, product(b, b.input("q", [1, 5, 8]), b.input("k", [1, 8, 7])), b.input("m", [3, 1, 7]))), b.input("v", [1, 7, 4])), rule, finite),
  },
  "a constant causal mask": {
    "as many keys as queries": fuses(1, (b) => product(b, softmax(b, add(b, mul(b, product(b, heads(b, "q", 6), transpose(b, heads(b, "k", 6), 0, 1, 3, 2)), root), b.numbers(causal(6, 6), [6, 6]))), heads(b, "v", 6)), rule, finite),
    "with keys before": fuses(1, (b) => attend(b, scaled(b, (s) => add(b, s, b.numbers(causal(5, 7), [1, 1, 5, 7])))), rule, finite),
    "almost a triangle": fuses(1, (b) => attend(b, scaled(b, (s) => add(b, s, b.numbers(causal(5, 7).map((m, i) => (i === 3 ? 0 : m)), [5, 7])))), rule, finite),
  },
  "heads split and joined by Reshape and Transpose": {
    "four products and attention": fuses(5, (b) => {
      const x = b.input("x", ["n", 5, 16]), z = b.input("z", ["n", 7, 16]), y = b.input("y", ["n", 7, 16]);
      return matmul(b, joined(b, product(b, softmax(b, mul(b, product(b, projected(b, x), transpose(b, projected(b, z), 0, 1, 3, 2)), root)), projected(b, y))), [16, 16]);
    }, rule, finite),
  },
  "batch and heads merged for batched products and taken apart behind them (bmm)": {
    "an encoder layer's, with the scale on the query": fuses(3, (b) => mergedAttention(b, same), ["multiply-without-merging", "fold-mul-into-biased-matmul", rule], finite),
    "with a mask, added where the heads are apart": fuses(3, (b) => mergedAttention(b, (s) => reshape(b, add(b, reshape(b, s, -1, 2, 5, 5), b.input("m", ["n", 1, 5, 5])), -1, 5, 5)), ["multiply-without-merging", rule], finite),
    "not: the merged scores are a result too": keeps(11, (b) => { let seen: Value | undefined; const y = mergedAttention(b, (s) => (seen = s)); return seen ? [y, relu(b, seen)] : y; }, rule, finite),
  },
  "query, key and value by three products": {
    "self-attention": fuses(3, (b) => {
      const x = b.input("x", ["n", 5, 16]);
      return matmul(b, joined(b, product(b, softmax(b, mul(b, product(b, projected(b, x), transpose(b, projected(b, x), 0, 1, 3, 2)), root)), projected(b, x))), [16, 16]);
    }, [rule, "merge-sibling-products"], finite),
  },
  "packed query, key and value taken apart by Split or Slice": {
    "Split": fuses(2, (b) => {
      const [q, k, v] = split(b, matmul(b, b.input("x", ["n", 5, 16]), [16, 24]), -1, 8, 8, 8);
      return q && k && v ? product(b, softmax(b, mul(b, product(b, q, transpose(b, k, 0, 2, 1)), root)), v) : [];
    }, rule, finite),
    "Gather of an axis of three": fuses(2, (b) => {
      const y = transpose(b, reshape(b, matmul(b, b.input("x", ["n", 5, 16]), [16, 48]), 0, 5, 3, 2, 8), 2, 0, 3, 1, 4);
      const [q, k, v] = [0, 1, 2].map((i) => b.add(op.Gather, [y, b.scalar(i, "int64")]));
      return q && k && v ? product(b, softmax(b, mul(b, product(b, q, transpose(b, k, 0, 1, 3, 2)), root)), v) : [];
    }, rule, finite),
  },
  "biases of query, key and value": {
    "a product with its bias": fuses(2, (b) => { const q = add(b, matmul(b, rows(b), [8, 8]), b.random([8])); return product(b, softmax(b, product(b, q, b.input("k", ["n", 8, 7]))), b.input("v", ["n", 7, 8])); }, rule, finite),
  },
  "cached keys and values, joined along the sequence": {
    "results that the caller keeps": fuses(3, (b) => {
      const k = concat(b, 2, heads(b, "past_k", 4), heads(b, "k", 3)), v = concat(b, 2, heads(b, "past_v", 4), heads(b, "v", 3));
      return [product(b, softmax(b, mul(b, product(b, heads(b, "q", 5), transpose(b, k, 0, 1, 3, 2)), root)), v), k, v];
    }, rule, finite),
  },
  "key heads repeated for several query heads (Unsqueeze or Reshape, Expand, Reshape)": {
    "each next to itself": fuses(1, (b) => {
      const repeat = (x: Value): Value => reshape(b, b.add(op.Expand, [b.add(op.Unsqueeze, [x, b.int64(2)]), b.int64(1, 1, 2, 1, 1)]), 0, 4, 7, 8);
      return product(b, softmax(b, mul(b, product(b, heads(b, "q", 5, 4), transpose(b, repeat(heads(b, "k", 7)), 0, 1, 3, 2)), root)), repeat(heads(b, "v", 7)));
    }, rule, finite),
    "tiled, another order: right, as it is written": keeps(3, (b) => {
      const tiled = (x: Value): Value => b.add(op.Tile, [x, b.int64(1, 2, 1, 1)]);
      return product(b, softmax(b, mul(b, product(b, heads(b, "q", 5, 4), transpose(b, tiled(heads(b, "k", 7)), 0, 1, 3, 2)), root)), tiled(heads(b, "v", 7)));
    }, [], finite),
  },
  "rotation by halves, spelled out": { "fed sines": fuses(1, (b) => rotated(b, heads(b, "x", 5)), [], { without: ["special"] }) },
  "rotation of the first dimensions only": {
    "half of them": fuses(2, (b) => { const x = b.input("x", ["n", 2, 5, 16]); return concat(b, -1, rotated(b, slice(b, x, -1, 0, 8)), slice(b, x, -1, 8, 16)); }, [], { without: ["special"] }),
  },
  "rotation of pairs, spelled out": {
    "by Slice with steps": fuses(1, (b) => {
      const x = heads(b, "x", 5), even = slice(b, x, -1, 0, 8, 2), odd = slice(b, x, -1, 1, 8, 2), [cos, sin] = [b.random([5, 4]), b.random([5, 4])];
      const pairs = [b.add(op.Sub, [mul(b, even, cos), mul(b, odd, sin)]), add(b, mul(b, even, sin), mul(b, odd, cos))].map((v) => b.add(op.Unsqueeze, [v, b.int64(-1)]));
      return reshape(b, concat(b, -1, ...pairs), 0, 2, 5, 8);
    }, [], { without: ["special"] }),
  },
  "sine and cosine from positions and frequencies": {
    "a known length": fuses(1, (b) => mul(b, heads(b, "x", 5), b.add(op.Cos, [mul(b, b.add(op.Unsqueeze, [b.add(op.Cast, [b.add(op.Range, [b.scalar(0, "int64"), b.scalar(5, "int64"), b.scalar(1, "int64")])], { to: 1 }), b.int64(1)]), b.random([8]))]))),
    "frequencies and positions as a product": fuses(1, (b) => b.add(op.Cos, [transpose(b, b.add(op.MatMul, [b.random([1, 4, 1]), b.input("position", ["n", 1, 5])]), 0, 2, 1)]), "multiply-outer-product", { without: ["special", "large"] }),
    "query and key, turned by halves, by one product": fuses(3, (b) => {
      const x = b.input("x", ["n", 5, 16]), cos = b.input("cos", [5, 8]), sin = b.input("sin", [5, 8]);
      const turned = (y: Value): Value => add(b, mul(b, y, cos), mul(b, concat(b, -1, b.add(op.Neg, [slice(b, y, -1, 4, 8)]), slice(b, y, -1, 0, 4)), sin));
      return [0, 1].map(() => turned(transpose(b, reshape(b, matmul(b, x, [16, 16]), 0, -1, 2, 8), 0, 2, 1, 3)));
    }, "merge-sibling-products", finite),
    "positions that are fed": fuses(1, (b) => { const at = mul(b, b.input("position", ["n", 5, 1]), b.random([8])); return mul(b, b.input("x", ["n", 5, 8]), b.add(op.Cos, [at])); }, [], { without: ["special", "large"] }),
  },
  "relative position bias": {
    "a constant look-up": fuses(1, (b) => { const table = transpose(b, b.add(op.Gather, [b.random([11, 2]), b.numbers(Array.from({ length: 35 }, (_, i) => 4 + Math.floor(i / 7) - (i % 7) + 2), [5, 7], "int64")]), 2, 0, 1); return attend(b, scaled(b, (s) => add(b, s, table))); }, rule, finite),
  },
  "a mask for each window of a picture, added where the windows are an axis of their own": {
    "windows of a picture, each with its mask": fuses(1, (b) => {
      const of = (name: string): Value => b.input(name, [3, 2, 5, 8]), s = add(b, mul(b, product(b, of("q"), transpose(b, of("k"), 0, 1, 3, 2)), root), b.random([2, 5, 5]));
      return product(b, softmax(b, reshape(b, add(b, reshape(b, s, 1, 3, 2, 5, 5), b.numbers(Array.from({ length: 75 }, (_, i) => (i % 4 ? 0 : -100)), [1, 3, 1, 5, 5])), -1, 2, 5, 5)), of("v"));
    }, [rule, "add-without-regrouping"], finite),
    "not: an unknown number of pictures": keeps(4, (b) => {
      const of = (name: string): Value => reshape(b, b.input(name, ["n", 3, 2, 5, 8]), -1, 2, 5, 8), s = mul(b, product(b, of("q"), transpose(b, of("k"), 0, 1, 3, 2)), root);
      return product(b, softmax(b, reshape(b, add(b, reshape(b, s, -1, 3, 2, 5, 5), b.random([3, 1, 5, 5])), -1, 2, 5, 5)), of("v"));
    }, "add-without-regrouping", finite),
  },
  "the forms that exporters give named models": {
    "the scale behind the Transpose of the heads": fuses(1, (b) => attend(b, { q: (q) => mul(b, transpose(b, transpose(b, q, 0, 2, 1, 3), 0, 2, 1, 3), root) }), rule, finite),
  },
  "cross attention": { "keys of another length": fuses(1, (b) => product(b, softmax(b, mul(b, product(b, heads(b, "q", 5), transpose(b, b.input("k", ["n", 2, "m", 8]), 0, 1, 3, 2)), root)), b.input("v", ["n", 2, "m", 8])), rule, finite) },
  "a soft cap on the scores (Tanh)": {
    "divisor and factor": fuses(1, (b) => attend(b, scaled(b, (s) => mul(b, b.add(op.Tanh, [b.add(op.Div, [s, 30])]), 30))), rule, finite),
    "another factor": fuses(1, (b) => attend(b, scaled(b, (s) => mul(b, b.add(op.Tanh, [b.add(op.Div, [s, 30])]), 20))), rule, finite),
  },
  "dropout of probabilities": { "for inference": fuses(1, (b) => relu(b, b.add(op.Dropout, [rows(b), 0.5]))) },
  "no buffer of scores; blocks sized to the cache": { "more keys than a block": fuses(1, (b) => product(b, softmax(b, mul(b, product(b, b.input("q", [1, 70, 8]), b.input("k", [1, 8, 130])), root)), b.input("v", [1, 130, 8])), rule, finite) },
}, ["paged attention", "logits of the last token only", "grouped queries with packed projections", "rotation of three sections", "sliding windows and sinks", "linear attention, causal convolution, scans"]);
