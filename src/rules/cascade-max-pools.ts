/**
 * A maximum over a wide window is one over a narrow window of maxima over another narrow one: where a graph has both the
 * wide and the narrow pool of one value (spatial pyramid pooling), the wide one reads the narrow one's result and compares
 * a fraction of the elements. With windows centred on their element, of which the border cuts off what lies outside, both
 * see the same elements.
 */
import { present } from "../core/assert.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { Node } from "../graph/graph.ts";
import type { Attributes } from "../graph/op.ts";
import { Concat, MaxPool } from "../ops/index.ts";
import { op, value } from "../rewrite/pattern.ts";
import { defineRule, exact, refuse, type Verdict } from "../rewrite/rule.ts";

const numbers = (node: Node, name: string): readonly number[] => { const x = node.attributes[name]; return Array.isArray(x) ? x.map(Number) : []; };
const kernelOf = (node: Node): readonly number[] => numbers(node, "kernel_shape");

const taps = (node: Node): number => kernelOf(node).reduce((a, b) => a * b, 1);
/** Pools of what a node pools, and whether one's windows are narrower than another's and fit in them. */
const others = (node: Node): readonly Node[] => (node.inputs[0]?.uses ?? []).map((u) => u.node).filter((n) => n.op === MaxPool && n.graph === node.graph && n !== node && n.outputs.slice(1).every((o) => o.uses.length === 0 && o.resultOf.length === 0));
const fitsIn = (narrow: Node, wide: Node): boolean => taps(narrow) > 1 && taps(narrow) < taps(wide) && kernelOf(narrow).every((k, d) => k <= (kernelOf(wide)[d] ?? 0));

/** The widest of the narrower pools; undefined also where a wider one is to read this one's result first. */
function narrower(node: Node): Node | undefined {
  const all = others(node);
  if (all.some((n) => isCentred(n) && fitsIn(node, n))) return undefined;
  return all.filter((n) => fitsIn(n, node)).reduce<Node | undefined>((best, n) => (best && taps(best) >= taps(n) ? best : n), undefined);
}

/** Whether there is a window around every element, with as much on one side of it as on the other. */
function isCentred(node: Node): boolean {
  const kernel = kernelOf(node), pads = numbers(node, "pads"), same = node.attributes["auto_pad"] === "SAME_UPPER" || node.attributes["auto_pad"] === "SAME_LOWER";
  const middle = kernel.map((k) => (k - 1) / 2), padded = same || [...middle, ...middle].every((p, i) => pads[i] === p);
  return kernel.every((k) => k % 2 === 1) && padded && (same || node.attributes["auto_pad"] === "NOTSET") && !node.attributes["ceil_mode"] && [...numbers(node, "strides"), ...numbers(node, "dilations")].every((n) => n === 1);
}
const centred = (node: Node): Verdict =>
  isCentred(node) || refuse("not-centred", `the windows of '${node.name}' do not lie evenly around every element`, "pool with strides and dilations of 1, an odd kernel and half of it as pads on both sides");

/** Which of two nodes of a graph stands first. */
function precedes(a: Node, b: Node): boolean {
  for (const node of a.graph.nodes) if (node === a || node === b) return node === a;
  return false;
}

/** Attributes of a pool with centred windows. */
const around = (kernel: readonly number[]): Attributes => ({ kernel_shape: kernel, pads: [...kernel, ...kernel].map((k) => (k - 1) / 2) });

const build = (...pools: readonly Attributes[]) => () => {
  const b = new GraphBuilder(), x = b.input("x", ["n", 2, 9, "w"]);
  return b.build(b.add(Concat, [x, ...pools.map((p) => b.add(MaxPool, [x], p))], { axis: 1 }));
};

export const cascadeMaxPools = defineRule({
  name: "cascade-max-pools",
  doc: "Of two MaxPools of one value with centred windows, as in spatial pyramid pooling, the wider reads the narrower one's result: maxima of 13x13 are maxima of 5x5 of those of 9x9.",
  stage: "merge",
  match: op(MaxPool, [value("x")], { as: "pool" }),
  beside(_, root) {
    const other = narrower(root);
    return other && [other];
  },
  where: [({ pool }) => centred(pool), (_, root) => { const other = narrower(root); return !other || centred(other); }],
  numerics: exact,
  rewrite({ x, pool }, edit) {
    const narrow = present(narrower(pool), "a narrower pool"), wide = kernelOf(pool);
    const rest = around(wide.map((k, d) => k - (kernelOf(narrow)[d] ?? 1) + 1)), result = present(narrow.outputs[0], "a result");
    if (precedes(narrow, pool)) return edit.insert(MaxPool, [result], rest, { name: pool.name, origins: pool.origins });
    // One that stands where the wide pool stands takes the place of the narrow one, which all that reads it comes after.
    const first = edit.insert(MaxPool, [x], narrow.attributes, { name: narrow.name, origins: narrow.origins });
    return new Map([[present(pool.outputs[0], "a result"), edit.insert(MaxPool, [first], rest, { name: pool.name, origins: pool.origins })], [result, first]]);
  },
  example: build(around([5, 5]), around([9, 9]), around([13, 13])),
  examples: [
    build(around([7, 3]), around([3, 3])),
    build(around([3, 3]), { kernel_shape: [5, 9], auto_pad: "SAME_UPPER" }),
    build(around([1, 3]), around([1, 1]), around([3, 3])),
  ],
  refuses: {
    "not-centred": build(around([3, 3]), { kernel_shape: [4, 4], auto_pad: "SAME_LOWER" }),
  },
});
