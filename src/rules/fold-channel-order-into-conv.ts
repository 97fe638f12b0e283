/** Channels put in another order before a convolution (colours of a picture, from BGR to RGB): its weights are put in that order instead. */
import { isStatic, type Dim } from "../core/dim.ts";
import { fromNumbers, sizeOf, toNumbers, type Tensor } from "../core/tensor.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { Node, Value } from "../graph/graph.ts";
import { Concat, Conv, Gather, Relu, Slice, Split } from "../ops/index.ts";
import { anyOf, op, optionalInput, parameter, value, type ConstantValue, type Pattern } from "../rewrite/pattern.ts";
import { defineRule, reassociates, refuse } from "../rewrite/rule.ts";

interface Match { readonly order: Node; readonly weight: ConstantValue; readonly bias: Value | undefined }
const reordered = anyOf(
  op(Gather, [value("data"), parameter("indices")], { as: "order" }),
  op(Slice, [value("data"), parameter("starts"), parameter("ends"), parameter("axes"), parameter("steps")], { as: "order" }),
  op(Concat, [], { as: "order", rest: true }),
);

/** What is put in order, and which of its channels stands at each place; undefined where nothing is, or it is not known. */
function orderOf(node: Node): { readonly x: Value; readonly places: readonly number[] } | undefined {
  const rank = node.outputs[0]?.type.shape.length ?? 0, isChannel = (axis: unknown): boolean => Number(axis) === 1 || Number(axis) === 1 - rank;
  const [x, ...more] = node.inputs, channels = x?.type.shape[1], lists = more.map((v) => (v?.constant ? Array.from(toNumbers(v.constant)) : []));
  if (!x || rank < 3) return undefined;
  if (node.op === Concat) return isChannel(node.attributes["axis"]) ? ofParts(node, isChannel) : undefined;
  if (typeof channels !== "number") return undefined;
  const fromFront = (i: number): number => (i < 0 ? i + channels : i);
  if (node.op === Gather) return isChannel(node.attributes["axis"]) && more[0]?.type.shape.length === 1 ? { x, places: (lists[0] ?? []).map(fromFront) } : undefined;
  // Of slices, only the whole axis backwards is an order.
  const [[start = 0] = [], [end = 0] = [], [axis] = [], [step] = []] = lists;
  const backwards = step === -1 && fromFront(Math.min(start, channels - 1)) === channels - 1 && end < -channels;
  return backwards && lists.every((l) => l.length === 1) && isChannel(axis) ? { x, places: Array.from({ length: channels }, (_, c) => channels - 1 - c) } : undefined;
}
/** Parts of one Split joined again. */
function ofParts(node: Node, isChannel: (axis: unknown) => boolean): ReturnType<typeof orderOf> {
  const split = node.inputs[0]?.producer?.node, [x] = split?.inputs ?? [];
  if (!split || split.op !== Split || !x || !isChannel(split.attributes["axis"]) || node.inputs.some((v) => v?.producer?.node !== split)) return undefined;
  const sizes: readonly Dim[] = split.outputs.map((v) => v.type.shape[1] ?? 0);
  if (!isStatic(sizes)) return undefined;
  const begins = sizes.map((_, i) => sizes.slice(0, i).reduce((a, b) => a + b, 0));
  return { x, places: node.inputs.flatMap((v) => { const i = v?.producer?.index ?? 0; return Array.from({ length: sizes[i] ?? 0 }, (_, c) => (begins[i] ?? 0) + c); }) };
}

/** Whether every channel is put in the place of one of its own group. */
const staysInGroups = (places: readonly number[], groups: number): boolean => {
  const each = places.length / groups;
  return places.every((place, c) => Math.floor(place / each) === Math.floor(c / each));
};

/** Weights of so many groups whose input channel `places[c]` is what channel c was. */
function inOrder({ dtype, dims, ...t }: Tensor, places: readonly number[], groups: number): Tensor {
  const from = toNumbers({ dtype, dims, ...t }), [filters = 0, channels = 0] = dims, taps = sizeOf(dims.slice(2)), out = new Float64Array(from.length);
  for (let f = 0; f < filters; f++) {
    const first = Math.floor((f * groups) / filters) * channels;
    for (let c = 0; c < channels; c++) for (let k = 0; k < taps; k++) out[(f * channels + (places[first + c] ?? 0) - first) * taps + k] = from[(f * channels + c) * taps + k] ?? 0;
  }
  return fromNumbers(dtype, dims, out);
}

type Order = (b: GraphBuilder, x: Value) => Value;
const gather = (...places: readonly number[]): Order => (b, x) => b.add(Gather, [x, b.int64(...places)], { axis: 1 });
const build = (order: Order, { channels = 3, group = 1, bias = false, more = () => [] }: { readonly channels?: number; readonly group?: number; readonly bias?: boolean; readonly more?: (b: GraphBuilder, y: Value) => readonly Value[] } = {}) => () => {
  const b = new GraphBuilder(), y = order(b, b.input("x", ["n", channels === 4 ? 4 : 3, 5, "w"]));
  return b.build(b.add(Conv, [y, b.random([group * 2, channels / group, 3, 3]), bias ? b.random([group * 2]) : undefined], { pads: [1, 1, 1, 1], group }), ...more(b, y));
};
const parts = (sizes: readonly number[], ...at: readonly number[]): Order => (b, x) => {
  const split = b.addAll(Split, [x, b.int64(...sizes)], { axis: 1 }, sizes.length);
  return b.add(Concat, at.map((i) => split[i]), { axis: 1 });
};

export const foldChannelOrderIntoConv = defineRule({
  name: "fold-channel-order-into-conv",
  doc: "Channels that a Gather, a Slice backwards or a Concat of a Split's parts puts in another order before a convolution, each within its group: its weights are put in that order instead.",
  match: op(Conv, [reordered, parameter("weight"), optionalInput(value("bias"))]) as Pattern<Match>,
  hallmarks: [Gather, Slice, Concat],
  beside: ({ order }) => (orderOf(order) ? [order] : undefined),
  where: [
    ({ order }) => {
      const { x, places } = orderOf(order) ?? {};
      return (places?.length === x?.type.shape[1] && new Set(places).size === places?.length) || refuse("channels-differ", `'${order.name}' leaves channels out, or repeats them`, "none: the convolution would read more than it does");
    },
    ({ order }, root) => staysInGroups(orderOf(order)?.places ?? [], Number(root.attributes["group"])) || refuse("grouped", `'${order.name}' moves channels among the ${String(root.attributes["group"])} groups of '${root.name}'`, "none: a group would read channels of others"),
  ],
  numerics: reassociates(1e-5),
  rewrite({ order, weight, bias }, edit) {
    const { x, places } = orderOf(order) ?? {};
    if (!x || !places) return refuse("channels-differ", `'${order.name}' keeps no order that is known`, "none is needed");
    return edit.insert(Conv, [x, edit.constant(inOrder(weight.constant, places, Number(edit.root.attributes["group"])), `${weight.name}_in_order`), bias], edit.root.attributes);
  },
  example: build(gather(2, 1, 0)),
  examples: [
    build(gather(-1, 0, 1), { bias: true }),
    build((b, x) => b.add(Slice, [x, b.int64(-1), b.int64(-100), b.int64(1), b.int64(-1)])),
    build(parts([1, 1, 1], 2, 1, 0)),
    build(parts([1, 2], 1, 0), { bias: true }),
    build(parts([1, 1, 2], 1, 0, 2), { channels: 4, group: 2, bias: true }),
  ],
  refuses: {
    grouped: build(gather(2, 1, 0), { group: 3 }),
    "channels-differ": build(gather(0, 0, 2)),
    "interior-value-used": build(gather(2, 1, 0), { more: (b, y) => [b.add(Relu, [y])] }),
  },
});
