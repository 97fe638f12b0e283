/**
 * Minus infinity padded before a max pool becomes its own padding. Zeros do not, since a maximum would see them: but
 * where no element is below 0 and every window has one, they change nothing (Keras pads so behind its first Relu).
 */
import { GraphBuilder } from "../graph/build.ts";
import type { Node, Value } from "../graph/graph.ts";
import { Clip, MaxPool, Pad, Relu, Sigmoid } from "../ops/index.ts";
import { isConstant } from "../rewrite/match.ts";
import { numberIn, op } from "../rewrite/pattern.ts";
import { defineRule, isRefusal, reassociates, refuse, type Verdict } from "../rewrite/rule.ts";
import { mergedPads, padded } from "./pads.ts";

/** Whether no element is below 0. */
function isNeverNegative({ producer }: Value): boolean {
  const node = producer?.node, low = node?.inputs[1];
  return node?.op === Relu || node?.op === Sigmoid || (node?.op === Clip && low !== undefined && isConstant(low) && numberIn(low) >= 0);
}
/** Whether every window of a pool with these pads has an element of its input. */
function windowsMeet(x: Value, pool: Node, pads: readonly number[]): Verdict {
  const kernel = pool.attributes["kernel_shape"], dilations = pool.attributes["dilations"], sizes = x.type.shape.slice(2);
  const plain = !Array.isArray(dilations) || dilations.every((d) => d === 1);
  const meets = Array.isArray(kernel) && pads.every((p, i) => p < Number(kernel[i % sizes.length])) && sizes.every((d) => typeof d === "number" && d > 0);
  return (plain && meets) || refuse("pad-value", `a window of '${pool.name}' may hold nothing but zeros that are padded`, "pad by less than the window, pictures of known sizes");
}

type Before = (b: GraphBuilder, x: Value) => Value;
const build = (fill: number, attributes: Readonly<Record<string, number | readonly number[]>> = {}, before: Before = (_, x) => x) => () => {
  const b = new GraphBuilder();
  const p = b.add(Pad, [before(b, b.input("x", ["n", 2, 5, 6])), b.int64(0, 0, 1, 1, 0, 0, 0, 1), fill]);
  return b.build(b.add(MaxPool, [p], { kernel_shape: [3, 2], ...attributes }));
};

export const padIntoMaxPool = defineRule({
  name: "pad-into-max-pool",
  gePass: "PadMaxPoolFusionPass",
  doc: "A Pad with minus infinity of spatial axes before MaxPool goes into the pool's pads, and so does one with zeros of what is never below 0.",
  match: op(MaxPool, [padded], { as: "pool" }),
  where: [({ pool }) => (pool.attributes["ceil_mode"] ? refuse("ceil-mode", `'${pool.name}' rounds its size up`, "use ceil_mode 0") : true)],
  // A −0 that Relu lets pass stays one where a padded 0 is no longer seen.
  numerics: reassociates(),
  rewrite({ x, pad, pool }, edit) {
    const lowest = mergedPads(pad, pool, -Infinity), zeros = isRefusal(lowest) && isNeverNegative(x), pads = zeros ? mergedPads(pad, pool, 0) : lowest;
    if (isRefusal(pads)) return pads;
    const seen = zeros ? windowsMeet(x, pool, pads) : true;
    return isRefusal(seen) ? seen : edit.insert(MaxPool, [x], { ...pool.attributes, auto_pad: "NOTSET", pads }, { name: pool.name });
  },
  example: build(-Infinity),
  examples: [
    build(0, { strides: [2, 2] }, (b, x) => b.add(Relu, [x])),
    build(0, { pads: [0, 0, 1, 0] }, (b, x) => b.add(Sigmoid, [x])),
    build(0, {}, (b, x) => b.add(Clip, [x, 0.5, 6])),
  ],
  refuses: { "pad-value": build(0), "ceil-mode": build(-Infinity, { ceil_mode: 1 }) },
});
