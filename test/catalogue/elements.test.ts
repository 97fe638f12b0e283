/** The catalogue: functions of elements in all their spellings, and what is left as it is written. */
import { elements } from "../../scripts/pages/catalogue-elements.ts";
import type { GraphBuilder } from "../../src/graph/build.ts";
import type { Value } from "../../src/graph/graph.ts";
import * as op from "../../src/ops/index.ts";
import { fuses, fusesLoosely, keeps, leaves, testCatalogue, type Build } from "../support/catalogue-cases.ts";
import { add, conv3, matmul, mul, part, picture, relu, rows, split } from "../support/catalogue-parts.ts";

type Of = (b: GraphBuilder, x: Value) => Value;
/** A function of rows. */
const of = (f: Of): Build => (b) => f(b, rows(b));
const un = (o: typeof op.Relu, x: Value, b: GraphBuilder): Value => b.add(o, [x]);
const div = (b: GraphBuilder, x: Value | number, y: Value | number): Value => b.add(op.Div, [x, y]);
const sub = (b: GraphBuilder, x: Value | number, y: Value | number): Value => b.add(op.Sub, [x, y]);
const pow = (b: GraphBuilder, x: Value, y: number): Value => b.add(op.Pow, [x, y]);
const clip = (b: GraphBuilder, x: Value, low?: number, high?: number): Value => b.add(op.Clip, [x, low, high]);
const sigmoid = (b: GraphBuilder, x: Value): Value => b.add(op.Sigmoid, [x]);
const where = (b: GraphBuilder, c: Value, x: Value | number, y: Value | number): Value => b.add(op.Where, [c, x, y]);
const erfOf = (b: GraphBuilder, x: Value): Value => add(b, b.add(op.Erf, [div(b, x, Math.SQRT2)]), 1);
const cube = (b: GraphBuilder, x: Value): Value => pow(b, x, 3);
const tanhGelu = (b: GraphBuilder, x: Value, inner: Value): Value => mul(b, mul(b, x, 0.5), add(b, b.add(op.Tanh, [inner]), 1));
const root2pi = 0.7978845608;
const softmaxOf = (b: GraphBuilder, x: Value, axis: number, log = false): Value => {
  const d = sub(b, x, b.add(op.ReduceMax, [x, b.int64(axis)])), e = b.add(op.Exp, [d]), sum = b.add(op.ReduceSum, [e, b.int64(axis)]);
  return log ? sub(b, d, b.add(op.Log, [sum])) : div(b, e, sum);
};

testCatalogue(elements, {
  "repeated and opposite operations": {
    "Relu of Relu": leaves(1, 1, of((b, x) => relu(b, relu(b, x)))),
    "Ceil of Ceil, Abs of Abs, Sign of Sign": leaves(3, 1, of((b, x) => un(op.Sign, un(op.Sign, un(op.Abs, un(op.Abs, un(op.Ceil, un(op.Ceil, x, b), b), b), b), b), b))),
    "Neg of Neg": leaves(1, 1, of((b, x) => sigmoid(b, un(op.Neg, un(op.Neg, x, b), b)))),
    "Not of Not": leaves(1, 1, (b) => un(op.Not, un(op.Not, un(op.Not, b.input("x", ["n", 3], "bool"), b), b), b)),
    "not: HardSwish of HardSwish": leaves(2, 1, of((b, x) => un(op.HardSwish, un(op.HardSwish, x, b), b))),
    "not: Reciprocal of Reciprocal": leaves(2, 1, of((b, x) => un(op.Reciprocal, un(op.Reciprocal, x, b), b)), { without: ["tiny"] }),
  },
  "limits in a row as one": {
    "Relu, then Clip": fuses(1, of((b, x) => clip(b, relu(b, x), -1, 6)), "merge-clips"),
    "Clip, then Relu": fuses(1, of((b, x) => relu(b, clip(b, x, -1, 6))), "merge-clips"),
    "Clip, then Clip that leaves nothing": fuses(1, of((b, x) => clip(b, clip(b, x, -1, 0.5), 1, 2)), "merge-clips"),
    "Max, then Min": leaves(1, 1, of((b, x) => b.add(op.Min, [b.add(op.Max, [x, -1]), 1]))),
    "Min, then Max": leaves(1, 1, of((b, x) => b.add(op.Max, [1, b.add(op.Min, [x, 2])]))),
    "not: limits that are fed": keeps(1, of((b, x) => clip(b, b.add(op.Clip, [x, b.input("low", []), b.input("high", [])]), 0, 6)), "merge-clips", { without: ["special"] }),
    "not: the first is read by others": keeps(1, of((b, x) => { const y = relu(b, x); return mul(b, clip(b, y, -1, 6), y); }), "merge-clips"),
  },
  "maximum and minimum with a number as Clip; squares as products; differences as sums; division by a power of two as product": {
    "a maximum with one number a column": leaves(1, 1, of((b, x) => b.add(op.Max, [x, b.random([8])]))),
    "a maximum of NaN": leaves(1, 1, of((b, x) => b.add(op.Max, [x, NaN])), { without: [] }),
    "powers": leaves(4, 1, of((b, x) => add(b, add(b, pow(b, x, 2), pow(b, x, 1)), pow(b, x, 0))), { without: ["special"] }),
    "a quarter": fuses(1, of((b, x) => sub(b, div(b, x, 4), 0.25))),
    "not: a root as a power": leaves(1, 1, of((b, x) => pow(b, x, 0.5))),
  },
  "GELU in both forms and every spelling": {
    "half last": fuses(1, of((b, x) => mul(b, mul(b, x, erfOf(b, x)), 0.5)), "recognise-gelu"),
    "half first": fuses(1, of((b, x) => mul(b, mul(b, 0.5, x), erfOf(b, x))), "recognise-gelu"),
    "half of the function": fuses(1, of((b, x) => mul(b, mul(b, erfOf(b, x), 0.5), x)), "recognise-gelu"),
    "divided by two": fuses(1, of((b, x) => div(b, mul(b, x, erfOf(b, x)), 2)), "recognise-gelu"),
    "by a factor": fuses(1, of((b, x) => mul(b, mul(b, x, add(b, 1, b.add(op.Erf, [mul(b, 0.70710678, x)]))), 0.5)), "recognise-gelu"),
    "tanh, the cube as power": fuses(1, of((b, x) => tanhGelu(b, x, mul(b, add(b, x, mul(b, cube(b, x), 0.044715)), root2pi))), "recognise-gelu-tanh", { without: ["special"] }),
    "tanh, the cube as product": fuses(1, of((b, x) => tanhGelu(b, x, mul(b, root2pi, add(b, x, mul(b, 0.044715, mul(b, x, mul(b, x, x))))))), "recognise-gelu-tanh", { without: ["special"] }),
    "tanh, factored": fuses(1, of((b, x) => tanhGelu(b, x, mul(b, mul(b, x, root2pi), add(b, mul(b, mul(b, x, x), 0.044715), 1)))), "recognise-gelu-tanh", { without: ["special"] }),
    "behind a product with its bias": fuses(1, (b) => { const x = add(b, matmul(b), b.random([6])); return mul(b, mul(b, x, 0.5), erfOf(b, x)); }, "recognise-gelu"),
    "not: another constant": keeps(1, of((b, x) => mul(b, mul(b, x, add(b, b.add(op.Erf, [div(b, x, 1.5)]), 1)), 0.5)), "recognise-gelu"),
    "not: of two values": keeps(1, (b) => { const x = rows(b), z = rows(b, "z"); return mul(b, mul(b, x, erfOf(b, z)), 0.5); }, "recognise-gelu"),
    "not: tanh with another power": keeps(1, of((b, x) => tanhGelu(b, x, mul(b, add(b, x, mul(b, pow(b, x, 2), 0.044715)), root2pi))), "recognise-gelu-tanh"),
  },
  "SiLU and its scaled form": {
    "SiLU": fuses(1, of((b, x) => mul(b, x, sigmoid(b, x))), "recognise-silu"),
    "SiLU, its factor first": fuses(1, of((b, x) => mul(b, sigmoid(b, x), x)), "recognise-silu"),
    "scaled": fuses(1, of((b, x) => mul(b, x, sigmoid(b, mul(b, x, 1.702)))), "recognise-silu"),
    "behind a convolution": fuses(1, (b) => { const y = conv3(b); return mul(b, y, sigmoid(b, y)); }, "recognise-silu"),
    "not: a scale for each column": keeps(1, of((b, x) => mul(b, x, sigmoid(b, mul(b, x, b.random([8]))))), "recognise-silu"),
    "not: a gate of another value": keeps(1, (b) => mul(b, rows(b), sigmoid(b, rows(b, "z"))), "recognise-silu"),
  },
  "hard sigmoid and hard swish": {
    "hard sigmoid": fuses(1, of((b, x) => clip(b, add(b, mul(b, x, 0.2), 0.5), 0, 1)), "recognise-hard-sigmoid"),
    "hard sigmoid by six": fuses(1, of((b, x) => div(b, clip(b, add(b, x, 3), 0, 6), 6)), "recognise-hard-sigmoid"),
    "hard swish": fuses(1, of((b, x) => div(b, mul(b, x, clip(b, add(b, x, 3), 0, 6)), 6)), "recognise-hard-swish"),
    "hard swish, its sixth a factor": fuses(1, of((b, x) => mul(b, x, mul(b, clip(b, add(b, 3, x), 0, 6), 1 / 6))), "recognise-hard-swish"),
    "hard swish of a hard sigmoid": fuses(1, of((b, x) => mul(b, x, b.add(op.HardSigmoid, [x], { alpha: 1 / 6, beta: 0.5 }))), "recognise-hard-swish"),
    "hard swish by maximum and minimum with 0, whose sign Clip may not keep": keeps(1, of((b, x) => div(b, mul(b, b.add(op.Min, [b.add(op.Max, [add(b, x, 3), 0]), 6]), x), 6))),
    "not: another limit": keeps(1, of((b, x) => div(b, mul(b, x, clip(b, add(b, x, 3), 0, 5)), 6)), "recognise-hard-swish"),
  },
  "softplus, Mish, softsign, leaky ReLU": {
    "softplus": fusesLoosely(1, of((b, x) => b.add(op.Log, [add(b, b.add(op.Exp, [x]), 1)])), "recognise-softplus", { without: ["special", "large"] }),
    "Mish": fuses(1, of((b, x) => mul(b, x, b.add(op.Tanh, [b.add(op.Softplus, [x])]))), "recognise-mish"),
    "Mish from logarithm and exponential": fuses(1, of((b, x) => mul(b, x, b.add(op.Tanh, [b.add(op.Log, [add(b, 1, b.add(op.Exp, [x]))])]))), "recognise-mish"),
    "softsign": fuses(1, of((b, x) => div(b, x, add(b, 1, b.add(op.Abs, [x])))), "recognise-softsign", { without: ["special"] }),
    "leaky ReLU": fuses(1, of((b, x) => b.add(op.Max, [mul(b, x, 0.1), x])), "recognise-leaky-relu"),
    "not: leaky ReLU with a slope above 1": keeps(1, of((b, x) => b.add(op.Max, [x, mul(b, x, 1.5)])), "recognise-leaky-relu"),
    "not: a slope for each column": keeps(1, of((b, x) => b.add(op.Max, [x, mul(b, x, b.random([8]))])), "recognise-leaky-relu"),
  },
  "ELU, SELU, CELU and PReLU spelled out": {
    "ELU": fuses(1, of((b, x) => where(b, b.add(op.Greater, [x, 0]), x, mul(b, sub(b, b.add(op.Exp, [x]), 1), 0.7)))),
    "PReLU": fuses(1, of((b, x) => sub(b, relu(b, x), mul(b, relu(b, b.add(op.Neg, [x])), b.random([8]))))),
    "PReLU behind a convolution": fuses(1, (b) => { const x = conv3(b); return add(b, relu(b, x), mul(b, b.add(op.Min, [x, 0]), b.random([4, 1, 1]))); }),
  },
  "gated activations (GEGLU, SwiGLU)": {
    "SwiGLU of two products": fuses(1, (b) => { const x = rows(b), gate = matmul(b, x); return mul(b, mul(b, gate, sigmoid(b, gate)), matmul(b, x)); }, ["recognise-silu", "merge-gated-products"]),
    "GEGLU of the halves of one product": fuses(1, (b) => { const [a, g] = split(b, add(b, matmul(b), b.random([6])), -1, 3, 3); return a && g ? mul(b, a, b.add(op.Gelu, [g])) : []; }, "split-gated-product"),
    "SwiGLU of the halves of one product": fuses(1, (b) => { const [g, a] = split(b, matmul(b), -1, 3, 3); return a && g ? mul(b, mul(b, g, sigmoid(b, g)), a) : []; }, ["recognise-silu", "split-gated-product"]),
    "the halves of a picture's channels": fuses(2, (b) => { const [a, g] = split(b, conv3(b), 1, 2, 2); return a && g ? mul(b, a, sigmoid(b, g)) : []; }),
    "not: halves of the rows": keeps(2, (b) => { const [a, g] = split(b, matmul(b, b.input("x", ["n", 6, 8])), 1, 3, 3); return a && g ? mul(b, a, b.add(op.Gelu, [g])) : []; }, "split-gated-product"),
    "not: the whole product is read": keeps(3, (b) => { const y = matmul(b), [a, g] = split(b, y, -1, 3, 3); return a && g ? [mul(b, a, b.add(op.Gelu, [g])), b.add(op.Softmax, [y])] : []; }, "split-gated-product"),
  },
  "Softmax spelled out, with masks, biases and NaN replaced": {
    "over the last axis": fuses(1, of((b, x) => softmaxOf(b, x, -1)), "recognise-softmax", { without: ["special"] }),
    "over another axis": fuses(1, of((b, x) => softmaxOf(b, x, 1)), "recognise-softmax", { without: ["special"] }),
    "its logarithm": fuses(1, of((b, x) => softmaxOf(b, x, -1, true)), "recognise-softmax", { without: ["special"] }),
    "a mask added": fuses(1, (b) => b.add(op.Softmax, [add(b, b.input("x", ["n", 5, 32]), b.input("m", ["n", 1, 32]))]), [], { without: ["special"] }),
    "the logarithm of a Softmax": fuses(1, of((b, x) => b.add(op.Log, [b.add(op.Softmax, [x])])), [], { without: ["special"] }),
    "without the maximum": keeps(2, of((b, x) => { const e = b.add(op.Exp, [x]); return div(b, e, b.add(op.ReduceSum, [e, b.int64(-1)])); }), "recognise-softmax", { without: ["special"] }),
    "not: maximum and sum along two axes": keeps(3, of((b, x) => { const e = b.add(op.Exp, [sub(b, x, b.add(op.ReduceMax, [x, b.int64(1)]))]); return div(b, e, b.add(op.ReduceSum, [e, b.int64(-1)])); }), "recognise-softmax", { without: ["special", "large"] }),
  },
  "the neutral element": {
    "1 and 0": leaves(1, 1, of((b, x) => sigmoid(b, mul(b, div(b, sub(b, x, 0), 1), b.numbers([1, 1, 1, 1, 1, 1, 1, 1]))))),
    "true and false": fuses(1, (b) => un(op.Not, b.add(op.Or, [b.add(op.And, [b.input("x", ["n", 3], "bool"), b.numbers([1], [], "bool")]), b.numbers([0], [], "bool")]), b)),
    "a choice between equals": fuses(1, (b) => { const x = rows(b); return sigmoid(b, where(b, b.input("c", ["n", 5, 8], "bool"), x, x)); }),
    "not: a 1 that enlarges": leaves(1, 1, of((b, x) => mul(b, x, b.numbers([1, 1], [2, 1, 1, 1])))),
    "not: plus 0, which makes −0 a 0": keeps(1, of((b, x) => div(b, 1, add(b, x, 0))), [], { without: ["tiny"] }),
  },
  "x / c as x · (1/c), (1/x) · z as z / x": {
    "a third": leaves(1, 1, of((b, x) => div(b, x, 3))),
    "an eighth": leaves(1, 1, of((b, x) => div(b, x, 8))),
    "a quotient from a reciprocal": fuses(1, (b) => mul(b, div(b, 1, rows(b)), rows(b, "z")), [], { without: ["zero", "tiny"] }),
    "a reciprocal of a higher rank": fuses(1, (b) => mul(b, div(b, b.numbers([1], [1, 1, 1]), b.input("x", [4])), b.input("z", [4])), [], { without: ["zero", "tiny"] }),
    "a difference from a product by −1": fuses(1, (b) => add(b, rows(b), mul(b, rows(b, "z"), -1))),
  },
  "Where and comparisons that are decided when compiling": {
    "a known condition": fuses(1, (b) => sigmoid(b, where(b, b.numbers([1], [], "bool"), rows(b), rows(b, "z")))),
    "a comparison of constants": fuses(1, of((b, x) => sigmoid(b, where(b, b.add(op.Less, [b.scalar(1), b.scalar(2)]), x, 7)))),
    "a size against a number": fuses(1, of((b, x) => sigmoid(b, where(b, b.add(op.Equal, [b.add(op.Gather, [b.add(op.Shape, [x]), b.scalar(1, "int64")]), b.scalar(5, "int64")]), x, 7)))),
    "not: a known condition that enlarges": keeps(1, of((b, x) => where(b, b.numbers([1, 1], [2, 1, 1, 1], "bool"), x, 7))),
  },
  "Where with a negated condition, comparisons and their casts": {
    "a negated condition": fuses(1, (b) => where(b, b.add(op.Not, [b.input("c", ["n", 5, 8], "bool")]), rows(b), rows(b, "z"))),
    "a mask from a comparison": fuses(1, (b) => { const x = rows(b); return mul(b, x, b.add(op.Cast, [b.add(op.Less, [x, rows(b, "z")])], { to: 1 })); }, [], { without: ["special"] }),
  },
  "sums, maxima and means of several operands after each other": {
    "a sum of sums": fuses(1, (b) => b.add(op.Sum, [b.add(op.Sum, [rows(b), rows(b, "y"), rows(b, "z")]), 1, rows(b, "w")]), [], { without: ["special"] }),
    "a maximum of maxima": fuses(1, (b) => b.add(op.Max, [b.add(op.Max, [rows(b), rows(b, "y")]), rows(b, "z")])),
    "a mean of means": fuses(1, (b) => b.add(op.Mean, [b.add(op.Mean, [rows(b), rows(b, "y"), rows(b, "z")]), rows(b, "w")]), [], { without: ["special"] }),
  },
  "index arithmetic on sizes": {
    "the half of a size as a limit": fuses(1, (b) => {
      const x = b.input("x", ["n", 6, 8]), size = b.add(op.Gather, [b.add(op.Shape, [x]), b.int64(1)]);
      return relu(b, part([b.add(op.Slice, [x, b.int64(0), b.add(op.Div, [b.add(op.Add, [size, b.int64(2)]), b.int64(2)]), b.int64(1)])], 0));
    }),
  },
}, [
  "exact GELU replaced by its approximation; softmax in half precision", "an order-keeping function before ArgMax or TopK left out", "x · 0, x − x, x / x", "a factor moved across a sum, a sum of squares across its root", "Softmax and TopK in one kernel", "Exp of Log, Sqrt times Sqrt",
]);

// What must stay as it is written, though algebra says that it is simpler.
testCatalogue(elements, {
  "x · 0, x − x, x / x": {
    "x · 0": keeps(1, of((b, x) => mul(b, x, 0))),
    "x − x and x / x": keeps(1, of((b, x) => add(b, sub(b, x, x), div(b, x, x))), [], { without: ["zero"] }),
  },
  "Exp of Log, Sqrt times Sqrt": {
    "Exp of Log": keeps(1, of((b, x) => b.add(op.Exp, [b.add(op.Log, [x])])), [], { without: ["special"] }),
    "Sqrt times Sqrt": keeps(1, of((b, x) => { const r = b.add(op.Sqrt, [x]); return mul(b, r, r); })),
  },
  "an order-keeping function before ArgMax or TopK left out": {
    "Sigmoid before ArgMax, where rounding makes ties": keeps(1, (b) => b.add(op.ArgMax, [sigmoid(b, picture(b))], { axis: 1 }), [], { without: ["special"] }),
  },
});
