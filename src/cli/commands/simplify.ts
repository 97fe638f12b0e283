/** `onnxfuse simplify`: a model in fewer operators of its own opset, compared with the original on generated inputs. */
import { basename } from "node:path";
import { simplify, type Simplified } from "../../api/index.ts";
import { hasExternalWeights } from "../../onnx/external-data.ts";
import { compileOptionsOf } from "../options/compile-options.ts";
import { filesBeside, readModelFile, writeFiles } from "../files.ts";
import { formatBytes, table } from "../table.ts";
import { jsonOption, modelOptions, type Command } from "./command.ts";
import { externalForm } from "./compile.ts";

export const simplifyCommand: Command = {
  name: "simplify", operands: "<in.onnx> <out.onnx>", doc: "simplify a model for any runtime: the same opset, fewer nodes",
  options: [
    { flags: "check <number>", doc: "on how many generated inputs to compare the result with the model (default 3)" },
    { flags: "external-weights <form>", doc: "keep weights in files beside the result: each, or combined (default: as the model has them)" },
    ...modelOptions, jsonOption,
  ],
  async run(line, console) {
    const [input = "", output = ""] = line.operands;
    const { model, externalData } = readModelFile(input);
    const outside = new Map<string, number>();
    const source = {
      model,
      externalData: (location: string): Uint8Array | undefined => {
        const bytes = externalData(location);
        if (bytes) outside.set(location, bytes.length);
        return bytes;
      },
    };
    const form = externalForm(line.value("external-weights")) ?? (hasExternalWeights(model) ? "combined" : undefined);
    console.progress?.(`simplifying ${input}`);
    const result = await simplify(source, { ...(await compileOptionsOf(line)), check: line.count("check", 3), ...(form === undefined ? {} : { externalWeights: form, externalLocation: `${basename(output)}.data` }) });
    console.progress?.();
    const files = [{ path: output, content: result.model }, ...filesBeside(output, result.externalData)];
    writeFiles(files);
    const bytes = { before: model.length + sum([...outside.values()]), after: sum(files.map((f) => f.content.length)) };
    if (line.has("json")) console.out(JSON.stringify({ output, operators: result.operators, nodes: { before: result.report.nodes.original, after: result.report.nodes.compiled }, bytes, check: result.check, report: result.report }));
    else for (const text of lines(result, bytes, output)) console.out(text);
    return 0;
  },
};

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

function lines({ operators: { before, after }, report, check }: Simplified, bytes: { readonly before: number; readonly after: number }, output: string): string[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const row = (name: string, a: number, b: number): string[] => [name, String(a), String(b), a === b ? "" : String(b - a)];
  return [
    ...table(["operator", "before", "after", "change"], [
      ...names.map((name) => row(name, before[name] ?? 0, after[name] ?? 0)),
      row("all nodes", sum(Object.values(before)), sum(Object.values(after))),
      ["size", formatBytes(bytes.before), formatBytes(bytes.after), ""],
    ]),
    ...report.warnings.map((w) => `warning: ${w.message}`),
    check.runs.length ? `compared with the original on ${check.runs.length} inputs: equal within ${check.tolerance.toExponential(0)}` : "not compared with the original",
    `wrote ${output}`,
  ];
}
