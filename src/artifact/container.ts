/**
 * The container of an artifact (`.om`): a header, a table of sections, and the sections, each at a multiple of 64 bytes.
 * Reading checks every length against the file and every byte against a checksum before anything is used.
 *
 *   0  magic 89 'O' 'M' 'F' 0D 0A 1A 0A      16 u64 length of the file       then per section 32 bytes:
 *   8  u32 format version                    24 u32 checksum of this header  0 u32 kind   8 u64 offset
 *  12  u32 number of sections                28 u32 0                        4 u32 0     16 u64 length  24 u32 checksum  28 u32 0
 *
 * The magic's line ends and its first byte reveal files damaged by text conversion, as PNG's do. Little endian throughout.
 */
import { fail } from "../core/diagnostic.ts";
import { checksum, Checksum } from "./checksum.ts";

export const formatVersion = 1;
const magic = [0x89, 0x4f, 0x4d, 0x46, 0x0d, 0x0a, 0x1a, 0x0a];
export const headerBytes = 32;
const entryBytes = 32, alignment = 64;
/** More sections than any artifact has. */
const mostSections = 1000;
const align = (n: number): number => Math.ceil(n / alignment) * alignment;

const kinds = ["manifest", "code", "relaxation", "weights", "report", "threads"] as const;
export type SectionKind = (typeof kinds)[number];
export interface Section { readonly kind: SectionKind; readonly bytes: Uint8Array }
/** Where a section lies. */
export interface SectionPlace { readonly kind: SectionKind; readonly offset: number; readonly length: number; readonly checksum: number }

/** Lays out sections in their order. The same sections give the same bytes. */
export function writeContainer(sections: readonly Section[]): Uint8Array {
  let end = align(headerBytes + entryBytes * sections.length);
  const offsets = sections.map((s) => {
    const offset = end;
    end = align(offset + s.bytes.byteLength);
    return offset;
  });
  const out = new Uint8Array(end);
  const view = new DataView(out.buffer);
  out.set(magic);
  view.setUint32(8, formatVersion, true);
  view.setUint32(12, sections.length, true);
  view.setBigUint64(16, BigInt(end), true);
  sections.forEach((s, i) => {
    const entry = headerBytes + entryBytes * i, offset = offsets[i] ?? 0;
    view.setUint32(entry, kinds.indexOf(s.kind) + 1, true);
    view.setBigUint64(entry + 8, BigInt(offset), true);
    view.setBigUint64(entry + 16, BigInt(s.bytes.byteLength), true);
    view.setUint32(entry + 24, checksum(s.bytes), true);
    out.set(s.bytes, offset);
  });
  view.setUint32(24, checksum(out.subarray(0, headerBytes + entryBytes * sections.length)), true);
  return out;
}

/** Refuses an artifact that is not as it was written. */
export const damaged = (what: string): never => fail("OF6002", `the artifact is damaged: ${what}`, { hint: "copy or compile it again" });

/**
 * How many bytes header and table take together, from a file's first `headerBytes`, and what the file should have in
 * all. Fails with OF6001 on a foreign file, OF6003 on another version, and OF6002 where `length` (if known) is another.
 */
export function readHeader(head: Uint8Array, length: number | undefined): { readonly tableEnd: number; readonly fileBytes: number } {
  if (head.byteLength < magic.length || magic.some((m, i) => head[i] !== m)) fail("OF6001", "this is not an onnxfuse artifact", { hint: describeForeign(head) });
  if (head.byteLength < headerBytes) damaged("it ends within its header");
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  const version = view.getUint32(8, true);
  if (version !== formatVersion) fail("OF6003", `the artifact has format version ${version}, this runtime reads version ${formatVersion}`, { hint: "compile the model again with this version of onnxfuse" });
  const count = view.getUint32(12, true), stated = view.getBigUint64(16, true);
  if (length !== undefined && stated !== BigInt(length)) damaged(`it should have ${stated} bytes and has ${length}`);
  const tableEnd = headerBytes + entryBytes * count;
  if (count > mostSections || BigInt(tableEnd) > stated) damaged("its section table does not fit");
  return { tableEnd, fileBytes: Number(stated) };
}

/** The sections' places, in their order, from header and table. Fails with OF6002 where they do not follow each other to the file's end. */
export function readTable(table: Uint8Array, fileBytes: number, sum = new Checksum()): readonly SectionPlace[] {
  const view = new DataView(table.buffer, table.byteOffset, table.byteLength);
  const header = table.slice();
  header.fill(0, 24, 28);
  if (checksum(header, sum) !== view.getUint32(24, true)) damaged("its header does not match its checksum");
  let end = table.byteLength;
  const places: SectionPlace[] = [];
  for (let entry = headerBytes; entry < table.byteLength; entry += entryBytes) {
    const kind = kinds[view.getUint32(entry, true) - 1] ?? damaged(`section ${places.length} is of unknown kind`);
    const offset = Number(view.getBigUint64(entry + 8, true)), length = Number(view.getBigUint64(entry + 16, true));
    if (offset !== align(end) || offset + length > fileBytes) damaged(`section ${places.length} (${kind}) lies outside the file`);
    places.push({ kind, offset, length, checksum: view.getUint32(entry + 24, true) });
    end = offset + length;
  }
  if (align(end) !== fileBytes) damaged("bytes follow its last section");
  return places;
}

/** The sections of an artifact, as views into `file`. Fails with OF6001 on a foreign file, OF6002 on a damaged one, OF6003 on another version. */
export function readContainer(file: Uint8Array): readonly Section[] {
  // A plain view: slices of Node's Buffers share memory.
  const bytes = new Uint8Array(file.buffer, file.byteOffset, file.byteLength);
  const { tableEnd, fileBytes } = readHeader(bytes.subarray(0, headerBytes), bytes.byteLength);
  let end = tableEnd;
  const sum = new Checksum(), sections = readTable(bytes.subarray(0, tableEnd), fileBytes, sum).map((place): Section => {
    expectZeros(bytes.subarray(end, place.offset));
    end = place.offset + place.length;
    const section = bytes.subarray(place.offset, end);
    expectChecksum(place, checksum(section, sum));
    return { kind: place.kind, bytes: section };
  });
  expectZeros(bytes.subarray(end));
  return sections;
}

/** Refuses a section whose bytes have another checksum. */
export function expectChecksum(place: SectionPlace, actual: number): void {
  if (actual !== place.checksum) damaged(`its ${place.kind} section does not match its checksum`);
}

/** Refuses anything but zeros between sections. */
export function expectZeros(padding: Uint8Array): void {
  if (padding.some((b) => b !== 0)) damaged("there is something between its sections");
}

/** What a file that is not ours seems to be. */
function describeForeign(bytes: Uint8Array): string {
  const text = String.fromCharCode(...bytes.subarray(0, 4));
  if (text === "IMOD" || text === "DOMI") return "it looks like Huawei's .om, which holds Ascend binaries; compile the ONNX model with onnxfuse's atc";
  if (bytes[0] === 0x08) return "it looks like an ONNX model; compile it first with atc or onnxfuse compile";
  if (bytes.byteLength === 0) return "the file is empty";
  return "expected a file written by atc or onnxfuse compile";
}
