/**
 * External data: tensors whose bytes lie in files beside the model. A location stays within the model's folder, and
 * offsets and lengths are checked against the bytes that are really there.
 */
import { fail, type Place } from "../core/diagnostic.ts";
import { decodeModel } from "./decode.ts";
import { TensorProto_DataLocation, type TensorProto } from "./schema/onnx_pb.ts";

/** The bytes of a file beside the model; undefined or an error when there is none. */
export type ExternalData = (location: string) => Uint8Array | undefined;

/** Resolves each location once. */
export class ExternalFiles {
  readonly #source: ExternalData | undefined;
  readonly #files = new Map<string, Uint8Array>();
  constructor(source: ExternalData | undefined) { this.#source = source; }

  /** The bytes of one tensor, as a view. Fails with OF2013 (no such file), OF2014 (outside the folder) or OF2015 (out of range). */
  bytes(proto: TensorProto, size: number, place: Place): Uint8Array {
    const entries = new Map(proto.externalData.map((e) => [e.key, e.value]));
    const location = entries.get("location");
    if (location === undefined || location === "") return fail("OF2013", "external data names no location", { place });
    checkLocation(location, place);
    const file = this.#file(location, place);
    const offset = readSize(entries.get("offset"), 0, "offset", place);
    const length = readSize(entries.get("length"), size, "length", place);
    if (length !== size) fail("OF2015", `external data '${location}' gives ${length} bytes to a tensor of ${size}`, { place });
    if (offset + length > file.byteLength)
      fail("OF2015", `external data '${location}' has ${file.byteLength} bytes, the tensor wants ${offset} to ${offset + length}`, { place });
    return file.subarray(offset, offset + length);
  }

  #file(location: string, place: Place): Uint8Array {
    const known = this.#files.get(location);
    if (known) return known;
    if (!this.#source)
      return fail("OF2013", `the model keeps its weights in '${location}', which was not given`, { place, hint: "pass { model, externalData } instead of bytes alone" });
    const bytes = this.#source(location);
    if (bytes === undefined || bytes === null) return fail("OF2013", `external data '${location}' is missing`, { place, hint: "keep the file beside the model" });
    if (!(bytes instanceof Uint8Array)) return fail("OF2013", `what was given for external data '${location}' is not a Uint8Array`, { place, hint: "give the file's bytes" });
    this.#files.set(location, bytes);
    return bytes;
  }
}

/** Refuses absolute paths, drive letters, URLs and `..`. */
export function checkLocation(location: string, place: Place): void {
  const parts = location.split(/[\\/]/);
  if (/^[\\/]/.test(location) || /^[A-Za-z][A-Za-z0-9+.-]*:/.test(location) || parts.includes("..") || location.includes("\0"))
    fail("OF2014", `external data '${location}' lies outside the model's folder`, { place, hint: "external data must lie beside the model, under a relative path" });
}

function readSize(text: string | undefined, otherwise: number, what: string, place: Place): number {
  if (text === undefined) return otherwise;
  const value = /^\d{1,16}$/.test(text) ? Number(text) : NaN;
  if (!Number.isSafeInteger(value)) fail("OF2015", `external data's ${what} '${text}' is not a size`, { place });
  return value;
}

/** Whether a model keeps any of its initializers beside its file. */
export const hasExternalWeights = (model: Uint8Array): boolean => decodeModel(model).graph.initializer.some((t) => t.dataLocation === TensorProto_DataLocation.EXTERNAL);
