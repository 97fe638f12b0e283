/**
 * Bodies of control flow. Branches of an If take no inputs; bodies of Loop and Scan get the types of what the node
 * feeds them, because files rarely declare these. A size that a body changes from one iteration to the next becomes a
 * symbol, and the body is read again with it, until sizes hold still.
 */
import { present } from "../core/assert.ts";
import { formatContainer, isUnranked, mapSizes, sameContainer, type Container } from "../core/container.ts";
import { fail, type DiagnosticError, type Place } from "../core/diagnostic.ts";
import { dtypes } from "../core/dtype.ts";
import { dimEqual, isStatic, symbolsOf, type Dim } from "../core/dim.ts";
import { tensor, zeros } from "../core/tensor.ts";
import { containerType, joinHeldTypes, unranked, withoutElements } from "../graph/container-type.ts";
import { Graph, subgraphs, type Value } from "../graph/graph.ts";
import type { Attributes, AttributeValue, TypeInfo } from "../graph/op.ts";
import { ConstantOfShape } from "../ops/fill.ts";
import { Optional } from "../ops/optional.ts";
import { SequenceEmpty } from "../ops/sequence.ts";
import { symbolsAround } from "../ops/loop.ts";
import { KnownElements, knownElements } from "../ops/known-elements.ts";
import { isTypeError, readOne } from "./assumptions.ts";
import { nameNodes } from "./order.ts";
import { displayName, readInitializers, require, Scope, valueOf, type Body, type ReadState } from "./reading.ts";
import type { GraphProto } from "./schema/onnx_pb.ts";
import { readType } from "./type-proto.ts";

interface SubgraphProto { readonly name: string; readonly proto: GraphProto; readonly body: Body }

/** The graphs among a node's attributes. */
export function readSubgraphs(type: string, node: string, inputs: readonly (Value | undefined)[], attributes: Attributes, graphs: readonly SubgraphProto[], state: ReadState): Record<string, AttributeValue> {
  if (type === "If") return readIf(node, graphs, state);
  const out: Record<string, AttributeValue> = {};
  for (const { name, proto, body } of graphs) out[name] = readBody(type, `${node}/${name}`, inputs, attributes, proto, body, state);
  return out;
}

/**
 * The branches of an If. Each is read under assumptions of its own. One whose types do not fit, while the other's do,
 * cannot run: it stops the run when it is taken.
 */
function readIf(node: string, graphs: readonly SubgraphProto[], state: ReadState): Record<string, AttributeValue> {
  const branches = graphs.map(({ name, proto, body }): { name: string; graph?: Graph; error?: DiagnosticError; around: Graph } => {
    try {
      return { name, around: body.graph, graph: readOne(state.assumptions, (assumptions) => tryReading(state, () => readOnce(`${node}/${name}`, [], proto, body, { ...state, assumptions })), discard) };
    } catch (error) {
      if (isTypeError(error)) return { name, around: body.graph, error };
      throw error;
    }
  });
  const model = branches.find((b) => b.graph)?.graph;
  return Object.fromEntries(branches.map(({ name, graph, error, around }) => {
    if (graph) return [name, graph];
    if (!model) throw error;
    return [name, impossible(`${node}/${name}`, model, error?.diagnostics[0]?.message ?? "its types do not fit", around)];
  }));
}

/** What `read` gives; leaves nothing behind when that fails. */
export function tryReading<T>(state: ReadState, read: () => T): T {
  const undo = checkpoint(state);
  try {
    return read();
  } catch (error) {
    undo();
    throw error;
  }
}

/** Takes apart what is read from here on: subgraphs, constants, names of nodes. */
function checkpoint(state: ReadState): () => void {
  const names = new Set(state.nodeTypes.keys()), subgraphs = state.subgraphs.length, constants = state.constants.length, warnings = state.warnings.length;
  return () => {
    state.subgraphs.splice(subgraphs).reverse().forEach(discard);
    for (const value of state.constants.splice(constants)) value.graph.removeConstant(value);
    for (const own of state.nodeTypes.keys()) if (!names.has(own)) state.nodeTypes.delete(own);
    state.warnings.length = warnings;
  };
}

/** A branch that stops the run; its results only have the types of the other branch's. */
function impossible(name: string, model: Graph, reason: string, around: Graph): Graph {
  const graph = new Graph(name, around);
  require(graph.addConstant(tensor("bool", [], Uint8Array.of(0)), `${name}/never`), true, reason, name, graph);
  graph.setOutputs(model.outputs.map(({ type }) => {
    const { dtype, shape, container } = type;
    if (isUnranked(type)) return graph.addConstant(zeros(dtype, [0]), `${name}/nothing`);
    if (container) return emptyContainer(container, type, name, graph);
    if (isStatic(shape)) return graph.addConstant(zeros(dtype, shape), `${name}/nothing`);
    const elements = { dtype: "int64" as const, shape: [shape.length], elements: shape };
    const sizes = graph.insert({ op: KnownElements, inputs: [], attributes: knownElements("int64", [shape.length], shape), outputs: [elements], name: `${name}/sizes`, origins: [name] });
    const fill = graph.insert({ op: ConstantOfShape, inputs: sizes.outputs, attributes: { value: zeros(dtype, [1]) }, outputs: [{ dtype, shape }], name: `${name}/fill`, origins: [name] });
    return present(fill.outputs[0], "a filled tensor");
  }));
  return graph;
}

/** A sequence without items, or an optional that holds nothing. */
function emptyContainer(container: Container, type: TypeInfo, name: string, graph: Graph): Value {
  const spec = container.kind === "sequence" ? { op: SequenceEmpty, attributes: { dtype: dtypes[type.dtype].onnx } }
    : container.kind === "optional" ? { op: Optional, attributes: { type: { valueType: container.item } } }
    : fail("OF2061", `a branch of ${name} would give a map, which has no empty form`, { place: { node: name } });
  return present(graph.insert({ ...spec, inputs: [], outputs: [type], name: `${name}/nothing`, origins: [name] }).outputs[0], "an empty container");
}

function readBody(type: string, name: string, inputs: readonly (Value | undefined)[], attributes: Attributes, proto: GraphProto, around: Body, state: ReadState): Graph {
  const place: Place = { node: name };
  const start = type === "Loop" ? loopInputs(inputs, place) : type === "Scan" ? scanInputs(inputs, attributes, place) : { types: [], carried: 0, first: 0 };
  if (type !== "Loop" && type !== "Scan") return readOnce(name, start.types, proto, around, state);
  if (proto.input.length !== start.types.length)
    fail("OF2060", `the body of ${type} takes ${proto.input.length} inputs, the node feeds it ${start.types.length}`, { place });
  let types = start.types;
  const changing = new Set<Dim>();
  for (;;) {
    const undo = checkpoint(state);
    const graph = readOnce(name, types, proto, around, state);
    const settled = settle(types, graph, { ...start, firstResult: type === "Loop" ? 1 : 0 }, changing, state, place);
    if (settled === types) return graph;
    undo();
    types = settled;
  }
}

interface BodyInputs { readonly types: readonly TypeInfo[]; /** Index of the first carried one. */ readonly first: number; readonly carried: number }

function plain(value: Value | undefined, place: Place): TypeInfo {
  if (!value) return fail("OF2060", "an input of control flow is missing", { place });
  return withoutElements(value.type);
}

/** Iteration number, condition, carried values. */
function loopInputs(inputs: readonly (Value | undefined)[], place: Place): BodyInputs {
  const carried = inputs.slice(2).map((v) => plain(v, place));
  return { types: [{ dtype: "int64", shape: [] }, { dtype: "bool", shape: [] }, ...carried], first: 2, carried: carried.length };
}

/** State values, then one slice of each scanned input. */
function scanInputs(inputs: readonly (Value | undefined)[], attributes: Attributes, place: Place): BodyInputs {
  const scanned = attributes["num_scan_inputs"];
  if (typeof scanned !== "number" || scanned < 1 || scanned > inputs.length)
    return fail("OF2060", "Scan needs its attribute 'num_scan_inputs'", { place });
  const axes = attributes["scan_input_axes"];
  const carried = inputs.length - scanned;
  const slices = inputs.slice(carried).map((value, i): TypeInfo => {
    const { dtype, shape, container } = plain(value, place);
    if (container) fail("OF2060", `Scan steps through tensors of known rank, not a ${formatContainer(container)}`, { place, hint: "use a Loop" });
    const given = Array.isArray(axes) ? Number(axes[i] ?? 0) : 0;
    const axis = given < 0 ? given + shape.length : given;
    if (axis < 0 || axis >= shape.length) fail("OF2060", `Scan cannot step along axis ${given} of an input of rank ${shape.length}`, { place });
    return { dtype, shape: shape.filter((_, d) => d !== axis) };
  });
  return { types: [...inputs.slice(0, carried).map((v) => plain(v, place)), ...slices], first: 0, carried };
}

/** Reads a body with inputs of these types. */
function readOnce(name: string, inputs: readonly TypeInfo[], proto: GraphProto, around: Body, state: ReadState): Graph {
  const graph = new Graph(name, around.graph);
  state.subgraphs.push(graph);
  const body: Body = { ...around, graph, scope: new Scope(around.scope), resultNames: new Map(), nested: true };
  proto.input.forEach((declared, i) => {
    const type = inputs[i] ?? declaredType(declared, state);
    body.scope.set(declared.name, graph.addInput(displayName(declared.name, body, state), type));
  });
  readInitializers(proto, body, state);
  state.readNodes(nameNodes(proto.node), body, state);
  graph.setOutputs(proto.output.map((v) => valueOf(v.name, body, name)));
  return graph;
}

function declaredType(declared: Parameters<typeof readType>[0], state: ReadState): TypeInfo {
  const { dtype, shape, container } = readType(declared, state.symbols);
  if (container) return containerType(container);
  return { dtype, shape: shape ?? fail("OF2031", `'${declared.name}' has no shape`, { place: { value: declared.name } }) };
}

/**
 * The types themselves when each carried value leaves the body as it came in; otherwise types with symbols (kept in
 * `changing`) where sizes differ, and tensors of any rank where ranks do.
 */
function settle(types: readonly TypeInfo[], graph: Graph, at: { first: number; carried: number; firstResult: number }, changing: Set<Dim>, state: ReadState, place: Place): readonly TypeInfo[] {
  let changed = false;
  const outer = new Set([...symbolsAround(graph, types)].filter((s) => ![...changing].some((d) => symbolsOf(d).has(s))));
  const next = types.map((type, i): TypeInfo => {
    if (i < at.first || i >= at.first + at.carried) return type;
    const result = graph.outputs[i - at.first + at.firstResult];
    const input = present(graph.inputs[i], "a body input");
    if (!result) return fail("OF2060", `the body gives no next value of '${input.name}'`, { place });
    if (type.container || result.type.container) {
      const joined = joinHeldTypes(type, withoutElements(result.type));
      if (!joined?.container) return fail("OF2061", `'${input.name}' enters the body as ${describe(type)} and leaves it as ${describe(result.type)}`, { place });
      const known = mapSizes(joined.container, (d) => ([...symbolsOf(d)].every((s) => outer.has(s)) ? d : null));
      if (type.container && sameContainer(known, type.container)) return type;
      changed = true;
      return containerType(known);
    }
    if (result.type.dtype !== type.dtype)
      fail("OF2061", `'${input.name}' enters the body as ${type.dtype} and leaves it as ${result.type.dtype}`, { place, hint: "values carried around a loop keep their type" });
    if (result.type.shape.length !== type.shape.length) {
      changed = true;
      return unranked(type.dtype);
    }
    const shape = type.shape.map((d, axis): Dim => {
      if (dimEqual(d, result.type.shape[axis] ?? -1) || changing.has(d)) return d;
      const size = state.symbols.fresh(`${input.name}_${axis}`);
      changing.add(size);
      changed = true;
      return size;
    });
    return { dtype: type.dtype, shape };
  });
  return changed ? next : types;
}

const describe = ({ dtype, shape, container }: TypeInfo): string => (container ? `a ${formatContainer(container)}` : `${dtype} of rank ${shape.length}`);

/** Takes a subgraph apart that nothing is to run. */
export function discard(graph: Graph): void {
  graph.setOutputs([]);
  for (const node of [...graph.nodes].reverse()) {
    for (const inner of subgraphs(node)) discard(inner);
    graph.erase(node);
  }
  for (let input = graph.inputs[0]; input; input = graph.inputs[0]) graph.removeInput(input);
}
