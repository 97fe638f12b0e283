/**
 * Small graphs: an operator of the pool with what it needs computed before it, followed by others until there are 3 to 8
 * nodes or a few more where the last step is a chain.
 */
import { isFloat } from "../src/core/dtype.ts";
import { attentions } from "./attention.ts";
import type { Draw } from "./draw.ts";
import type { FuzzCase } from "./fuzz-case.ts";
import { generators, ofAnyData } from "./generators.ts";
import { GraphBuilder, type Known } from "./graph-builder.ts";
import type { GraphCase } from "./graph-case.ts";
import { follow } from "./graph-followers.ts";
import { produce } from "./graph-producers.ts";
import { anyMode } from "./values.ts";

/** Operators for which some elements are not defined (indices, casts of what does not fit), or NaN is known to differ, or has the weight 0 or not: they see what their generator says. */
const particular: ReadonlySet<string> = new Set(["Cast", "OneHot", "ReduceProd", "ReduceLogSum", "QuantizeLinear", "DynamicQuantizeLinear", "Range", "BitShift", "Mod", "Div", "Pow", "Shrink", "Unique", "TopK", "ConstantOfShape", "Resize"]);
/** Attention stands alone: adding −10000 to what a mask hides rounds scores by more than their rounding tells. */
const names = Object.keys(generators).filter((name) => !Object.hasOwn(attentions, name));

/** `isFree`: whether data may be computed by other nodes. */
function addOperator(b: GraphBuilder, c: FuzzCase, isFree: boolean): void {
  const free = isFree && !particular.has(c.type), fixed = new Set(c.constants ?? []);
  const inputs = c.inputs.map((t, i): Known | undefined => {
    if (!t || fixed.has(i)) return t && b.constant(t);
    const isData = i === 0 || isFloat(t.dtype);
    return free && isData && b.draw.once(2) ? produce(b, t.dtype, t.dims, 1 + b.draw.int(2)) : b.feed(t);
  });
  b.emit(c.type, inputs, c.attributes, typeof c.outputs === "number" ? c.outputs : c.outputs.length, c.domain);
}

/** A graph; undefined where every node that was drawn was refused. */
export function drawGraph(draw: Draw): GraphCase | undefined {
  const b = new GraphBuilder(draw, draw.pick(["tame", "tame", anyMode(draw)])), size = 3 + draw.int(6), name = draw.pick(names), generator = generators[name];
  const isPlain = Object.hasOwn(ofAnyData, name);
  if (generator) addOperator(b, generator(draw), isPlain);
  for (let tries = 0; b.size < size && tries < 3 * size; tries++) follow(b);
  // Numbers of heads, blocks and bits must divide sizes, which symbols do not say.
  return b.finish(isPlain && draw.once(3));
}
