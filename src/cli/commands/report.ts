/** `onnxfuse report`: the fusion report as one HTML file: both graphs, why and why not, traffic, memory. */
import { compile } from "../../api/index.ts";
import { gatherer } from "../../report/gather.ts";
import { pageHtml } from "../../report/html.ts";
import { compileOptionsOf } from "../compile-options.ts";
import { parseDims } from "../dims.ts";
import { readModelFile, writeFile } from "../files.ts";
import { pageScript } from "../page-script.ts";
import { formatBytes } from "../table.ts";
import { jsonOption, modelOptions, type Command } from "./command.ts";

export const report: Command = {
  name: "report", operands: "<model.onnx>", doc: "write what fused and what did not as one HTML page",
  options: [{ flags: "output <file>", doc: "where to write (default: beside the model, .html)" }, ...modelOptions, jsonOption],
  async run(line, console) {
    const [model = ""] = line.operands;
    const script = pageScript(), page = gatherer();
    console.progress?.(`compiling ${model}`);
    const compiled = await compile(readModelFile(model), { ...compileOptionsOf(line), onStage: page.onStage });
    console.progress?.();
    const output = line.value("output") ?? `${model.replace(/\.onnx$/, "")}.html`;
    const data = page.data(compiled.report, parseDims(line.values("dim"))), text = pageHtml(data, script);
    writeFile(output, text);
    console.out(line.has("json") ? JSON.stringify({ output, bytes: text.length }) : `${output}: ${formatBytes(text.length)}`);
    return 0;
  },
};
