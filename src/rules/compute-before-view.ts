/**
 * Work on each element by itself gives the same wherever it is done: behind a convolution, product or normalisation it
 * is done before the result is looked at through a Transpose or Reshape, so that the kernel does it that has the values
 * at hand. What is not constant, such as a residual, is looked at the other way round instead: a Transpose costs nothing.
 */
import { dimEqual, dimProduct, shapeEqual, type Dim } from "../core/dim.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { Node, Value } from "../graph/graph.ts";
import type { OpDef } from "../graph/op.ts";
import {
  Abs, Add, Cast, Ceil, Celu, Clip, Conv, Cos, Div, Elu, Erf, Exp, Flatten, Floor, Gelu, HardSigmoid, HardSwish, LayerNormalization, LeakyRelu, Log, MatMul, Max, Min, Mish, Mul, Neg, Pow, PRelu, Reciprocal, Relu, Reshape, RMSNormalization, Round, Selu,
  Sigmoid, Sign, Sin, Softplus, Softsign, Sqrt, Squeeze, Sub, Swish, Tanh, ThresholdedRelu, Transpose, Unsqueeze,
} from "../ops/index.ts";
import { anyOf, op, parameter, value, type Pattern } from "../rewrite/pattern.ts";
import { defineRule, exact, isRefusal, refuse, type Editor } from "../rewrite/rule.ts";
import type { Refusal } from "../rewrite/site.ts";

const ofOne = [
  Abs, Cast, Ceil, Celu, Clip, Cos, Elu, Erf, Exp, Floor, Gelu, HardSigmoid, HardSwish, LeakyRelu, Log, Mish, Neg, Reciprocal, Relu, Round, Selu, Sigmoid, Sign, Sin, Softplus, Softsign, Sqrt, Swish, Tanh, ThresholdedRelu,
];
const ofTwo = [Add, Div, Max, Min, Mul, Pow, PRelu, Sub];
const view = op([Flatten, Reshape, Squeeze, Transpose, Unsqueeze], [value("x")], { as: "view", rest: true });
const transposed = op(Transpose, [value("x")], { as: "view" });
const isView = (node: Node): boolean => view.ops.includes(node.op);
const isElementwise = (node: Node): boolean => node.op.fusionKind === "elementwise" || node.op.fusionKind === "broadcast";

const normalises: ReadonlySet<OpDef> = new Set([LayerNormalization, RMSNormalization]);

/** Whether `x` is what a contraction or normalisation gives, or views and element-wise work behind one make of it, and nothing else sees any of that. */
function isComputed(x: Value): boolean {
  for (let at: Value | undefined = x; at; ) {
    const node: Node | undefined = at.producer?.node;
    if (!node || at.uses.length !== 1 || at.resultOf.length > 0 || node.outputs.length !== 1) return false;
    if (node.op.anchor || normalises.has(node.op)) return true;
    if (!isView(node) && !isElementwise(node)) return false;
    at = node.inputs.find((v) => v?.producer !== undefined);
  }
  return false;
}

/** Where a constant of one axis, read along axis `axis` of the view's result, is read before the view. */
function axisBefore(node: Node, axis: number): number | undefined {
  const before = node.inputs[0]?.type.shape ?? [], after = node.outputs[0]?.type.shape ?? [];
  if (node.op === Transpose) return permutation(node, before.length)[axis];
  const inner = dimProduct(after.slice(axis + 1));
  const found = before.findIndex((size, d) => dimEqual(size, after[axis] ?? 0) && dimEqual(dimProduct(before.slice(d + 1)), inner));
  return found < 0 ? undefined : found;
}
function permutation(node: Node, rank: number): readonly number[] {
  const perm = node.attributes["perm"];
  return Array.isArray(perm) && perm.length === rank ? perm.map(Number) : Array.from({ length: rank }, (_, d) => rank - 1 - d);
}

/** The shape that a constant must have before the view, to meet the same elements. */
function shapeBefore(node: Node, { name, type: { shape } }: Value): readonly Dim[] | Refusal {
  const sizes = shape.map((size, d) => ({ size, fromEnd: shape.length - 1 - d })).filter(({ size }) => size !== 1);
  const [only, ...others] = sizes;
  if (!only) return [];
  const rank = node.outputs[0]?.type.shape.length ?? 0, at = others.length ? undefined : axisBefore(node, rank - 1 - only.fromEnd);
  if (at === undefined) return refuse("shape", `'${name}' is not one value along an axis that '${node.name}' keeps`, "none: what differs along several axes is met behind the view");
  return [only.size, ...Array.from({ length: (node.inputs[0]?.type.shape.length ?? 0) - 1 - at }, () => 1)];
}

/** Whether a value beside the view is no constant and can be looked at the other way round; not where its own kernel had better do the work. */
const turnable = (node: Node, v: Value): boolean => node.op === Transpose && !v.constant && !isComputed(v) && shapeEqual(v.type.shape, node.outputs[0]?.type.shape ?? []);
function turned(v: Value, node: Node, edit: Editor): Value {
  const perm = permutation(node, v.type.shape.length);
  return edit.insert(Transpose, [v], { perm: perm.map((_, d) => perm.indexOf(d)) }, { name: `${node.name}_turned` });
}

function moved(v: Value | undefined, node: Node, edit: Editor): Value | undefined {
  if (!v || v.producer?.node === node) return v && node.inputs[0];
  if (turnable(node, v)) return turned(v, node, edit);
  const dims = shapeBefore(node, v);
  if (isRefusal(dims) || !v.constant || shapeEqual(dims, v.constant.dims)) return v;
  return edit.constant({ ...v.constant, dims: dims.map(Number) }, v.name);
}

interface Match { readonly x: Value; readonly view: Node; readonly residual: Value | undefined }

type End = (b: GraphBuilder, y: Value) => Value;
const build = (end: End, more: (b: GraphBuilder, y: Value) => readonly Value[] = () => []) => () => {
  const b = new GraphBuilder(), y = b.add(Conv, [b.input("x", ["n", 3, 5, 6]), b.random([4, 3, 1, 1])]);
  return b.build(end(b, y), ...more(b, y));
};
const lastChannel = (b: GraphBuilder, y: Value): Value => b.add(Transpose, [y], { perm: [0, 2, 3, 1] });
const flat = (b: GraphBuilder, y: Value): Value => b.add(Reshape, [y, b.int64(0, 4, 30)]);

export const computeBeforeView = defineRule({
  name: "compute-before-view",
  doc: "Element-wise work, by itself or with a constant of one value or one a channel, on a Transpose or Reshape of what a convolution, product or normalisation gives, is done before the view: the kernel that has the values does it. So is work with a residual behind a Transpose.",
  stage: "move",
  match: anyOf(
    op(ofOne, [view], { rest: true }), op(ofTwo, [view, parameter("other")]), op(ofTwo, [parameter("other"), view]),
    op(ofTwo, [transposed, value("residual")]), op(ofTwo, [value("residual"), transposed]),
  ) as Pattern<Match>,
  beside: ({ x, view: node, residual }) => (isComputed(x) && (!residual || turnable(node, residual)) ? [node] : undefined),
  where: [
    ({ view: node, residual }) => !residual || turnable(node, residual) || refuse("not-constant", `'${residual.name}' is computed, and is no residual that '${node.name}' could be turned for`, "none: it is read as it lies"),
    ({ view: node }, root) => {
      const result = root.outputs[0], seen = node.outputs[0];
      return (result && seen && shapeEqual(result.type.shape, seen.type.shape)) || refuse("shape-grows", `'${root.name}' enlarges what it reads`, "give the constant the shape of one channel");
    },
    ({ view: node }, root) => {
      for (const v of root.inputs) {
        const shape = !v || v.producer?.node === node || turnable(node, v) ? [] : shapeBefore(node, v);
        if (isRefusal(shape)) return shape;
      }
      return true;
    },
  ],
  numerics: exact,
  rewrite({ view: node }, edit) {
    const { root } = edit;
    const result = edit.insert(root.op, root.inputs.map((v) => moved(v, node, edit)), root.attributes, { name: root.name, origins: root.origins });
    return edit.insert(node.op, [result, ...node.inputs.slice(1)], node.attributes, { name: node.name, origins: node.origins });
  },
  example: build((b, y) => b.add(Relu, [lastChannel(b, y)])),
  examples: [
    build((b, y) => b.add(Add, [b.add(Sigmoid, [lastChannel(b, y)]), b.random([4])])),
    build((b, y) => b.add(Sub, [b.random([4, 1]), flat(b, y)])),
    build((b, y) => b.add(Clip, [b.add(Flatten, [y]), 0, 6])),
    () => {
      const b = new GraphBuilder(), heads = b.add(Transpose, [b.add(Reshape, [b.add(MatMul, [b.input("x", ["n", "s", 8]), b.random([8, 8])]), b.int64(0, 0, 2, 4)])], { perm: [0, 2, 1, 3] });
      return b.build(b.add(Mul, [heads, 0.5]));
    },
    () => {
      const b = new GraphBuilder(), x = b.input("x", ["n", 4, 5, 6]), rows = b.add(Transpose, [x], { perm: [0, 2, 3, 1] });
      return b.build(b.add(Sub, [x, b.add(Transpose, [b.add(MatMul, [rows, b.random([4, 4])])], { perm: [0, 3, 1, 2] })]));
    },
    build((b, y) => b.add(Relu, [lastChannel(b, b.add(LayerNormalization, [y, b.random([6])]))])),
  ],
  refuses: {
    "interior-value-used": build((b, y) => { const z = lastChannel(b, y); return b.add(Add, [b.add(Relu, [z]), z]); }),
    "shape": build((b, y) => b.add(Mul, [flat(b, y), b.random([4, 30])])),
    "shape-grows": build((b, y) => b.add(Mul, [lastChannel(b, y), b.random([2, 1, 1, 1, 1])])),
  },
});
