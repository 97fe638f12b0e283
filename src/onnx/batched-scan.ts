/**
 * Scan as opset 8 had it: all that it is given and gives has a batch axis in front. It is read as a Scan over the batch
 * whose body is the Scan over the sequence that later opsets have.
 */
import { create } from "@bufbuild/protobuf";
import { fail } from "../core/diagnostic.ts";
import { domainOf, type Opsets } from "./operators.ts";
import { AttributeProto_AttributeType as Kind, AttributeProtoSchema, GraphProtoSchema, NodeProtoSchema, ValueInfoProtoSchema, type NodeProto, type ValueInfoProto } from "./schema/onnx_pb.ts";

/** Marks the node within, which has no batch axis any more; no file of opset 8 has overloads. */
const overSequence = "over-sequence";

export const isBatchedScan = (node: NodeProto, opsets: Opsets): boolean =>
  node.opType === "Scan" && domainOf(node.domain) === "" && opsets.get("") === 8 && node.overload !== overSequence;

/** The node over the batch. Fails with OF2060 where the sequences of a batch have lengths of their own. */
export function unbatchedScan(node: NodeProto, name: string): NodeProto {
  const [lengths, ...inputs] = node.input;
  if (lengths !== undefined && lengths !== "")
    fail("OF2060", "Scan of opset 8 with sequence_lens is not supported", { place: { node: name, value: lengths }, hint: "convert the model to a newer opset, and mask what lies behind the end of a sequence" });
  const own = (what: string, i: number): string => `${name}/${what}_${i}`;
  const attribute = node.attribute.map((a) => (a.name === "directions" ? { ...a, name: "scan_input_directions" } : a));
  const inner = create(NodeProtoSchema, {
    opType: "Scan", name: `${name}/sequence`, overload: overSequence, attribute,
    input: inputs.map((_, i) => own("input", i)), output: node.output.map((_, i) => own("output", i)),
  });
  const named = (list: readonly string[]): ValueInfoProto[] => list.map((n) => create(ValueInfoProtoSchema, { name: n }));
  const g = create(GraphProtoSchema, { name: `${name}/batch`, input: named(inner.input), node: [inner], output: named(inner.output) });
  return create(NodeProtoSchema, {
    opType: "Scan", name: node.name, overload: overSequence, input: inputs, output: node.output,
    attribute: [
      create(AttributeProtoSchema, { name: "num_scan_inputs", type: Kind.INT, i: BigInt(inputs.length) }),
      create(AttributeProtoSchema, { name: "body", type: Kind.GRAPH, g }),
    ],
  });
}
