/** Opens an artifact from bytes, a file, a URL or a fetch Response. */
import { ArrivingArtifact } from "../artifact/arriving.ts";
import { checksum } from "../artifact/checksum.ts";
import { supports, unsupported } from "../backends/wasm/load.ts";
import { checkLoadOptions } from "./check-run-options.ts";
import { open, type ArtifactSource } from "./open.ts";
import { Session, type SessionOptions } from "./session.ts";

export interface LoadOptions extends SessionOptions {
  /** The files of an artifact whose weights lie outside, by path relative to it. Default: from where the artifact came, if that was a URL or a path. */
  readonly externalData?: (file: string) => Uint8Array | undefined | Promise<Uint8Array | undefined>;
}

/**
 * A session for an artifact. Bytes may be let go, or changed, when it is there. All else is read once and in pieces,
 * weights straight to WebAssembly's memory: URLs are fetched, and in Node `file:` URLs, paths and open files are read
 * from disk.
 * Fails with OF6xxx when the artifact is not whole, OF7009 when this engine cannot run it, OF7011 when it cannot be read,
 * OF6006 and OF6007 when weights that lie outside are missing or others.
 */
export async function load(source: ArtifactSource | Promise<Response>, options: LoadOptions = {}): Promise<Session> {
  checkLoadOptions(options);
  if (!supports("simd")) unsupported();
  const opened = await open(await source);
  try {
    const artifact = await ArrivingArtifact.open(opened.bytes), { external } = artifact.manifest, { base } = opened;
    const outside = external && (await import("./outside.ts")).outsideWeights(external, options, base, open, checksum);
    return await Session.create(artifact, outside ?? artifact.weights, options, async () => {
      await outside?.end();
      await artifact.end();
    });
  } finally {
    await opened.close();
  }
}
