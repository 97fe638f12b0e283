/**
 * Benchmarks one model in this process and prints JSON: our fused artifact (no input shapes given) against our unfused
 * one, our artifact with shapes pinned, and onnxruntime-web in WebAssembly, BENCH_THREADS threads each (1 unless said).
 * Usage: tsx bench/model.ts MODEL_ID [ROUNDS]; models are read from the folder named by ONNXFUSE_TEST_DATA.
 */
import * as ort from "onnxruntime-web";
import { compile } from "../dist/api/index.js";
import { load, Tensor } from "../dist/runtime/index.js";
import { loadCase } from "../test/support/cases.ts";
import { interleave, type Contestant } from "./interleave.ts";

const [id = "", rounds = "31", only = "all"] = process.argv.slice(2);
const { bytes: model, feeds } = loadCase(id);
/** Of ours and of onnxruntime-web alike. */
const threads = Number(process.env["BENCH_THREADS"] ?? 1);
/** Of each of ours: one where every session would have a pool of its own. */
const sessions = threads === 1 ? 2 : 1;

async function ours(name: string, options: Parameters<typeof compile>[1]): Promise<Contestant & { bytes: number; calls: number }> {
  const { artifact, report } = await compile(model, options);
  const inputs = Object.fromEntries(Object.entries(feeds).map(([k, t]) => [k, new Tensor(t.dtype, t.data, t.dims)]));
  const [session, ...others] = await Promise.all(Array.from({ length: sessions }, () => load(artifact, { threads })));
  if (!session) throw new Error("no session");
  return { name, bytes: artifact.byteLength, calls: report.nodes.compiled, run: () => session.run(inputs), others: others.map((s) => () => s.run(inputs)) };
}

async function peer(): Promise<Contestant> {
  ort.env.wasm.numThreads = threads;
  ort.env.logLevel = "error";
  const session = await ort.InferenceSession.create(model, { executionProviders: ["wasm"], graphOptimizationLevel: "all" });
  const inputs = Object.fromEntries(Object.entries(feeds).map(([k, t]) => [k, new ort.Tensor(t.dtype as "float32", t.data as Float32Array, t.dims)]));
  return { name: "web", run: () => session.run(inputs) };
}

const fused = await ours("fused", {});
const contestants: Contestant[] = [fused];
if (only !== "web") contestants.push(await ours("unfused", { enableFusion: false }));
if (only === "all") contestants.push(await ours("pinned", { inputShapes: Object.fromEntries(Object.entries(feeds).map(([k, t]) => [k, t.dims])) }));
if (only !== "unfused") contestants.push(await peer());
const frozenCalls = (await compile(model, { freezeInitializers: true })).report.nodes.compiled;
const result = await interleave(contestants, { rounds: Number(rounds), warmUp: only === "all" ? 1500 : 700, settle: threads === 1 ? 0 : 50 });
console.log(JSON.stringify({ id, bytes: fused.bytes, calls: fused.calls, frozenCalls, ...result }));
process.exit(0);
