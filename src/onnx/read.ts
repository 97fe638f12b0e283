/**
 * ONNX file → Graph: the one entry for models from outside. Nothing in the file is believed before it is checked; what
 * is wrong is reported with a code, by name. Nodes arrive in their newest form with inferred types, in an order where
 * producers come first.
 */
import { present } from "../core/assert.ts";
import { formatContainer, isUnranked } from "../core/container.ts";
import { DiagnosticError, fail, nearestName, type Diagnostic } from "../core/diagnostic.ts";
import { formatShape, isSymbolic } from "../core/dim.ts";
import { containerType, joinHeldTypes } from "../graph/container-type.ts";
import { Graph, type Value } from "../graph/graph.ts";
import type { OpDef } from "../graph/op.ts";
import { Assumptions, isTypeError, readOne, readings, type Split } from "./assumptions.ts";
import { decodeModel } from "./decode.ts";
import { ExternalFiles, type ExternalData } from "./external-data.ts";
import { givenContainer, givenShape, givenSymbols, replacedShapes, storedShape, type GivenSizes } from "./given-shapes.ts";
import { readNodes } from "./graph-reader.ts";
import type { ModelInfo } from "./model-info.ts";
import { checkOperators, Operators, readOpsets } from "./operators.ts";
import { nameNodes } from "./order.ts";
import { readInitializers, Scope, valueOf, type Body, type ReadState } from "./reading.ts";
import type { GraphProto, ModelProto, ValueInfoProto } from "./schema/onnx_pb.ts";
import { discard, tryReading } from "./subgraph-reader.ts";
import type { Symbols } from "./symbols.ts";
import { readDType, readTensor } from "./tensor-proto.ts";
import { declaredSizes, readContainer, readType } from "./type-proto.ts";
import { joinVariants } from "./variants.ts";

export type ModelSource = Uint8Array | { readonly model: Uint8Array; readonly externalData?: ExternalData };

export interface ReadOptions extends GivenSizes {
  /** Initializers that are graph inputs too become constants. */
  readonly freezeInitializers?: boolean;
}

export interface ReadModel {
  readonly graph: Graph;
  readonly info: ModelInfo;
}

/** Initializers are constants in files older than this, although they are listed as inputs. */
const overridableSince = 4n;

/**
 * Reads a model with the given operators. Fails with OF20xx: all unknown operators and opsets in one error, else the
 * first thing that is wrong; with OF3xxx where an operator's types do not fit; or with OF2090 where ranks differ with
 * the sizes of inputs.
 */
export function readModel(source: ModelSource, operators: readonly OpDef[], options: ReadOptions = {}): ReadModel {
  const { model, externalData } = source instanceof Uint8Array ? { model: source, externalData: undefined } : source;
  const proto = decodeModel(model);
  const known = new Operators(operators, proto.functions);
  const { nodes } = checkOperators(proto, known);
  const files = new ExternalFiles(externalData);
  const reading: Reading = { proto, nodes, operators: known, files, options, replaced: replacedShapes(proto.graph, options) };
  try {
    const found = readings(undefined, (assumptions) => readUnder(reading, assumptions));
    return found.kind === "one" ? found.value : readVariants(reading, found);
  } catch (error) {
    throw isTypeError(error) && reading.replaced.length ? new DiagnosticError([...error.diagnostics, ...reading.replaced]) : error;
  }
}

interface Reading { readonly proto: ModelProto & { graph: GraphProto }; readonly nodes: number; readonly operators: Operators; readonly files: ExternalFiles; readonly options: ReadOptions; readonly replaced: readonly Diagnostic[] }

function readUnder(reading: Reading, assumptions: Assumptions): ReadModel {
  const { proto } = reading;
  const { state, body } = begin(reading, assumptions);
  readNodes(nameNodes(proto.graph.node), body, state);
  body.graph.setOutputs(readOutputs(proto.graph, body, state));
  checkDims(reading.options.dims ?? {}, state.symbols);
  return { graph: body.graph, info: infoOf(reading, state, 1) };
}

/** The model once for each combination of answers that fits. */
function readVariants(reading: Reading, split: Split<unknown>): ReadModel {
  const { proto } = reading;
  const { state, body } = begin(reading, new Assumptions());
  let variants = 0;
  const results = joinVariants(split, proto.graph.output.map((v) => v.name), state, (name, around, settled) => {
    variants++;
    const variant = readOne(settled, (assumptions) => tryReading(state, () => readVariant(name, around, body, proto.graph, { ...state, assumptions })), ({ graph }) => discard(graph));
    for (const [node, type] of variant.nodeTypes) if (!state.nodeTypes.has(node)) state.nodeTypes.set(node, type);
    return { graph: variant.graph, agreements: variant.agreements.values() };
  });
  body.graph.setOutputs(results);
  checkDims(reading.options.dims ?? {}, state.symbols);
  return { graph: body.graph, info: infoOf(reading, state, variants) };
}

/** The model's nodes in a subgraph that captures inputs and initializers. Its nodes are named as if there were no others. */
function readVariant(name: string, around: Graph, outer: Body, proto: GraphProto, shared: ReadState): Pick<ReadState, "nodeTypes" | "agreements"> & { readonly graph: Graph } {
  const graph = new Graph(name, around);
  shared.subgraphs.push(graph);
  const state: ReadState = { ...shared, main: graph, nodeTypes: new Map(), agreements: new Map() };
  const body: Body = { ...outer, graph, scope: new Scope(outer.scope), nested: true };
  readNodes(nameNodes(proto.node), body, state);
  graph.setOutputs(proto.output.map((info) => {
    const value = valueOf(info.name, body, "the graph's outputs");
    checkDeclared(info, value, state);
    return value;
  }));
  return { graph, nodeTypes: state.nodeTypes, agreements: state.agreements };
}

/** Where reading starts: a graph with the model's inputs and initializers. */
function begin({ proto, operators, files, options }: Reading, assumptions: Assumptions): { readonly state: ReadState; readonly body: Body } {
  const graph = new Graph(proto.graph.name === "" ? "main" : proto.graph.name);
  const state: ReadState = {
    operators, files, symbols: givenSymbols(proto.graph, options), mainNames: namesOf(proto.graph), nodeTypes: new Map(), warnings: [], agreements: new Map(), main: graph, assumptions, subgraphs: [], constants: [], readNodes,
  };
  const body: Body = {
    graph, scope: new Scope(), opsets: readOpsets(proto.opsetImport), prefix: "", references: new Map(), absent: new Set(), resultNames: new Map(), nested: false,
  };
  readInputs(proto, body, state, options);
  readInitializers(proto.graph, body, state);
  return { state, body };
}

const namesOf = (graph: GraphProto): ReadonlySet<string> =>
  new Set([...graph.input, ...graph.output, ...graph.initializer].map((v) => v.name).concat(graph.node.flatMap((n) => n.output)));

function readInputs(proto: ModelProto & { graph: GraphProto }, body: Body, state: ReadState, options: ReadOptions): void {
  const initializers = new Map(proto.graph.initializer.map((t) => [t.name, t]));
  const overridable = proto.irVersion >= overridableSince && !options.freezeInitializers;
  const seen = new Set<string>();
  for (const input of proto.graph.input) {
    if (seen.has(input.name)) fail("OF2021", `'${input.name}' is an input twice`, { place: { value: input.name } });
    seen.add(input.name);
    const initializer = initializers.get(input.name);
    if (initializer && !overridable) continue;
    const declared = readType(input, state.symbols);
    if (declared.container) {
      if (initializer) fail("OF2032", `initializer '${input.name}' is a tensor, but declared a ${formatContainer(declared.container)}`, { place: { value: input.name } });
      body.scope.set(input.name, body.graph.addInput(input.name, containerType(givenContainer(input.name, declared.container, options))));
      continue;
    }
    const stored = initializer && readTensor(initializer, state.files);
    const shape = stored ? storedShape(input, declared, stored, options) : givenShape(input, declared, state.symbols, options);
    body.scope.set(input.name, body.graph.addInput(input.name, { dtype: declared.dtype, shape }, stored));
  }
}

/** Refuses sizes for dimensions that the model does not have. */
function checkDims(dims: Readonly<Record<string, number>>, symbols: Symbols): void {
  for (const name of Object.keys(dims)) {
    if (symbols.asked.has(name)) continue;
    const near = nearestName(name, symbols.asked);
    fail("OF2072", `the model has no named dimension '${name}'`, { place: { field: "dims" }, hint: near !== undefined ? `did you mean '${near}'?` : symbols.asked.size ? `its dimensions are ${[...symbols.asked].slice(0, 10).join(", ")}` : "all its sizes are fixed" });
  }
}

/** What a file declares of a result must be true: its dtype, and as a warning its shape. */
function checkDeclared(info: ValueInfoProto, value: Value, state: ReadState): void {
  const { dtype, shape, container } = value.type;
  const declaredTensor = info.type?.value.case === "tensorType" ? info.type.value.value : undefined;
  if (isUnranked(value.type) && (!info.type?.value.case || (declaredTensor && (declaredTensor.elemType === 0 || readDType(declaredTensor.elemType, { value: info.name }) === dtype)))) return;
  const declaredContainer = info.type && readContainer(info.type, { value: info.name });
  if (container || declaredContainer) {
    const fits = !info.type?.value.case || (declaredContainer ? joinHeldTypes(value.type, containerType(declaredContainer)) : container?.kind === "optional") !== undefined;
    if (!fits) fail("OF2033", `output '${info.name}' is declared ${declaredContainer ? `a ${formatContainer(declaredContainer)}` : "a tensor"}, but is computed as ${container ? `a ${formatContainer(container)}` : dtype}`, { place: { value: info.name } });
    return;
  }
  const type = declaredTensor;
  if (!type) return;
  const declared = type.elemType === 0 ? dtype : readDType(type.elemType, { value: info.name });
  if (declared !== dtype) fail("OF2033", `output '${info.name}' is declared ${declared}, but is computed as ${dtype}`, { place: { value: info.name } });
  const sizes = type.shape?.dim.map((d) => (d.value.case === "dimValue" && d.value.value > 0n ? Number(d.value.value) : undefined));
  const differs = sizes && (sizes.length !== shape.length || sizes.some((d, i) => d !== undefined && !isSymbolic(shape[i] ?? d) && d !== shape[i]));
  if (differs) state.warnings.push({ code: "OF2034", message: `output '${info.name}' is declared [${sizes.map((d) => d ?? "?").join(", ")}], but is computed as ${formatShape(shape)}`, place: { value: info.name } });
}

/**
 * The graph's results under the names the file declares; a value that already has another name is passed on by an
 * Identity. Results are known by name: one that is listed twice is given once.
 */
function readOutputs(proto: GraphProto, body: Body, state: ReadState): Value[] {
  const outputs = new Map(proto.output.toReversed().map((info) => [info.name, info]));
  const listed = proto.output.filter((info) => outputs.get(info.name) === info);
  for (const info of proto.output) if (!listed.includes(info)) state.warnings.push({ code: "OF2035", message: `output '${info.name}' is listed twice: it is given once`, place: { value: info.name } });
  return listed.map((info) => {
    const { name } = info;
    const value = valueOf(name, body, "the graph's outputs");
    checkDeclared(info, value, state);
    if (value.name === name) return value;
    const identity = present(state.operators.operator("Identity", ""), "the operator Identity");
    const node = body.graph.insert({ op: identity, inputs: [value], outputs: [value.type], outputNames: [name], name: `${name}_Identity`, origins: value.producer?.node.origins ?? [name] });
    return present(node.outputs[0], "an Identity's output");
  });
}

/** A warning where ranks are not known: what reads such values has no kernels. */
function anyRanks(graphs: readonly Graph[]): Diagnostic[] {
  const open = graphs.flatMap((g) => [...g.inputs, ...g.nodes.flatMap((n) => n.outputs)]).filter((v) => isUnranked(v.type)), [first] = open;
  if (!first) return [];
  const more = open.length > 1 ? ` and of ${open.length - 1} more values` : "";
  return [{
    code: "OF2037", message: `the rank of '${first.name}'${more} is known only when the model runs: what reads them runs on the host, without kernels`,
    place: { value: first.name }, hint: "give the shape of the items of an input with --input_shape or --shape, or give all items one rank",
  }];
}

function infoOf({ proto, nodes, replaced }: Reading, state: ReadState, variants: number): ModelInfo {
  return {
    irVersion: Number(proto.irVersion),
    opsets: readOpsets(proto.opsetImport),
    producerName: proto.producerName, producerVersion: proto.producerVersion, domain: proto.domain,
    modelVersion: Number(proto.modelVersion), docString: proto.docString, name: proto.graph.name,
    metadata: Object.fromEntries(proto.metadataProps.map((m) => [m.key, m.value])),
    outputSizes: new Map(proto.graph.output.map((v) => [v.name, declaredSizes(v)])),
    originalNodes: nodes, variants, nodeTypes: state.nodeTypes, agreements: [...state.agreements.values()], warnings: [...new Map([...replaced, ...anyRanks([state.main, ...state.subgraphs]), ...state.warnings].map((w) => [JSON.stringify(w), w])).values()],
  };
}
