/** Opens an artifact from bytes, a URL or a fetch Response. */
import { readArtifact } from "../artifact/artifact.ts";
import { fail } from "../core/diagnostic.ts";
import { Session, type SessionOptions } from "./session.ts";

export type ArtifactSource = Uint8Array | ArrayBuffer | URL | string | Response;

/**
 * A session for an artifact. Strings and URLs are fetched; `file:` URLs are read from disk in Node.
 * Fails with OF6xxx when the artifact is not whole, OF7009 when this engine cannot run it, OF7011 when it cannot be read.
 */
export async function load(source: ArtifactSource | Promise<Response>, options: SessionOptions = {}): Promise<Session> {
  return Session.create(readArtifact(await bytesOf(await source)), options);
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
