/** `onnxfuse run`: once through an artifact or model. */
import { join } from "node:path";
import type { Tensor } from "../../runtime/index.ts";
import { isFloat } from "../../core/dtype.ts";
import { toNumbers } from "../../core/tensor.ts";
import { compileOptionsOf } from "../compile-options.ts";
import { feedOptions, feedsFor } from "../feeds.ts";
import { jsonText, writeFiles, type OutputFile } from "../files.ts";
import { writeNpy } from "../npy.ts";
import { openSession } from "../open.ts";
import { jsonOption, modelOptions, type Command } from "./command.ts";

export const run: Command = {
  name: "run", operands: "<artifact.om|model.onnx>", doc: "run once; prints the results",
  options: [...feedOptions, { flags: "output-dir <folder>", doc: "write each result as .npy (strings as .json)" }, ...modelOptions, jsonOption],
  async run(line, console) {
    const session = await openSession(line.operands[0] ?? "", compileOptionsOf(line));
    const { feeds, assumed } = feedsFor(session, line);
    const results = await session.run(feeds);
    const folder = line.value("output-dir");
    if (folder !== undefined) writeFiles(filesOf(folder, results));
    if (line.has("json")) {
      console.out(JSON.stringify({ outputs: Object.fromEntries(Object.entries(results).map(([name, t]) => [name, { type: t.type, dims: t.dims, data: plain(t) }])) }));
      return 0;
    }
    for (const name of Object.keys(assumed)) console.error(`size ${name} was not given; 1 is assumed (--dim ${name}=…)`);
    for (const [name, t] of Object.entries(results)) console.out(describe(name, t));
    return 0;
  },
};

/** Results as files under their names, as far as file systems take those. */
function filesOf(folder: string, results: Readonly<Record<string, Tensor>>): OutputFile[] {
  const used = new Set<string>();
  return Object.entries(results).map(([name, t]) => {
    const wanted = name.replace(/[^\w.-]/g, "_").replace(/^\.*$/, "_");
    let base = wanted;
    for (let i = 1; used.has(base.toLowerCase()); i++) base = `${wanted}_${i}`;
    used.add(base.toLowerCase());
    if (t.type === "string") return { path: join(folder, `${base}.json`), content: jsonText({ type: t.type, dims: t.dims, data: t.data }) };
    return { path: join(folder, `${base}.npy`), content: writeNpy(t.unpacked()) };
  });
}

/** Elements as JSON takes them: 64-bit integers as numbers where exact, else as text; NaN and infinities as text. */
function plain(t: Tensor): unknown[] {
  const list: readonly (number | bigint | string)[] = isFloat(t.type) ? Array.from(toNumbers(t.unpacked())) : Array.from<number | bigint | string>(t.unpacked().data);
  return list.map((v) => (typeof v === "bigint" ? (Number.isSafeInteger(Number(v)) ? Number(v) : String(v)) : typeof v === "number" && !Number.isFinite(v) ? String(v) : v));
}

function describe(name: string, t: Tensor): string {
  const head = `${name}: ${t.type} [${t.dims.join(", ")}]`;
  const first = plain(t).slice(0, 6).map((v) => (typeof v === "number" ? Number(v.toPrecision(6)) : v)).join(", ");
  if (t.type === "string" || t.size === 0) return `${head} ${first}`;
  const values = toNumbers(t.unpacked());
  let least = Infinity, most = -Infinity, sum = 0;
  for (let i = 0; i < values.length; i++) { const v = values[i] ?? 0; least = Math.min(least, v); most = Math.max(most, v); sum += v; }
  return `${head} min ${least.toPrecision(6)}, max ${most.toPrecision(6)}, mean ${(sum / values.length).toPrecision(6)}: ${first}${t.size > 6 ? ", …" : ""}`;
}
