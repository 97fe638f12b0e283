/** `onnxfuse run`: once through an artifact or model. */
import { join } from "node:path";
import { Tensor, type DatumMap, type RunValue } from "../../runtime/index.ts";
import { isFloat } from "../../core/dtype.ts";
import { toNumbers } from "../../core/tensor.ts";
import { compileOptionsOf } from "../options/compile-options.ts";
import { assumedLines } from "../assumed-sizes.ts";
import { feedOptions, feedsFor } from "../feeds.ts";
import { jsonText, writeFiles, type OutputFile } from "../files.ts";
import { writeNpy } from "../npy.ts";
import { openSession } from "../open.ts";
import { jsonOption, modelOptions, threadsOption, type Command } from "./command.ts";

export const run: Command = {
  name: "run", operands: "<artifact.om|model.onnx>", doc: "run once; prints the results",
  options: [...feedOptions, { flags: "output-dir <folder>", doc: "write each result as .npy (strings, sequences, optionals and maps as .json)" }, threadsOption, ...modelOptions, jsonOption],
  async run(line, console) {
    const { session, artifact } = await openSession(line.operands[0] ?? "", await compileOptionsOf(line), line.count("threads", 1, 1));
    for (const w of session.warnings) console.error(`${w.code}: ${w.message}`);
    const { feeds, assumed } = feedsFor(session, [artifact], line);
    const results = await session.run<Record<string, RunValue>>(feeds);
    const folder = line.value("output-dir");
    if (folder !== undefined) writeFiles(filesOf(folder, results));
    if (line.has("json")) {
      console.out(JSON.stringify({ outputs: Object.fromEntries(Object.entries(results).map(([name, value]) => [name, json(value)])) }));
      return 0;
    }
    for (const text of assumedLines(assumed)) console.error(text);
    for (const [name, value] of Object.entries(results)) for (const text of lines(name, value)) console.out(text);
    return 0;
  },
};

/** Results as files under their names, as far as file systems take those. */
function filesOf(folder: string, results: Readonly<Record<string, RunValue>>): OutputFile[] {
  const used = new Set<string>();
  return Object.entries(results).map(([name, value]) => {
    const wanted = name.replace(/[^\w.-]/g, "_").replace(/^\.*$/, "_");
    let base = wanted;
    for (let i = 1; used.has(base.toLowerCase()); i++) base = `${wanted}_${i}`;
    used.add(base.toLowerCase());
    if (!(value instanceof Tensor) || value.type === "string") return { path: join(folder, `${base}.json`), content: jsonText(json(value)) };
    return { path: join(folder, `${base}.npy`), content: writeNpy(value.unpacked()) };
  });
}

/** A value as JSON: tensors with type and dims, sequences as lists, an optional that holds nothing as null, maps as objects. */
function json(value: RunValue): unknown {
  if (value === null) return null;
  if (value instanceof Tensor) return { type: value.type, dims: value.dims, data: plain(value) };
  if (value instanceof Map) return Object.fromEntries([...(value as DatumMap)].map(([key, v]) => [String(key), scalar(v)]));
  return (value as readonly RunValue[]).map(json);
}

/** A line a tensor; sequences and maps say how much they hold first. */
function lines(name: string, value: RunValue): string[] {
  if (value === null) return [`${name}: nothing`];
  if (value instanceof Tensor) return [describe(name, value)];
  if (value instanceof Map) return [`${name}: a map of ${value.size}: ${[...(value as DatumMap)].slice(0, 6).map(([key, v]) => `${String(key)} → ${String(v)}`).join(", ")}${value.size > 6 ? ", …" : ""}`];
  const items = value as readonly RunValue[];
  return [`${name}: a sequence of ${items.length}`, ...items.slice(0, 20).flatMap((x, i) => lines(`  ${name}[${i}]`, x)), ...(items.length > 20 ? ["  …"] : [])];
}

const scalar = (v: number | bigint | string): unknown => (typeof v === "bigint" ? (Number.isSafeInteger(Number(v)) ? Number(v) : String(v)) : typeof v === "number" && !Number.isFinite(v) ? String(v) : v);

/** Elements as JSON takes them: 64-bit integers as numbers where exact, else as text; NaN and infinities as text. */
function plain(t: Tensor): unknown[] {
  const list: readonly (number | bigint | string)[] = isFloat(t.type) ? Array.from(toNumbers(t.unpacked())) : Array.from<number | bigint | string>(t.unpacked().data);
  return list.map(scalar);
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
