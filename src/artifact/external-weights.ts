/**
 * Weights in files beside an artifact: the weights section cut into pieces, each a file named after its contents, so
 * that artifacts which share weights share files, and what an artifact is called does not matter.
 */
import type { Artifact } from "./artifact.ts";
import { checksum } from "./checksum.ts";
import { endOf, ExternalStream, type ReadFile } from "./external-stream.ts";
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

/** The artifact with its weights section read from files; as it is where it holds them itself. Fails as `ExternalStream` does. */
export async function attachWeights(artifact: Artifact, read: ReadFile | undefined): Promise<Artifact> {
  const { external } = artifact.manifest;
  if (!external) return artifact;
  const stream = new ExternalStream(external, read, checksum), weights = new Uint8Array(external.reduce((end, p) => Math.max(end, endOf(p)), 0));
  await stream.fill(0, weights);
  await stream.end();
  return { ...artifact, weights };
}
