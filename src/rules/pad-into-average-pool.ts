/** Zeros padded before an average pool become its own padding, counted as the elements they were. */
import { GraphBuilder } from "../graph/build.ts";
import { AveragePool, Pad } from "../ops/index.ts";
import { op } from "../rewrite/pattern.ts";
import { defineRule, exact, isRefusal, refuse } from "../rewrite/rule.ts";
import { mergedPads, padded } from "./pads.ts";

const build = (attributes: Readonly<Record<string, number | readonly number[]>>, fill = 0) => () => {
  const b = new GraphBuilder();
  const p = b.add(Pad, [b.input("x", ["n", 2, 5, 6]), b.int64(0, 0, 1, 1, 0, 0, 0, 1), fill]);
  return b.build(b.add(AveragePool, [p], { kernel_shape: [3, 2], ...attributes }));
};

export const padIntoAveragePool = defineRule({
  name: "pad-into-average-pool",
  doc: "A Pad with zeros of spatial axes before AveragePool goes into the pool's pads, which then count.",
  match: op(AveragePool, [padded], { as: "pool" }),
  where: [({ pool }) => {
    const own = pool.attributes["pads"], ownPads = Array.isArray(own) && own.some((p) => p !== 0);
    if (pool.attributes["ceil_mode"]) return refuse("ceil-mode", `'${pool.name}' rounds its size up, and counts what lies past the end another way than padding`, "use ceil_mode 0");
    return ownPads && !pool.attributes["count_include_pad"] ? refuse("count-include-pad", `'${pool.name}' has pads of its own that do not count`, "set count_include_pad") : true;
  }],
  numerics: exact,
  rewrite({ x, pad, pool }, edit) {
    const pads = mergedPads(pad, pool, 0);
    return isRefusal(pads) ? pads : edit.insert(AveragePool, [x], { ...pool.attributes, auto_pad: "NOTSET", pads, count_include_pad: 1 }, { name: pool.name });
  },
  example: build({}),
  examples: [build({ pads: [0, 1, 1, 0], count_include_pad: 1, strides: [2, 1] })],
  refuses: {
    "pad-value": build({}, 1),
    "ceil-mode": build({ ceil_mode: 1 }),
    "count-include-pad": build({ pads: [0, 1, 1, 0] }),
  },
});
