/** The runtime as a browser gets it: bundled, small, with host operators beside it, running in Chromium where there is one. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { extname, join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { chromium } from "playwright-core";
import { build } from "vite";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compileModel } from "../src/compiler/compile.ts";
import { browserThread } from "../src/runtime/thread-source.ts";
import { chain } from "./support/article-models.ts";
import { modelBytes, type ModelSpec } from "./support/model-spec.ts";

const browser = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((p) => existsSync(p));
let folder = "";

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "onnxfuse-bundle-"));
  await build({
    configFile: false, logLevel: "silent", root: resolve("."),
    build: { outDir: folder, emptyOutDir: true, target: "es2022", minify: true, lib: { entry: resolve("src/runtime/index.ts"), formats: ["es"], fileName: () => "runtime.js" }, rollupOptions: { external: [/^node:/] } },
  });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Files that the entry pulls in at once. */
function eager(entry: string, seen = new Set<string>()): Set<string> {
  if (seen.has(entry)) return seen;
  seen.add(entry);
  for (const [, target = ""] of readFileSync(join(folder, entry), "utf8").matchAll(/(?:^|[;}\s])(?:import|export)\s*(?:[^"'();]*?from\s*)?["']\.\/([^"']+)["']/g)) eager(target, seen);
  return seen;
}

describe("the bundle", () => {
  test("is at most 25 KB gzipped, without host operators", () => {
    const files = [...eager("runtime.js")];
    const bytes = files.reduce((n, f) => n + gzipSync(readFileSync(join(folder, f)), { level: 9 }).length, 0);
    console.log(`runtime: ${bytes} bytes gzipped in ${files.length} files`);
    expect(bytes).toBeLessThanOrEqual(25 * 1024);
    expect(readdirSync(folder).length).toBeGreaterThan(files.length + 10);
  });
});

/** NonZero has no kernel: it is loaded when the artifact needs it. */
const withHost: ModelSpec = {
  opset: 13, inputs: { x: { dtype: "float32", dims: ["N"] } }, outputs: { y: { dtype: "int64", dims: [1, "M"] } }, initializers: {},
  nodes: [{ type: "Relu", name: "relu", inputs: ["x"], outputs: ["r"] }, { type: "NonZero", name: "where", inputs: ["r"], outputs: ["y"] }],
};

/** Runs in the page, as a string so that nothing rewrites its imports. */
const script = `(async () => {
  const { load, Tensor } = await import("/runtime.js");
  const first = await load(await fetch("/chain.om"));
  const { dims } = first.inputs[0];
  const size = dims.reduce((a, b) => a * b, 1);
  const { y } = await first.run({ x: new Tensor("float32", Float32Array.from({ length: size }, (_, i) => i - 2), dims) });
  const second = await load("/host.om");
  const { y: where } = await second.run({ x: new Tensor("float32", Float32Array.of(-1, 2, 0, 3), [4]) });
  const refusal = await load("/missing.om").then(() => "", (e) => e.code);
  return { y: Array.from(y.data.slice(0, 5)), where: Array.from(where.data, Number), refusal };
})()`;

/** A product large enough for two threads. */
const product: ModelSpec = {
  opset: 17, inputs: { x: { dtype: "float32", dims: [128, 256] } }, outputs: { y: { dtype: "float32", dims: [128, 256] } },
  initializers: { w: { dtype: "float32", dims: [256, 256], data: Float32Array.from({ length: 256 * 256 }, (_, i) => Math.sin(i)) } },
  nodes: [{ type: "MatMul", name: "product", inputs: ["x", "w"], outputs: ["y"] }],
};

/** One thread against two: how many there are, warnings, and whether every run gave the same bits. */
const threadScript = (workerUrl: string | undefined): string => `(async () => {
  const { load, Tensor } = await import("/runtime.js");
  const x = new Tensor("float32", Float32Array.from({ length: 128 * 256 }, (_, i) => Math.cos(i)), [128, 256]);
  const one = await load("/product.om"), two = await load("/product.om", { threads: 2, workerUrl: ${JSON.stringify(workerUrl)} });
  const { y } = await one.run({ x });
  let same = true;
  for (let i = 0; i < 200; i++) {
    const got = await two.run({ x });
    same &&= got.y.data.every((v, k) => v === y.data[k]);
    if (i % 20 === 0) await new Promise((done) => setTimeout(done, 20));
  }
  const { threads } = two, warnings = two.warnings.map((w) => w.code);
  two.dispose();
  return { isolated: crossOriginIsolated, threads, warnings, same };
})()`;

describe.skipIf(!browser)("Chromium", () => {
  let server: Server, isolated = false;
  const types: Readonly<Record<string, string>> = { ".js": "text/javascript", ".html": "text/html", ".om": "application/octet-stream" };
  beforeAll(async () => {
    writeFileSync(join(folder, "chain.om"), compileModel(modelBytes(chain("mul-add-relu"))).artifact);
    writeFileSync(join(folder, "host.om"), compileModel(modelBytes(withHost)).artifact);
    writeFileSync(join(folder, "product.om"), compileModel(modelBytes(product)).artifact);
    writeFileSync(join(folder, "worker.js"), browserThread);
    writeFileSync(join(folder, "index.html"), "<!doctype html><title>onnxfuse</title>");
    server = createServer((request, response) => {
      const path = join(folder, new URL(request.url ?? "/", "http://x").pathname.replace(/^\/$/, "/index.html"));
      if (!existsSync(path)) { response.writeHead(404).end(); return; }
      response.writeHead(200, { "content-type": types[extname(path)] ?? "application/octet-stream", ...(isolated ? { "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp" } : {}) }).end(readFileSync(path));
    });
    await new Promise<void>((done) => { server.listen(0, "127.0.0.1", done); });
  });
  afterAll(() => { server.close(); });

  test("fetches, loads and runs artifacts, host operators included", async () => {
    const page = await (await chromium.launch({ executablePath: browser ?? "", args: ["--no-sandbox"] })).newPage();
    const problems: string[] = [];
    page.on("pageerror", (e) => problems.push(String(e)));
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    const results: unknown = await page.evaluate(script);
    expect(results).toEqual({ y: [0, 0, 1, 3, 5], where: [1, 3], refusal: "OF7011" });
    expect(problems).toEqual([]);
    await page.context().browser()?.close();
  });

  test("computes with two threads in cross-origin isolated pages, with one elsewhere", { timeout: 120_000 }, async () => {
    const chrome = await chromium.launch({ executablePath: browser ?? "", args: ["--no-sandbox"] });
    try {
      const evaluate = async (script: string): Promise<unknown> => {
        const page = await chrome.newPage();
        await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
        return page.evaluate(script);
      };
      isolated = true;
      expect(await evaluate(threadScript(undefined))).toEqual({ isolated: true, threads: 2, warnings: [], same: true });
      expect(await evaluate(threadScript("/worker.js"))).toEqual({ isolated: true, threads: 2, warnings: [], same: true });
      isolated = false;
      expect(await evaluate(threadScript(undefined))).toEqual({ isolated: false, threads: 1, warnings: ["OF7040"], same: true });
    } finally {
      isolated = false;
      await chrome.close();
    }
  });
});
