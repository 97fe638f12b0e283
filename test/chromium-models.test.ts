/** The real models in Chromium: a page loads each artifact, runs it with the code for plain and for relaxed SIMD, and gives the results, which are compared with the references. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { chromium, type Browser, type Page } from "playwright-core";
import { build } from "vite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compileModel } from "../src/compiler/compile.ts";
import { viewBytes, type DType } from "../src/core/dtype.ts";
import type { Tensor } from "../src/core/tensor.ts";
import { Tensor as RuntimeTensor } from "../src/runtime/index.ts";
import { caseIds, difference, loadCase } from "./support/cases.ts";

const browserPath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((p) => existsSync(p));
/** Its 100 MB of weights take longer than all others together. */
const ids = caseIds().filter((id) => id !== "light-resnet50");

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
const bytesOf = ({ data }: Tensor): Uint8Array => (ArrayBuffer.isView(data) ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength) : new Uint8Array());

interface Wire { readonly dtype: DType; readonly dims: readonly number[]; readonly bytes: string }
interface Result { readonly engines: Readonly<Record<string, Readonly<Record<string, Wire>>>>; readonly milliseconds: number }

/** Runs in the page, as a string so that nothing rewrites its imports. */
const script = (feeds: Readonly<Record<string, Wire>>): string => `(async () => {
  const { load, Tensor } = await import("/runtime.js");
  const decode = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const encode = (bytes) => { let s = ""; for (let i = 0; i < bytes.length; i += 32768) s += String.fromCharCode(...bytes.subarray(i, i + 32768)); return btoa(s); };
  const arrays = { float32: Float32Array, int64: BigInt64Array, int32: Int32Array, uint8: Uint8Array, int8: Int8Array, bool: Uint8Array };
  const feeds = Object.fromEntries(Object.entries(${JSON.stringify(feeds)}).map(([name, t]) => [name, new Tensor(t.dtype, new arrays[t.dtype](decode(t.bytes).buffer), t.dims)]));
  const engines = {};
  let milliseconds = 0;
  for (const engine of [undefined, "simd", "relaxed-simd"]) {
    const start = performance.now();
    const session = await load("/model.om", engine ? { engine } : {});
    if (!engine) milliseconds = performance.now() - start;
    const results = await session.run(feeds);
    engines[engine ?? "default"] = Object.fromEntries(Object.entries(results).map(([name, t]) => [name, { dtype: t.type, dims: [...t.dims], bytes: encode(new Uint8Array(t.data.buffer, t.data.byteOffset, t.data.byteLength)) }]));
    session.dispose();
  }
  return { engines, milliseconds };
})()`;

describe.skipIf(!browserPath || ids.length === 0)("Chromium", () => {
  let folder = "", server: Server, browser: Browser, page: Page, artifact = new Uint8Array();
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "onnxfuse-chromium-"));
    await build({
      configFile: false, logLevel: "silent", root: resolve("."),
      build: { outDir: folder, emptyOutDir: true, target: "es2022", lib: { entry: resolve("src/runtime/index.ts"), formats: ["es"], fileName: () => "runtime.js" }, rollupOptions: { external: [/^node:/] } },
    });
    server = createServer((request, response) => {
      const path = new URL(request.url ?? "/", "http://x").pathname, file = join(folder, path);
      if (path === "/") response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>onnxfuse</title>");
      else if (path === "/model.om") response.writeHead(200, { "content-type": "application/octet-stream" }).end(artifact);
      else if (existsSync(file)) response.writeHead(200, { "content-type": "text/javascript" }).end(readFileSync(file));
      else response.writeHead(404).end();
    });
    await new Promise<void>((done) => { server.listen(0, "127.0.0.1", done); });
    browser = await chromium.launch({ executablePath: browserPath ?? "", args: ["--no-sandbox"] });
    page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  }, 120_000);
  afterAll(async () => {
    await browser.close();
    server.close();
    rmSync(folder, { recursive: true, force: true });
  });

  test.each(ids)("%s gives its reference, with both codes", async (id) => {
    const { bytes, feeds, expected, tolerance } = loadCase(id);
    artifact = new Uint8Array(compileModel(bytes, { strip: true }).artifact);
    const wired = Object.fromEntries(Object.entries(feeds).map(([name, t]): [string, Wire] => [name, { dtype: t.dtype, dims: t.dims, bytes: base64(bytesOf(t)) }]));
    const { engines } = await page.evaluate<Result>(script(wired));
    expect(engines["default"]).toEqual(engines["relaxed-simd"]);
    for (const [engine, results] of Object.entries(engines)) for (const [name, e] of Object.entries(expected)) {
      const t = results[name];
      const actual = t && new RuntimeTensor(t.dtype, viewBytes(t.dtype, new Uint8Array(Buffer.from(t.bytes, "base64"))), t.dims).unpacked();
      expect(actual && difference(actual, e, tolerance), `${engine}, '${name}'`).toBeUndefined();
      expect(actual, name).toBeDefined();
    }
  }, 120_000);
});
