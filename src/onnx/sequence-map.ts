/**
 * SequenceMap, read as the function that the standard defines it by: a Loop over the positions of the first sequence,
 * whose body takes the items at the position (and plain tensors as they are), runs the node's body, and inserts what
 * that gives into new sequences.
 */
import { create } from "@bufbuild/protobuf";
import { present } from "../core/assert.ts";
import { fail } from "../core/diagnostic.ts";
import { writeAttribute } from "./attribute-proto.ts";
import type { NamedNode } from "./order.ts";
import { nameNodes } from "./order.ts";
import { displayName, Scope, valueOf, type Body, type ReadState } from "./reading.ts";
import { AttributeProto_AttributeType as Kind, AttributeProtoSchema, GraphProtoSchema, NodeProtoSchema, ValueInfoProtoSchema, type AttributeProto, type GraphProto, type NodeProto } from "./schema/onnx_pb.ts";

const node = (opType: string, input: readonly string[], output: readonly string[], attribute: readonly AttributeProto[] = []): NodeProto =>
  create(NodeProtoSchema, { opType, input: [...input], output: [...output], attribute: [...attribute] });

/** Reads a SequenceMap called `name` into the body. Fails with OF2060 where its own body does not fit it. */
export function readSequenceMap(proto: NodeProto, map: GraphProto, name: string, body: Body, state: ReadState): void {
  const place = { node: name }, inputs = proto.input.filter((n) => n !== "");
  if (map.input.length !== inputs.length) fail("OF2060", `the body of SequenceMap takes ${map.input.length} inputs, the node feeds it ${inputs.length}`, { place });
  const isSequence = inputs.map((n) => valueOf(n, body, name).type.container?.kind === "sequence");
  if (!isSequence[0]) fail("OF2060", "the first input of SequenceMap is a sequence", { place });
  const own = (hint: string): string => `${name}/${hint}`;
  const results = map.output.map((o, i) => ({ from: o.name, start: own(`start_${i}`), before: own(`before_${i}`), after: own(`after_${i}`), to: proto.output[i] ?? "" }));
  const loop = create(GraphProtoSchema, {
    name: "body",
    input: [own("position"), own("going"), ...results.map((r) => r.before)].map((n) => create(ValueInfoProtoSchema, { name: n })),
    output: [own("going"), ...results.map((r) => r.after)].map((n) => create(ValueInfoProtoSchema, { name: n })),
    initializer: map.initializer,
    node: [
      ...map.input.map((formal, i) => (isSequence[i] ? node("SequenceAt", [inputs[i] ?? "", own("position")], [formal.name]) : node("Identity", [inputs[i] ?? ""], [formal.name]))),
      ...map.node,
      ...results.map((r) => node("SequenceInsert", [r.before, r.from], [r.after])),
    ],
  });
  const dtypes = map.output.map((o) => (o.type?.value.case === "tensorType" ? o.type.value.value.elemType : fail("OF2060", `result '${o.name}' of the body of SequenceMap is declared as no tensor`, { place })));
  const nodes = [
    node("SequenceLength", [inputs[0] ?? ""], [own("length")]),
    ...results.map((r, i) => node("SequenceEmpty", [], [r.start], [writeAttribute("dtype", dtypes[i] ?? 1, "int")])),
    node("Loop", [own("length"), "", ...results.map((r) => r.start)], results.map((r, i) => (r.to === "" ? own(`unused_${i}`) : r.to)), [create(AttributeProtoSchema, { name: "body", type: Kind.GRAPH, g: loop })]),
  ];
  const resultNames = new Map(results.flatMap((r): [string, string][] => (r.to === "" ? [] : [[r.to, displayName(r.to, body, state)]])));
  const inner: Body = { ...body, scope: new Scope(body.scope), resultNames };
  state.readNodes(nameNodes(nodes).map((n): NamedNode => ({ ...n, name: `${name}/${n.name}` })), inner, state);
  for (const { to } of results) if (to !== "") body.scope.set(to, present(inner.scope.get(to), "a result of SequenceMap"));
}
