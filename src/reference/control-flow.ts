/** If, Loop and Scan, as the ONNX specification words them. */
import { invariant, present } from "../core/assert.ts";
import { asTensor, type Datum } from "../core/datum.ts";
import { zeros, rowMajorStrides, sizeOf, tensor, type Tensor } from "../core/tensor.ts";
import type { TensorData } from "../core/dtype.ts";
import type { Dim } from "../core/dim.ts";
import { Graph, type Node, type Value } from "../graph/graph.ts";
import { atAxis } from "../ops/scan.ts";

/** Runs a subgraph on its inputs, with the values around it as they are. */
export type RunGraph = (graph: Graph, inputs: readonly Datum[]) => Datum[];
/** A size, where it is known outside the body. */
export type KnownSize = (d: Dim) => number | undefined;
type Inputs = readonly (Datum | undefined)[];

export function runIf(node: Node, [condition]: Inputs, run: RunGraph): Datum[] {
  const taken = truth(present(condition, "the condition"));
  return run(graphOf(node, taken ? "then_branch" : "else_branch"), []);
}

export function runLoop(node: Node, [limit, condition, ...initial]: Inputs, run: RunGraph, known: KnownSize): Datum[] {
  const body = graphOf(node, "body");
  const trips = limit ? Number(asTensor(limit).data[0]) : Infinity;
  let carried = initial.map((d) => there(d, "a carried value"));
  let going = condition ? truth(condition) : true;
  const stacked = body.outputs.slice(1 + carried.length).map((): Tensor[] => []);
  for (let i = 0; i < trips && going; i++) {
    const [next, ...rest] = run(body, [tensor("int64", [], BigInt64Array.of(BigInt(i))), tensor("bool", [], Uint8Array.of(1)), ...carried]);
    going = truth(present(next, "the next condition"));
    carried = rest.slice(0, carried.length);
    stacked.forEach((slices, s) => slices.push(asTensor(there(rest[carried.length + s], "a stacked slice"))));
  }
  return [...carried, ...stacked.map((slices, s) => stack(slices, 0, present(body.outputs[1 + carried.length + s], "a body result"), known))];
}

export function runScan(node: Node, inputs: Inputs, run: RunGraph, known: KnownSize): Tensor[] {
  const body = graphOf(node, "body");
  const count = Number(node.attributes["num_scan_inputs"]);
  const all = inputs.map((t) => asTensor(there(t, "an input of Scan")));
  let states = all.slice(0, all.length - count);
  const scanned = all.slice(states.length);
  const inputAxes = scanned.map((t, i) => atAxis(listed(node, "scan_input_axes", i), t.dims.length));
  const length = scanned[0]?.dims[inputAxes[0] ?? 0] ?? 0;
  const stacked = body.outputs.slice(states.length).map((): Tensor[] => []);
  for (let step = 0; step < length; step++) {
    const slices = scanned.map((t, i) => sliceAt(t, inputAxes[i] ?? 0, listed(node, "scan_input_directions", i) === 1 ? length - 1 - step : step));
    const results = run(body, [...states, ...slices]);
    states = results.slice(0, states.length).map((d) => asTensor(d));
    stacked.forEach((list, i) => {
      const slice = asTensor(there(results[states.length + i], "a stacked slice"));
      if (listed(node, "scan_output_directions", i) === 1) list.unshift(slice); else list.push(slice);
    });
  }
  return [...states, ...stacked.map((list, i) => stack(list, listed(node, "scan_output_axes", i), present(body.outputs[states.length + i], "a body result"), known))];
}

function graphOf(node: Node, name: string): Graph {
  const graph = node.attributes[name];
  invariant(graph instanceof Graph, `${node.name} has no subgraph ${name}`);
  return graph;
}

const truth = (d: Datum): boolean => asTensor(d, "a condition").data[0] !== 0;

/** The value; null is one, undefined none. */
function there(d: Datum | undefined, what: string): Datum {
  invariant(d !== undefined, `${what} is missing`);
  return d;
}

/** Element `i` of an optional list attribute; 0 where there is none. */
function listed(node: Node, name: string, i: number): number {
  const list = node.attributes[name];
  return Array.isArray(list) ? Number(list[i] ?? 0) : 0;
}

function sliceAt(t: Tensor, axis: number, index: number): Tensor {
  const inner = rowMajorStrides(t.dims)[axis] ?? 1;
  const out = zeros(t.dtype, t.dims.toSpliced(axis, 1));
  const step = inner * (t.dims[axis] ?? 1);
  copyBlocks(out, t, inner, (block) => block * step + index * inner, (block) => block * inner, sizeOf(out.dims) / Math.max(1, inner));
  return out;
}

/** Slices joined along a new axis. Without slices, the sizes are those the body's type gives, 0 where only running it could tell. */
function stack(slices: readonly Tensor[], axis: number, result: Value, known: KnownSize): Tensor {
  const dims = slices[0]?.dims ?? result.type.shape.map((d) => known(d) ?? 0);
  const at = atAxis(axis, dims.length + 1);
  const out = zeros(result.type.dtype, dims.toSpliced(at, 0, slices.length));
  const inner = sizeOf(dims.slice(at));
  slices.forEach((slice, s) => {
    invariant(slice.dims.every((d, i) => d === dims[i]), `slices of '${result.name}' differ in shape`);
    copyBlocks(out, slice, inner, (block) => block * inner, (block) => (block * slices.length + s) * inner, sizeOf(dims) / Math.max(1, inner));
  });
  return out;
}

function copyBlocks(to: Tensor, from: Tensor, length: number, source: (block: number) => number, target: (block: number) => number, blocks: number): void {
  const write = to.data as { -readonly [K in keyof TensorData]: TensorData[K] } & { [i: number]: TensorData[number] };
  for (let block = 0; block < blocks; block++)
    for (let i = 0; i < length; i++) write[target(block) + i] = from.data[source(block) + i] ?? 0;
}
