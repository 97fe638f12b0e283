/**
 * Node → NodeProto(s) of a model's own opset: as the operator spells itself there, or, where that opset lacks it or
 * cannot spell the node, as the other operators that say the same.
 */
import { create } from "@bufbuild/protobuf";
import { present } from "../core/assert.ts";
import { fail } from "../core/diagnostic.ts";
import { Graph, type Node } from "../graph/graph.ts";
import { inferTypes, typeWithConstant } from "../graph/infer-node.ts";
import type { Attributes, AttributeSpec, AttributeValue, ExpandContext, OpDef, Spelling, SpellingInput, TypeInfo } from "../graph/op.ts";
import { KnownElements } from "../ops/known-elements.ts";
import { LayerNormalization } from "../ops/layer-normalization.ts";
import { writeAttribute } from "./attribute-proto.ts";
import { formerFloats, introducedAttributes, introducedOperands, introducedOperators, introducedTypes } from "./introduced.ts";
import { writeKnownElements } from "./known-elements-writer.ts";
import type { NamedInput, NodeSink } from "./node-sink.ts";
import { AttributeProto_AttributeType as Kind, AttributeProtoSchema, NodeProtoSchema, type AttributeProto, type NodeProto } from "./schema/onnx_pb.ts";

/** Writes a node of the graph. Fails with OF2080 where the opset can say it in no way, and own forms are not wanted. */
export function writeNode(node: Node, sink: NodeSink): void {
  const inputs = node.inputs.map((v): NamedInput | undefined => v && { name: v.name, type: typeWithConstant(v) });
  write(node.op, node.name, inputs, node.outputs.map((v) => v.name), node.outputs.map((v) => v.type), node.attributes, sink);
}

function write(op: OpDef, name: string, inputs: readonly (NamedInput | undefined)[], outputs: readonly string[], outputTypes: readonly TypeInfo[], attributes: Attributes, sink: NodeSink): void {
  if (op === KnownElements) return writeKnownElements(outputs[0] ?? "", outputTypes, name, sink, (next, ...rest) => write(next, sink.freshNode(`${name}_${next.type}`), ...rest, sink));
  const spelling = spell(op, inputs, outputTypes, attributes, sink);
  if (spelling) return sink.emit(nodeProto(op, spelling, name, outputs, sink));
  const context: ExpandContext = { inputs: inputs.map((i) => i?.name), inputTypes: inputs.map((i) => i?.type), outputs, outputTypes };
  const expansion = op.expand?.(context, attributes as Parameters<NonNullable<OpDef["expand"]>>[1]);
  if (!expansion && sink.ownForms) return sink.emit(nodeProto(op, ownForm(op, inputs, attributes), name, outputs, sink));
  if (!expansion) return unsayable(op, name, inputs.map((i) => i?.type), outputTypes, sink);
  writeExpansion(expansion, name, inputs, outputs, sink);
}

/** Says what the opset lacks, and what would have it. */
function unsayable(op: OpDef, name: string, inputs: readonly (TypeInfo | undefined)[], outputs: readonly TypeInfo[], { opsets }: NodeSink): never {
  const types = [...inputs, ...outputs], own = op.domain === "onnxfuse", opset = opsets.get(own ? "" : op.domain) ?? 1;
  const newest = Math.max(introducedOperators[op.type] ?? 1, ...types.map((t) => (t ? introducedTypes[t.dtype] ?? 1 : 1)), operandsSince(op.type, inputs, outputs));
  const since = own || op.domain !== "" || newest <= opset ? "" : `, which came with opset ${newest}`;
  const said = [...new Set(types.flatMap((t) => (t && t.dtype !== "float32" && t.dtype !== "int64" ? [t.dtype] : [])))].join(", ");
  const first = since ? `convert the model to opset ${newest} or newer` : own ? "leave the operators of this node unfused" : "convert the model to a newer opset";
  return fail("OF2080", `opset ${opset} cannot say ${op.type}${said ? ` of ${said}` : ""}${since}`, { place: { node: name }, hint: `${first}, or compile to an artifact, which needs no opset` });
}

/** Nodes over local names: those the expansion makes up become names of the model's. */
function writeExpansion(expansion: NonNullable<ReturnType<NonNullable<OpDef["expand"]>>>, name: string, inputs: readonly (NamedInput | undefined)[], outputs: readonly string[], sink: NodeSink): void {
  const local = new Map<string, NamedInput>();
  for (const input of inputs) if (input) local.set(input.name, input);
  for (const step of expansion) {
    const read = step.inputs.map((input): NamedInput | undefined => {
      if (input === undefined) return undefined;
      if (typeof input !== "string") return { name: sink.constant(input), type: { dtype: input.dtype, shape: input.dims, constant: input } };
      return present(local.get(input), `'${input}', which the expansion of '${name}' reads`);
    });
    const given = Object.entries(step.op.attributes).flatMap(([key, spec]): [string, AttributeValue | undefined][] => (spec.default === undefined ? [] : [[key, spec.default]]));
    const attributes = { ...Object.fromEntries(given), ...step.attributes };
    const types = inferTypes(step.op, read.map((r) => r?.type), attributes, step.outputs.length, { place: { node: name }, fresh: () => 1 });
    const names = step.outputs.map((output) => (outputs.includes(output) ? output : sink.fresh(`${name}_${output}`)));
    step.outputs.forEach((output, o) => { const type = types[o], own = names[o]; if (type && own !== undefined) local.set(output, { name: own, type }); });
    write(step.op, expansion.length === 1 ? name : sink.freshNode(`${name}_${step.op.type}`), read, names, types, attributes, sink);
  }
}

/** The node's spelling for the opsets, or undefined where they cannot say it. onnxruntime has LayerNormalization in every opset. */
function spell(op: OpDef, inputs: readonly (NamedInput | undefined)[], outputs: readonly TypeInfo[], attributes: Attributes, { opsets, runtime }: Pick<NodeSink, "opsets" | "runtime">): Spelling | undefined {
  if (op.domain === "onnxfuse") return undefined;
  const opset = opsets.get(op.domain) ?? 1;
  if (op.domain === "" && opset < (introducedOperators[op.type] ?? 1) && !(runtime === "onnxruntime" && op === LayerNormalization)) return undefined;
  if (op.domain === "" && [...inputs.map((i) => i?.type), ...outputs].some((t) => t && opset < (introducedTypes[t.dtype] ?? 1))) return undefined;
  if (op.domain === "" && opset < operandsSince(op.type, inputs.map((i) => i?.type), outputs)) return undefined;
  const own = ownForm(op, inputs, attributes);
  const written = op.write ? op.write(own, opset) : own;
  return written && withoutNewer(op, written, opset);
}

/** The node as the operator's definition has it. */
const ownForm = (op: OpDef, inputs: readonly (NamedInput | undefined)[], attributes: Attributes): Spelling => ({
  type: op.type, domain: op.domain, attributes,
  inputs: inputs.map((i): SpellingInput | undefined => i && { value: i.name, type: i.type, ...(i.type.constant ? { constant: i.type.constant } : {}) }),
});

/** The opset whose form of the operator takes these types. */
function operandsSince(type: string, inputs: readonly (TypeInfo | undefined)[], outputs: readonly TypeInfo[]): number {
  const since = introducedOperands[type];
  if (!since) return 1;
  const first = [inputs[0], outputs[0]].map((t) => (t && !t.container ? since[t.dtype] : undefined) ?? 1);
  const containers = [...inputs, ...outputs].map((t) => (t?.container && t.container.kind !== "map" && t.container.kind !== "tensor" ? since[t.container.kind] : undefined) ?? 1);
  return Math.max(...first, ...containers);
}

/** Leaves out attributes that came later than the opset, where they have their defaults; undefined where one does not. */
function withoutNewer(op: OpDef, spelling: Spelling, opset: number): Spelling | undefined {
  const introduced = spelling.domain === "" ? (introducedAttributes[spelling.type] ?? {}) : {};
  const kept: Record<string, AttributeValue> = {};
  for (const [name, value] of Object.entries(spelling.attributes)) {
    if (value === undefined) continue;
    if (opset >= (introduced[name] ?? 1)) kept[name] = value;
    else if (!isDefault(value, op.attributes[name]?.default)) return undefined;
  }
  return { ...spelling, attributes: kept };
}

const isDefault = (value: AttributeValue, standard: AttributeSpec["default"]): boolean =>
  value === standard || (Array.isArray(value) && Array.isArray(standard) && value.length === standard.length && value.every((x, i) => x === standard[i]));

function nodeProto(op: OpDef, spelling: Spelling, name: string, outputs: readonly string[], sink: NodeSink): NodeProto {
  const input = spelling.inputs.map((i) => (!i ? "" : "literal" in i ? sink.constant(i.literal) : i.value));
  while (input.at(-1) === "") input.pop();
  return create(NodeProtoSchema, {
    opType: spelling.type, domain: spelling.domain, name, input, output: [...outputs],
    attribute: Object.entries(spelling.attributes).flatMap(([key, value]) => (value === undefined ? [] : [attributeProto(op, spelling.type, key, value, sink)])),
  });
}

function attributeProto(op: OpDef, type: string, name: string, value: AttributeValue, sink: NodeSink): AttributeProto {
  if (value instanceof Graph) return create(AttributeProtoSchema, { name, type: Kind.GRAPH, g: sink.subgraph(value) });
  const former = formerFloats[type]?.includes(name) ? (Array.isArray(value) ? "floats" : "float") : undefined;
  return writeAttribute(name, value, op.attributes[name]?.type ?? former ?? (typeof value === "number" && !Number.isInteger(value) ? "float" : "int"));
}
