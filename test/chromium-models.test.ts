/**
 * The real models in Chromium: a page loads each artifact, runs it with the code for plain and for relaxed SIMD, and gives
 * the results, which are compared with the references. A page that is cross-origin isolated runs them on two threads; one
 * that is not is asked for two as well, and has one.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { chromium, type Browser, type Page } from "playwright-core";
import { build } from "vite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compileModel } from "../src/compiler/compile.ts";
import { caseIds, difference, loadCase } from "./support/cases.ts";
import { fromWire, wires, type Wire } from "./support/wire.ts";

const browserPath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((p) => existsSync(p));
const ids = caseIds();

/** Models that are too small to have code for threads. */
const withoutThreads = ["oww-hello-deepa"];
const isolation = { "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp" };

interface Result { readonly isolated: boolean; readonly threads: readonly number[]; readonly engines: Readonly<Record<string, Readonly<Record<string, Wire>>>> }

/** Runs in the page, as a string so that nothing rewrites its imports. */
const script = (feeds: Readonly<Record<string, Wire>>): string => `(async () => {
  const { load, Tensor } = await import("/runtime.js");
  const decode = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const encode = (bytes) => { let s = ""; for (let i = 0; i < bytes.length; i += 32768) s += String.fromCharCode(...bytes.subarray(i, i + 32768)); return btoa(s); };
  const arrays = { float32: Float32Array, int64: BigInt64Array, int32: Int32Array, uint8: Uint8Array, int8: Int8Array, bool: Uint8Array };
  const feeds = Object.fromEntries(Object.entries(${JSON.stringify(feeds)}).map(([name, t]) => [name, new Tensor(t.dtype, new arrays[t.dtype](decode(t.bytes).buffer), t.dims)]));
  const engines = {}, threads = [];
  for (const engine of [undefined, "simd", "relaxed-simd"]) {
    const session = await load("/model.om", engine ? { engine, threads: 2 } : { threads: 2 });
    threads.push(session.threads);
    const results = await session.run(feeds);
    engines[engine ?? "default"] = Object.fromEntries(Object.entries(results).map(([name, t]) => [name, { dtype: t.type, dims: [...t.dims], bytes: encode(new Uint8Array(t.data.buffer, t.data.byteOffset, t.data.byteLength)) }]));
    session.dispose();
  }
  return { isolated: crossOriginIsolated, threads, engines };
})()`;

describe.skipIf(!browserPath || ids.length === 0)("Chromium", () => {
  let folder = "", server: Server, browser: Browser, plain: Page, isolated: Page, artifact = new Uint8Array();
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "onnxfuse-chromium-"));
    await build({
      configFile: false, logLevel: "silent", root: resolve("."),
      build: { outDir: folder, emptyOutDir: true, target: "es2022", lib: { entry: resolve("src/runtime/index.ts"), formats: ["es"], fileName: () => "runtime.js" }, rollupOptions: { external: [/^node:/] } },
    });
    server = createServer((request, response) => {
      const path = new URL(request.url ?? "/", "http://x").pathname, file = join(folder, path);
      if (path === "/" || path === "/isolated") response.writeHead(200, { "content-type": "text/html", ...(path === "/" ? {} : isolation) }).end("<!doctype html><title>onnxfuse</title>");
      else if (path === "/model.om") response.writeHead(200, { "content-type": "application/octet-stream" }).end(artifact);
      else if (existsSync(file)) response.writeHead(200, { "content-type": "text/javascript" }).end(readFileSync(file));
      else response.writeHead(404).end();
    });
    await new Promise<void>((done) => { server.listen(0, "127.0.0.1", done); });
    browser = await chromium.launch({ executablePath: browserPath ?? "", args: ["--no-sandbox"] });
    plain = await browser.newPage();
    isolated = await browser.newPage();
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    await plain.goto(`${origin}/`);
    await isolated.goto(`${origin}/isolated`);
  }, 120_000);
  afterAll(async () => {
    await browser.close();
    server.close();
    rmSync(folder, { recursive: true, force: true });
  }, 60_000);

  test.each(ids)("%s gives its reference, with both codes, isolated and not", async (id) => {
    const { bytes, feeds, expected, tolerance } = loadCase(id);
    artifact = new Uint8Array(compileModel(bytes, { strip: true }).artifact);
    for (const page of [plain, isolated]) {
      const result = await page.evaluate<Result>(script(wires(feeds)));
      expect(result.isolated).toBe(page === isolated);
      expect(result.threads).toEqual(new Array(3).fill(page === isolated && !withoutThreads.includes(id) ? 2 : 1));
      expect(result.engines["default"]).toEqual(result.engines["relaxed-simd"]);
      for (const [engine, results] of Object.entries(result.engines)) for (const [name, e] of Object.entries(expected)) {
        const t = results[name];
        expect(t && difference(fromWire(t), e, tolerance), `${engine}, '${name}'`).toBeUndefined();
        expect(t, name).toBeDefined();
      }
    }
  }, 120_000);
});
