/**
 * Runs artifacts in the engine that runs this file, with the built runtime, and writes what they give: the child process
 * of test/engines.test.ts. Newer engines read it as it is. Results are lines of JSON, one an outcome behind one of the
 * engine: all together are longer than a string may be.
 * Usage: node run-jobs.ts JOBS.json RESULTS
 */
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { load, Tensor } from "../../dist/runtime/index.js";
import { supports, type Engine } from "../../src/backends/wasm/load.ts";
import { fromWire, toWire, type Wire } from "./wire.ts";

/** How an artifact is run. Code for relaxed SIMD is left out where the engine has none. */
export interface Way { readonly engine: Engine; readonly threads: number }
export interface Job { readonly name: string; readonly artifact: string; readonly feeds: Readonly<Record<string, Wire>>; readonly ways: readonly Way[] }
export interface Outcome {
  readonly name: string;
  readonly way: Way;
  readonly threads?: number;
  readonly outputs?: Readonly<Record<string, Wire>>;
  readonly error?: string;
}
/** What the jobs ran in. */
export interface Ran { readonly node: string; readonly relaxed: boolean }

async function run({ name, artifact, feeds }: Job, way: Way): Promise<Outcome> {
  try {
    const session = await load(new Uint8Array(readFileSync(artifact)), way);
    const given = Object.fromEntries(Object.entries(feeds).map(([key, wire]) => [key, Tensor.of(fromWire(wire))]));
    await session.run(given);
    const outputs = Object.fromEntries(Object.entries(await session.run(given)).map(([key, t]) => [key, toWire(t.unpacked())]));
    session.dispose();
    return { name, way, threads: session.threads, outputs };
  } catch (e) {
    return { name, way, error: String(e) };
  }
}

const [jobs = "", results = ""] = process.argv.slice(2), relaxed = supports("relaxed-simd");
writeFileSync(results, `${JSON.stringify({ node: process.versions.node, relaxed } satisfies Ran)}\n`);
for (const job of JSON.parse(readFileSync(jobs, "utf8")) as readonly Job[]) {
  for (const way of job.ways) if (relaxed || way.engine !== "relaxed-simd") appendFileSync(results, `${JSON.stringify(await run(job, way))}\n`);
}
process.exit(0);
