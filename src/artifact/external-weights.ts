/**
 * Weights in files beside an artifact: the weights section cut into pieces, each a file named after its contents, so
 * that artifacts which share weights share files, and what an artifact is called does not matter.
 */
import { fail } from "../core/diagnostic.ts";
import type { Artifact } from "./artifact.ts";
import { checksum } from "./checksum.ts";
import type { ExternalPieceJson } from "./manifest.ts";

/** The folder that holds the files, beside the artifact. */
const folder = "weight";

/** What becomes a file: a part of the weights section. */
export interface Piece { readonly offset: number; readonly bytes: Uint8Array }
export interface ExternalWeights {
  readonly pieces: readonly ExternalPieceJson[];
  /** By path relative to the artifact. */
  readonly files: Readonly<Record<string, Uint8Array>>;
}

/** Pieces of a weights section as files; none where there are no weights. */
export function externalWeights(pieces: readonly Piece[]): ExternalWeights {
  const files: Record<string, Uint8Array> = {};
  const list = pieces.filter((p) => p.bytes.length > 0).map(({ offset, bytes }): ExternalPieceJson => {
    const sum = checksum(bytes);
    const file = `${folder}/weight_${sum.toString(16).padStart(8, "0")}_${bytes.length}.bin`;
    files[file] = bytes;
    return { file, offset, length: bytes.length, checksum: sum };
  });
  return { pieces: list, files };
}

/**
 * The artifact with its weights read from files; as it is where it holds them itself. Fails with OF6006 where a file is
 * missing, OF6007 where it is not the one the artifact was written with.
 */
export async function attachWeights(artifact: Artifact, read: ((file: string) => Uint8Array | undefined | Promise<Uint8Array | undefined>) | undefined): Promise<Artifact> {
  const { external } = artifact.manifest;
  if (!external) return artifact;
  const files = await Promise.all(external.map(async (piece) => whole(piece, await read?.(piece.file))));
  const [only] = files;
  if (only && files.length === 1 && external[0]?.offset === 0) return { ...artifact, weights: only };
  const weights = new Uint8Array(external.reduce((end, p) => Math.max(end, p.offset + p.length), 0));
  external.forEach((piece, i) => weights.set(files[i] ?? new Uint8Array(), piece.offset));
  return { ...artifact, weights };
}

function whole({ file, length, checksum: sum }: ExternalPieceJson, bytes: Uint8Array | undefined): Uint8Array {
  if (!bytes) return fail("OF6006", `the artifact's weights in '${file}' were not found`, { hint: "keep the folder beside the artifact, or pass `externalData` to load" });
  if (!(bytes instanceof Uint8Array) || bytes.byteLength !== length || checksum(bytes) !== sum) return fail("OF6007", `'${file}' does not hold the weights that the artifact was written with`, { hint: "copy both again, or compile again" });
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
