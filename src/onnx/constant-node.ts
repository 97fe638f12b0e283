/** Constant nodes, in each of the forms they were given over the opsets. */
import { fail, type Place } from "../core/diagnostic.ts";
import { tensor, type Tensor } from "../core/tensor.ts";
import { readAttribute } from "./attribute-proto.ts";
import type { ExternalFiles } from "./external-data.ts";
import type { AttributeProto } from "./schema/onnx_pb.ts";

interface NamedAttribute { readonly name: string; readonly proto: AttributeProto }

/** The tensor that a Constant node with this one value attribute stands for. */
export function readConstant(attributes: readonly NamedAttribute[], files: ExternalFiles, place: Place): Tensor {
  const given = attributes.filter((a) => a.name === "value" || a.name.startsWith("value_") || a.name === "sparse_value");
  const only = given[0];
  if (!only || given.length !== 1) return fail("OF2051", `a Constant has ${given.length} values instead of one`, { place });
  if (only.name === "sparse_value") return fail("OF2012", "sparse tensors are not supported", { place });
  if (only.name === "value_int") return tensor("int64", [], BigInt64Array.of(only.proto.i));
  if (only.name === "value_ints") return tensor("int64", [only.proto.ints.length], BigInt64Array.from(only.proto.ints));
  const value = readAttribute(only.proto, files, place);
  switch (only.name) {
    case "value": if (typeof value === "object" && "dtype" in value) return value; break;
    case "value_float": if (typeof value === "number") return tensor("float32", [], Float32Array.of(value)); break;
    case "value_floats": if (isNumbers(value)) return tensor("float32", [value.length], Float32Array.from(value)); break;
    case "value_string": if (typeof value === "string") return tensor("string", [], [value]); break;
    case "value_strings": if (Array.isArray(value)) return tensor("string", [value.length], value.map(String)); break;
  }
  return fail("OF2051", `a Constant's attribute '${only.name}' is of the wrong kind`, { place });
}

const isNumbers = (value: unknown): value is readonly number[] => Array.isArray(value) && value.every((x) => typeof x === "number");
