/** What a node is written through: names, constants, and the list it ends up in. */
import type { Tensor } from "../core/tensor.ts";
import type { Graph } from "../graph/graph.ts";
import type { TypeInfo } from "../graph/op.ts";
import type { Opsets } from "./operators.ts";
import type { GraphProto, NodeProto } from "./schema/onnx_pb.ts";

/** Where nodes are written to. */
export interface NodeSink {
  readonly opsets: Opsets;
  /** The runtime that the file is for, where it need not be any. */
  readonly runtime?: "onnxruntime";
  /** Nodes that the opsets cannot say are written in their own form. */
  readonly ownForms?: true;
  /** A value name that nothing else in the model has. */
  fresh(hint: string): string;
  /** A node name that nothing else in the model has. */
  freshNode(hint: string): string;
  /** The name under which a constant is to be read. */
  constant(tensor: Tensor): string;
  /** Takes a finished node. */
  emit(proto: NodeProto): void;
  subgraph(graph: Graph): GraphProto;
  /** Where a symbol's size can be read: a value of the graph and its axis. */
  symbolSource(symbol: string): { readonly value: string; readonly axis: number } | undefined;
}

/** A value as a node of the file names it. */
export interface NamedInput { readonly name: string; readonly type: TypeInfo }
