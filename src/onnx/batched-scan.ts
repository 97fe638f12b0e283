/**
 * Scan as opset 8 had it: all that it is given and gives has a batch axis in front. It is read as a Scan over the batch
 * whose body is the Scan over the sequence that later opsets have. Where sequences have lengths of their own, the inner
 * body counts its steps, and from the end on keeps its states and gives zeros, as onnxruntime does; inputs that are
 * scanned backwards are turned around up to their length first.
 */
import { create } from "@bufbuild/protobuf";
import { fail } from "../core/diagnostic.ts";
import { dtypes } from "../core/dtype.ts";
import { fromNumbers } from "../core/tensor.ts";
import { writeAttribute } from "./attribute-proto.ts";
import { domainOf, type Opsets } from "./operators.ts";
import { AttributeProto_AttributeType as Kind, AttributeProtoSchema, GraphProtoSchema, NodeProtoSchema, ValueInfoProtoSchema, type AttributeProto, type GraphProto, type NodeProto, type ValueInfoProto } from "./schema/onnx_pb.ts";
import { writeTensor } from "./tensor-proto.ts";

/** Marks the node within, which has no batch axis any more; no file of opset 8 has overloads. */
const overSequence = "over-sequence";

export const isBatchedScan = (node: NodeProto, opsets: Opsets): boolean =>
  node.opType === "Scan" && domainOf(node.domain) === "" && opsets.get("") === 8 && node.overload !== overSequence;

const plain = (opType: string, input: readonly string[], output: string, attribute: readonly AttributeProto[] = []): NodeProto =>
  create(NodeProtoSchema, { opType, input: [...input], output: [output], attribute: [...attribute], name: output });
const values = (list: readonly string[]): ValueInfoProto[] => list.map((n) => create(ValueInfoProtoSchema, { name: n }));
const numberOf = (node: NodeProto, name: string): number => Number(node.attribute.find((a) => a.name === name)?.i ?? 0n);

/**
 * The nodes that stand for it, the one over the batch last. Fails with OF2060 where sequences with lengths of their own
 * give strings, which have no zeros.
 */
export function unbatchedScan(node: NodeProto, name: string): readonly NodeProto[] {
  const [lengths = "", ...inputs] = node.input, own = (what: string): string => `${name}/${what}`;
  const states = inputs.length - numberOf(node, "num_scan_inputs"), directions = node.attribute.find((a) => a.name === "directions")?.ints ?? [];
  const isTurned = (i: number): boolean => lengths !== "" && directions[i - states] === 1n;
  const scanned = inputs.map((x, i) => (isTurned(i) ? own(`turned_${i}`) : x));
  const turned = inputs.flatMap((x, i) => (isTurned(i) ? [plain("ReverseSequence", [x, lengths], own(`turned_${i}`), [writeAttribute("batch_axis", 0, "int"), writeAttribute("time_axis", 1, "int")])] : []));
  const kept = node.attribute.filter((a) => a.name !== "body" && a.name !== "directions"), body = node.attribute.find((a) => a.name === "body")?.g ?? fail("OF3003", "Scan needs its attribute 'body'", { place: { node: name, field: "body" } });
  const insides = inputs.map((_, i) => own(`input_${i}`)), results = node.output.map((_, i) => own(`output_${i}`)), length = own("length"), step = own("step");
  const inner = create(NodeProtoSchema, {
    opType: "Scan", name: own("sequence"), overload: overSequence,
    input: lengths === "" ? insides : [own("start"), ...insides], output: lengths === "" ? results : [own("steps"), ...results],
    attribute: [
      ...kept,
      ...(lengths === "" && directions.length ? [create(AttributeProtoSchema, { name: "scan_input_directions", type: Kind.INTS, ints: [...directions] })] : []),
      create(AttributeProtoSchema, { name: "body", type: Kind.GRAPH, g: lengths === "" ? body : untilLength(body, states, length, step, own, name) }),
    ],
  });
  const g = create(GraphProtoSchema, {
    name: own("batch"), input: values(lengths === "" ? insides : [...insides, length]), output: values(results), node: [inner],
    initializer: lengths === "" ? [] : [writeTensor(fromNumbers("int64", [], [0]), own("start"))],
  });
  const count = lengths === "" ? inputs.length : inputs.length + 1;
  return [...turned, create(NodeProtoSchema, {
    opType: "Scan", name: node.name, overload: overSequence, input: lengths === "" ? scanned : [...scanned, lengths], output: node.output,
    attribute: [create(AttributeProtoSchema, { name: "num_scan_inputs", type: Kind.INT, i: BigInt(count) }), create(AttributeProtoSchema, { name: "body", type: Kind.GRAPH, g })],
  })];
}

/** The body with a count of its steps as first state, which does nothing more from `length` on. */
function untilLength(body: GraphProto, states: number, length: string, step: string, own: (what: string) => string, name: string): GraphProto {
  const going = own("going"), one = own("one"), zero = own("zero"), before = body.input.slice(0, states);
  const chosen = body.output.map((o, i): { readonly name: string; readonly nodes: readonly NodeProto[] } => {
    const old = before[i], result = own(`chosen_${i}`);
    if (old) return { name: result, nodes: [plain("Where", [going, o.name, old.name], result)] };
    if (o.type?.value.case === "tensorType" && o.type.value.value.elemType === dtypes.string.onnx)
      fail("OF2060", "Scan of opset 8 with sequence_lens that stacks strings is not supported", { place: { node: name, value: o.name }, hint: "convert the model to a newer opset" });
    const nothing = own(`nothing_${i}`);
    return { name: result, nodes: [plain("CastLike", [zero, o.name], nothing), plain("Where", [going, o.name, nothing], result)] };
  });
  return create(GraphProtoSchema, {
    name: body.name, input: [...values([step]), ...body.input], output: values([own("next"), ...chosen.map((c) => c.name)]),
    initializer: [...body.initializer, writeTensor(fromNumbers("int64", [], [1]), one), writeTensor(fromNumbers("float32", [], [0]), zero)], sparseInitializer: body.sparseInitializer,
    node: [plain("Less", [step, length], going), plain("Add", [step, one], own("next")), ...body.node, ...chosen.flatMap((c) => c.nodes)],
  });
}
