/**
 * Loops in one form: a Scan becomes a Loop that takes its slices itself, so that they are read where they are used, and
 * a body reads its condition, which holds while it runs, as a constant. Exact.
 */
import { invariant, present } from "../core/assert.ts";
import type { Dim } from "../core/dim.ts";
import { tensor } from "../core/tensor.ts";
import { Graph, subgraphs, type Node, type Value } from "../graph/graph.ts";
import type { TypeInfo } from "../graph/op.ts";
import { Gather, Identity, Loop, Scan, Shape, Slice, Squeeze, Sub, Transpose } from "../ops/index.ts";
import { atAxis } from "../ops/scan.ts";
import { agreementsOf, copyNode, copyOf } from "./copy-nodes.ts";
import { insertNode, type InsertPlace } from "./insert.ts";
import { countNodes, type Ledger } from "./ledger.ts";
import { eraseIfDead, replaceOutput } from "./replace.ts";

export interface LoopOptions {
  /** Whether Scans become Loops; not where the graph is to be written as ONNX. Default true. */
  readonly symbolic?: boolean;
}

/** Returns whether anything changed. */
export function normaliseLoops(graph: Graph, ledger: Ledger, options: LoopOptions = {}): boolean {
  let changed = false;
  for (const node of graph.nodes) {
    for (const inner of subgraphs(node)) if (normaliseLoops(inner, ledger, options)) changed = true;
    if (node.op === Loop && knowConditionIn(bodyOf(node), ledger)) changed = true;
    if (node.op === Scan && options.symbolic !== false) {
      scanToLoop(node, ledger);
      changed = true;
    }
  }
  return changed;
}

function bodyOf(node: Node): Graph {
  const body = node.attributes["body"];
  invariant(body instanceof Graph, `${node.name} has no body`);
  return body;
}

/** The condition may still be the body's first result as it came in: then the loop goes on. */
function knowConditionIn(body: Graph, ledger: Ledger): boolean {
  const condition = present(body.inputs[1], "condition");
  const returned = body.outputs.some((v, i) => i > 0 && v === condition);
  if (condition.uses.length === 0 && !returned) return false;
  const yes = body.addConstant(tensor("bool", [], Uint8Array.of(1)), `${condition.name}_holds`);
  for (const use of condition.uses) use.node.graph.setInput(use.node, use.index, yes);
  if (returned) {
    ledger.record("canonicalised", "Loop", -1);
    const stand = insertNode({ graph: body, name: `${condition.name}_result`, origins: [body.name] }, Identity, [yes]);
    body.setOutputs(body.outputs.map((v, i) => (i > 0 && v === condition ? stand : v)));
  }
  return true;
}

/** Attributes of a Scan, one for each scanned input or stacked result. */
const listed = (node: Node, name: string, i: number): number => {
  const list = node.attributes[name];
  return Array.isArray(list) ? Number(list[i] ?? 0) : 0;
};

function scanToLoop(node: Node, ledger: Ledger): void {
  const { graph } = node;
  const before = countNodes(graph);
  const at: InsertPlace = { graph, before: node, name: node.name, origins: node.origins };
  const all = node.inputs.map((v) => present(v, "an input of Scan"));
  const states = all.slice(0, all.length - Number(node.attributes["num_scan_inputs"])), scanned = all.slice(states.length);
  const axes = scanned.map((v, i) => atAxis(listed(node, "scan_input_axes", i), v.type.shape.length));
  const count = lengthOf(present(scanned[0], "a scanned input"), axes[0] ?? 0, at);
  const reversed = scanned.map((_, i) => listed(node, "scan_input_directions", i) === 1);
  const last = reversed.includes(true) ? insertNode(at, Sub, [count, scalar(graph, 1)]) : undefined;
  const body = loopBody(bodyOf(node), states.length, (place, iteration) => scanned.map((v, i) => {
    const index = reversed[i] ? insertNode(place, Sub, [last, iteration]) : iteration;
    return insertNode(place, Gather, [v, index], { axis: axes[i] ?? 0 });
  }), graph, node);
  const outputs = node.outputs.map((v, i) => (i < states.length ? v.type : stackedType(v.type, atAxis(listed(node, "scan_output_axes", i - states.length), v.type.shape.length))));
  const loop = graph.insert({ op: Loop, inputs: [count, undefined, ...states], attributes: { body }, outputs, name: node.name, origins: node.origins }, node);
  node.outputs.forEach((old, i) => {
    if (old.uses.length === 0 && old.resultOf.length === 0) return;
    const result = present(loop.outputs[i], "a result");
    replaceOutput(node, i < states.length ? result : arranged(result, node, i - states.length, at), i);
  });
  if (graph.has(node)) eraseIfDead(node);
  ledger.record("canonicalised", "Scan", before - countNodes(graph));
}

const scalar = (graph: Graph, value: number): Value => graph.addConstant(tensor("int64", [], BigInt64Array.of(BigInt(value))));

/** How many slices there are, as a value. */
function lengthOf(v: Value, axis: number, at: InsertPlace): Value {
  const size = v.type.shape[axis];
  if (typeof size === "number") return scalar(at.graph, size);
  return insertNode(at, Squeeze, [insertNode(at, Shape, [v], { start: axis, end: axis + 1 })]);
}

/** A body of a Loop that does what a Scan's does, on slices that it takes itself. */
function loopBody(scan: Graph, states: number, slicesOf: (place: InsertPlace, iteration: Value) => readonly Value[], around: Graph, node: Node): Graph {
  const body = new Graph(scan.name, around);
  const iteration = body.addInput(`${scan.name}/iteration`, { dtype: "int64", shape: [] });
  const condition = body.addInput(`${scan.name}/condition`, { dtype: "bool", shape: [] });
  const copies = new Map<Value, Value>();
  for (const v of scan.inputs.slice(0, states)) copies.set(v, body.addInput(v.name, v.type));
  const slices = slicesOf({ graph: body, name: `${node.name}/slice`, origins: node.origins }, iteration);
  scan.inputs.slice(states).forEach((v, i) => copies.set(v, present(slices[i], "a slice")));
  for (const inner of scan.nodes) copyNode(inner, body, undefined, copies);
  body.agreements = agreementsOf(scan);
  body.setOutputs([condition, ...scan.outputs.map((v) => copyOf(v, body, copies))]);
  return body;
}

/** The type of a result with its slices along the first axis. */
function stackedType({ dtype, shape }: TypeInfo, axis: number): TypeInfo {
  const size: Dim = shape[axis] ?? 0;
  return { dtype, shape: [size, ...shape.filter((_, d) => d !== axis)] };
}

/** A stacked result with its slices along the axis and in the direction that the Scan asks for. */
function arranged(stacked: Value, node: Node, i: number, at: InsertPlace): Value {
  let v = stacked;
  if (listed(node, "scan_output_directions", i) === 1) {
    const ints = (value: bigint): Value => at.graph.addConstant(tensor("int64", [1], BigInt64Array.of(value)));
    v = insertNode(at, Slice, [v, ints(-1n), ints(-(2n ** 63n)), ints(0n), ints(-1n)]);
  }
  const rank = v.type.shape.length, axis = atAxis(listed(node, "scan_output_axes", i), rank);
  if (axis === 0) return v;
  const perm = Array.from({ length: rank - 1 }, (_, d) => d + 1);
  perm.splice(axis, 0, 0);
  return insertNode(at, Transpose, [v], { perm });
}
