/** `onnxfuse tune`: measures on this machine which schedule of each kernel is quickest, and compiles the model so. */
import { existsSync } from "node:fs";
import { compile } from "../../api/index.ts";
import { normalOptions } from "../../compiler/options.ts";
import { fail } from "../../core/diagnostic.ts";
import { choicesFrom, tune, variants, variantsFor, type Measurements } from "../../profile/tune.ts";
import { modelKey, readChoicesFile, writeChoicesFile } from "../options/choices-file.ts";
import { compileOptionsOf } from "../options/compile-options.ts";
import { assumedLines } from "../assumed-sizes.ts";
import { feedOptions, feedsFor, type FeedPlan } from "../feeds.ts";
import { readModelFile, writeFile } from "../files.ts";
import { formatBytes, table } from "../table.ts";
import { jsonOption, modelOptions, threadsOption, type Command } from "./command.ts";

/** What shells give for a process that ends by Ctrl-C. */
const interrupted = 130;

export const tuneCommand: Command = {
  name: "tune", operands: "<model.onnx>", doc: "measure which schedule of each kernel is quickest here, and compile so",
  options: [
    { flags: "output <file>", doc: "where to write the artifact (default: beside the model, .om)" },
    { ...threadsOption, doc: "measure with so many threads, and which loops they share as well (default 1)" },
    { flags: "rounds <number>", doc: "runs of each variant, in turns with the default (default 20)" },
    ...feedOptions, ...modelOptions.map((o) => (o.flags.startsWith("choices") ? { ...o, doc: "where choices are written, and read to go on (default: beside the model, .choices.json)" } : o)), jsonOption,
  ],
  async run(line, console) {
    const [model = ""] = line.operands, base = model.replace(/\.onnx$/, "");
    const file = line.value("choices") ?? `${base}.choices.json`, output = line.value("output") ?? `${base}.om`;
    const source = readModelFile(model), options = await compileOptionsOf(line, false), threads = line.count("threads", 1, 1);
    const key = modelKey(source.model, { ...normalOptions(options), ...(threads > 1 ? { threads } : {}) }), total = variantsFor(threads).length;
    const known = existsSync(file) ? readChoicesFile(file) : undefined;
    if (known && known.model !== key) fail("OF1021", "these choices were measured for another model, or with other options", { place: { file }, hint: "name another file with --choices, or remove this one" });
    if (known && !known.choices) console.error(`going on with ${file}: ${Object.keys(known.measured).length} of ${total} variants are measured`);
    let stop = false, assumed: FeedPlan["assumed"] = {}, measured: Measurements = known?.measured ?? {};
    const onSignal = (): void => { stop = true; };
    process.once("SIGINT", onSignal);
    try {
      const choices = await tune(source, options, (session, artifacts) => {
        const plan = feedsFor(session, artifacts, line);
        assumed = plan.assumed;
        return plan.feeds;
      }, {
        threads, rounds: line.count("rounds", 20, 1), known: measured, stopped: () => stop, ...(console.progress ? { onProgress: console.progress } : {}),
        onMeasured: (all) => { measured = all; writeChoicesFile(file, { model: key, measured: all }); },
      });
      console.progress?.();
      for (const text of assumedLines(assumed)) console.error(text);
      if (!choices) { console.error(`interrupted; ${Object.keys(measured).length} of ${total} variants are measured, the same command goes on`); return interrupted; }
      writeChoicesFile(file, { model: key, measured, choices });
      const { artifact } = await compile(source, { ...options, choices });
      writeFile(output, artifact, model);
      if (line.has("json")) { console.out(JSON.stringify({ choices, measured, file, output, bytes: artifact.length })); return 0; }
      for (const text of lines(measured)) console.out(text);
      console.out(file);
      console.out(`${output}: ${formatBytes(artifact.length)}`);
      return 0;
    } finally {
      process.removeListener("SIGINT", onSignal);
    }
  },
};

/** Kernels that gain, with what they take by default and as chosen. */
function lines(measured: Measurements): string[] {
  const chosen = Object.entries(choicesFrom(measured));
  const tried = new Set(Object.values(measured).flatMap((m) => Object.keys(m))).size;
  if (chosen.length === 0) return [`${tried} kernels were tried; the defaults are the quickest here`];
  const rows = chosen.map(([signature, choice]) => {
    const name = Object.entries(variants).find(([, c]) => c === choice)?.[0] ?? "", [before = 0, after = 0] = measured[name]?.[signature] ?? [];
    return [before.toFixed(1), after.toFixed(1), `${(before / after).toFixed(2)}x`, name, signature];
  });
  return [`${chosen.length} of ${tried} kernels gain by a choice:`, ...table(["default us", "chosen us", "", "choice", "kernel"], rows)];
}
