/**
 * Models as plain data, for tests: written to real ONNX bytes, and scrambled into equal models (other names, another
 * topological order, commuted operands) to see that nothing depends on how a file happens to be written.
 */
import { create, toBinary } from "@bufbuild/protobuf";
import { AttributeProto_AttributeType as Kind, AttributeProtoSchema, ModelProtoSchema, NodeProtoSchema, ValueInfoProtoSchema, type AttributeProto, type ValueInfoProto } from "../../src/onnx/schema/onnx_pb.ts";
import { writeType } from "../../src/onnx/type-proto.ts";
import { containerType } from "../../src/graph/container-type.ts";
import { leafDType, type Container } from "../../src/core/container.ts";
import { writeTensor } from "../../src/onnx/tensor-proto.ts";
import { dtypes, type DType } from "../../src/core/dtype.ts";
import type { Tensor } from "../../src/core/tensor.ts";

export type AttributeSpec = number | { readonly float: number } | string | readonly number[] | { readonly floats: readonly number[] } | { readonly strings: readonly string[] } | Tensor | ModelSpec;
export interface NodeSpec {
  readonly type: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly name?: string;
  readonly domain?: string;
  readonly attributes?: Readonly<Record<string, AttributeSpec>>;
}
/** A size, or the name of a symbolic one. */
export interface ValueSpec {
  readonly dtype: DType;
  readonly dims: readonly (number | string)[];
  /** A sequence, an optional or a map, as `held` makes them. */
  readonly container?: Container;
}
export const held = (container: Container): ValueSpec => ({ dtype: leafDType(container), dims: [], container });
export interface ModelSpec {
  readonly opset: number;
  readonly ir?: number;
  /** Versions of other domains; 1 where not given. */
  readonly versions?: Readonly<Record<string, number>>;
  readonly inputs: Readonly<Record<string, ValueSpec>>;
  /** An output without a type has the one that inference gives it. */
  readonly outputs: Readonly<Record<string, ValueSpec | undefined>>;
  readonly initializers: Readonly<Record<string, Tensor>>;
  /** Initializers that are graph inputs too. */
  readonly overridable?: readonly string[];
  readonly nodes: readonly NodeSpec[];
}

const isTensor = (a: AttributeSpec): a is Tensor => typeof a === "object" && "dtype" in a;
const isModel = (a: AttributeSpec): a is ModelSpec => typeof a === "object" && "nodes" in a;

/** The model's protobuf bytes. */
export function modelBytes(spec: ModelSpec): Uint8Array {
  const domains = new Set(spec.nodes.map((n) => n.domain ?? "").filter((d) => d !== ""));
  return toBinary(ModelProtoSchema, create(ModelProtoSchema, {
    irVersion: BigInt(spec.ir ?? 8),
    producerName: "onnxfuse-test",
    opsetImport: [{ domain: "", version: BigInt(spec.opset) }, ...[...domains].map((domain) => ({ domain, version: BigInt(spec.versions?.[domain] ?? 1) }))],
    graph: graphOf(spec, "test"),
  }));
}

const graphOf = (spec: ModelSpec, name: string) => ({
  name,
  node: spec.nodes.map((n, i) => create(NodeProtoSchema, {
    opType: n.type, domain: n.domain ?? "", name: n.name ?? `${n.type}_${i}`, input: [...n.inputs], output: [...n.outputs],
    attribute: Object.entries(n.attributes ?? {}).map(([key, value]) => attributeOf(key, value)),
  })),
  input: [
    ...Object.entries(spec.inputs).map(([key, v]) => valueInfo(key, v)),
    ...(spec.overridable ?? []).map((key) => { const t = spec.initializers[key]; if (!t) throw new Error(`no initializer ${key}`); return valueInfo(key, t); }),
  ],
  output: Object.entries(spec.outputs).map(([key, v]) => (v ? valueInfo(key, v) : create(ValueInfoProtoSchema, { name: key }))),
  initializer: Object.entries(spec.initializers).map(([key, t]) => writeTensor(t, key)),
});

function attributeOf(name: string, a: AttributeSpec): AttributeProto {
  if (typeof a === "number") return create(AttributeProtoSchema, { name, type: Kind.INT, i: BigInt(a) });
  if (typeof a === "string") return create(AttributeProtoSchema, { name, type: Kind.STRING, s: new TextEncoder().encode(a) });
  if (Array.isArray(a)) return create(AttributeProtoSchema, { name, type: Kind.INTS, ints: a.map((x: number) => BigInt(x)) });
  if ("float" in a) return create(AttributeProtoSchema, { name, type: Kind.FLOAT, f: a.float });
  if ("floats" in a) return create(AttributeProtoSchema, { name, type: Kind.FLOATS, floats: [...a.floats] });
  if ("strings" in a) return create(AttributeProtoSchema, { name, type: Kind.STRINGS, strings: a.strings.map((s) => new TextEncoder().encode(s)) });
  if (isTensor(a)) return create(AttributeProtoSchema, { name, type: Kind.TENSOR, t: writeTensor(a, name) });
  if (isModel(a)) return create(AttributeProtoSchema, { name, type: Kind.GRAPH, g: graphOf(a, name) });
  throw new Error(`attribute ${name}`);
}

const valueInfo = (name: string, v: ValueSpec): ValueInfoProto => v.container ? writeType(name, containerType(v.container)) :
  create(ValueInfoProtoSchema, {
    name,
    type: { value: { case: "tensorType", value: {
      elemType: dtypes[v.dtype].onnx,
      shape: { dim: v.dims.map((d) => ({ value: typeof d === "number" ? { case: "dimValue" as const, value: BigInt(d) } : { case: "dimParam" as const, value: d } })) },
    } } },
  });

const commutative = new Set(["Add", "Mul", "Max", "Min", "Sum", "And", "Or", "Equal"]);

/** An equal model: nodes renamed and in a random topological order, interior values renamed, commutative operands swapped. */
export function scramble(spec: ModelSpec, random: () => number): ModelSpec {
  const keep = new Set([...Object.keys(spec.inputs), ...Object.keys(spec.outputs), ...Object.keys(spec.initializers), ""]);
  const names = new Map<string, string>();
  const rename = (v: string): string => {
    if (keep.has(v)) return v;
    const known = names.get(v) ?? `v${Math.floor(random() * 1e9)}_${names.size}`;
    names.set(v, known);
    return known;
  };
  const ready = new Set([...Object.keys(spec.inputs), ...Object.keys(spec.initializers), ""]);
  const left = [...spec.nodes];
  const nodes: NodeSpec[] = [];
  while (left.length) {
    const able = left.filter((n) => n.inputs.every((v) => ready.has(v)));
    const n = able[Math.floor(random() * able.length)];
    if (!n) throw new Error("the model has a cycle");
    left.splice(left.indexOf(n), 1);
    n.outputs.forEach((v) => ready.add(v));
    const inputs = commutative.has(n.type) && n.inputs.length === 2 && random() < 0.5 ? [...n.inputs].reverse() : n.inputs;
    nodes.push({ ...n, name: `n${Math.floor(random() * 1e9)}_${nodes.length}`, inputs: inputs.map(rename), outputs: n.outputs.map(rename) });
  }
  return { ...spec, nodes };
}
