/** ValueInfoProto ↔ TypeInfo. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { fail, type Place } from "../core/diagnostic.ts";
import { formatDim, type Dim } from "../core/dim.ts";
import { dtypes } from "../core/dtype.ts";
import type { TypeInfo } from "../graph/op.ts";
import { type TensorShapeProto_DimensionSchema, ValueInfoProtoSchema, type ValueInfoProto } from "./schema/onnx_pb.ts";
import type { Symbols } from "./symbols.ts";
import { readDType } from "./tensor-proto.ts";

/** A declared type whose rank may be left open. */
export interface DeclaredType { readonly dtype: TypeInfo["dtype"]; readonly shape: readonly Dim[] | undefined }

/**
 * The type of a graph input. A size that is missing, 0 or negative is unknown, and gets a symbol named after the value
 * and the axis. Fails with OF2030 where the value is not a tensor.
 */
export function readType(info: ValueInfoProto, symbols: Symbols): DeclaredType {
  const place: Place = { value: info.name };
  const type = info.type?.value;
  if (type?.case !== "tensorType")
    return fail("OF2030", `'${info.name}' is ${kindName(type?.case)}, only tensors are supported`, { place });
  const dtype = readDType(type.value.elemType, place);
  const shape = type.value.shape?.dim.map((d, axis): Dim => {
    if (d.value.case === "dimValue" && d.value.value > 0n) return Number(d.value.value);
    if (d.value.case === "dimParam" && d.value.value !== "") return symbols.named(d.value.value);
    return symbols.fresh(`${info.name}_${axis}`);
  });
  return { dtype, shape };
}

function kindName(kind: string | undefined): string {
  switch (kind) {
    case undefined: return "of no type";
    case "sequenceType": return "a sequence";
    case "mapType": return "a map";
    case "optionalType": return "an optional";
    case "sparseTensorType": return "a sparse tensor";
    default: return "opaque";
  }
}

/** The declaration of a value; symbols keep their names, other symbolic sizes are written as text. */
export function writeType(name: string, type: TypeInfo): ValueInfoProto {
  const dim = type.shape.map((d): MessageInitShape<typeof TensorShapeProto_DimensionSchema> =>
    typeof d === "number" ? { value: { case: "dimValue", value: BigInt(d) } } : { value: { case: "dimParam", value: formatDim(d) } });
  return create(ValueInfoProtoSchema, { name, type: { value: { case: "tensorType", value: { elemType: dtypes[type.dtype].onnx, shape: { dim } } } } });
}
