/**
 * Batches and heads that are merged into one axis for a batched product, and taken apart behind it (bmm in PyTorch, as
 * BART, Whisper and OPT are exported), stay apart: merging heads that lie beside each other would copy them, and what
 * is added to the scores of all heads would hide the attention.
 */
import { dimEqual, dimMul, shapeEqual, type Dim } from "../core/dim.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { Node, Value } from "../graph/graph.ts";
import type { OpDef } from "../graph/op.ts";
import { Add, Cast, Div, MatMul, Mul, Relu, Reshape, Softmax, Sub, Transpose } from "../ops/index.ts";
import { softmaxAxes } from "../ops/softmax.ts";
import { op, value } from "../rewrite/pattern.ts";
import { defineRule, exact, refuse, type Editor } from "../rewrite/rule.ts";

/** The two axes that are merged. */
type Pair = readonly [Dim, Dim];
/** A value of merged axes as it is with them apart, and the nodes that compute it. */
interface Apart { readonly nodes: readonly Node[]; make(edit: Editor): Value }

const mapped: ReadonlySet<OpDef> = new Set([Add, Cast, Div, Mul, Sub]);
const isOneNumber = (v: Value): boolean => v.constant !== undefined && v.type.shape.length < 3 && v.type.shape.every((d) => d === 1);

/** `v` without the merging; undefined where it is not merged, or others see it merged. */
function apart(v: Value, pair: Pair): Apart | undefined {
  const node = v.producer?.node, [x] = node?.inputs ?? [];
  if (!node || !x || node.graph !== v.graph) return undefined;
  if (node.op === Reshape) return merges(x, v, pair) ? { nodes: [node], make: () => x } : undefined;
  return v.uses.length === 1 && v.resultOf.length === 0 ? computedApart(node, pair) : undefined;
}
function computedApart(node: Node, pair: Pair): Apart | undefined {
  const attributes = attributesApart(node);
  if (!attributes || node.outputs.length !== 1) return undefined;
  const operands = node.inputs.map((input) => (input === undefined ? undefined : mapped.has(node.op) && isOneNumber(input) ? { nodes: [], make: () => input } : apart(input, pair)));
  if (operands.some((o, i) => !o && node.inputs[i]) || operands.every((o) => !o?.nodes.length)) return undefined;
  return {
    nodes: [...operands.flatMap((o) => o?.nodes ?? []), node],
    make: (edit) => edit.insert(node.op, operands.map((o) => o?.make(edit)), attributes, { name: node.name, origins: node.origins }),
  };
}
const merges = (x: Value, merged: Value, pair: Pair): boolean => {
  const { shape } = merged.type, [p] = shape;
  return p !== undefined && dimEqual(p, dimMul(...pair)) && shapeEqual(x.type.shape, [...pair, ...shape.slice(1)]);
};

/** What a node says of itself with one more axis in front; undefined where it does not work on each merged index alone. */
function attributesApart(node: Node): Node["attributes"] | undefined {
  const { op: own, attributes } = node, rank = node.outputs[0]?.type.shape.length ?? 0;
  if (own === MatMul) return node.inputs.every((v) => v?.type.shape.length === 3) ? attributes : undefined;
  if (own === Transpose) {
    const { perm } = attributes, [first, ...rest] = Array.isArray(perm) ? perm.map(Number) : [];
    return first === 0 ? { perm: [0, 1, ...rest.map((a) => a + 1)] } : undefined;
  }
  if (own === Softmax) {
    const axes = softmaxAxes({ axis: Number(attributes["axis"]), flatten: Number(attributes["flatten"]) }, rank);
    return axes.length === 1 && axes[0] === rank - 1 ? { ...attributes, axis: -1 } : undefined;
  }
  return mapped.has(own) ? attributes : undefined;
}

function pairOf(root: Node, product: Node): Pair | undefined {
  const [a, b, ...rest] = root.outputs[0]?.type.shape ?? [], merged = product.outputs[0]?.type.shape ?? [];
  return a !== undefined && b !== undefined && merged.length === 3 && shapeEqual(rest, merged.slice(1)) && dimEqual(dimMul(a, b), merged[0] ?? 0) ? [a, b] : undefined;
}
function productApart(root: Node, product: Node): Apart | undefined {
  const pair = pairOf(root, product);
  return pair && computedApart(product, pair);
}

interface Style { readonly batch?: number | string; readonly query?: readonly (number | string)[]; readonly scores?: (b: GraphBuilder, s: Value) => Value; /** The last product is seen as it is too. */ readonly last?: true }
const heads = (b: GraphBuilder, name: string, batch: number | string, size: number): Value => b.add(Reshape, [b.add(Transpose, [b.input(name, [batch, size, 2, 4])], { perm: [0, 2, 1, 3] }), b.int64(-1, size, 4)]);
const build = ({ batch = "n", query, scores = (_, s) => s, last }: Style) => () => {
  const b = new GraphBuilder(), q = query ? b.add(Reshape, [b.input("q", query), b.int64(-1, 3, 4)]) : heads(b, "q", batch, 3), k = heads(b, "k", batch, 5), v = heads(b, "v", batch, 5);
  const product = b.add(MatMul, [q, b.add(Transpose, [k], { perm: [0, 2, 1] })]), weights = b.add(Softmax, [scores(b, product)]), y = b.add(MatMul, [weights, v]);
  return b.build(b.add(Reshape, [y, b.int64(-1, 2, 3, 4)]), ...(last ? [b.add(Relu, [y])] : []));
};
/** A mask for all heads of a batch. */
const masked = (b: GraphBuilder, s: Value): Value => b.add(Reshape, [b.add(Add, [b.add(Reshape, [s, b.int64(-1, 2, 3, 5)]), b.input("mask", ["n", 1, 3, 5])]), b.int64(-1, 3, 5)]);

export const multiplyWithoutMerging = defineRule({
  name: "multiply-without-merging",
  doc: "Products of operands whose two first axes (batch and heads) are merged by a Reshape, with a Softmax and numbers between them, taken apart by a Reshape behind them, are products with those axes apart: nothing is copied to merge them, and attention is found.",
  stage: "recognise",
  match: op(Reshape, [op(MatMul, [value("a"), value("b")], { as: "product" }), value("target")]),
  beside: ({ product }, root) => (pairOf(root, product) ? productApart(root, product)?.nodes ?? [product] : undefined),
  where: [
    ({ product }, root) => productApart(root, product) !== undefined || refuse("not-merged", `not all operands of '${product.name}' are merged as '${root.name}' takes them apart, for it alone`, "none"),
  ],
  numerics: exact,
  rewrite({ product }, edit) {
    return productApart(edit.root, product)?.make(edit) ?? refuse("not-merged", `the operands of '${product.name}' are not merged`, "none");
  },
  example: build({}),
  examples: [
    build({ scores: masked }),
    build({ batch: 2, scores: (b, s) => b.add(Add, [b.add(Mul, [s, 0.5]), -1]) }),
  ],
  refuses: {
    "not-merged": build({ batch: 3, query: [2, 3, 3, 4] }),
    "interior-value-used": build({ last: true }),
  },
});
