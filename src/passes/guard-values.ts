/**
 * Checks before nodes whose kernels rely on what their inputs hold: indices that must lie within an axis, divisors that
 * must not be 0. Where that is known it costs nothing; else the range of the values is computed beside them, once for
 * all nodes that read them, and looked at when the steps around it have run.
 */
import { dimEqual, dimSub, type Dim } from "../core/dim.ts";
import { dimToJson } from "../core/dim-json.ts";
import { attributesOf } from "../graph/elements.ts";
import { subgraphs, type Graph, type Node, type Value } from "../graph/graph.ts";
import { hasKernel } from "../graph/has-kernel.ts";
import { typeWithConstant } from "../graph/infer-node.ts";
import { named, type Guard, type OpDef } from "../graph/op.ts";
import { elementsOf, numbersKnown } from "../ops/element-values.ts";
import { ArgMax, ArgMin, Cast, Identity, Loop, Reshape, Squeeze, Sub, TopK, Transpose, Unsqueeze, ValueCheck, ValueRange } from "../ops/index.ts";

/** Inserts the checks that a graph and its subgraphs need. */
export function guardValues(graph: Graph): void {
  const ranges = new Map<string, readonly Value[]>(), checked = new Set<string>();
  for (const node of graph.nodes) {
    subgraphs(node).forEach(guardValues);
    if (!node.op.guards || !hasKernel(node)) continue;
    for (const guard of node.op.guards(named(node.op, node.inputs.map((v) => v && typeWithConstant(v))), attributesOf(node))) {
      const value = node.inputs[guard.input];
      if (value && !isKnown(value, guard)) insertCheck(node, value, guard, ranges, checked);
    }
  }
}

function insertCheck(node: Node, value: Value, { axes, each = false }: Guard, ranges: Map<string, readonly Value[]>, checked: Set<string>): void {
  const { graph } = node;
  const origins = node.origins.slice(0, 1), divisor = axes ? 0 : 1;
  const sizes = (axes ?? []).map((d) => JSON.stringify(dimToJson(d)));
  const key = `${value.name} ${each} ${divisor}`, request = `${key} ${sizes.join()}`;
  if (checked.has(request)) return;
  checked.add(request);
  let range = ranges.get(key);
  if (!range) {
    const shape = each ? value.type.shape.slice(-1) : [];
    const type = { dtype: "int64" as const, shape };
    range = graph.insert({ op: ValueRange, inputs: [value], attributes: { each: each ? 1 : 0, divisor }, outputs: [type, type], name: `${node.name}_range`, origins }, node).outputs;
    ranges.set(key, range);
  }
  graph.insert({ op: ValueCheck, inputs: range, attributes: { sizes, node: origins[0] ?? node.name, value: value.name }, outputs: [], name: `${node.name}_check`, origins }, node);
}

/** Whether what a guard asks is known before running. */
function isKnown(value: Value, { axes, each = false }: Guard): boolean {
  const type = typeWithConstant(value);
  const numbers = numbersKnown(type);
  if (!axes) return numbers ? numbers.every((n) => n !== 0) : elementsOf(type) !== undefined;
  if (numbers) return numbers.every((n, i) => { const size = axes[each ? i % axes.length : 0]; return typeof size === "number" && n >= -size && n < size; });
  if (elementsOf(type)) return true;
  const [size] = axes;
  return !each && size !== undefined && (countsBelow(value, size) || isIteration(value, size));
}

const movers: ReadonlySet<OpDef> = new Set([Cast, Identity, Reshape, Squeeze, Transpose, Unsqueeze]);

/** Places along an axis of this size, as ArgMax and TopK give them. */
function countsBelow(value: Value, size: Dim): boolean {
  const node = value.producer?.node, x = node?.inputs[0];
  if (!node || !x) return false;
  if (movers.has(node.op)) return countsBelow(x, size);
  const found = node.op === ArgMax || node.op === ArgMin || (node.op === TopK && value.producer?.index === 1);
  const axis = Number(node.attributes["axis"]), rank = x.type.shape.length;
  return found && dimEqual(x.type.shape[axis < 0 ? axis + rank : axis] ?? -1, size);
}

/** The number of an iteration, from the front or from the back, of a loop with this many. */
function isIteration(value: Value, size: Dim): boolean {
  const node = value.producer?.node;
  if (node?.op === Sub) {
    const [last, iteration] = node.inputs;
    const from = last && elementsOf(typeWithConstant(last))?.[0];
    return iteration !== undefined && from !== undefined && dimEqual(from, dimSub(size, 1)) && isIteration(iteration, size);
  }
  if (value !== value.graph.inputs[0]) return false;
  const loop = value.graph.parent?.nodes.find((n) => n.op === Loop && n.attributes["body"] === value.graph);
  const count = loop?.inputs[0] && elementsOf(typeWithConstant(loop.inputs[0]))?.[0];
  return count !== undefined && dimEqual(count, size);
}
