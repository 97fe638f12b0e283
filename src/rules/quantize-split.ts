/** Split chooses elements: between conversions by one scale it splits the integers themselves, and its parts are views. */
import { GraphBuilder } from "../graph/build.ts";
import type { Node, Value } from "../graph/graph.ts";
import { Add, DequantizeLinear, QuantizeLinear, Split } from "../ops/index.ts";
import { isConstant } from "../rewrite/match.ts";
import { op } from "../rewrite/pattern.ts";
import { defineRule, exact, isRefusal, refuse } from "../rewrite/rule.ts";
import type { Refusal } from "../rewrite/site.ts";
import { dequantized, floatScale, oneScale, sameQuantization, type Dequantized } from "./quantized-operands.ts";

/** The QuantizeLinear behind each part that is read at all, or why the parts are not integers again. */
function quantizersOf(split: Node, x: Dequantized): readonly (Node | undefined)[] | Refusal {
  const out: (Node | undefined)[] = [];
  for (const part of split.outputs) {
    if (part.resultOf.length > 0) return refuse("graph-output", `'${part.name}' is a graph output`, `remove '${part.name}' from the graph's outputs`);
    const [use, more] = part.uses;
    if (use && (more || use.node.op !== QuantizeLinear || use.index !== 0)) return refuse("part-in-floats", `'${part.name}' is read by ${(more ?? use).node.op.type} '${(more ?? use).node.name}'`, "quantise every part, once");
    const refused = use && undoes(use.node, x);
    if (refused) return refused;
    out.push(use?.node);
  }
  return out;
}

/** Why a QuantizeLinear gives other integers than were dequantised; undefined where it gives the same. */
function undoes(node: Node, x: Dequantized): Refusal | undefined {
  const [, yScale, yZero] = node.inputs;
  if (!yScale || !isConstant(yScale) || (yZero && !isConstant(yZero))) return refuse("not-constant", `the scale of '${node.name}' is not known`, "make it constant");
  const verdict = sameQuantization(x, { yScale, yZero: yZero && isConstant(yZero) ? yZero : undefined, yNode: node });
  return verdict === true ? undefined : verdict;
}

const build = (scale = 0.5, after: (b: GraphBuilder, part: Value) => Value = (b, part) => b.add(QuantizeLinear, [part, b.scalar(0.5), b.scalar(3, "uint8")])) => () => {
  const b = new GraphBuilder(), zero = b.scalar(3, "uint8");
  const x = b.add(DequantizeLinear, [b.input("x", ["n", 6], "uint8"), b.scalar(0.5), zero]);
  const parts = b.addAll(Split, [x, b.int64(1, 5)], { axis: 1 }, 2);
  return b.build(...parts.map((part, i) => (i === 0 ? b.add(QuantizeLinear, [part, b.scalar(scale), zero]) : after(b, part))));
};

export const quantizeSplit = defineRule({
  name: "quantize-split",
  doc: "Split of a dequantised value, whose parts are all quantised again by the same scale and zero point, splits the integers: its parts are views of them.",
  stage: "recognise",
  match: op(Split, [dequantized], { as: "split", rest: true, shared: true }),
  beside(m) {
    const found = quantizersOf(m.split, m);
    return isRefusal(found) ? m.split.outputs.flatMap((v) => v.uses.map((u) => u.node)).filter((n) => n.op === QuantizeLinear) : found.filter((n): n is Node => n !== undefined);
  },
  where: [
    (m) => floatScale(m.xNode, m.xScale),
    (m) => oneScale(m.xNode, m.xScale),
    (m) => { const found = quantizersOf(m.split, m); return isRefusal(found) ? found : found.some((n) => n !== undefined) || refuse("part-in-floats", `no part of '${m.split.name}' is read`, "none is needed"); },
  ],
  numerics: exact,
  rewrite(m, edit) {
    const found = quantizersOf(m.split, m);
    if (isRefusal(found)) return found;
    const parts = edit.insert(Split, [m.x, ...m.split.inputs.slice(1)], m.split.attributes, { name: m.split.name, outputCount: m.split.outputs.length }).producer?.node.outputs ?? [];
    return new Map(found.flatMap((node, i) => { const whole = node?.outputs[0], part = parts[i]; return whole && part ? [[whole, part] as const] : []; }));
  },
  example: build(),
  examples: [build(0.5, (b, part) => b.add(DequantizeLinear, [b.add(QuantizeLinear, [part, b.scalar(0.5), b.scalar(3, "uint8")]), b.scalar(0.25)]))],
  refuses: {
    "quantization-differs": build(0.25),
    "part-in-floats": build(0.5, (b, part) => b.add(Add, [part, 1])),
    "graph-output": build(0.5, (_, part) => part),
    "per-axis": () => {
      const b = new GraphBuilder(), scale = b.numbers([0.5, 0.25]);
      const parts = b.addAll(Split, [b.add(DequantizeLinear, [b.input("x", [2, 4], "int8"), scale], { axis: 0 }), b.int64(1, 3)], { axis: 1 }, 2);
      return b.build(...parts.map((part) => b.add(QuantizeLinear, [part, scale], { axis: 0, output_dtype: 3 })));
    },
    "not-constant": () => {
      const b = new GraphBuilder(), zero = b.scalar(0, "int8");
      const parts = b.addAll(Split, [b.add(DequantizeLinear, [b.input("x", [2, 4], "int8"), b.scalar(0.5), zero]), b.int64(1, 3)], { axis: 1 }, 2);
      return b.build(...parts.map((part) => b.add(QuantizeLinear, [part, b.input(`${part.name}_scale`, []), zero])));
    },
  },
});
