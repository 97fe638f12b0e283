/**
 * Regions as model-local functions of the domain `onnxfuse`: the region's nodes are the body, what they read from
 * outside (constants too) are the inputs. A runtime that knows nothing of us inlines them.
 */
import { create } from "@bufbuild/protobuf";
import type { Tensor } from "../core/tensor.ts";
import { subgraphs, type Graph, type Node, type Value } from "../graph/graph.ts";
import type { Region } from "../graph/region.ts";
import { KnownElements } from "../ops/known-elements.ts";
import type { NodeSink } from "./node-sink.ts";
import { writeNode } from "./node-writer.ts";
import { AttributeProto_AttributeType as Kind, FunctionProtoSchema, NodeProtoSchema, type FunctionProto, type NodeProto } from "./schema/onnx_pb.ts";
import { writeTensor } from "./tensor-proto.ts";

/** The call that stands for a region's nodes. */
export interface FunctionCall {
  readonly function: FunctionProto;
  readonly name: string;
  readonly nodes: readonly Node[];
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
}

export const functionDomain = "onnxfuse";

type MakeSink = (emit: (proto: NodeProto) => void, constant: (tensor: Tensor) => string) => NodeSink;

/** One function and one call for each region of the main graph that has at least two nodes which a function may hold. */
export function writeFunctions(graph: Graph, regions: readonly Region[], makeSink: MakeSink): FunctionCall[] {
  const counts = new Map<string, number>();
  return regions.flatMap((region): FunctionCall[] => {
    const nodes = region.nodes.filter((n) => n.op !== KnownElements);
    if (region.execution !== "kernel" || nodes.length < 2 || nodes.some((n) => n.graph !== graph || subgraphs(n).length > 0)) return [];
    const index = counts.get(region.kind) ?? 0;
    counts.set(region.kind, index + 1);
    return [writeFunction(`${region.kind}_${index}`, nodes, makeSink)];
  });
}

function writeFunction(name: string, nodes: readonly Node[], makeSink: MakeSink): FunctionCall {
  const inside = new Set(nodes);
  const inputs = [...new Set(nodes.flatMap((n) => n.inputs))].filter((v): v is Value => v !== undefined && !(v.producer && inside.has(v.producer.node)));
  const outputs = nodes.flatMap((n) => n.outputs).filter((v) => v.resultOf.length > 0 || v.uses.some((u) => !inside.has(u.node)));
  const body: NodeProto[] = [];
  const sink: NodeSink = makeSink((proto) => body.push(proto), (tensor) => {
    const output = sink.fresh(`${name}_constant`);
    body.push(create(NodeProtoSchema, { opType: "Constant", name: output, output: [output], attribute: [{ name: "value", type: Kind.TENSOR, t: writeTensor(tensor) }] }));
    return output;
  });
  for (const node of nodes) writeNode(node, sink);
  const names = { inputs: inputs.map((v) => v.name), outputs: outputs.map((v) => v.name) };
  return {
    ...names, nodes, name: nodes[nodes.length - 1]?.name ?? name,
    function: create(FunctionProtoSchema, { name, domain: functionDomain, input: names.inputs, output: names.outputs, node: body }),
  };
}
