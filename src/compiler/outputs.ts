/** What a compilation gives as outputs: other values than the model's, and other element types. */
import { fail, nearestName } from "../core/diagnostic.ts";
import { dtypes, type DType } from "../core/dtype.ts";
import type { Graph, Value } from "../graph/graph.ts";
import { Cast, Identity } from "../ops/index.ts";

/**
 * Makes other values the graph's outputs: by the value's name, or as `node:index`. Fails with OF5001 where there is no
 * such value, or none is named.
 */
export function selectOutputs(graph: Graph, names: readonly string[]): void {
  if (names.length === 0) fail("OF5001", "no output is named", { place: { field: "outputs" }, hint: "name outputs of nodes, such as node:0" });
  const values = new Map([...graph.inputs, ...graph.nodes.flatMap((n) => n.outputs)].map((v) => [v.name, v]));
  const nodes = new Map(graph.nodes.map((n) => [n.name, n]));
  const find = (name: string): Value => {
    const [, node = "", index = ""] = /^(.+):(\d+)$/.exec(name) ?? [];
    return values.get(name) ?? nodes.get(node)?.outputs[Number(index)] ?? unknown(name, [...values.keys()]);
  };
  const chosen = names.map(find);
  const twice = chosen.find((v, i) => chosen.indexOf(v) !== i);
  if (twice) fail("OF5001", `'${twice.name}' is named twice`, { place: { field: "outputs" } });
  graph.setOutputs(chosen.map((v) => (v.producer ? v : identityOf(v, graph))));
}

function unknown(name: string, names: readonly string[]): never {
  const near = nearestName(name, names);
  return fail("OF5001", `the model has no value '${name}'`, { place: { field: "outputs" }, hint: near === undefined ? "name values, or outputs of nodes such as node:0" : `did you mean '${near}'?` });
}

/** A graph's input as its output. */
function identityOf(value: Value, graph: Graph): Value {
  const node = graph.insert({ op: Identity, inputs: [value], outputs: [value.type], outputNames: [`${value.name}_output`], name: `${value.name}_Identity`, origins: [value.name] });
  return node.outputs[0] ?? value;
}

/**
 * Casts outputs: all to one type, or those named to their own. Fails with OF5002 for an output that the model does not
 * have, or that cannot be cast.
 */
export function castOutputs(graph: Graph, types: DType | Readonly<Record<string, DType>>): void {
  const wanted = new Map(typeof types === "string" ? graph.outputs.map((v) => [v.name, types]) : Object.entries(types));
  for (const [name, dtype] of wanted) {
    if (!graph.outputs.some((v) => v.name === name)) fail("OF5002", `the model has no output '${name}'`, { place: { field: "outputTypes" }, hint: `its outputs are ${graph.outputs.map((v) => v.name).join(", ")}` });
    if (!Object.hasOwn(dtypes, dtype) || dtype === "string") fail("OF5002", `an output cannot be cast to '${dtype}'`, { place: { field: "outputTypes" } });
  }
  graph.setOutputs(graph.outputs.map((value) => {
    const dtype = wanted.get(value.name), { name } = value;
    if (dtype === undefined || dtype === value.type.dtype) return value;
    graph.rename(value, `${name}_${value.type.dtype}`);
    const { shape, rank } = value.type;
    if (rank !== undefined) fail("OF5002", `the output '${name}' cannot be cast: its rank hangs on sizes`, { place: { value: name, field: "outputTypes" }, hint: "give the shapes of the model's inputs" });
    const node = graph.insert({ op: Cast, inputs: [value], attributes: { to: dtypes[dtype].onnx }, outputs: [{ dtype, shape }], outputNames: [name], name: `${name}_Cast`, origins: value.producer?.node.origins ?? [name] });
    return node.outputs[0] ?? value;
  }));
}
