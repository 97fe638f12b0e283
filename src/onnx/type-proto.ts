/** ValueInfoProto ↔ TypeInfo. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { Container, ItemType } from "../core/container.ts";
import { fail, type Place } from "../core/diagnostic.ts";
import { formatDim, mostAxes, type Dim } from "../core/dim.ts";
import { dtypes } from "../core/dtype.ts";
import { containerType, itemOf } from "../graph/container-type.ts";
import type { TypeInfo } from "../graph/op.ts";
import { type TensorShapeProto_DimensionSchema, TypeProtoSchema, ValueInfoProtoSchema, type TypeProto, type ValueInfoProto } from "./schema/onnx_pb.ts";
import type { Symbols } from "./symbols.ts";
import { readDType } from "./tensor-proto.ts";

/** A declared type whose rank may be left open. */
export interface DeclaredType { readonly dtype: TypeInfo["dtype"]; readonly shape: readonly Dim[] | undefined; readonly container?: Container }

/**
 * The type of a graph input. A size that is missing, 0 or negative is unknown, and gets a symbol named after the value
 * and the axis. Fails with OF2030 where the value is neither a tensor nor a sequence, an optional or a map.
 */
export function readType(info: ValueInfoProto, symbols: Symbols): DeclaredType {
  const place: Place = { value: info.name };
  const type = info.type?.value;
  if (type?.case !== "tensorType") {
    const container = info.type && readContainer(info.type, place);
    if (!container) return fail("OF2030", `'${info.name}' is ${kindName(type?.case)}, which is not supported`, { place, hint: "values are tensors, sequences, optionals and maps" });
    return { ...containerType(container), container };
  }
  const dtype = readDType(type.value.elemType, place);
  const rank = type.value.shape?.dim.length ?? 0;
  if (rank > mostAxes) fail("OF3020", `'${info.name}' has ${rank} axes`, { place, hint: `tensors have at most ${mostAxes}` });
  const shape = type.value.shape?.dim.map((d, axis): Dim => {
    if (d.value.case === "dimValue" && d.value.value > 0n) return Number(d.value.value);
    if (d.value.case === "dimParam" && d.value.value !== "") return symbols.named(d.value.value);
    return symbols.fresh(`${info.name}_${axis}`);
  });
  return { dtype, shape };
}

/**
 * A declared sequence, optional or map; undefined where the type is none. Sizes of items that are not numbers are not
 * known: they may differ from item to item.
 */
export function readContainer(type: TypeProto, place: Place): Container | undefined {
  const { value } = type;
  switch (value.case) {
    case "sequenceType": return { kind: "sequence", item: readItem(value.value.elemType, place) };
    case "optionalType": return { kind: "optional", item: readItem(value.value.elemType, place) };
    case "mapType": return { kind: "map", key: readDType(value.value.keyType, place), item: readItem(value.value.valueType, place) };
    default: return undefined;
  }
}
/** The type of an item of a container. */
export function readItem(type: TypeProto | undefined, place: Place): ItemType {
  if (type?.value.case !== "tensorType") {
    const container = type && readContainer(type, place);
    if (!container) return fail("OF2030", `the items of '${place.value ?? ""}' are ${kindName(type?.value.case)}, which is not supported`, { place });
    return itemOf(containerType(container));
  }
  const { elemType, shape } = type.value.value;
  const dtype = readDType(elemType, place);
  return shape ? { dtype, shape: shape.dim.map((d) => (d.value.case === "dimValue" && d.value.value > 0n ? Number(d.value.value) : null)) } : { dtype };
}

function kindName(kind: string | undefined): string {
  switch (kind) {
    case undefined: return "of no type";
    case "sparseTensorType": return "a sparse tensor";
    default: return "opaque";
  }
}

/** The declaration of a value; symbols keep their names, other symbolic sizes are written as text, and no shape where ranks differ. */
export function writeType(name: string, type: TypeInfo): ValueInfoProto {
  return create(ValueInfoProtoSchema, { name, type: type.container ? writeContainer(type.container) : tensorProto(type.rank === undefined ? type : { dtype: type.dtype }) });
}

/** The declaration of an item of a container. */
export const writeItem = (item: ItemType): TypeProto => (item.container ? writeContainer(item.container) : tensorProto(item));

function tensorProto({ dtype, shape }: ItemType): TypeProto {
  const dim = shape?.map((d): MessageInitShape<typeof TensorShapeProto_DimensionSchema> =>
    d === null ? {} : typeof d === "number" ? { value: { case: "dimValue", value: BigInt(d) } } : { value: { case: "dimParam", value: formatDim(d) } });
  return create(TypeProtoSchema, { value: { case: "tensorType", value: { elemType: dtypes[dtype].onnx, ...(dim ? { shape: { dim } } : {}) } } });
}

/** The declaration of a sequence, an optional or a map. */
export function writeContainer(c: Container): TypeProto {
  const item = writeItem(c.item);
  switch (c.kind) {
    case "tensor": return item;
    case "sequence": return create(TypeProtoSchema, { value: { case: "sequenceType", value: { elemType: item } } });
    case "optional": return create(TypeProtoSchema, { value: { case: "optionalType", value: { elemType: item } } });
    case "map": return create(TypeProtoSchema, { value: { case: "mapType", value: { keyType: dtypes[c.key].onnx, valueType: item } } });
  }
}

/** Names of a declared tensor's sizes, by axis; undefined where a size has none. */
export function declaredSizes({ type }: ValueInfoProto): readonly (string | undefined)[] {
  if (type?.value.case !== "tensorType") return [];
  return (type.value.value.shape?.dim ?? []).map(({ value }) => (value.case === "dimParam" && value.value !== "" ? value.value : undefined));
}

/** Gives sizes that are not numbers the names that the model's own file has for them. */
export function withSizeNames(info: ValueInfoProto, names: readonly (string | undefined)[] | undefined): ValueInfoProto {
  const { type } = info;
  if (type?.value.case !== "tensorType") return info;
  type.value.value.shape?.dim.forEach((d, i) => { const name = names?.[i]; if (name !== undefined && d.value.case === "dimParam") d.value = { case: "dimParam", value: name }; });
  return info;
}
