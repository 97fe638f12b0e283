/** Weights that lie outside their artifact, read from where it came. Loaded where an artifact has such. */
import { ExternalStream, type Sum } from "../artifact/external-stream.ts";
import type { ExternalPieceJson } from "../artifact/manifest.ts";
import type { LoadOptions } from "./load.ts";
import type { OpenedSource } from "./open.ts";

type Open = (url: URL) => Promise<OpenedSource>;

/** The stream of `pieces`; `base` is what their paths are relative to, where the artifact has a place. */
export const outsideWeights = (pieces: readonly ExternalPieceJson[], { externalData }: LoadOptions, base: URL | undefined, open: Open, sum: Sum): ExternalStream =>
  new ExternalStream(pieces, externalData ?? (base && (async (file) => readAll(await open(new URL(file, base))))), sum);

/** All bytes of a file or of what is fetched. */
async function readAll({ bytes, close }: OpenedSource): Promise<Uint8Array> {
  try {
    if (bytes.length !== undefined) return (await bytes.take(bytes.length)).slice();
    const parts: Uint8Array[] = [];
    for (let part = await bytes.take(1 << 18); part.length > 0; part = await bytes.take(1 << 18)) parts.push(part.slice());
    const all = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
    parts.reduce((at, p) => { all.set(p, at); return at + p.length; }, 0);
    return all;
  } finally {
    await close();
  }
}
