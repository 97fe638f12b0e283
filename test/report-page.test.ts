/** The report page in Chromium, where there is one: of a small model, and of a graph of 4,000 nodes. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium, type Browser, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compileModel } from "../src/compiler/compile.ts";
import { gatherer } from "../src/report/gather.ts";
import { repeatsOf } from "../src/report/repeats.ts";
import { convBnRelu } from "./support/article-models.ts";
import { commandLines } from "./support/command-line.ts";
import { modelBytes, type ModelSpec, type NodeSpec } from "./support/model-spec.ts";

const executable = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((p) => existsSync(p));
const { run, write, folder } = commandLines();

/** Layers of a residual block, `count` times. */
function layers(count: number): ModelSpec {
  const nodes: NodeSpec[] = [];
  let x = "x";
  for (let i = 0; i < count; i++) {
    const name = (part: string): string => `/layer.${i}/${part}`;
    const add = (type: string, part: string, inputs: readonly string[]): string => { nodes.push({ type, name: name(part), inputs, outputs: [name(`${part}_out`)] }); return name(`${part}_out`); };
    const e = add("Exp", "exp", [x]), s = add("Softmax", "softmax", [e]), t = add("Tanh", "tanh", [s]), m = add("Mul", "mul", [t, e]), r = add("Relu", "relu", [m]), l = add("Softmax", "last", [r]), n = add("Neg", "neg", [l]);
    x = add("Add", "add", [n, x]);
  }
  return { opset: 17, inputs: { x: { dtype: "float32", dims: [2, 16] } }, outputs: { [x]: { dtype: "float32", dims: [2, 16] } }, initializers: {}, nodes };
}

test("repeated blocks are found whatever surrounds them", () => {
  const period = ["a", "b", "c", "d"];
  expect(repeatsOf(["x", ...period, ...period, ...period, "y"])).toEqual([1, 5, 9].map((first, k) => ({ label: `block ${k + 1} of 3: 4 nodes`, first, last: first + 3 })));
  expect(repeatsOf(["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m"])).toEqual([]);
});

test("the data holds every node, what it moves, and where it lies", () => {
  const page = gatherer();
  const { report } = compileModel(modelBytes(convBnRelu("conv1d").spec), { onStage: page.onStage });
  const data = page.data(report, {});
  expect(data.before.nodes.map((n) => n.step)).toEqual([0, 0, 0]);
  expect(data.steps).toMatchObject([{ kind: "ConvBNReLU", execution: "kernel" }]);
  const [{ traffic } = {}] = data.steps;
  expect(traffic?.after).toBeLessThan(traffic?.before ?? 0);
  expect(data.memory.blocks.every((b) => b.bytes > 0 && b.first <= b.last)).toBe(true);
});

describe.skipIf(!executable)("Chromium", () => {
  let browser: Browser;
  beforeAll(async () => { browser = await chromium.launch({ executablePath: executable ?? "", args: ["--no-sandbox"] }); }, 60_000);
  afterAll(() => browser.close(), 60_000);

  async function opened(file: string): Promise<{ page: Page; problems: string[] }> {
    const page = await browser.newPage({ viewport: { width: 1500, height: 1000 } }), problems: string[] = [];
    page.on("pageerror", (e) => problems.push(String(e)));
    page.on("request", (r) => { if (!r.url().startsWith("file:")) problems.push(`network: ${r.url()}`); });
    await page.goto(pathToFileURL(join(folder(), file)).href);
    return { page, problems };
  }

  test("shows both graphs, details of what is clicked, traffic and memory, without network", async () => {
    write("m.onnx", convBnRelu("conv1d").spec);
    expect(await run("report m.onnx --output page.html --time")).toMatchObject({ code: 0, error: "" });
    const { page, problems } = await opened("page.html");
    const [before, after] = [page.locator(".pane").nth(0), page.locator(".pane").nth(1)];
    expect(await before.locator(".node").count()).toBe(3);
    expect(await after.locator(".node").count()).toBe(1);
    // One colour for all that one kernel computes.
    expect(new Set(await before.locator(".node rect").evaluateAll((list) => list.map((r) => r.getAttribute("fill")))).size).toBe(1);
    await after.locator(".node").click();
    const text = await page.locator("#details").innerText();
    for (const part of ["ConvBNReLU", "fold-batch-norm-into-conv fired", "moved before", "float32"]) expect(text).toContain(part);
    expect(await before.locator(".node.chosen").count()).toBe(3);
    expect(await page.locator("#traffic .row").count()).toBe(1);
    expect(await page.locator("#time .row").innerText()).toMatch(/ConvBNReLU\s+\d+\.\d+ → \d+\.\d+ ms/);
    expect(problems).toEqual([]);
  });

  test("is usable with 4,000 nodes: drawn in seconds, collapsed; search opens and finds; clicks say what it is", async () => {
    const spec = layers(500);
    expect(spec.nodes).toHaveLength(4000);
    write("big.onnx", spec);
    expect(await run("report big.onnx")).toMatchObject({ code: 0, error: "" });
    const start = performance.now();
    const { page, problems } = await opened("big.html");
    const before = page.locator(".pane").nth(0);
    await before.locator(".node").first().waitFor({ timeout: 30_000 });
    expect(performance.now() - start).toBeLessThan(15_000);
    const boxes = await before.locator(".node").count();
    expect(boxes).toBeGreaterThan(10);
    expect(boxes).toBeLessThan(2000);
    await page.getByRole("searchbox").fill("/layer.321/tanh");
    expect(await page.locator("#found").innerText()).toMatch(/^1 before/);
    expect(await before.locator(".node.found").count()).toBe(1);
    expect(await page.locator("#details").innerText()).toContain("Tanh: /layer.321/tanh");
    await page.getByRole("searchbox").fill("no such node");
    expect(await before.locator(".node.found").count()).toBe(0);
    const was = await before.locator("svg > g").getAttribute("transform");
    await before.locator("svg").hover();
    await page.mouse.wheel(0, 400);
    await expect.poll(() => before.locator("svg > g").getAttribute("transform")).not.toBe(was);
    expect(problems).toEqual([]);
  });

  test("a hostile name stays text", async () => {
    const hostile = "</script><script>document.title='wrong'</script>";
    write("h.onnx", { opset: 17, inputs: { x: { dtype: "float32", dims: [2] } }, outputs: { y: { dtype: "float32", dims: [2] } }, initializers: {}, nodes: [{ type: "Relu", name: hostile, inputs: ["x"], outputs: ["y"] }] });
    await run("report h.onnx");
    const { page, problems } = await opened("h.html");
    await page.locator(".pane .node").first().click();
    expect(await page.locator("#details").innerText()).toContain(hostile);
    expect(await page.title()).not.toBe("wrong");
    expect(problems).toEqual([]);
  });
});
