/**
 * Graph → ONNX file that any runtime loads: in the opset the model came in, with the names, sizes and metadata it came
 * with. Regions may be written as model-local functions, whose bodies are the original operators; only then is the IR
 * version raised (to 8). Deterministic.
 */
import { create, toBinary } from "@bufbuild/protobuf";
import { present } from "../core/assert.ts";
import { byteLength, type Tensor } from "../core/tensor.ts";
import { subgraphs, type Graph, type Node, type Value } from "../graph/graph.ts";
import type { Region } from "../graph/region.ts";
import { checkLocation } from "./external-data.ts";
import { writeFunctions, type FunctionCall } from "./function-writer.ts";
import type { ModelInfo } from "./model-info.ts";
import { Names, nodeNames, symbolSources, valueNames } from "./names.ts";
import type { NodeSink } from "./node-sink.ts";
import { writeNode } from "./node-writer.ts";
import { nameNodes, orderNodes, readNames } from "./order.ts";
import { GraphProtoSchema, ModelProtoSchema, NodeProtoSchema, TensorProto_DataLocation, ValueInfoProtoSchema, type GraphProto, type ModelProto, type NodeProto, type TensorProto, type ValueInfoProto } from "./schema/onnx_pb.ts";
import { writeTensor } from "./tensor-proto.ts";
import { withSizeNames, writeType } from "./type-proto.ts";

export interface WriteOptions {
  /** Regions to write as functions of the domain `onnxfuse`; those of one node are written as that node. */
  readonly regions?: readonly Region[];
  /** The runtime that the file is for. Default: any. */
  readonly runtime?: "onnxruntime";
  /** For files to look at: nodes that no opset can say stand in their own form, under the operator's domain. */
  readonly ownForms?: true;
}

/** The model's bytes. Fails with OF2080 or OF2081 where the model's opset can say a node in no way. */
export function writeModel(graph: Graph, info: ModelInfo, options: WriteOptions = {}): Uint8Array {
  return toBinary(ModelProtoSchema, modelProto(graph, info, options));
}

/** A model and the files that are to lie beside it, by location. */
export interface ExternalModel { readonly model: Uint8Array; readonly files: Readonly<Record<string, Uint8Array>> }
export interface ExternalOptions {
  /** The file for all constants, or the folder for a file each. */
  readonly location: string;
  readonly each?: boolean;
  /** Smaller constants stay in the model. Default 1024. */
  readonly minimumBytes?: number;
}

/** As `writeModel`, with constants in files beside the model. */
export function writeModelWithExternalData(graph: Graph, info: ModelInfo, { location, each = false, minimumBytes = 1024 }: ExternalOptions, options: WriteOptions = {}): ExternalModel {
  checkLocation(location, {});
  const model = modelProto(graph, info, options);
  const outside = (model.graph?.initializer ?? []).filter((t) => t.rawData.byteLength >= minimumBytes);
  const files: Record<string, Uint8Array> = {};
  if (each) outside.forEach((t, i) => { const file = `${location}/${i}.bin`; files[file] = t.rawData; refer(t, file, 0); });
  else if (outside.length) files[location] = gather(outside, location);
  return { model: toBinary(ModelProtoSchema, model), files };
}

/** The tensors' bytes one after the other; each refers to its place in `location`. */
function gather(tensors: readonly TensorProto[], location: string): Uint8Array {
  let size = 0;
  const parts = tensors.map((t) => {
    const offset = Math.ceil(size / alignment) * alignment, bytes = t.rawData;
    size = offset + bytes.byteLength;
    refer(t, location, offset);
    return { offset, bytes };
  });
  const data = new Uint8Array(size);
  for (const { offset, bytes } of parts) data.set(bytes, offset);
  return data;
}
function refer(tensor: TensorProto, location: string, offset: number): void {
  const entries = { location, offset: String(offset), length: String(tensor.rawData.byteLength) };
  tensor.externalData = Object.entries(entries).map(([key, value]) => ({ $typeName: "onnx.StringStringEntryProto", key, value }));
  tensor.dataLocation = TensorProto_DataLocation.EXTERNAL;
  tensor.rawData = new Uint8Array();
}
/** So that the file can be mapped and viewed. */
const alignment = 64;

/** Functions exist since this IR version. */
const functionsSince = 8;
/** Before this IR version, initializers must be listed as inputs. */
const looseInitializersSince = 4;

/** The model as a message. */
export function modelProto(graph: Graph, info: ModelInfo, options: WriteOptions): ModelProto {
  const writer = new GraphWriter(graph, info, options);
  const calls = writeFunctions(graph, options.regions ?? [], (emit, constant) => ({ ...writer.sink(emit), constant }));
  const irVersion = calls.length ? Math.max(functionsSince, info.irVersion) : info.irVersion;
  const proto = writer.write(graph, calls, irVersion);
  const functions = [...new Set(calls.map((c) => c.function))];
  const opsets = new Map(info.opsets);
  for (const domain of [...writer.domains, ...functions.map((f) => f.domain)]) if (!opsets.has(domain)) opsets.set(domain, 1);
  const opsetImport = [...opsets].map(([domain, version]) => ({ domain, version: BigInt(version) }));
  for (const f of functions) f.opsetImport = opsetImport.map((o) => ({ $typeName: "onnx.OperatorSetIdProto", ...o }));
  return create(ModelProtoSchema, {
    irVersion: BigInt(irVersion),
    producerName: info.producerName, producerVersion: info.producerVersion, domain: info.domain, modelVersion: BigInt(info.modelVersion), docString: info.docString,
    metadataProps: Object.entries(info.metadata).map(([key, value]) => ({ key, value })),
    opsetImport, functions, graph: proto,
  });
}

class GraphWriter {
  readonly #info: ModelInfo;
  readonly #names: Names;
  readonly #nodeNames: Names;
  readonly #sources: ReturnType<typeof symbolSources>;
  /** Constants that writing made, shared by content where small. */
  readonly #made = new Map<string, TensorProto>();
  readonly domains = new Set<string>();

  readonly #options: Pick<WriteOptions, "runtime" | "ownForms">;

  constructor(graph: Graph, info: ModelInfo, { runtime, ownForms }: WriteOptions) {
    this.#options = { ...(runtime ? { runtime } : {}), ...(ownForms ? { ownForms } : {}) };
    this.#info = info;
    this.#names = new Names(valueNames(graph));
    this.#nodeNames = new Names(nodeNames(graph));
    this.#sources = symbolSources(graph);
  }

  sink(emit: (proto: NodeProto) => void): NodeSink {
    return {
      opsets: this.#info.opsets,
      ...this.#options,
      fresh: (hint) => this.#names.fresh(hint),
      freshNode: (hint) => this.#nodeNames.fresh(hint),
      constant: (tensor) => this.#constant(tensor),
      emit: (proto) => { this.domains.add(proto.domain); emit(proto); },
      subgraph: (graph) => this.#graph(graph, []),
      symbolSource: (name) => this.#sources.get(name),
    };
  }

  /** In a file of `irVersion`: an old one lists its constants as inputs, which a newer one would let callers replace. */
  write(graph: Graph, calls: readonly FunctionCall[], irVersion: number): GraphProto {
    const proto = this.#graph(graph, calls);
    proto.name = this.#info.name;
    const used = new Set(proto.node.flatMap(readNames));
    proto.initializer.push(...[...this.#made.values()].filter((t) => used.has(t.name)));
    for (const input of graph.inputs) if (input.default) proto.initializer.push(writeTensor(input.default, input.name));
    if (irVersion < looseInitializersSince) {
      const listed = new Set(proto.input.map((v) => v.name));
      const types = proto.initializer.filter((t) => !listed.has(t.name)).map(declaration);
      proto.input.push(...types);
    }
    return proto;
  }

  #graph(graph: Graph, calls: readonly FunctionCall[]): GraphProto {
    const nodes: NodeProto[] = [];
    const callOf = new Map(calls.flatMap((call) => call.nodes.map((node): [Node, FunctionCall] => [node, call])));
    const sink = this.sink((proto) => nodes.push(proto));
    for (const node of graph.nodes) {
      const call = callOf.get(node);
      if (!call) writeNode(node, sink);
      else if (call.nodes[0] === node) nodes.push(create(NodeProtoSchema, { opType: call.function.name, domain: call.function.domain, name: call.name, input: [...call.inputs], output: [...call.outputs] }));
    }
    const used = new Set([...nodes.flatMap(readNames), ...graph.outputs.map((v) => v.name)]);
    const constants = constantsOf(graph).filter((v) => used.has(v.name));
    const ordered = orderNodes(nameNodes(nodes), new Set(), () => true).map((n) => n.proto);
    const outputs = new Set(graph.outputs);
    const inside = new Set(ordered.flatMap((n) => n.output));
    return create(GraphProtoSchema, {
      name: graph.name, node: ordered,
      input: graph.inputs.map((v) => writeType(v.name, v.type)),
      output: graph.outputs.map((v) => withSizeNames(writeType(v.name, v.type), this.#info.outputSizes?.get(v.name))),
      initializer: constants.map((v) => writeTensor(present(v.constant, "a constant"), v.name)),
      valueInfo: graph.nodes.flatMap((n) => n.outputs).filter((v) => inside.has(v.name) && used.has(v.name) && !outputs.has(v)).map((v) => writeType(v.name, v.type)),
    });
  }

  #constant(tensor: Tensor): string {
    const key = byteLength(tensor) <= 1024 ? `${tensor.dtype}[${tensor.dims}]${Array.from(tensor.data as ArrayLike<unknown>).join()}` : `#${this.#made.size}`;
    const known = this.#made.get(key);
    if (known) return known.name;
    const name = this.#names.fresh("constant");
    this.#made.set(key, writeTensor(tensor, name));
    return name;
  }
}

function declaration(tensor: TensorProto): ValueInfoProto {
  const dim = tensor.dims.map((value) => ({ value: { case: "dimValue" as const, value } }));
  return create(ValueInfoProtoSchema, { name: tensor.name, type: { value: { case: "tensorType", value: { elemType: tensor.dataType, shape: { dim } } } } });
}

/** Constants of this graph that its nodes, its subgraphs or its results read, in order of use. */
function constantsOf(graph: Graph): Value[] {
  const read = (g: Graph): (Value | undefined)[] => [...g.nodes.flatMap((n) => [...n.inputs, ...subgraphs(n).flatMap(read)]), ...g.outputs];
  return [...new Set(read(graph))].filter((v): v is Value => v?.constant !== undefined && v.graph === graph);
}
