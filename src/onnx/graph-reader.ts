/**
 * GraphProto → Graph. Nodes are put in order, calls of model-local functions are replaced by the functions' bodies (as
 * names of values in scopes of their own), old spellings are brought to the newest form, and types are inferred on the
 * way. Values and nodes of the main graph keep their names; those of subgraphs and functions give way.
 */
import { present } from "../core/assert.ts";
import { fail } from "../core/diagnostic.ts";
import { dimEqual, formatDim } from "../core/dim.ts";
import { Graph, type Value } from "../graph/graph.ts";
import { inferNode } from "../graph/infer-node.ts";
import type { Attributes, AttributeValue, OpDef, Spelling, SpellingInput } from "../graph/op.ts";
import { attributeKind, readAttribute } from "./attribute-proto.ts";
import { isBatchedScan, unbatchedScan } from "./batched-scan.ts";
import { readConstant } from "./constant-node.ts";
import { readFlexAttention } from "./flex-attention.ts";
import type { NodeAgreement } from "../core/agreement.ts";
import { domainOf, isFlexAttention, isSequenceMap, readOpsets } from "./operators.ts";
import { addConstant, displayName, newConstant, readInitializers, require, Scope, valueOf, type Body, type GivenAttribute, type ReadState } from "./reading.ts";
import { nameNodes, orderNodes, subgraphProtos, type NamedNode } from "./order.ts";
import { AttributeProto_AttributeType as Kind, type AttributeProto, type FunctionProto, type GraphProto, type NodeProto } from "./schema/onnx_pb.ts";
import { readSequenceMap } from "./sequence-map.ts";
import { readSubgraphs } from "./subgraph-reader.ts";

/** Reads nodes, in an order of their own making, into the body. */
export function readNodes(nodes: readonly NamedNode[], body: Body, state: ReadState): void {
  for (const node of orderNodes(nodes, body.scope.names(), (name) => body.absent.has(name) || body.scope.get(name) !== undefined)) readNode(node, body, state);
}

function readNode(node: NamedNode, body: Body, state: ReadState): void {
  const { proto } = node;
  const callee = state.operators.function(proto);
  if (callee) return readCall(node, callee, body, state);
  if (isBatchedScan(proto, body.opsets)) {
    const nodes = unbatchedScan(proto, node.name);
    for (const [i, part] of nodes.entries()) readNode({ name: i < nodes.length - 1 ? part.name : node.name, proto: part }, body, state);
    return;
  }
  const name = nodeName(node, proto.opType, body, state);
  const attributes = givenAttributes(proto, name, body, state);
  if (proto.opType === "Constant" && domainOf(proto.domain) === "")
    return addConstant(readConstant(attributes, state.files, { node: name }), proto.output[0] ?? fail("OF3019", "Constant has an output, none is used", { place: { node: name } }), body, state);

  const inputs = withoutTrailing(proto.input.map((n) => (body.absent.has(n) ? "" : n)));
  const outputs = withoutTrailing(proto.output);
  const isIf = proto.opType === "If" && domainOf(proto.domain) === "";
  const condition = isIf && inputs[0] !== undefined ? valueOf(inputs[0], body, name) : undefined;
  const decision = condition && state.assumptions.decide(condition);
  if (decision) {
    if (decision.required) require(condition, decision.taken, `the branch of '${name}' hangs on them`, name, body.graph);
    return readBranches(attributes, decision.taken, outputs, name, body, state);
  }
  const written: Record<string, AttributeValue> = {};
  for (const a of attributes) if (!isGraph(a.proto)) written[a.name] = readAttribute(a.proto, state.files, { node: name });
  const graphs = attributes.filter((a) => isGraph(a.proto));
  if (isSequenceMap(proto)) return readSequenceMap(proto, graphs[0]?.proto.g ?? fail("OF3003", "SequenceMap needs its attribute 'body'", { place: { node: name, field: "body" } }), name, body, state);
  if (isFlexAttention(proto)) {
    const numberOf = (attribute: string): number | undefined => { const a = written[attribute]; return typeof a === "number" ? a : undefined; };
    return readFlexAttention({ name, inputs: inputs.map((n) => valueOf(n, body, name)), output: outputs[0] ?? fail("OF3019", "FlexAttention has an output, none is used", { place: { node: name } }), scale: numberOf("scale"), precision: numberOf("softmax_precision"), graphs }, body, state);
  }
  Object.assign(written, readSubgraphs(proto.opType, name, inputs.map((n) => (n === "" ? undefined : valueOf(n, body, name))), written,
    graphs.map((a) => ({ name: a.name, proto: a.proto.g ?? fail("OF2050", `attribute '${a.name}' has no graph`, { place: { node: name, field: a.name } }), body: { ...a.body, graph: body.graph } })), state));

  if (condition) state.assumptions.checkTypes(condition, Object.values(written).filter((a) => a instanceof Graph), name);
  const spelling = respell({
    type: proto.opType, domain: domainOf(proto.domain), attributes: written,
    inputs: inputs.map((n) => (n === "" ? undefined : spelledInput(n, valueOf(n, body, name)))),
  }, body, state, name);
  const { op } = spelling;
  const values = spelling.inputs.map((i, index) => {
    if (!i) return undefined;
    return "literal" in i ? newConstant(i.literal, `${name}_${Object.keys(op.inputs)[index] ?? index}`, body.graph, state) : valueOf(i.value, body, name);
  });
  const known = knownAttributes(op, spelling.attributes, name, state);
  const types = inferNode(op, values, known, outputs.length, { place: { node: name }, fresh: (hint) => state.symbols.fresh(`${name}_${hint}`), agree: (a, b, how) => noteAgreement({ a, b, how, node: name }, body, state) });
  const made = body.graph.insert({
    op, inputs: values, attributes: known, outputs: types, name, origins: [name],
    outputNames: outputs.map((n) => (n === "" ? undefined : displayName(n, body, state))),
  });
  outputs.forEach((n, i) => { if (n !== "") body.scope.set(n, present(made.outputs[i], "an output")); });
}

/** Keeps what is not plain: equal sizes always agree. A subgraph, which may never run, keeps its own. */
function noteAgreement(agreement: NodeAgreement, body: Body, state: ReadState): void {
  const { a, b, how } = agreement;
  if (dimEqual(a, b) || (how === "broadcast" && (a === 1 || b === 1))) return;
  if (body.graph !== state.main) { body.graph.agreements = [...body.graph.agreements, agreement]; return; }
  const key = `${formatDim(a)} ${how} ${formatDim(b)}`;
  if (!state.agreements.has(key)) state.agreements.set(key, agreement);
}

/** Reads the branch that an If takes in the place of the If; of the other one only names are kept. */
function readBranches(branches: readonly GivenAttribute[], taken: boolean, outputs: readonly string[], name: string, body: Body, state: ReadState): void {
  for (const branch of branches) {
    const graph = branch.proto.g;
    if (!graph) continue;
    if (branch.name !== (taken ? "then_branch" : "else_branch")) { noteUnread(graph, branch.body, state); continue; }
    const resultNames = new Map(graph.output.flatMap((v, i): [string, string][] => { const outside = outputs[i]; return outside ? [[v.name, displayName(outside, body, state)]] : []; }));
    const inner: Body = { ...branch.body, graph: body.graph, scope: new Scope(branch.body.scope), resultNames, nested: true };
    readInitializers(graph, inner, state);
    readNodes(nameNodes(graph.node), inner, state);
    graph.output.forEach((v, i) => { const outside = outputs[i]; if (outside) body.scope.set(outside, valueOf(v.name, inner, name)); });
  }
}

function noteUnread(graph: GraphProto, body: Body, state: ReadState): void {
  for (const node of nameNodes(graph.node)) {
    nodeName(node, node.proto.opType, body, state);
    for (const inner of subgraphProtos(node.proto.attribute)) noteUnread(inner, body, state);
  }
}

/** Replaces a call by the function's body. */
function readCall(node: NamedNode, callee: FunctionProto, body: Body, state: ReadState): void {
  const { proto, name } = node;
  const prefix = `${body.prefix}${name}/`;
  const scope = new Scope();
  const absent = new Set<string>();
  callee.input.forEach((formal, i) => {
    const actual = proto.input[i];
    if (actual === undefined || actual === "" || body.absent.has(actual)) absent.add(formal);
    else scope.set(formal, valueOf(actual, body, name));
  });
  const references = new Map(callee.attributeProto.map((a) => [a.name, { name: a.name, proto: a, body }]));
  for (const given of givenAttributes(proto, name, body, state)) references.set(given.name, given);
  const resultNames = new Map<string, string>();
  callee.output.forEach((formal, i) => {
    const actual = proto.output[i];
    if (actual !== undefined && actual !== "") resultNames.set(formal, displayName(actual, body, state));
  });
  const inner: Body = { graph: body.graph, scope, opsets: readOpsets(callee.opsetImport), prefix, references, absent, resultNames, nested: true };
  readNodes(nameNodes(callee.node), inner, state);
  callee.output.forEach((formal, i) => {
    const actual = proto.output[i];
    if (actual !== undefined && actual !== "") body.scope.set(actual, valueOf(formal, inner, name));
  });
}

/** What a node's attributes say. The last of those with one name counts, as for onnxruntime, and a warning says so. */
function givenAttributes(proto: NodeProto, name: string, body: Body, state: ReadState): GivenAttribute[] {
  const given = new Map<string, GivenAttribute>();
  for (const a of proto.attribute.flatMap((each) => resolve(each, body))) {
    if (given.has(a.name)) state.warnings.push({ code: "OF2053", message: `attribute '${a.name}' is given twice: the last one counts`, place: { node: name, field: a.name } });
    given.set(a.name, a);
  }
  return [...given.values()];
}

/** An attribute with its reference to the call's attributes followed; none where the call does not give it. */
function resolve(a: AttributeProto, body: Body): GivenAttribute[] {
  if (a.refAttrName === "") return [{ name: a.name, proto: a, body }];
  const given = body.references.get(a.refAttrName);
  return given ? [{ ...given, name: a.name }] : [];
}

const isGraph = (a: AttributeProto): boolean => attributeKind(a) === Kind.GRAPH;

const spelledInput = (name: string, value: Value): SpellingInput => ({ value: name, type: value.type, ...(value.constant ? { constant: value.constant } : {}) });

/** The node in the newest form, with the operator that then defines it (Upsample becomes Resize). */
function respell(node: Spelling, body: Body, state: ReadState, name: string): Spelling & { op: OpDef } {
  const opset = body.opsets.get(node.domain) ?? 1;
  const written = operatorOf(node, state, name);
  const spelling = written.read ? written.read(node, opset) : node;
  return { ...spelling, op: spelling.type === node.type && spelling.domain === node.domain ? written : operatorOf(spelling, state, name) };
}

function operatorOf(node: Spelling, state: ReadState, name: string): OpDef {
  return state.operators.operator(node.type, node.domain) ?? fail("OF2004", `operator ${node.type} is not supported`, { place: { node: name } });
}

/** Drops attributes that the operator does not know, with a warning. */
function knownAttributes(op: OpDef, attributes: Attributes, name: string, state: ReadState): Attributes {
  const known: Record<string, AttributeValue | undefined> = {};
  for (const [key, value] of Object.entries(attributes)) {
    if (Object.hasOwn(op.attributes, key)) known[key] = value;
    else if (value !== undefined) state.warnings.push({ code: "OF2052", message: `${op.type} has no attribute '${key}': it is ignored`, place: { node: name, field: key } });
  }
  return known;
}

function nodeName(node: NamedNode, type: string, body: Body, state: ReadState): string {
  const wanted = body.prefix + node.name;
  let name = wanted;
  for (let i = 1; state.nodeTypes.has(name); i++) name = `${wanted}_${i}`;
  state.nodeTypes.set(name, type);
  return name;
}

function withoutTrailing(names: readonly string[]): readonly string[] {
  let length = names.length;
  while (length > 0 && names[length - 1] === "") length--;
  return names.slice(0, length);
}
