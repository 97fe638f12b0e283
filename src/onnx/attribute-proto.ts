/** AttributeProto ↔ attribute values, subgraphs apart (graph-reader and write handle those). */
import { create } from "@bufbuild/protobuf";
import { fail, type Place } from "../core/diagnostic.ts";
import type { EvaluateAttribute } from "../core/evaluate.ts";
import { isTypeAttribute, type AttributeSpec, type TypeAttribute } from "../graph/op.ts";
import type { ExternalFiles } from "./external-data.ts";
import { AttributeProto_AttributeType as Kind, AttributeProtoSchema, type AttributeProto } from "./schema/onnx_pb.ts";
import { readTensor, writeTensor } from "./tensor-proto.ts";
import { readItem, writeItem } from "./type-proto.ts";

/** The attribute's kind; files of early tools leave it out, then it is what is filled. */
export function attributeKind(a: AttributeProto): Kind {
  if (a.type !== Kind.UNDEFINED) return a.type;
  if (a.g) return Kind.GRAPH;
  if (a.t) return Kind.TENSOR;
  if (a.ints.length) return Kind.INTS;
  if (a.floats.length) return Kind.FLOATS;
  if (a.strings.length) return Kind.STRINGS;
  if (a.s.length) return Kind.STRING;
  return a.f !== 0 ? Kind.FLOAT : Kind.INT;
}

/** The value of any attribute but a graph. Fails with OF2012 (sparse) or OF2050 (a kind no supported operator has). */
export function readAttribute(a: AttributeProto, files: ExternalFiles, place: Place): EvaluateAttribute | TypeAttribute {
  const at: Place = { ...place, field: a.name };
  const kind = attributeKind(a);
  const text = new TextDecoder();
  switch (kind) {
    case Kind.INT: return Number(a.i);
    case Kind.FLOAT: return a.f;
    case Kind.STRING: return text.decode(a.s);
    case Kind.INTS: return a.ints.map(Number);
    case Kind.FLOATS: return a.floats;
    case Kind.STRINGS: return a.strings.map((s) => text.decode(s));
    case Kind.TENSOR: return a.t ? readTensor(a.t, files, at) : fail("OF2050", `attribute '${a.name}' has no tensor`, { place: at });
    case Kind.TYPE_PROTO: return a.tp ? { valueType: readItem(a.tp, at) } : fail("OF2050", `attribute '${a.name}' has no type`, { place: at });
    case Kind.SPARSE_TENSOR: case Kind.SPARSE_TENSORS: return fail("OF2012", "sparse tensors are not supported", { place: at });
    default: {
      const name = Object.entries(Kind).find(([, value]) => value === kind)?.[0] ?? String(kind);
      return fail("OF2050", `attribute '${a.name}' is of kind ${name}, which is not supported`, { place: at });
    }
  }
}

/** An attribute of the kind its schema says. */
export function writeAttribute(name: string, value: EvaluateAttribute | TypeAttribute, kind: AttributeSpec["type"]): AttributeProto {
  const text = new TextEncoder();
  if (typeof value === "number")
    return kind === "float" ? create(AttributeProtoSchema, { name, type: Kind.FLOAT, f: value }) : create(AttributeProtoSchema, { name, type: Kind.INT, i: toInt64(value) });
  if (typeof value === "string") return create(AttributeProtoSchema, { name, type: Kind.STRING, s: text.encode(value) });
  if (isTypeAttribute(value)) return create(AttributeProtoSchema, { name, type: Kind.TYPE_PROTO, tp: writeItem(value.valueType) });
  if ("dtype" in value) return create(AttributeProtoSchema, { name, type: Kind.TENSOR, t: writeTensor(value) });
  if (kind === "strings") return create(AttributeProtoSchema, { name, type: Kind.STRINGS, strings: value.map((s) => text.encode(String(s))) });
  if (kind === "floats") return create(AttributeProtoSchema, { name, type: Kind.FLOATS, floats: value.map(Number) });
  return create(AttributeProtoSchema, { name, type: Kind.INTS, ints: value.map((x) => toInt64(Number(x))) });
}

const largest = 2n ** 63n - 1n;
/** Numbers at or beyond 2^63 (a rounded INT64_MAX) become INT64_MAX. */
function toInt64(value: number): bigint {
  const exact = BigInt(Math.trunc(value));
  return exact > largest ? largest : exact < -largest - 1n ? -largest - 1n : exact;
}
