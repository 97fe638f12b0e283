/**
 * A Loop whose number of iterations is known becomes that many copies of its body, where these are few: then each is
 * folded and fused with its neighbours, and sizes that change from one to the next are known in each. Exact.
 */
import { present } from "../core/assert.ts";
import { isStatic, isSymbolic, substituteDim, symbolsOf, type Dim } from "../core/dim.ts";
import { tensor, zeros } from "../core/tensor.ts";
import { freshSymbol } from "../graph/fresh.ts";
import { Graph, subgraphs, type Node, type Value } from "../graph/graph.ts";
import { typeWithConstant } from "../graph/infer-node.ts";
import type { TypeInfo } from "../graph/op.ts";
import { knownCondition } from "../ops/if.ts";
import { Concat, Loop, Unsqueeze } from "../ops/index.ts";
import { agreementsOf, copyNode, copyOf, replaceKeepingName } from "./copy-nodes.ts";
import { insertNode } from "./insert.ts";
import { countNodes, withNested, type Ledger } from "./ledger.ts";

/** Nodes that the copies may have together. One iteration is always taken out of its loop. */
const maxNodes = 64;

/** Returns whether any Loop went. */
export function unrollLoops(graph: Graph, ledger: Ledger): boolean {
  let changed = false;
  for (const node of graph.nodes) {
    for (const inner of subgraphs(node)) if (unrollLoops(inner, ledger)) changed = true;
    const { body } = node.attributes;
    if (node.op !== Loop || !(body instanceof Graph)) continue;
    const trips = knownTrips(node, body);
    if (trips === undefined || (trips > 1 && trips * countNodes(body) > maxNodes)) continue;
    if (trips === 0 && !stackedResults(node).every((v) => isStatic(v.type.shape.slice(1)))) continue;
    unroll(node, body, trips, ledger);
    changed = true;
  }
  return changed;
}

const stackedResults = (node: Node): readonly Value[] => node.outputs.slice(Math.max(0, node.inputs.length - 2));

/** How many iterations there will be; undefined where only running tells. */
function knownTrips(node: Node, body: Graph): number | undefined {
  const [count, condition] = node.inputs;
  const [next] = body.outputs;
  const starts = condition ? knownCondition(typeWithConstant(condition)) : true;
  if (starts === false) return 0;
  const known = count && knownCount(typeWithConstant(count));
  if (known !== undefined && known <= 0) return 0;
  const goesOn = next && (next === body.inputs[1] ? true : knownCondition(typeWithConstant(next)));
  if (starts === undefined || goesOn === undefined) return undefined;
  if (!goesOn) return count === undefined || known !== undefined ? 1 : undefined;
  return known;
}

function knownCount({ elements, constant }: TypeInfo): number | undefined {
  const element = elements?.[0] ?? (constant ? Number(constant.data[0]) : undefined);
  return typeof element === "number" ? element : undefined;
}

function unroll(node: Node, body: Graph, trips: number, ledger: Ledger): void {
  const { graph } = node;
  const before = countNodes(graph);
  ledger.trace("inlined", trips === 0 ? withNested(node) : [node], `it runs ${trips} time${trips === 1 ? "" : "s"}: ${trips === 0 ? "never" : "its iterations stand in its place"}`);
  const outer = symbolsOutside(graph, node), constants = new Map<Value, Value>();
  let carried = node.inputs.slice(2).map((v) => present(v, "an initial value"));
  const slices = stackedResults(node).map((): Value[] => []);
  for (let k = 0; k < trips; k++) {
    const results = copyIteration(node, body, k, carried, outer, constants);
    carried = results.slice(1, 1 + carried.length);
    slices.forEach((list, s) => list.push(present(results[1 + carried.length + s], "a slice")));
  }
  const stacked = slices.map((list, s) => stack(node, list, present(stackedResults(node)[s], "a stacked result")));
  [...carried, ...stacked].forEach((by, i) => {
    const old = node.outputs[i];
    if (old && (old.uses.length > 0 || old.resultOf.length > 0)) replaceKeepingName(node, i, by);
  });
  if (graph.has(node)) graph.erase(node);
  ledger.record("inlined", "Loop", before - countNodes(graph));
}

/** The body's results for one iteration. Sizes that only the body knows get symbols of this copy; constants are shared by all. */
function copyIteration(node: Node, body: Graph, k: number, carried: readonly Value[], outer: ReadonlySet<string>, constants: Map<Value, Value>): readonly Value[] {
  const { graph } = node;
  const [iteration, condition, ...inputs] = body.inputs;
  const symbols = new Map<string, Dim>();
  const copies = new Map(constants);
  if (iteration) copies.set(iteration, graph.addConstant(tensor("int64", [], BigInt64Array.of(BigInt(k)))));
  if (condition) copies.set(condition, graph.addConstant(tensor("bool", [], Uint8Array.of(1))));
  inputs.forEach((input, i) => {
    const value = present(carried[i], "a carried value");
    copies.set(input, value);
    input.type.shape.forEach((d, axis) => { if (isSymbolic(d) && !outer.has(d.key) && symbolsOf(d).has(d.key)) symbols.set(d.key, value.type.shape[axis] ?? d); });
  });
  const own = (d: Dim): Dim => {
    for (const name of symbolsOf(d)) if (!outer.has(name) && !symbols.has(name)) symbols.set(name, freshSymbol(graph, name.replace(/^\$|__\d+$/g, "")));
    return substituteDim(d, symbols);
  };
  const retype = (type: TypeInfo): TypeInfo => ({ ...type, shape: type.shape.map(own), ...(type.elements ? { elements: type.elements.map(own) } : {}) });
  for (const inner of body.nodes) copyNode(inner, graph, node, copies, retype);
  graph.agreements = [...graph.agreements, ...agreementsOf(body, retype)];
  const results = body.outputs.map((v) => copyOf(v, graph, copies));
  for (const [from, to] of copies) if (from.constant) constants.set(from, to);
  return results;
}

/** Symbols that mean something around a node's subgraphs. */
function symbolsOutside(graph: Graph, node: Node): ReadonlySet<string> {
  const out = new Set<string>();
  const add = (v: Value): void => { for (const d of v.type.shape) symbolsOf(d, out); };
  for (let g: Graph | undefined = graph; g; g = g.parent) {
    g.inputs.forEach(add);
    for (const n of g.nodes) if (n !== node) n.outputs.forEach(add);
  }
  return out;
}

/** Slices joined along a new first axis. */
function stack(node: Node, slices: readonly Value[], { type: { dtype, shape } }: Value): Value {
  const { graph } = node;
  const rest = shape.slice(1);
  if (slices.length === 0) return graph.addConstant(zeros(dtype, [0, ...(isStatic(rest) ? rest : [])]));
  const at = { graph, before: node, name: node.name, origins: node.origins };
  const axes = graph.addConstant(tensor("int64", [1], BigInt64Array.of(0n)));
  return insertNode(at, Concat, slices.map((v) => insertNode(at, Unsqueeze, [v, axes])), { axis: 0 });
}
