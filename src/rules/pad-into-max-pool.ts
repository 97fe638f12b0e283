/** Minus infinity padded before a max pool becomes its own padding. Zeros do not: a maximum would see them. */
import { GraphBuilder } from "../graph/build.ts";
import { MaxPool, Pad } from "../ops/index.ts";
import { op } from "../rewrite/pattern.ts";
import { defineRule, exact, isRefusal, refuse } from "../rewrite/rule.ts";
import { mergedPads, padded } from "./pads.ts";

const build = (fill: number, attributes: Readonly<Record<string, number | readonly number[]>> = {}) => () => {
  const b = new GraphBuilder();
  const p = b.add(Pad, [b.input("x", ["n", 2, 5, 6]), b.int64(0, 0, 1, 1, 0, 0, 0, 1), fill]);
  return b.build(b.add(MaxPool, [p], { kernel_shape: [3, 2], ...attributes }));
};

export const padIntoMaxPool = defineRule({
  name: "pad-into-max-pool",
  gePass: "PadMaxPoolFusionPass",
  doc: "A Pad with minus infinity of spatial axes before MaxPool goes into the pool's pads.",
  match: op(MaxPool, [padded], { as: "pool" }),
  where: [({ pool }) => (pool.attributes["ceil_mode"] ? refuse("ceil-mode", `'${pool.name}' rounds its size up`, "use ceil_mode 0") : true)],
  numerics: exact,
  rewrite({ x, pad, pool }, edit) {
    const pads = mergedPads(pad, pool, -Infinity);
    return isRefusal(pads) ? pads : edit.insert(MaxPool, [x], { ...pool.attributes, auto_pad: "NOTSET", pads }, { name: pool.name });
  },
  example: build(-Infinity),
  refuses: { "pad-value": build(0), "ceil-mode": build(-Infinity, { ceil_mode: 1 }) },
});
