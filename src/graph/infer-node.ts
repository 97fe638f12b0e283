/**
 * Type inference of one node: checks the inputs' count against the operator's schema, fills in attribute defaults and
 * calls the operator's `infer`. Every pass and the reader infer through here, so they agree.
 */
import type { Agreement } from "../core/agreement.ts";
import { formatContainer } from "../core/container.ts";
import { fail, type Place } from "../core/diagnostic.ts";
import { dimMax, dimRange, formatDim, isExact, mostAxes, type Dim } from "../core/dim.ts";
import type { Tensor } from "../core/tensor.ts";
import { Graph, type Value } from "./graph.ts";
import { inferAnyRank, readsAnyRank } from "./infer-any-rank.ts";
import { isTypeAttribute, named, type AttributeSpec, type Attributes, type AttributeValue, type OpDef, type TypeInfo } from "./op.ts";

export interface InferNodeOptions {
  /** Where errors are reported. */
  readonly place: Place;
  /** A new symbol for a size that only running can tell. */
  readonly fresh: (hint: string) => Dim;
  /** Told of sizes that must agree when the model runs. */
  readonly agree?: (a: Dim, b: Dim, how: Agreement["how"]) => void;
}

/**
 * Output types of `op` on these inputs: `outputCount` of them (or more, where the operator always says more).
 * Fails with OF3001 (missing input), OF3002 (too many inputs), OF3003 (missing attribute), OF3004 (attribute of the
 * wrong kind), OF3013 (an element type that the operator does not take), OF3016 (a size that makes no sense), OF3019 (more outputs than the operator has), OF3017 (a sequence, optional or map where a tensor is wanted), or with what the operator itself reports. A symbolic size
 * that may come out below 0 must, when the model runs, agree with what is left of it at 0.
 */
export function inferNode(op: OpDef, inputs: readonly (Value | undefined)[], attributes: Attributes, outputCount: number, options: InferNodeOptions): readonly TypeInfo[] {
  return inferTypes(op, inputs.map((v) => v && typeWithConstant(v)), attributes, outputCount, options);
}

/** As `inferNode`, on types. */
export function inferTypes(op: OpDef, inputs: readonly (TypeInfo | undefined)[], attributes: Attributes, outputCount: number, options: InferNodeOptions): readonly TypeInfo[] {
  const { place, fresh, agree } = options;
  checkInputs(op, inputs, place);
  if (!op.anyRank && readsAnyRank(inputs))
    return inferAnyRank(inputs, (ranked, local) => inferTypes(op, ranked, attributes, outputCount, { place, fresh: local }), fresh);
  if (!op.containers) for (const type of inputs) if (type?.container) fail("OF3017", `${op.type} takes tensors, not a ${formatContainer(type.container)}`, { place });
  for (const type of inputs) if (type?.rank !== undefined) fail("OF3104", `${op.type} reads a value whose rank hangs on sizes`, { place, hint: "give the shapes of the model's inputs when compiling" });
  checkTypes(op, inputs, place);
  const complete = completeAttributes(op, attributes, place);
  const types = op.infer(named(op, inputs), complete as Parameters<OpDef["infer"]>[1], {
    fresh,
    ...(agree ? { agree } : {}),
    outputCount,
    fail: (code, message, hint) => fail(code, `${op.type}: ${message}`, { place, ...(hint === undefined ? {} : { hint }) }),
  });
  if (types.length < outputCount) fail("OF3019", `${op.type} has ${types.length} outputs here, ${outputCount} are used`, { place, hint: "check the node's outputs, and those of its subgraphs" });
  for (const { shape } of types) {
    if (shape.length > mostAxes) fail("OF3020", `${op.type}: its result would have ${shape.length} axes`, { place, hint: `tensors have at most ${mostAxes}` });
    const wrong = shape.find((d) => !isExact(d) || (typeof d === "number" && d < 0));
    if (wrong !== undefined) fail("OF3016", `${op.type}: its result would have the size ${formatDim(wrong)}`, { place, hint: "check the shapes and values that say its size" });
    if (agree) for (const d of shape) if (typeof d !== "number" && dimRange(d).lower < 0) agree(d, dimMax(d, 0), "equal");
  }
  return types.length > outputCount ? types.slice(0, outputCount) : types;
}

/** A value's type, with its elements when it is a constant. */
export const typeWithConstant = (value: Value): TypeInfo =>
  value.constant && !value.type.constant ? { ...value.type, constant: value.constant } : value.type;

function checkInputs(op: OpDef, inputs: readonly (unknown | undefined)[], place: Place): void {
  const schema = Object.entries(op.inputs);
  const variadic = schema.some(([, kind]) => kind === "variadic");
  if (!variadic && inputs.slice(schema.length).some((x) => x !== undefined))
    fail("OF3002", `${op.type} takes at most ${schema.length} inputs, got ${inputs.length}`, { place });
  schema.forEach(([name, kind], i) => {
    if (kind === "required" && inputs[i] === undefined) fail("OF3001", `${op.type} needs its input '${name}'`, { place });
  });
}

/** Element types that the operator fixes whatever its attributes say. */
function checkTypes(op: OpDef, inputs: readonly (TypeInfo | undefined)[], place: Place): void {
  const names = Object.keys(op.inputs), typeOf = (name: string): TypeInfo | undefined => inputs[names.indexOf(name)];
  for (const name of op.integers ?? []) {
    const type = typeOf(name);
    if (type && type.dtype !== "int64" && type.dtype !== "int32") fail("OF3013", `${op.type}: input '${name}' is ${type.dtype}, must be int64 or int32`, { place });
  }
  for (const group of op.oneType ?? []) {
    const [first, ...rest] = group.map(typeOf).filter((t) => t !== undefined), other = rest.find((t) => t.dtype !== first?.dtype);
    if (first && other) fail("OF3013", `${op.type}: inputs ${group.join(", ")} have different types, ${first.dtype} and ${other.dtype}`, { place, hint: "insert a Cast" });
  }
}

/** Attributes with defaults filled in, each of the kind its schema says. Those the schema does not know stay. */
export function completeAttributes(op: OpDef, attributes: Attributes, place: Place): Attributes {
  const out: Record<string, AttributeValue | undefined> = { ...attributes };
  for (const [name, spec] of Object.entries(op.attributes)) {
    const given = out[name];
    if (given === undefined) {
      if (spec.default !== undefined) out[name] = spec.default;
      else if (spec.required) fail("OF3003", `${op.type} needs its attribute '${name}'`, { place: { ...place, field: name } });
    } else if (!hasKind(given, spec.type)) {
      fail("OF3004", `${op.type}: attribute '${name}' must be of kind ${spec.type}, got ${kindOf(given)}`, { place: { ...place, field: name } });
    }
  }
  return out;
}

/** Whether an attribute value is of the kind a schema names. */
export function hasKind(value: AttributeValue, kind: AttributeSpec["type"]): boolean {
  switch (kind) {
    case "int": return typeof value === "number" && Number.isInteger(value);
    case "float": return typeof value === "number";
    case "string": return typeof value === "string";
    case "ints": return isList(value) && value.every((x) => typeof x === "number" && Number.isInteger(x));
    case "floats": return isList(value) && value.every((x) => typeof x === "number");
    case "strings": return isList(value) && value.every((x) => typeof x === "string");
    case "tensor": return isTensor(value);
    case "graph": return value instanceof Graph;
    case "type": return isTypeAttribute(value);
  }
}

const isList = (value: AttributeValue): value is readonly number[] | readonly string[] => Array.isArray(value);
const isTensor = (value: AttributeValue): value is Tensor => typeof value === "object" && !isList(value) && !(value instanceof Graph) && !isTypeAttribute(value);

function kindOf(value: AttributeValue): string {
  if (typeof value === "number") return Number.isInteger(value) ? "int" : "float";
  if (typeof value === "string") return "string";
  if (isList(value)) return value.length && typeof value[0] === "string" ? "strings" : "ints or floats";
  if (isTypeAttribute(value)) return "type";
  return value instanceof Graph ? "graph" : "tensor";
}
