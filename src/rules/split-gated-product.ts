/**
 * Gate and up of SwiGLU and GEGLU as the halves of one product: its matrix is cut where the result would be, so that the
 * kernel has both sums of an element at hand when they meet, and neither goes through memory.
 */
import { fromNumbers, sizeOf, toNumbers, type Tensor } from "../core/tensor.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { Node, Value } from "../graph/graph.ts";
import { Add, Gelu, MatMul, Mul, Relu, Sigmoid, SiblingMatMul, Split, Swish } from "../ops/index.ts";
import { anyOf, commuted, constant, op, parameter, value } from "../rewrite/pattern.ts";
import { defineRule, reassociates, refuse } from "../rewrite/rule.ts";
import { meet } from "./meeting.ts";
import { largeProduct, mostProducts } from "./merge-gated-products.ts";
import { storesFloat32 } from "./normalisation.ts";

const product = op(MatMul, [value("x"), constant("weight", { wants: "a matrix", holds: (w) => w.constant.dims.length === 2 })]);

/** The parts of a Split of columns into a few, all of which meet the first: they have its shape. */
function meetingParts(split: Node): readonly Value[] | undefined {
  const rank = split.inputs[0]?.type.shape.length ?? 0, axis = Number(split.attributes["axis"]), [first, ...others] = split.outputs;
  return (axis === -1 || axis === rank - 1) && others.length > 0 && others.length < mostProducts && others.every((v) => meet(first, v)) ? split.outputs : undefined;
}

/** Columns `from` to `from + count` of a matrix or of one row. */
function columns(t: Tensor, from: number, count: number): Tensor {
  const width = t.dims.at(-1) ?? 1, all = toNumbers(t), height = width === 0 ? 0 : sizeOf(t.dims) / width;
  return fromNumbers(t.dtype, [...t.dims.slice(0, -1), count], Array.from({ length: height * count }, (_, i) => all[Math.floor(i / count) * width + from + (i % count)] ?? 0));
}

type Join = (b: GraphBuilder, parts: readonly Value[]) => readonly Value[];
interface Case { readonly sizes?: readonly number[]; readonly bias?: readonly number[]; readonly dtype?: "float32" | "float64"; readonly weight?: (b: GraphBuilder) => Value }
const gated: Join = (b, [gate, up]) => (gate && up ? [b.add(Mul, [b.add(Swish, [gate]), up])] : []);
const build = ({ sizes = [5, 5], bias, dtype = "float32", weight }: Case, join: Join = gated, more: (b: GraphBuilder, y: Value) => readonly Value[] = () => []) => () => {
  const b = new GraphBuilder(), y = b.add(MatMul, [b.input("x", ["n", 3, 6], dtype), weight?.(b) ?? b.random([6, sizes.reduce((a, c) => a + c)], { dtype })]);
  const whole = bias ? b.add(Add, [y, b.random(bias)]) : y;
  return b.build(...join(b, b.addAll(Split, [whole, b.int64(...sizes)], { axis: -1 }, sizes.length)), ...more(b, y));
};
const huge = (b: GraphBuilder): Value => b.constant({ dtype: "float32", dims: [6, largeProduct / 2], data: new Float32Array(3 * largeProduct) });

export const splitGatedProduct = defineRule({
  name: "split-gated-product",
  doc: "A product by a constant matrix, with or without a bias, whose columns are split into parts that meet again in an element-wise operator, such as the halves of GEGLU, becomes one product for each part in one kernel, which computes what follows from all sums at once.",
  stage: "merge",
  match: op(Split, [anyOf(commuted(Add, [product, parameter("bias")]), product)], { rest: true, shared: true }),
  beside: (_, root) => (meetingParts(root) ? [root] : undefined),
  where: [
    ({ x }) => storesFloat32.has(x.type.dtype) || refuse("dtype", `'${x.name}' is ${x.type.dtype}`, "none: only float32 and narrower floats are multiplied in tiles"),
    ({ weight }) => sizeOf(weight.constant.dims) < 2 * largeProduct || refuse("large", `'${weight.name}' has ${sizeOf(weight.constant.dims)} elements`, `none: from ${2 * largeProduct} on, reading them takes the time`),
    ({ weight }) => weight.uses.length === 1 || refuse("shared-weight", `'${weight.name}' is read elsewhere too`, "none: its parts would have to be stored beside it"),
    ({ bias, weight }) => !bias || (sizeOf(bias.constant.dims) === weight.constant.dims[1] && bias.constant.dims.at(-1) === weight.constant.dims[1]) || refuse("not-per-channel", `'${bias.name}' is not one value a column`, "give the bias one axis"),
  ],
  numerics: reassociates(1e-5),
  rewrite({ x, weight, bias }, edit) {
    const { outputs, name } = edit.root, count = Number(outputs[0]?.type.shape.at(-1));
    const parts = outputs.map((_, i) => edit.constant(columns(weight.constant, i * count, count), `${weight.name}_part${i}`));
    const sums = edit.insert(SiblingMatMul, [x, ...parts], {}, { outputCount: parts.length }).producer?.node.outputs ?? [];
    return new Map(outputs.flatMap((old, i) => {
      const sum = sums[i];
      return sum ? [[old, bias ? edit.insert(Add, [sum, edit.constant(columns(bias.constant, i * count, count), `${bias.name}_part${i}`)], {}, { name }) : sum] as const] : [];
    }));
  },
  example: build({}),
  examples: [
    build({ bias: [10] }, (b, [up, gate]) => (gate && up ? [b.add(Mul, [up, b.add(Gelu, [gate])])] : [])),
    build({ sizes: [3, 3, 3], bias: [1, 9] }, (b, [i, f, o]) => (i && f && o ? [b.add(Add, [b.add(Mul, [b.add(Sigmoid, [i]), f]), o])] : [])),
  ],
  refuses: {
    "dtype": build({ dtype: "float64" }, (b, [gate, up]) => (gate && up ? [b.add(Mul, [gate, up])] : [])),
    "large": build({ sizes: [largeProduct / 4, largeProduct / 4], weight: huge }),
    "not-per-channel": build({ bias: [3, 10] }),
    "shared-weight": build({}, gated, (b, y) => { const w = y.producer?.node.inputs[1]; return w ? [b.add(Relu, [w])] : []; }),
    "interior-value-used": build({}, gated, (b, y) => [b.add(Relu, [y])]),
  },
});
