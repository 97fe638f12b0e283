/** Runs engines on models in processes of their own, in turns, so that neither disturbs the other and a machine whose speed drifts slows all alike. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { compile } from "../dist/api/index.js";
import { bytesOf } from "../src/core/tensor.ts";
import { loadCase, type ModelCase } from "../test/support/cases.ts";

export type Engine = "onnxfuse" | "onnxruntime-web" | "onnxruntime-node";

/** What engines are given, in files. */
export interface Prepared { readonly id: string; file(engine: Engine): string; readonly feeds: string }

/** Calls `work` with a model's files, which are gone afterwards. The artifact is compiled without input shapes. */
export async function prepared<T>(id: string, work: (files: Prepared) => T): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "onnxfuse-bench-")), model = loadCase(id);
  try {
    const [artifact, onnx, feeds] = ["model.om", "model.onnx", "feeds.bin"].map((f) => join(folder, f)) as [string, string, string];
    writeFileSync(artifact, (await compile(model.bytes)).artifact);
    writeFileSync(onnx, model.bytes);
    writeFileSync(feeds, feedsFile(model));
    return work({ id, feeds, file: (engine) => (engine === "onnxfuse" ? artifact : onnx) });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** JSON of names, types and places, its length in front, then the elements, each tensor at a multiple of 8. */
function feedsFile({ feeds }: ModelCase): Uint8Array {
  let end = 0;
  const places = Object.entries(feeds).map(([name, t]) => {
    const bytes = bytesOf(t), offset = end;
    end = Math.ceil((offset + bytes.length) / 8) * 8;
    return { name, type: t.dtype, dims: t.dims, offset, size: bytes.length, bytes };
  });
  const head = new TextEncoder().encode(JSON.stringify(places.map(({ bytes: _, ...place }) => place)));
  const out = new Uint8Array(4 + head.length + end);
  new DataView(out.buffer).setUint32(0, head.length, true);
  out.set(head, 4);
  for (const { offset, bytes } of places) out.set(bytes, 4 + head.length + offset);
  return out;
}

/** What a script of this folder prints for an engine and a model. */
export function inFreshProcess<T>(script: "fresh.mjs" | "steady.mjs", engine: Engine, { id, file, feeds }: Prepared, ...more: readonly string[]): T {
  const done = spawnSync(process.execPath, [join(import.meta.dirname, script), engine, file(engine), feeds, ...more], { encoding: "utf8" });
  const line = done.stdout.trim().split("\n").at(-1) ?? "";
  if (done.status !== 0 || !line.startsWith("{")) throw new Error(`${engine} on ${id}: ${done.stderr.trim().split("\n").slice(-6).join("\n")}`);
  return JSON.parse(line) as T;
}

/** The machine that results are of. */
export const machine = (): Readonly<Record<string, string | number>> => ({ cpu: cpus()[0]?.model ?? "unknown", cores: cpus().length, node: process.version, date: new Date().toISOString().slice(0, 10) });

export const median = (values: readonly number[]): number => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
