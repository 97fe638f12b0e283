/**
 * Data sets of the standard's tests that are no tensors: SequenceProto and OptionalProto (onnx-data.proto), decoded by
 * the declared type of the value they are for.
 */
import { readFileSync } from "node:fs";
import { fromBinary } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import type { ItemType } from "../../src/core/container.ts";
import type { Datum } from "../../src/core/datum.ts";
import { ExternalFiles } from "../../src/onnx/external-data.ts";
import { TensorProtoSchema } from "../../src/onnx/schema/onnx_pb.ts";
import { readTensor } from "../../src/onnx/tensor-proto.ts";

/** Fields of both messages that hold tensors, sequences and optionals. */
const heldFields: ReadonlySet<number> = new Set([3, 5, 7]);

/** A value of the type from a file's bytes. */
export const readDatumFile = (file: string, type: ItemType): Datum => decode(readFileSync(file), type);

function decode(bytes: Uint8Array, { container }: ItemType): Datum {
  if (!container) return readTensor(fromBinary(TensorProtoSchema, bytes), new ExternalFiles(undefined));
  if (container.kind === "map") throw new Error("data sets with maps are not read");
  const held = heldIn(bytes).map((value) => decode(value, container.item));
  return container.kind === "sequence" ? held : held[0] ?? null;
}

function heldIn(bytes: Uint8Array): readonly Uint8Array[] {
  const reader = new BinaryReader(bytes), held: Uint8Array[] = [];
  while (reader.pos < reader.len) {
    const [field, wire] = reader.tag();
    if (heldFields.has(field) && wire === WireType.LengthDelimited) held.push(reader.bytes());
    else reader.skip(wire, field);
  }
  return held;
}
