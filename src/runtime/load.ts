/** Opens an artifact from bytes, a URL or a fetch Response. */
import { attachWeights } from "../artifact/external-weights.ts";
import { readArtifact } from "../artifact/artifact.ts";
import { fail } from "../core/diagnostic.ts";
import { checkLoadOptions } from "./check-run-options.ts";
import { Session, type SessionOptions } from "./session.ts";

export type ArtifactSource = Uint8Array | ArrayBuffer | URL | string | Response;

export interface LoadOptions extends SessionOptions {
  /** The files of an artifact whose weights lie outside, by path relative to it. Default: from where the artifact came, if that was a URL. */
  readonly externalData?: (file: string) => Uint8Array | undefined | Promise<Uint8Array | undefined>;
}

/**
 * A session for an artifact. Strings and URLs are fetched; `file:` URLs are read from disk in Node.
 * Fails with OF6xxx when the artifact is not whole, OF7009 when this engine cannot run it, OF7011 when it cannot be read,
 * OF6006 and OF6007 when weights that lie outside are missing or others.
 */
export async function load(source: ArtifactSource | Promise<Response>, options: LoadOptions = {}): Promise<Session> {
  checkLoadOptions(options);
  const given = await source;
  const artifact = readArtifact(await bytesOf(given));
  return Session.create(await attachWeights(artifact, options.externalData ?? besides(given)), options);
}

/** Files beside an artifact that came from a URL; undefined where it came from nowhere. */
function besides(source: ArtifactSource): ((file: string) => Promise<Uint8Array>) | undefined {
  const from = source instanceof URL || typeof source === "string" ? parseUrl(source) : typeof Response !== "undefined" && source instanceof Response && source.url !== "" ? new URL(source.url) : undefined;
  return from && ((file) => bytesOf(new URL(file, from)));
}

async function bytesOf(source: ArtifactSource): Promise<Uint8Array> {
  if (source instanceof Uint8Array) return source;
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  if (typeof Response !== "undefined" && source instanceof Response) return fromResponse(source);
  if (!(source instanceof URL) && typeof source !== "string") return fail("OF7011", "load takes bytes, a URL or a Response");
  const url = parseUrl(source);
  if (url.protocol === "file:") return readFile(url);
  return fromResponse(await fetch(url).catch((e: unknown) => fail("OF7011", `${url.href} could not be fetched: ${e instanceof Error ? e.message : String(e)}`)));
}

/** A path without a scheme means a place beside the page; Node has none. */
function parseUrl(source: URL | string): URL {
  try {
    return new URL(source, typeof location === "undefined" ? undefined : location.href);
  } catch {
    return fail("OF7011", `'${source.toString()}' is not a URL`, { hint: 'in Node, load(await readFile(path)) or load(new URL("model.om", import.meta.url))' });
  }
}

async function fromResponse(response: Response): Promise<Uint8Array> {
  if (!response.ok) fail("OF7011", `${response.url || "the artifact"} could not be fetched: ${response.status} ${response.statusText}`);
  return new Uint8Array(await response.arrayBuffer());
}

async function readFile(url: URL): Promise<Uint8Array> {
  const files = await import(/* @vite-ignore */ "node:fs/promises");
  try {
    return await files.readFile(url);
  } catch {
    return fail("OF7011", `${url.href} could not be read`, { hint: "check that the file exists" });
  }
}
