/** `onnxfuse report`: the fusion report as one HTML file: both graphs, why and why not, traffic, memory. */
import { compile } from "../../api/index.ts";
import { gatherer } from "../../report/gather.ts";
import { pageHtml } from "../../report/html.ts";
import type { PageData } from "../../report/page-data.ts";
import { compileOptionsOf } from "../options/compile-options.ts";
import { parseDims } from "../options/dims.ts";
import { readModelFile, writeFile } from "../files.ts";
import { feedOptions, feedsFor } from "../feeds.ts";
import { loadBeside } from "../open.ts";
import { pageScript } from "../page-script.ts";
import { profile } from "../profile.ts";
import { formatBytes } from "../table.ts";
import { jsonOption, modelOptions, type Command, type CommandLine } from "./command.ts";

export const report: Command = {
  name: "report", operands: "<model.onnx>", doc: "write what fused and what did not as one HTML page",
  options: [{ flags: "output <file>", doc: "where to write (default: beside the model, .html)" }, { flags: "time", doc: "time each kernel, fused and unfused" }, ...feedOptions, ...modelOptions, jsonOption],
  async run(line, console) {
    const [model = ""] = line.operands;
    const script = pageScript(), page = gatherer();
    console.progress?.(`compiling ${model}`);
    const compiled = await compile(readModelFile(model), { ...(await compileOptionsOf(line)), onStage: page.onStage });
    console.progress?.();
    const output = line.value("output") ?? `${model.replace(/\.onnx$/, "")}.html`;
    const plain = page.data(compiled.report, parseDims(line.values("dim")));
    const data = line.has("time") ? await timed(plain, model, line) : plain, text = pageHtml(data, script);
    writeFile(output, text, model);
    console.out(line.has("json") ? JSON.stringify({ output, bytes: text.length }) : `${output}: ${formatBytes(text.length)}`);
    return 0;
  },
};

/** The data with the time of each step, and of its nodes in the program without fusion. */
async function timed(data: PageData, model: string, line: CommandLine): Promise<PageData> {
  const source = readModelFile(model), options = { ...(await compileOptionsOf(line)), separateSteps: true, strip: true };
  const unfused = gatherer();
  const { artifact: whole } = await compile(source, options), fused = await loadBeside(whole, model);
  const { artifact, report: single } = await compile(source, { ...options, enableFusion: false, onStage: unfused.onStage });
  const plain = await loadBeside(artifact, model), { steps } = unfused.data(single, {});
  const both = [whole, artifact];
  const after = await profile(fused, feedsFor(fused, both, line), data.steps), before = await profile(plain, feedsFor(plain, both, line), steps);
  const stepOf = new Map(data.steps.flatMap((s, i) => s.nodes.map((n): [string, number] => [n, i])));
  const sums = new Map<number, number>();
  for (const [i, ms] of before) {
    const step = steps[i]?.nodes.map((n) => stepOf.get(n)).find((s) => s !== undefined);
    if (step !== undefined) sums.set(step, (sums.get(step) ?? 0) + ms);
  }
  return { ...data, steps: data.steps.map((s, i) => { const ms = after.get(i); return ms === undefined ? s : { ...s, time: { before: sums.get(i) ?? 0, after: ms } }; }) };
}
