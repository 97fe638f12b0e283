/**
 * Damage to what a model says, in a file that is still whole: types, sizes, edges, attributes, names, nesting. Each
 * mutation changes one thing somewhere in the graph, its subgraphs or the model's functions.
 */
import { create, fromBinary, toBinary, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import {
  AttributeProto_AttributeType as Kind, AttributeProtoSchema, FunctionProtoSchema, GraphProtoSchema, NodeProtoSchema, StringStringEntryProtoSchema, TensorProto_DataLocation, TensorProtoSchema, TypeProtoSchema, ValueInfoProtoSchema,
  type AttributeProto, type GraphProto, type ModelProto, type NodeProto, type TensorProto, type TypeProto, type ValueInfoProto,
} from "../../src/onnx/schema/onnx_pb.ts";
import { writeTensor } from "../../src/onnx/tensor-proto.ts";
import type { Random } from "../../test/support/random.ts";

/** Changes the model in place; says what it did, or undefined where there is nothing to do it to. */
export type ModelMutation = (model: ModelProto, random: Random) => string | undefined;

const sizes = [0n, 1n, 2n, 3n, 7n, -1n, -2n, 65536n, 2n ** 31n - 1n, 2n ** 31n, 2n ** 32n, 2n ** 40n, 2n ** 53n, 2n ** 62n, -(2n ** 63n)] as const;
const integers = [...sizes, 4n, 5n, -3n, -100n, 100n, 1000n, 2n ** 63n - 1n, -(2n ** 31n)] as const;
const floats = [0, -0, 1, -1, 0.5, 1e-45, 1e30, -1e30, NaN, Infinity, -Infinity, 2 ** 31, 1e-10] as const;
const texts = ["", "\0", "x".repeat(100_000), "../../x", "ü\ud800", "__proto__", "constructor", "linear", "reverse", "NOTSET", "SAME_UPPER", "VALID", "ij,jk->ik", "-->", "..."] as const;
const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text);

/** A copy by way of bytes, as names may be no text that `clone` takes. */
const clone = <D extends DescMessage>(schema: D, of: MessageShape<D>): MessageShape<D> => fromBinary(schema, toBinary(schema, of), { recursionLimit: 100_000 });

type Body = Pick<GraphProto, "node">;
const isGraph = (body: Body): body is GraphProto => "initializer" in body;

/** The graph, the subgraphs in it however deep, and the bodies of functions. */
function bodiesOf(model: ModelProto): Body[] {
  const out: Body[] = model.graph ? [model.graph, ...model.functions] : [...model.functions];
  for (const body of out) for (const node of body.node) for (const a of node.attribute) { if (a.g) out.push(a.g); out.push(...a.graphs); }
  return out;
}
const pickOf = <T>(from: readonly T[], random: Random): T | undefined => (from.length ? random.pick(from) : undefined);
const graphOf = (model: ModelProto, random: Random): GraphProto | undefined => pickOf(bodiesOf(model).filter(isGraph), random);
const nodeOf = (model: ModelProto, random: Random): NodeProto | undefined => pickOf(pickOf(bodiesOf(model).filter((b) => b.node.length), random)?.node ?? [], random);
const attributeOf = (model: ModelProto, random: Random): AttributeProto | undefined => pickOf(bodiesOf(model).flatMap((b) => b.node.flatMap((n) => n.attribute)), random);
const tensorOf = (model: ModelProto, random: Random): TensorProto | undefined => {
  const small = random() < 0.7, all = bodiesOf(model).flatMap((b) => [...(isGraph(b) ? b.initializer : []), ...b.node.flatMap((n) => n.attribute.flatMap((a) => (a.t ? [a.t, ...a.tensors] : a.tensors)))]);
  const few = all.filter((t) => t.rawData.length + t.int64Data.length * 8 <= 128);
  return pickOf(small && few.length ? few : all, random);
};
const infoOf = (model: ModelProto, random: Random): ValueInfoProto | undefined => {
  const g = graphOf(model, random);
  return g && pickOf([...g.input, ...g.input, ...g.output, ...g.valueInfo.slice(0, 20)], random);
};
const valuesOf = (model: ModelProto): string[] => bodiesOf(model).flatMap((b) => [...b.node.flatMap((n) => n.output), ...(isGraph(b) ? [...b.input.map((i) => i.name), ...b.initializer.map((t) => t.name)] : [])]);
const tensorType = (type: TypeProto | undefined) => (type?.value.case === "tensorType" ? type.value.value : undefined);

/** The elements of a tensor's raw bytes or typed lists, some of them replaced. */
function spoilElements(t: TensorProto, random: Random): string | undefined {
  const value = random.pick(integers);
  if (t.int64Data.length) { t.int64Data[random.int(t.int64Data.length)] = value; return `an element of '${t.name}' is ${value}`; }
  if (t.dataType === 7 && t.rawData.length >= 8) {
    const raw = t.rawData.slice(), at = random.int(Math.floor(raw.length / 8)) * 8;
    new DataView(raw.buffer).setBigInt64(at, value, true);
    t.rawData = raw;
    return `an element of '${t.name}' is ${value}`;
  }
  if (t.dataType === 1 && t.rawData.length >= 4) {
    const raw = t.rawData.slice(), f = random.pick(floats);
    new DataView(raw.buffer).setFloat32(random.int(Math.floor(raw.length / 4)) * 4, f, true);
    t.rawData = raw;
    return `an element of '${t.name}' is ${f}`;
  }
  if (!t.rawData.length) return undefined;
  t.rawData = Uint8Array.from(t.rawData, (b) => (random() < 0.2 ? random.int(256) : b));
  return `bytes of '${t.name}' changed`;
}

/** A chain of Ifs, each in the branch of the one before, around the first output. */
function nest(model: ModelProto, random: Random): string | undefined {
  const { graph } = model, output = graph?.output[0];
  if (!graph || !output) return undefined;
  const depth = random.pick([2, 20, 90, 300]);
  const condition = create(TensorProtoSchema, { name: "nested_condition", dataType: 9, rawData: Uint8Array.of(1) });
  graph.initializer.push(condition);
  const inner = "nested_value";
  for (const n of graph.node) { n.output = n.output.map((o) => (o === output.name ? inner : o)); n.input = n.input.map((i) => (i === output.name ? inner : i)); }
  let node = create(NodeProtoSchema, { opType: "Identity", name: "nested_core", input: [inner], output: ["nested_0"] });
  for (let level = 1; level <= depth; level++) {
    const branch = create(GraphProtoSchema, { name: `b${level}`, node: [node], output: [create(ValueInfoProtoSchema, { name: `nested_${level - 1}` })] });
    const other = create(GraphProtoSchema, { name: `e${level}`, node: [create(NodeProtoSchema, { opType: "Identity", name: `other_${level}`, input: [inner], output: [`other_${level}`] })], output: [create(ValueInfoProtoSchema, { name: `other_${level}` })] });
    node = create(NodeProtoSchema, {
      opType: "If", name: `nested_if_${level}`, input: ["nested_condition"], output: [level === depth ? output.name : `nested_${level}`],
      attribute: [create(AttributeProtoSchema, { name: "then_branch", type: Kind.GRAPH, g: branch }), create(AttributeProtoSchema, { name: "else_branch", type: Kind.GRAPH, g: other })],
    });
  }
  graph.node.push(node);
  return `${depth} nested Ifs around '${output.name}'`;
}

/** Long chains of one operator behind the first output. */
function lengthen(model: ModelProto, random: Random): string | undefined {
  const { graph } = model, output = graph?.output[0];
  if (!graph || !output) return undefined;
  const length = random.pick([50, 200, 600]), opType = random.pick(["Relu", "Identity", "Neg", "Exp", "Transpose", "Add", "Concat", "Softmax"]);
  for (const n of graph.node) n.output = n.output.map((o) => (o === output.name ? "chained_0" : o));
  for (let i = 0; i < length; i++) graph.node.push(create(NodeProtoSchema, {
    opType, name: `chained_${i}`, input: opType === "Add" || opType === "Concat" ? [`chained_${i}`, `chained_${i}`] : [`chained_${i}`], output: [i === length - 1 ? output.name : `chained_${i + 1}`],
    attribute: opType === "Concat" ? [create(AttributeProtoSchema, { name: "axis", type: Kind.INT, i: 0n })] : [],
  }));
  return `${length} times ${opType} behind '${output.name}'`;
}

const respelled = (a: AttributeProto, random: Random): string => {
  switch (a.type) {
    case Kind.INT: a.i = random.pick(integers); return `= ${a.i}`;
    case Kind.FLOAT: a.f = random.pick(floats); return `= ${a.f}`;
    case Kind.STRING: a.s = random() < 0.2 ? Uint8Array.of(0xff, 0xc0, 0x80) : utf8(random.pick(texts)); return `= ${new TextDecoder().decode(a.s).slice(0, 20)}`;
    case Kind.INTS: {
      if (random() < 0.4) a.ints = random() < 0.5 ? a.ints.slice(1) : [...a.ints, random.pick(integers)];
      else if (a.ints.length) a.ints[random.int(a.ints.length)] = random.pick(integers);
      return `= [${a.ints.slice(0, 10).join(", ")}]`;
    }
    case Kind.FLOATS: a.floats = random() < 0.4 ? a.floats.slice(1) : a.floats.map((f) => (random() < 0.3 ? random.pick(floats) : f)); return "has other floats";
    case Kind.STRINGS: a.strings = random() < 0.4 ? a.strings.slice(1) : a.strings.map((s) => (random() < 0.4 ? utf8(random.pick(texts)) : s)); return "has other strings";
    case Kind.GRAPH: delete a.g; return "has no graph";
    default: delete a.t; return "has no value";
  }
};

export const modelMutations: Readonly<Record<string, ModelMutation>> = {
  retypeValue: (m, r) => { const i = infoOf(m, r), t = tensorType(i?.type); if (!i || !t) return undefined; t.elemType = r.int(28); return `'${i.name}' is of type ${t.elemType}`; },
  retypeTensor: (m, r) => { const t = tensorOf(m, r); if (!t) return undefined; t.dataType = r.int(28); return `tensor '${t.name}' is of type ${t.dataType}`; },
  untypeValue: (m, r) => { const i = infoOf(m, r); if (!i) return undefined; if (r() < 0.5) delete i.type; else { const t = tensorType(i.type); if (t) delete t.shape; } return `'${i.name}' says less of its type`; },
  retypeContainer: (m, r) => { const i = infoOf(m, r), elemType = i?.type; if (!i || !elemType) return undefined; i.type = create(TypeProtoSchema, { value: { case: r() < 0.5 ? "sequenceType" : "optionalType", value: { elemType } } }); return `'${i.name}' is a container`; },
  resizeValue: (m, r) => { const i = infoOf(m, r), d = pickOf(tensorType(i?.type)?.shape?.dim ?? [], r); if (!i || !d) return undefined; d.value = r() < 0.3 ? { case: "dimParam", value: r.pick(["N", "", "M", "a+b", "N-1", "N*N", "?"]) } : { case: "dimValue", value: r.pick(sizes) }; return `a size of '${i.name}' is ${String(d.value.value)}`; },
  rerankValue: (m, r) => { const i = infoOf(m, r), s = tensorType(i?.type)?.shape; if (!i || !s) return undefined; const [d] = s.dim; if (r() < 0.5 || !d) s.dim = s.dim.slice(1); else while (s.dim.length < r.pick([2, 4, 5, 9, 300])) s.dim.push(d); return `'${i.name}' is of rank ${s.dim.length}`; },
  resizeTensor: (m, r) => { const t = tensorOf(m, r); if (!t) return undefined; if (r() < 0.3) t.dims = r() < 0.5 ? [] : [...t.dims, r.pick(sizes)]; else if (t.dims.length) t.dims[r.int(t.dims.length)] = r.pick(sizes); return `tensor '${t.name}' is [${t.dims.join(", ")}]`; },
  reshapeTensor: (m, r) => { const t = tensorOf(m, r); if (!t) return undefined; t.dims = r() < 0.5 ? [t.dims.reduce((a, b) => a * b, 1n)] : r() < 0.5 ? [1n, ...t.dims] : [...t.dims].reverse(); return `tensor '${t.name}' is [${t.dims.join(", ")}]`; },
  emptyTensor: (m, r) => { const t = tensorOf(m, r); if (!t) return undefined; t.dims = [0n]; t.rawData = new Uint8Array(0); t.int64Data = []; t.floatData = []; t.int32Data = []; return `tensor '${t.name}' is empty`; },
  spoilTensor: (m, r) => { const t = tensorOf(m, r); return t && spoilElements(t, r); },
  spoilIntegers: (m, r) => { const t = pickOf(m.graph?.initializer.filter((i) => i.dataType === 7) ?? [], r); return t && spoilElements(t, r); },
  shortenTensor: (m, r) => { const t = tensorOf(m, r); if (!t) return undefined; t.rawData = t.rawData.slice(0, r.int(t.rawData.length + 1)); return `tensor '${t.name}' has ${t.rawData.length} bytes`; },
  externalise: (m, r) => {
    const t = tensorOf(m, r);
    if (!t) return undefined;
    const offset = String(r.pick(integers)), location = r.pick(["weights.bin", "missing.bin", "../up.bin", "/etc/passwd", "", "C:\\x", "http://x/y", "a/../../b"]);
    t.dataLocation = TensorProto_DataLocation.EXTERNAL;
    t.externalData = Object.entries({ location, ...(r() < 0.6 ? { offset } : {}), ...(r() < 0.4 ? { length: String(r.pick(integers)) } : {}) }).map(([key, value]) => create(StringStringEntryProtoSchema, { key, value }));
    return `tensor '${t.name}' lies in '${location}'`;
  },
  forgetTensor: (m, r) => { const g = graphOf(m, r); if (!g?.initializer.length) return undefined; const [gone] = g.initializer.splice(r.int(g.initializer.length), 1); return `tensor '${gone?.name}' is gone`; },
  overridable: (m, r) => { const g = graphOf(m, r), t = pickOf(g?.initializer ?? [], r); if (!g || !t) return undefined; g.input.push(create(ValueInfoProtoSchema, { name: t.name, type: { value: { case: "tensorType", value: { elemType: t.dataType, shape: { dim: t.dims.map((d) => ({ value: { case: "dimValue" as const, value: d } })) } } } } })); return `tensor '${t.name}' is an input too`; },
  feedInstead: (m, r) => { const g = m.graph, t = pickOf(g?.initializer ?? [], r); if (!g || !t) return undefined; g.initializer = g.initializer.filter((i) => i !== t); g.input.push(create(ValueInfoProtoSchema, { name: t.name, type: { value: { case: "tensorType", value: { elemType: t.dataType, shape: { dim: t.dims.map((d) => ({ value: { case: "dimValue" as const, value: d } })) } } } } })); return `tensor '${t.name}' is fed`; },
  dropInput: (m, r) => { const n = nodeOf(m, r); if (!n?.input.length) return undefined; if (r() < 0.5) n.input[r.int(n.input.length)] = ""; else n.input.splice(r.int(n.input.length), 1); return `'${n.name}' (${n.opType}) lacks an input`; },
  addInput: (m, r) => { const n = nodeOf(m, r), v = pickOf(valuesOf(m), r); if (!n || v === undefined) return undefined; for (let i = r.pick([1, 2, 40]); i > 0; i--) n.input.push(v); return `'${n.name}' (${n.opType}) has further inputs '${v}'`; },
  dangle: (m, r) => { const n = nodeOf(m, r); if (!n?.input.length) return undefined; n.input[r.int(n.input.length)] = r.pick(["nowhere", "__proto__", "toString", " "]); return `'${n.name}' reads what is not there`; },
  rewire: (m, r) => { const n = nodeOf(m, r), v = pickOf(valuesOf(m), r); if (!n?.input.length || v === undefined) return undefined; n.input[r.int(n.input.length)] = v; return `'${n.name}' (${n.opType}) reads '${v}'`; },
  loopBack: (m, r) => { const n = nodeOf(m, r), v = pickOf(n?.output ?? [], r); if (!n?.input.length || v === undefined) return undefined; n.input[r.int(n.input.length)] = v; return `'${n.name}' reads itself`; },
  dropOutput: (m, r) => { const n = nodeOf(m, r); if (!n?.output.length) return undefined; if (r() < 0.5) n.output[r.int(n.output.length)] = ""; else n.output.pop(); return `'${n.name}' (${n.opType}) lacks an output`; },
  addOutput: (m, r) => { const n = nodeOf(m, r); if (!n) return undefined; for (let i = r.pick([1, 2, 40]); i > 0; i--) n.output.push(`further_${i}`); return `'${n.name}' (${n.opType}) has further outputs`; },
  repeatOutput: (m, r) => { const n = nodeOf(m, r), v = pickOf(valuesOf(m), r); if (!n?.output.length || v === undefined) return undefined; n.output[r.int(n.output.length)] = v; return `'${n.name}' gives '${v}' again`; },
  removeNode: (m, r) => { const b = pickOf(bodiesOf(m).filter((x) => x.node.length), r); if (!b) return undefined; const [gone] = b.node.splice(r.int(b.node.length), 1); return `'${gone?.name}' (${gone?.opType}) is gone`; },
  bypassNode: (m, r) => { const b = pickOf(bodiesOf(m).filter((x) => x.node.length), r), n = pickOf(b?.node ?? [], r), [from = ""] = n?.input ?? [], [to] = n?.output ?? []; if (!b || !n || to === undefined) return undefined; b.node = b.node.filter((o) => o !== n); for (const o of b.node) o.input = o.input.map((i) => (i === to ? from : i)); return `'${n.name}' (${n.opType}) is bypassed`; },
  repeatNode: (m, r) => { const b = pickOf(bodiesOf(m).filter((x) => x.node.length), r), n = pickOf(b?.node ?? [], r); if (!b || !n) return undefined; b.node.push(clone(NodeProtoSchema, n)); return `'${n.name}' stands twice`; },
  retypeNode: (m, r) => { const n = nodeOf(m, r), o = nodeOf(m, r); if (!n || !o) return undefined; n.opType = r() < 0.6 ? r.pick(["Relu", "Add", "MatMul", "Conv", "Concat", "Reshape", "Slice", "Gather", "Loop", "If", "Shape", "Resize", "TopK", "LSTM", "Einsum", "Softmax", "ReduceSum", "Transpose", "Pad", "Tile", "Split", "Where", "Cast", "QuantizeLinear", "SequenceAt", "Constant", "Scan", "GRU", "Attention", "GridSample", "QLinearConv", "MultiHeadAttention", "GroupQueryAttention", "MatMulNBits", "TreeEnsembleRegressor"]) : r() < 0.5 ? o.opType : r.pick(texts); return `'${n.name}' is ${n.opType.slice(0, 20)}`; },
  redomain: (m, r) => { const n = nodeOf(m, r); if (!n) return undefined; n.domain = r.pick(["ai.onnx", "com.microsoft", "ai.onnx.ml", "nowhere", "onnxfuse", "local"]); return `'${n.name}' (${n.opType}) is of '${n.domain}'`; },
  reversion: (m, r) => { const o = pickOf(m.opsetImport, r); if (!o) return undefined; o.version = r.pick([1n, 6n, 7n, 9n, 11n, 13n, 18n, 21n, 23n, 26n, 27n, 0n, -1n, 2n ** 62n]); return `opset '${o.domain}' is ${o.version}`; },
  respellAttribute: (m, r) => { const a = attributeOf(m, r); return a && `attribute '${a.name}' ${respelled(a, r)}`; },
  retypeAttribute: (m, r) => { const a = attributeOf(m, r); if (!a) return undefined; a.type = r.pick([Kind.UNDEFINED, Kind.FLOAT, Kind.INT, Kind.STRING, Kind.TENSOR, Kind.GRAPH, Kind.FLOATS, Kind.INTS, Kind.STRINGS, Kind.TENSORS, Kind.SPARSE_TENSOR, Kind.TYPE_PROTO]); return `attribute '${a.name}' is of type ${a.type}`; },
  renameAttribute: (m, r) => { const a = attributeOf(m, r); if (!a) return undefined; a.name = r.pick([...texts, "axis", "axes", "perm", "body"]); return `an attribute is '${a.name.slice(0, 20)}'`; },
  dropAttribute: (m, r) => { const n = nodeOf(m, r); if (!n?.attribute.length) return undefined; const [gone] = n.attribute.splice(r.int(n.attribute.length), 1); return `'${n.name}' (${n.opType}) lacks '${gone?.name}'`; },
  addAttribute: (m, r) => { const n = nodeOf(m, r); if (!n) return undefined; const name = r.pick(["axis", "axes", "perm", "keepdims", "to", "pads", "strides", "group", "kernel_shape", "mode", "alpha", "value", "num_outputs", "dilations", "epsilon", "blocksize"]); n.attribute.push(r() < 0.5 ? create(AttributeProtoSchema, { name, type: Kind.INT, i: r.pick(integers) }) : create(AttributeProtoSchema, { name, type: Kind.INTS, ints: Array.from({ length: r.int(6) }, () => r.pick(integers)) })); return `'${n.name}' (${n.opType}) has '${name}' too`; },
  repeatAttribute: (m, r) => { const n = nodeOf(m, r), a = pickOf(n?.attribute ?? [], r); if (!n || !a) return undefined; n.attribute.push(a); return `'${n.name}' has '${a.name}' twice`; },
  referAttribute: (m, r) => { const a = attributeOf(m, r); if (!a) return undefined; a.refAttrName = r.pick(["axis", "alpha", "nowhere"]); return `attribute '${a.name}' refers to '${a.refAttrName}'`; },
  widenAttribute: (m, r) => { const a = pickOf(bodiesOf(m).flatMap((b) => b.node.flatMap((n) => n.attribute.filter((x) => x.type === Kind.INTS))), r); if (!a) return undefined; a.ints = Array.from({ length: r.pick([100, 10_000, 300_000]) }, () => 1n); return `attribute '${a.name}' has ${a.ints.length} elements`; },
  longName: (m, r) => { const n = nodeOf(m, r), long = "n".repeat(200_000); if (!n) return undefined; if (r() < 0.5) { n.name = long; return `a node of '${n.opType}' has a long name`; } const [old] = n.output; for (const b of bodiesOf(m)) for (const o of b.node) { o.input = o.input.map((i) => (i === old ? long : i)); o.output = o.output.map((i) => (i === old ? long : i)); } return `'${old}' has a long name`; },
  sameNames: (m, r) => { const b = pickOf(bodiesOf(m), r); if (!b) return undefined; for (const n of b.node) n.name = "same"; return "all nodes have one name"; },
  repeatInfo: (m, r) => { const g = graphOf(m, r); if (!g) return undefined; const list = r.pick([g.input, g.output, g.valueInfo]), i = pickOf(list, r); if (!i) return undefined; list.push(i); return `'${i.name}' is declared twice`; },
  forgetInfo: (m, r) => { const g = graphOf(m, r); if (!g) return undefined; const list = r.pick([g.input, g.output]); if (!list.length) return undefined; const [gone] = list.splice(r.int(list.length), 1); return `'${gone?.name}' is not declared`; },
  giveOther: (m, r) => { const g = graphOf(m, r), o = pickOf(g?.output ?? [], r), v = pickOf(valuesOf(m), r); if (!o || v === undefined) return undefined; o.name = v; return `the output is '${v}'`; },
  recurse: (m, r) => { const n = nodeOf(m, r); if (!n) return undefined; m.functions.push(create(FunctionProtoSchema, { name: n.opType, domain: n.domain, input: n.input.filter((i) => i !== ""), output: [...n.output], node: [clone(NodeProtoSchema, n)], opsetImport: m.opsetImport })); return `${n.opType} is a function of itself`; },
  swapBodies: (m, r) => { const graphs = bodiesOf(m).flatMap((b) => b.node.flatMap((n) => n.attribute.filter((a) => a.g))), a = pickOf(graphs, r), b = pickOf(graphs, r); if (!a?.g || !b?.g) return undefined; const g = a.g; a.g = b.g; b.g = clone(GraphProtoSchema, g); return "two bodies have changed places"; },
  shadow: (m, r) => { const g = graphOf(m, r), v = pickOf(valuesOf(m), r); if (!g || v === undefined) return undefined; g.initializer.push(writeTensor({ dtype: "float32", dims: [2], data: Float32Array.of(1, 2) }, v)); return `'${v}' is a tensor of a graph too`; },
  reverseNodes: (m, r) => { const b = pickOf(bodiesOf(m), r); if (!b) return undefined; b.node.reverse(); return "nodes stand in reverse"; },
  nest, lengthen,
};

/** One to three mutations, and what they did. */
export function mutateModel(model: ModelProto, random: Random): string {
  const done: string[] = [], names = Object.keys(modelMutations);
  for (let n = random.pick([1, 1, 1, 2, 3]); n > 0; n--) for (let tries = 0; tries < 20; tries++) {
    const name = random.pick(names), said = modelMutations[name]?.(model, random);
    if (said !== undefined) { done.push(`${name}: ${said}`); break; }
  }
  return done.join("; ");
}
