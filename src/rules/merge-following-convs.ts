/** A convolution right after another, one of them 1x1, is one convolution where that computes no more than the two. */
import { sizeOf, toNumbers } from "../core/tensor.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { Node } from "../graph/graph.ts";
import { Conv, Relu } from "../ops/index.ts";
import { constant, op, optionalInput, value, type ConstantValue } from "../rewrite/pattern.ts";
import { approximates, defineRule, isRefusal, refuse, type Verdict } from "../rewrite/rule.ts";
import { byFilter, oneChannel } from "./channel-map.ts";
import { roundOnce } from "./folded-tensor.ts";

const isPointwise = (weight: ConstantValue): boolean => sizeOf(weight.constant.dims.slice(2)) === 1;
const each = (node: Node, name: "pads" | "strides" | "dilations"): readonly number[] => { const x = node.attributes[name]; return Array.isArray(x) ? x.map(Number) : []; };
const pads = (node: Node): boolean => each(node, "pads").some((p) => p !== 0) || node.attributes["auto_pad"] === "SAME_UPPER" || node.attributes["auto_pad"] === "SAME_LOWER";
const steps = (node: Node): number => each(node, "strides").reduce((a, b) => a * b, 1);

type Shape = readonly [outputs: number, inputs: number, kernel: number];
const build = ([m, c, k]: Shape, [n, , l]: Shape, { before = {}, after = {}, bias = true, used = false }: { before?: Record<string, readonly number[] | number>; after?: Record<string, readonly number[] | number>; bias?: boolean; used?: boolean } = {}) => () => {
  const b = new GraphBuilder(), x = b.input("x", ["n", c, 6, 7]);
  const y = b.add(Conv, [x, b.random([m, c, k, k]), bias ? b.random([m]) : undefined], before);
  const group = Number(after["group"] ?? 1);
  return b.build(b.add(Conv, [y, b.random([n, m / group, l, l]), b.random([n])], after), ...(used ? [b.add(Relu, [y])] : []));
};

export const mergeFollowingConvs = defineRule({
  name: "merge-following-convs",
  doc: "Two convolutions in a row, one of them 1x1, with nothing between them become one: the product of their weights. Only where the one computes no more than the two, and where no border would see the first one's bias.",
  match: op(Conv, [op(Conv, [value("x"), constant("weight"), optionalInput(constant("bias"))], { as: "before" }), constant("nextWeight"), optionalInput(constant("nextBias"))], { as: "after" }),
  commonplace: ["other-operator"],
  numerics: approximates(1e-5, "an infinite input may give NaN in the first of the two where one convolution gives an infinity"),
  where: [(m): Verdict => {
    const { before, after, weight, nextWeight } = m;
    if (before.attributes["group"] !== 1 || after.attributes["group"] !== 1) return refuse("grouped", `'${before.name}' has ${before.attributes["group"]} groups, '${after.name}' ${after.attributes["group"]}`, "none: only convolutions of one group are multiplied");
    const spatial = isPointwise(weight) ? after : before, pointwise = spatial === after ? before : after;
    if (!isPointwise(weight) && !isPointwise(nextWeight)) return refuse("no-pointwise", `neither '${before.name}' nor '${after.name}' has a kernel of one element`, "none: one of the two must be 1x1");
    if (pads(pointwise) || (spatial === after && steps(before) !== 1)) return refuse("padded-pointwise", `'${pointwise.name}' pads, or leaves elements out before '${after.name}'`, "none: the other convolution would have to pad and step");
    const sums = m.bias && toNumbers(m.bias.constant), shifted = sums ? Array.from(sums).findIndex((b) => b !== 0) : -1;
    if (shifted >= 0 && pads(after)) return refuse("padded-shift", `'${after.name}' pads with zeros, but channel ${shifted} of '${before.name}' has a bias of ${sums?.[shifted]?.toPrecision(4)}`, "none: along the border the bias would be missing");
    const [inner = 1, inputs = 1] = weight.constant.dims, [count = 1] = nextWeight.constant.dims, taps = sizeOf((spatial === before ? weight : nextWeight).constant.dims.slice(2));
    const apart = spatial === before ? inner * inputs * taps * (spatial === before ? steps(after) : 1) + count * inner : inner * inputs * steps(after) + count * inner * taps;
    const together = count * inputs * taps;
    if (together > apart) return refuse("dearer", `one convolution would take ${together} products an output element, the two take ${apart}`, "none: they are cheaper apart");
    return true;
  }],
  rewrite(m, edit) {
    const { before, after, weight, nextWeight } = m, spatial = isPointwise(weight) ? after : before, sums = m.bias && toNumbers(m.bias.constant);
    const [inner = 1, inputs = 1] = weight.constant.dims, [count = 1] = nextWeight.constant.dims, kernel = (spatial === before ? weight : nextWeight).constant.dims.slice(2), taps = sizeOf(kernel);
    const a = toNumbers(weight.constant), b = toNumbers(nextWeight.constant), product = new Float64Array(count * inputs * taps);
    for (let o = 0; o < count; o++) for (let k = 0; k < inner; k++) for (let c = 0; c < inputs; c++) for (let t = 0; t < taps; t++) {
      const at = (o * inputs + c) * taps + t;
      product[at] = (product[at] ?? 0) + (spatial === before ? (b[o * inner + k] ?? 0) * (a[(k * inputs + c) * taps + t] ?? 0) : (b[(o * inner + k) * taps + t] ?? 0) * (a[k * inputs + c] ?? 0));
    }
    const last = m.nextBias && toNumbers(m.nextBias.constant), perInner = spatial === after ? taps : 1;
    const bias = Float64Array.from({ length: count }, (_, o) => {
      let sum = last?.[o] ?? 0;
      for (let i = 0; i < inner * perInner; i++) sum += (b[o * inner * perInner + i] ?? 0) * (sums?.[Math.floor(i / perInner)] ?? 0);
      return sum;
    });
    const { dtype } = weight.constant;
    const tensor = roundOnce(`the weight of '${after.name}'`, dtype, [count, inputs, ...kernel], product, byFilter(count, inputs * taps));
    if (isRefusal(tensor)) return tensor;
    const shift = roundOnce(`the bias of '${after.name}'`, dtype, [count], bias, oneChannel);
    if (isRefusal(shift)) return shift;
    const strides = each(before, "strides").map((s, d) => s * (each(after, "strides")[d] ?? 1));
    const attributes = { ...spatial.attributes, ...(strides.length ? { strides } : {}), kernel_shape: kernel };
    return edit.insert(Conv, [m.x, edit.constant(tensor, `${nextWeight.name}_merged`), edit.constant(shift, `${after.name}_bias`)], attributes, { name: after.name });
  },
  example: build([8, 3, 1], [4, 8, 3]),
  examples: [
    build([8, 3, 1], [4, 8, 3], { bias: false, after: { pads: [1, 1, 1, 1], strides: [2, 2] } }),
    build([8, 4, 3], [3, 8, 1], { before: { pads: [1, 1, 1, 1] } }),
    build([6, 3, 1], [2, 6, 1]),
  ],
  refuses: {
    approximate: build([8, 3, 1], [4, 8, 3]),
    dearer: build([2, 8, 1], [9, 2, 1]),
    "padded-shift": build([8, 3, 1], [4, 8, 3], { after: { pads: [1, 1, 1, 1] } }),
    "no-pointwise": build([8, 3, 3], [4, 8, 3]),
    "padded-pointwise": build([8, 3, 1], [4, 8, 3], { before: { pads: [1, 1, 1, 1] } }),
    grouped: build([8, 3, 1], [4, 8, 3], { after: { group: 2 } }),
    "interior-value-used": build([8, 3, 1], [4, 8, 3], { used: true }),
  },
});
