/** `onnxfuse compile`: a model into an artifact, or into optimised ONNX. */
import { basename } from "node:path";
import { compile, optimise, type Report, type Verification } from "../../api/index.ts";
import { fail } from "../../core/diagnostic.ts";
import { summaryLines } from "../../compiler/accounts/log-lines.ts";
import { compileOptionsOf } from "../options/compile-options.ts";
import { filesBeside, readModelFile, writeFiles } from "../files.ts";
import { inputKinds } from "../../verify/inputs.ts";
import { checkAgainst } from "../../verify/simplify.ts";
import { comparedLine, verificationLines } from "../evidence/verification-lines.ts";
import { formatBytes } from "../table.ts";
import { jsonOption, modelOptions, type Command } from "./command.ts";

export const compileCommand: Command = {
  name: "compile", operands: "<model.onnx>", doc: "compile a model into an artifact that runs anywhere",
  options: [
    { flags: "output <file>", doc: "where to write (default: beside the model, .om)" },
    { flags: "emit <form>", doc: "om, or onnx for other runtimes" },
    { flags: "emit-level <level>", doc: "of emitted ONNX: functions (default: regions as model-local functions), standard (operators of the model's opset only) or ort (onnxruntime's own too)" },
    { flags: "emit-for <provider>", doc: "with --emit-level ort: onnxruntime's execution provider, cpu (default) or webgpu" },
    { flags: "external-weights <form>", doc: "keep weights in files beside the result: each, or combined" },
    { flags: "strip", doc: "leave the fusion report out" },
    { flags: "verify", doc: "compare the result with the original model" },
    { flags: "verify-budget <seconds>", doc: "how long verification may take (default 60)" },
    ...modelOptions, jsonOption,
  ],
  async run(line, console) {
    const [model = ""] = line.operands;
    const emit = line.value("emit") ?? "om";
    if (emit !== "om" && emit !== "onnx") fail("OF1002", `--emit ${emit} is not accepted`, { hint: "use om or onnx" });
    const level = line.value("emit-level") ?? "functions";
    if (level !== "standard" && level !== "functions" && level !== "ort") fail("OF1002", `--emit-level ${level} is not accepted`, { hint: "use standard, functions or ort" });
    const emitFor = line.value("emit-for") ?? "cpu";
    if (emitFor !== "cpu" && emitFor !== "webgpu") fail("OF1002", `--emit-for ${emitFor} is not accepted`, { hint: "use cpu or webgpu" });
    const source = readModelFile(model);
    const output = line.value("output") ?? model.replace(/\.onnx$/, "") + (emit === "om" ? ".om" : ".fused.onnx");
    const external = externalForm(line.value("external-weights"));
    const options = { ...(await compileOptionsOf(line)), strip: line.has("strip"), ...(external === undefined ? {} : { externalWeights: external }) };
    console.progress?.(`compiling ${model}${line.has("verify") ? " and verifying it" : ""}`);
    let bytes: Uint8Array, report: Report, externalData: Readonly<Record<string, Uint8Array>>, verification: Verification | undefined;
    let compared: string | undefined;
    if (emit === "onnx") {
      const emitted = optimise(source, { ...options, level, emitFor, externalLocation: external === "each" ? "weight" : `${basename(output)}.data` });
      ({ model: bytes, report, externalData } = emitted);
      if (line.has("verify")) compared = comparedLine(await checkAgainst(source, emitted, options, inputKinds.length));
    }
    else ({ artifact: bytes, report, externalData, verification } = await compile(source, { ...options, verify: line.has("verify"), verifyBudget: line.count("verify-budget", 60) }));
    console.progress?.();
    writeFiles([{ path: output, content: bytes }, ...filesBeside(output, externalData)], model);
    if (line.has("json")) console.out(JSON.stringify({ output, bytes: bytes.length, report, ...(verification ? { verification } : {}) }));
    else for (const text of [...summaryLines(report).map((l) => l.replace(/^\[GE\] /, "")), ...report.warnings.map((w) => `warning: ${w.message}`), ...(verification ? verificationLines(verification) : []), ...(compared === undefined ? [] : [compared]), `${output}: ${formatBytes(bytes.length)}`]) console.out(text);
    return 0;
  },
};

/** The value of `--external-weights`. Fails with OF1002. */
export function externalForm(form: string | undefined): "each" | "combined" | undefined {
  if (form === undefined || form === "each" || form === "combined") return form;
  return fail("OF1002", `--external-weights ${form} is not accepted`, { hint: "use each or combined" });
}
