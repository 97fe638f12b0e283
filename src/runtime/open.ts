/** Where artifacts come from: each kind of source as bytes in their order. */
import { BufferedSource, MemorySource, type ByteSource, type Refill } from "../artifact/byte-source.ts";
import { fail } from "../core/diagnostic.ts";

/** An open file, as `open` of node:fs/promises gives it; it stays open. */
export interface OpenFile {
  stat(): Promise<{ readonly size: number }>;
  read(into: Uint8Array, offset: number, length: number, position: number): Promise<{ readonly bytesRead: number }>;
}

/** Bytes, a URL, a fetch Response, a Blob; in Node also a path or an open file. */
export type ArtifactSource = Uint8Array | ArrayBuffer | URL | string | Response | Blob | OpenFile;

export interface OpenedSource {
  readonly bytes: ByteSource;
  /** What paths beside the source are relative to; undefined where it came from nowhere. */
  readonly base: URL | undefined;
  close(): Promise<void>;
}

const nothing = async (): Promise<void> => undefined;

/** Opens a source. Fails with OF7011 where there is none. */
export async function open(source: ArtifactSource): Promise<OpenedSource> {
  if (source instanceof Uint8Array) return { bytes: new MemorySource(source), base: undefined, close: nothing };
  if (source instanceof ArrayBuffer) return { bytes: new MemorySource(new Uint8Array(source)), base: undefined, close: nothing };
  if (typeof source === "string" || source instanceof URL) return openUrl(await urlOf(source));
  if (isA(source, "Response")) return openResponse(source as Response);
  if (isA(source, "Blob") || isA(source, "File")) return openStream((source as Blob).stream(), (source as Blob).size, undefined);
  if (isOpenFile(source)) return { ...(await fileSource(source)), base: undefined, close: nothing };
  return fail("OF7011", "load takes bytes, a URL, a path or a Response");
}

/** Asked by name: Node loads all of fetch when its classes are first named. */
const isA = (source: unknown, name: string): boolean => Object.prototype.toString.call(source) === `[object ${name}]`;

async function openUrl(url: URL): Promise<OpenedSource> {
  if (url.protocol === "file:") return openPath(url);
  return openResponse(await fetch(url).catch((e: unknown) => fail("OF7011", `${url.href} could not be fetched: ${e instanceof Error ? e.message : String(e)}`)));
}

/** Text without a scheme is a place beside the page; where there is no page, a path. */
async function urlOf(source: URL | string): Promise<URL> {
  try {
    const url = new URL(source, typeof location === "undefined" ? undefined : location.href);
    // `C:\model.om` is a path.
    if (url.protocol.length > 2) return url;
  } catch {
    // Not a URL.
  }
  if (typeof location !== "undefined") return fail("OF7011", `'${source.toString()}' is not a URL`);
  const { pathToFileURL } = await import(/* @vite-ignore */ "node:url");
  return pathToFileURL(source.toString());
}

async function openPath(url: URL): Promise<OpenedSource> {
  const files = await import(/* @vite-ignore */ "node:fs/promises");
  const unreadable = (): never => fail("OF7011", `${url.href} could not be read`, { hint: "check that the file exists" });
  const file = await files.open(url).catch(unreadable);
  try {
    return { ...(await fileSource(file).catch(unreadable)), base: url, close: () => file.close() };
  } catch (e) {
    await file.close();
    throw e;
  }
}

const isOpenFile = (source: object | null): source is OpenFile =>
  typeof source === "object" && source !== null && "stat" in source && typeof source.stat === "function" && "read" in source && typeof source.read === "function";

async function fileSource(file: OpenFile): Promise<{ readonly bytes: ByteSource }> {
  let position = 0;
  const read: Refill = async (into) => {
    const { bytesRead } = await file.read(into, 0, into.length, position).catch(() => fail("OF7011", "the artifact could not be read"));
    position += bytesRead;
    return bytesRead;
  };
  return { bytes: new BufferedSource(read, (await file.stat()).size) };
}

async function openResponse(response: Response): Promise<OpenedSource> {
  if (!response.ok) fail("OF7011", `${response.url || "the artifact"} could not be fetched: ${response.status} ${response.statusText}`);
  if (response.bodyUsed) fail("OF7011", "the Response has been read already");
  const base = response.url === "" ? undefined : new URL(response.url);
  if (response.body) return openStream(response.body, undefined, base);
  return { bytes: new MemorySource(new Uint8Array(await response.arrayBuffer())), base, close: nothing };
}

/** What the network gives comes in pieces of its own size. */
function openStream(stream: ReadableStream<Uint8Array>, length: number | undefined, base: URL | undefined): OpenedSource {
  const reader = stream.getReader();
  let piece: Uint8Array = new Uint8Array(0), ended = false;
  const read: Refill = async (into) => {
    while (piece.length === 0 && !ended) {
      const next = await reader.read().catch((e: unknown) => fail("OF7011", `the artifact could not be fetched: ${e instanceof Error ? e.message : String(e)}`));
      if (next.done) ended = true; else piece = next.value;
    }
    const part = piece.subarray(0, into.length);
    into.set(part);
    piece = piece.subarray(part.length);
    return part.length;
  };
  return { bytes: new BufferedSource(read, length), base, close: () => (ended ? Promise.resolve() : reader.cancel().catch(() => undefined)) };
}
