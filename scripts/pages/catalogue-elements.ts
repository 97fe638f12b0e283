/** The catalogue's families: element by element. */
import { row, type CatalogueSection } from "./catalogue.ts";

export const elements: CatalogueSection = {
  title: "Element by element",
  rows: [
    row("repeated and opposite operations", "simplified", "elimination"),
    row("limits in a row as one", "rule", "where its conditions hold", "merge-clips"),
    row("maximum and minimum with a number as Clip; squares as products; differences as sums; division by a power of two as product", "simplified", "one spelling for each, before all rules"),
    row("GELU in both forms and every spelling", "rule", "where its conditions hold", "recognise-gelu", "recognise-gelu-tanh"),
    row("SiLU and its scaled form", "rule", "where its conditions hold", "recognise-silu"),
    row("hard sigmoid and hard swish", "rule", "where its conditions hold", "recognise-hard-sigmoid", "recognise-hard-swish"),
    row("softplus, Mish, softsign, leaky ReLU", "rule", "where its conditions hold", "recognise-softplus", "recognise-mish", "recognise-softsign", "recognise-leaky-relu"),
    row("ELU, SELU, CELU and PReLU spelled out", "partition", "one loop over elements: no operator is needed"),
    row("gated activations (GEGLU, SwiGLU)", "rule", "gate and up are one kernel, in whose epilogue both meet, be they products of their own or the halves of one; halves of anything else are a loop over elements behind it", "merge-gated-products", "split-gated-product"),
    row("Softmax spelled out, with masks, biases and NaN replaced", "rule", "one kernel over rows", "recognise-softmax"),
    row("exact GELU replaced by its approximation; softmax in half precision", "none", "other values: what the model says is computed"),
    row("an order-keeping function before ArgMax or TopK left out", "none", "rounding makes ties that were none"),
    row("the neutral element", "simplified", "elimination, where shape, rank and the sign of zero stay"),
    row("x · 0, x − x, x / x", "none", "NaN, infinities and the sign of zero differ"),
    row("x / c as x · (1/c), (1/x) · z as z / x", "simplified", "alternatives in the patterns; powers of two everywhere; not otherwise: the rounding differs"),
    row("Where and comparisons that are decided when compiling", "simplified", "constant folding, also by symbolic sizes"),
    row("Where with a negated condition, comparisons and their casts", "partition", "one loop over elements"),
    row("sums, maxima and means of several operands after each other", "partition", "one loop over elements, in the order that is written"),
    row("a factor moved across a sum, a sum of squares across its root", "none", "the order of roundings would change, and sums may overflow; both are in one kernel"),
    row("Softmax and TopK in one kernel", "none", "TopK keeps a heap for each row, and reads the softmax's result: two calls"),
    row("index arithmetic on sizes", "simplified", "elements known as polynomials of the sizes"),
    row("Exp of Log, Sqrt times Sqrt", "none", "domain and overflow differ"),
  ],
};
