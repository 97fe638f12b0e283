/** Artifacts over HTTP: whole ones in every transfer form give the same session; what is cut, refused, aborted or damaged gives none, and leaves no worker. */
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compileModel } from "../src/compiler/compile.ts";
import { DiagnosticError } from "../src/core/diagnostic.ts";
import { load, Tensor, type Session } from "../src/runtime/index.ts";
import { modelBytes, type ModelSpec } from "./support/model-spec.ts";

/** Weights of more than one piece as they are read, that do not compress. */
const size = 1200;
const spec: ModelSpec = {
  opset: 17, inputs: { x: { dtype: "float32", dims: ["N", size] } }, outputs: { y: { dtype: "float32", dims: ["N", size] } },
  initializers: { w: { dtype: "float32", dims: [size, size], data: Float32Array.from({ length: size * size }, (_, i) => Math.sin(i * 12.9898)) } },
  nodes: [{ type: "MatMul", inputs: ["x", "w"], outputs: ["p"] }, { type: "Relu", inputs: ["p"], outputs: ["y"] }],
};
const { artifact } = compileModel(modelBytes(spec));
const zipped = gzipSync(artifact, { level: 1 }), brotli = brotliCompressSync(artifact, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } });
const wrong = artifact.map((b, i) => (i === artifact.length - 5000 ? b ^ 4 : b));
const x = new Tensor("float32", Float32Array.from({ length: 2 * size }, (_, i) => Math.cos(i)), [2, size]);
const resultOf = async (session: Session): Promise<unknown> => { const { y } = await session.run({ x }); session.dispose(); return y?.data; };

const type = { "content-type": "application/octet-stream" };
/** Sends in pieces, each after the one before has left. */
const inPieces = (bytes: Uint8Array, piece: number, end: (response: Parameters<RequestListener>[1]) => void): RequestListener => (_, response) => {
  response.writeHead(200, type);
  const next = (at: number): void => { if (at >= bytes.length) end(response); else response.write(bytes.subarray(at, at + piece), () => { setImmediate(next, at + piece); }); };
  next(0);
};
const cut = artifact.subarray(0, artifact.length >> 1);
const pages: Readonly<Record<string, RequestListener>> = {
  plain: (_, response) => response.writeHead(200, { ...type, "content-length": artifact.length }).end(artifact),
  chunked: inPieces(artifact, 7919, (r) => r.end()),
  gzip: (_, response) => response.writeHead(200, { ...type, "content-encoding": "gzip" }).end(zipped),
  brotli: (_, response) => response.writeHead(200, { ...type, "content-encoding": "br", "content-length": brotli.length }).end(brotli),
  moved: (_, response) => response.writeHead(302, { location: "/plain" }).end(),
  short: inPieces(cut, 65536, (r) => r.end()),
  broken: inPieces(cut, 65536, (r) => r.destroy()),
  damaged: (_, response) => response.writeHead(200, type).end(wrong),
  "damaged-gzip": (_, response) => response.writeHead(200, { ...type, "content-encoding": "gzip" }).end(zipped.subarray(0, zipped.length >> 1)),
  longer: (_, response) => response.writeHead(200, type).end(Buffer.concat([artifact, Buffer.from("more")])),
  page: (_, response) => response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>Not found</title>"),
  missing: (_, response) => response.writeHead(404).end("none"),
  never: inPieces(cut, 65536, () => undefined),
};

let server: Server, origin = "";
beforeAll(async () => {
  server = createServer((request, response) => (pages[(request.url ?? "/").slice(1)] ?? pages["missing"])?.(request, response));
  await new Promise<void>((done) => { server.listen(0, "127.0.0.1", done); });
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((done) => { server.close(done); });
});
const codeOf = (work: Promise<unknown>): Promise<string> => work.then(() => "ran", (e: unknown) => (e instanceof DiagnosticError ? e.code : String(e)));

describe.each([1, 2])("%i threads", (threads) => {
  test.each(["plain", "chunked", "gzip", "brotli", "moved"])("%s", async (page) => {
    const expected = await resultOf(await load(artifact)), url = `${origin}/${page}`;
    for (const source of [url, new URL(url), await fetch(url), fetch(url)]) {
      const session = await load(source, { threads });
      expect(session.threads).toBe(threads);
      expect(await resultOf(session)).toEqual(expected);
    }
  });

  test.each([["short", "OF6002"], ["broken", "OF7011"], ["damaged", "OF6002"], ["damaged-gzip", "OF6002"], ["longer", "OF6002"], ["page", "OF6001"], ["missing", "OF7011"]])("%s is refused with %s", async (page, code) => {
    const url = `${origin}/${page}`;
    expect(await codeOf(load(url, { threads }))).toBe(code);
    expect(await codeOf(load(fetch(url), { threads }))).toBe(code);
  });

  test("a fetch that is given up, and a server that is not there", async () => {
    const stop = new AbortController(), loading = load(fetch(`${origin}/never`, { signal: stop.signal }), { threads });
    setTimeout(() => stop.abort(), 200);
    expect(await codeOf(loading)).toBe("OF7011");
    expect(await codeOf(load(`${origin.replace(/\d+$/, "1")}/plain`, { threads }))).toBe("OF7011");
  });

  test("a Response that has been read already", async () => {
    const response = await fetch(`${origin}/plain`);
    await response.arrayBuffer();
    expect(await codeOf(load(response, { threads }))).toBe("OF7011");
  });
});
