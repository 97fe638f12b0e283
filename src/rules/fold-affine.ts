/**
 * The rules that fold an affine function of output channels into a contraction, made for each kind of contraction:
 * BatchNormalization, multiplication or division by a constant, addition or subtraction of a constant.
 */
import { tensor } from "../core/tensor.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { Graph, Node, Value } from "../graph/graph.ts";
import { Add, BatchNormalization, Div, Mul, RandomNormalLike, Relu, SequenceAt, SequenceConstruct, Sub } from "../ops/index.ts";
import { anyOf, commuted, constant, op, parameter, type ConstantValue } from "../rewrite/pattern.ts";
import { isRefusal, reassociates, refuse, type RuleSpec, type Verdict } from "../rewrite/rule.ts";
import { affineOfBatchNorm, perChannel, type Affine } from "./affine.ts";
import { outputShape, type Contraction, type Operands } from "./contraction.ts";

interface Texts {
  readonly name: string;
  readonly gePass?: string;
  readonly doc: string;
}

/** A graph of the contraction's plain sample and what `more` puts behind it. */
const after = (target: Contraction, more: (b: GraphBuilder, y: Value) => Value | readonly Value[], sample = 0): (() => Graph) => () => {
  const b = new GraphBuilder();
  const y = target.samples[sample]?.(b) ?? b.input("x", [1]);
  const outputs = more(b, y);
  return b.build(...(isList(outputs) ? outputs : [outputs]));
};
const isList = (x: Value | readonly Value[]): x is readonly Value[] => Array.isArray(x);
const moreExamples = (target: Contraction, more: (b: GraphBuilder, y: Value) => Value): (() => Graph)[] =>
  target.samples.map((_, i) => after(target, more, i)).slice(1);
/** In the samples, channels are axis 1. */
const channelsOf = (y: Value): { readonly axis: number; readonly count: number } => ({ axis: 1, count: Number(y.type.shape[1]) });
/** One random number a channel, shaped to broadcast. */
function channelConstant(b: GraphBuilder, y: Value, low = 0.5, high = 2): Value {
  const { axis, count } = channelsOf(y);
  return b.random([count, ...y.type.shape.slice(axis + 1).map(() => 1)], { low, high, dtype: y.type.dtype });
}

/** A shape that varies along an axis other than the channels'. */
function alongAnotherAxis(y: Value): readonly number[] {
  const last = y.type.shape.at(-1);
  return channelsOf(y).axis === y.type.shape.length - 1 ? [5, 1] : [typeof last === "number" ? last : 5];
}

interface Parameters { readonly gamma: ConstantValue; readonly beta: ConstantValue; readonly mean: ConstantValue; readonly variance: ConstantValue }

/** target → BatchNormalization becomes target. */
export function batchNormInto(target: Contraction, texts: Texts): RuleSpec<Operands & Parameters & { readonly norm: Node }> {
  const norm = (b: GraphBuilder, y: Value, attributes: Readonly<Record<string, number>> = {}, gamma?: Value, variance?: Value): Value => {
    const { count } = channelsOf(y), { dtype } = y.type;
    const random = (low = -1, high = 1): Value => b.random([count], { low, high, dtype });
    return b.add(BatchNormalization, [y, gamma ?? random(), random(), random(), variance ?? random(0.5, 2)], attributes, "norm");
  };
  const plain = (b: GraphBuilder, y: Value): Value => norm(b, y, { epsilon: 1e-3 });
  return {
    ...texts,
    match: op(BatchNormalization, [target.pattern, constant("gamma"), constant("beta"), constant("mean"), constant("variance")], {
      as: "norm",
      attributes: { wants: "inference mode (training_mode 0)", code: "batch-norm-training", holds: (a) => a["training_mode"] === 0 },
    }),
    where: [(m): Verdict => {
      const { axis } = target.channels(m);
      if (m.norm.attributes["spatial"] === 0) return refuse("not-per-channel", `'${m.norm.name}' normalises every element by itself (spatial 0)`, "use a spatial BatchNormalization");
      return axis === 1 ? true : refuse("channel-axis-differs", `'${m.norm.name}' normalises axis 1, the columns of '${m.anchor.name}' are axis ${axis}`, "normalise the last axis");
    }],
    numerics: reassociates(),
    rewrite(m, edit) {
      const affine = affineOfBatchNorm(m.norm, m);
      return isRefusal(affine) ? affine : target.fold(m, affine, edit);
    },
    example: after(target, plain),
    examples: moreExamples(target, plain),
    refuses: {
      "batch-norm-training": after(target, (b, y) => norm(b, y, { training_mode: 1 })),
      "interior-value-used": after(target, (b, y) => [norm(b, y), b.add(Relu, [y])]),
      "graph-output": after(target, (b, y) => [norm(b, y), y]),
      "non-deterministic-between": after(target, (b, y) => norm(b, b.add(RandomNormalLike, [y]))),
      "side-effect-between": after(target, (b, y) => norm(b, b.add(SequenceAt, [b.add(SequenceConstruct, [y]), b.scalar(0, "int64")]))),
      "not-constant": after(target, (b, y) => norm(b, y, {}, b.input("gamma", [channelsOf(y).count]))),
      "overridable-initializer": after(target, (b, y) => norm(b, y, {}, b.overridable("gamma", ones(channelsOf(y).count)))),
      "precision-loss": after(target, (b, y) => norm(b, y, {}, b.numbers(Array.from({ length: channelsOf(y).count }, () => 3e38)), b.numbers(Array.from({ length: channelsOf(y).count }, () => 0)))),
      "not-finite": after(target, (b, y) => norm(b, y, {}, undefined, b.numbers(Array.from({ length: channelsOf(y).count }, () => -1)))),
    },
  };
}
const ones = (count: number) => tensor("float32", [count], new Float32Array(count).fill(1));

/** target · c and target / c become target. */
export function factorInto(target: Contraction, texts: Texts): RuleSpec<Operands & { readonly factor: ConstantValue }> {
  const product = (b: GraphBuilder, y: Value): Value => b.add(Mul, [channelConstant(b, y), y]);
  return {
    ...texts,
    match: anyOf(commuted(Mul, [target.pattern, parameter("factor")]), op(Div, [target.pattern, parameter("factor")])),
    numerics: reassociates(),
    rewrite(m, edit) {
      const values = perChannel(m.factor, outputShape(m), target.channels(m));
      if (isRefusal(values)) return values;
      const divides = edit.root.op === Div;
      return target.fold(m, { scale: values.map((v) => (divides ? 1 / v : v)), shift: new Float64Array(values.length) }, edit);
    },
    example: after(target, product),
    examples: [
      ...moreExamples(target, product),
      after(target, (b, y) => b.add(Div, [y, channelConstant(b, y)])),
      after(target, (b, y) => b.add(Mul, [y, 0.3])),
    ],
    refuses: {
      "shape-grows": after(target, (b, y) => b.add(Mul, [y, b.random([2, ...y.type.shape.map(() => 1)])])),
      "not-per-channel": after(target, (b, y) => b.add(Mul, [y, b.random(alongAnotherAxis(y))])),
      "interior-value-used": after(target, (b, y) => [product(b, y), b.add(Relu, [y])]),
      "not-constant": after(target, (b, y) => b.add(Mul, [y, b.input("s", [1])])),
      "precision-loss": after(target, (b, y) => b.add(Mul, [y, 1e-42])),
      "not-finite": after(target, (b, y) => b.add(Div, [y, 0])),
    },
  };
}

/** target + c, target − c and c − target become target. */
export function summandInto(target: Contraction, texts: Texts): RuleSpec<Operands & { readonly summand: ConstantValue }> {
  const sum = (b: GraphBuilder, y: Value): Value => b.add(Add, [channelConstant(b, y, -1, 1), y]);
  return {
    ...texts,
    match: anyOf(commuted(Add, [target.pattern, parameter("summand")]), op(Sub, [target.pattern, parameter("summand")]), op(Sub, [parameter("summand"), target.pattern])),
    numerics: reassociates(),
    rewrite(m, edit) {
      const values = perChannel(m.summand, outputShape(m), target.channels(m));
      if (isRefusal(values)) return values;
      return target.fold(m, signed(values, edit.root.op === Sub, edit.root.inputs[0] === m.summand), edit);
    },
    example: after(target, sum),
    examples: [
      ...moreExamples(target, sum),
      after(target, (b, y) => b.add(Sub, [y, channelConstant(b, y)])),
      after(target, (b, y) => b.add(Sub, [0.7, y])),
    ],
    refuses: {
      "shape-grows": after(target, (b, y) => b.add(Add, [y, b.random([2, ...y.type.shape.map(() => 1)])])),
      "interior-value-used": after(target, (b, y) => [sum(b, y), b.add(Relu, [y])]),
      "graph-output": after(target, (b, y) => [sum(b, y), y]),
      "not-constant": after(target, (b, y) => b.add(Add, [y, b.input("s", [1])])),
    },
  };
}
/** y + c, y − c or c − y. */
function signed(values: Float64Array, subtracts: boolean, constantFirst: boolean): Affine {
  const negated = subtracts && constantFirst;
  return { scale: new Float64Array(values.length).fill(negated ? -1 : 1), shift: values.map((v) => (subtracts && !constantFirst ? -v : v)) };
}
