/** What `atc` does: compiles or checks a model as its options say, and writes what they ask for. */
import { basename, join } from "node:path";
import { readArtifact } from "../artifact/artifact.ts";
import { DiagnosticError, fail, formatDiagnostic } from "../core/diagnostic.ts";
import { compile, optimise, type CompileOptions, type CompileResult, type OptimiseOptions } from "../api/index.ts";
import { modelJson } from "../onnx/model-json.ts";
import { operators } from "../ops/index.ts";
import { version } from "../compiler/version.ts";
import { fusionLines, refusalLines, summaryLines } from "../compiler/accounts/log-lines.ts";
import { stageText, type Stage, type StageObserver } from "../compiler/stages.ts";
import { parseOptions, type Values } from "./arguments.ts";
import { atcOptions, refusedOptions } from "./options/atc-options.ts";
import { checkModel } from "./check-model.ts";
import { parseDims } from "./options/dims.ts";
import { filesBeside, jsonText, readBytes, readModelFile, readText, writeFiles, writeJson, type OutputFile } from "./files.ts";
import { fusionOpCsv } from "./evidence/fusion-op-csv.ts";
import { fusionResult } from "./evidence/fusion-result.ts";
import { ruleOptions } from "./options/fusion-rules.ts";
import { fusionSwitchesOf } from "./options/fusion-switches.ts";
import { checkGears } from "./options/gears.ts";
import { graphDumps } from "./evidence/graph-dumps.ts";
import { parseInputShapes } from "./options/input-shapes.ts";
import { errorLines, type Console } from "./main.ts";
import { artifactJson } from "./evidence/artifact-json.ts";
import { infoLines } from "./evidence/om-info.ts";
import { inputKinds } from "../verify/inputs.ts";
import { checkAgainst } from "../verify/simplify.ts";
import { comparedLine, verificationLines } from "./evidence/verification-lines.ts";
import { parseOutputTypes } from "./options/output-types.ts";
import { savedGraphs } from "./evidence/save-graphs.ts";
import { parseStates } from "./options/states.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Runs atc; the exit code. */
export async function atc(argv: readonly string[], environment: Environment, console: Console): Promise<number> {
  try {
    if (argv.length === 1 && argv[0] === "--version") { console.out(`atc of onnxfuse ${version}`); return 0; }
    refuseForeign(argv);
    const values = parseOptions(argv, atcOptions, { name: "atc", description: "Compiles ONNX models into .om artifacts that run anywhere JavaScript does." });
    if ("help" in values && typeof values.help === "string") { console.out(values.help.trimEnd()); return 0; }
    console.out("ATC start working now, please wait for a moment.");
    await work(values as Values, environment, console);
    console.out("ATC run success, welcome to the next use.");
    return 0;
  } catch (e) {
    console.out("ATC run failed, Please check the detail log, Try 'atc --help' for more information");
    for (const line of errorLines(e)) console.error(line);
    return 1;
  }
}

/** Names options of Huawei's atc that are not offered, before anything is parsed. */
function refuseForeign(argv: readonly string[]): void {
  for (const argument of argv) {
    const name = /^--(\w+)/.exec(argument)?.[1] ?? "";
    const advice = Object.hasOwn(refusedOptions, name) ? refusedOptions[name] : undefined;
    if (advice !== undefined) fail("OF1007", `--${name} is an option of Huawei's atc that onnxfuse does not offer`, { hint: advice });
  }
}

async function work(values: Values, environment: Environment, console: Console): Promise<void> {
  const mode = values["mode"] ?? "0";
  if (mode === "1" && values["json"] === undefined) fail("OF1002", "--json is missing", { hint: "give where to write, --json=model.json" });
  if (values["om"] !== undefined && (mode === "1" || mode === "6")) return showArtifact(values["om"], values["json"], mode, console);
  if (mode === "6") fail("OF1002", "--om is missing", { hint: "give the artifact, --om=model.om" });
  const model = values["model"] ?? fail("OF1002", "--model is missing", { hint: "give the ONNX model, --model=model.onnx" });
  if ((values["framework"] ?? "5") !== "5") fail("OF1002", `--framework=${values["framework"]} is not read`, { hint: "onnxfuse reads ONNX, --framework=5" });
  if (values["target"] !== undefined && values["target"] !== "wasm") fail("OF1008", `there is no target '${values["target"]}' yet`, { hint: "use --target=wasm" });
  const source = readModelFile(model);
  if (mode === "3") {
    const report = values["check_report"] ?? "check_result.json";
    const failed = checkModel(source, model, (result) => writeJson(report, result, model));
    if (failed) throw new DiagnosticError(failed);
    return;
  }
  if (mode === "1") return writeJson(values["json"] ?? "", modelJson(source, operators, values["dump_mode"] === "1"), model);
  const output = outputPath(values);
  const budget = values["verify_budget"];
  if (budget !== undefined && !/^\d+(\.\d+)?$/.test(budget)) fail("OF1002", `--verify_budget=${budget} is not a number of seconds`);
  const debug: OutputFile[] = [];
  const dumps = graphDumps(environment), texts = debugging(values, debug);
  const options = { ...(await compileOptions(values, environment)), ...(dumps || texts ? { onStage: (stage: Stage): void => { texts?.(stage); dumps?.onStage(stage); } } : {}) };
  const savePath = environment["GE_GRAPH_SAVE_PATH"];
  const saved = savePath ? savedGraphs(source, options, savePath) : { files: [], lines: [] };
  const write = (file: OutputFile, report: CompileResult["report"], external: readonly OutputFile[]): void => {
    writeFiles([...saved.files, file, ...external, ...statistics(report, values), ...debug, ...(dumps?.files() ?? [])], model);
    for (const line of saved.lines) console.out(line);
  };
  if (values["emit"] === "onnx") {
    const path = withExtension(output, ".onnx");
    const emitted = optimise(source, { ...options, level: emitLevel(values["emit_level"]), emitFor: values["emit_for"] === "webgpu" ? "webgpu" : "cpu", externalLocation: options.externalWeights === "each" ? "weight" : `${basename(path)}.data` });
    const { model: bytes, report, typeOf, externalData } = emitted;
    if (values["verify"] === "true") console.out(`[GE] ${comparedLine(await checkAgainst(source, emitted, options, inputKinds.length))}`);
    logReport({ report, typeOf }, values["log"] ?? "null", console);
    write({ path, content: bytes }, report, filesBeside(path, externalData));
    return;
  }
  const result = await compile(source, { ...options, verify: values["verify"] === "true", ...(budget === undefined ? {} : { verifyBudget: Number(budget) }) });
  logReport(result, values["log"] ?? "null", console);
  if (result.verification) for (const line of verificationLines(result.verification)) console.out(`[GE] ${line}`);
  const path = withExtension(output, ".om");
  write({ path, content: result.artifact }, result.report, filesBeside(path, result.externalData));
  if (values["display_model_info"] === "1") for (const line of infoLines(readArtifact(result.artifact), result.artifact.length)) console.out(line);
}

/** `--emit_level`, whose choices the option lists. */
const emitLevel = (text: string | undefined): NonNullable<OptimiseOptions["level"]> => (text === "standard" || text === "ort" ? text : "functions");

/** `--debug_dir`: a text for every stage, numbered in their order; a stage that is reached again replaces its text. */
function debugging(values: Values, files: OutputFile[]): StageObserver | undefined {
  const folder = values["debug_dir"];
  return folder === undefined ? undefined : (stage) => {
    const content = stageText(stage), known = files.findIndex((f) => f.path.endsWith(`-${stage.name}.txt`));
    if (known >= 0) files[known] = { path: files[known]?.path ?? "", content };
    else files.push({ path: join(folder, `${String(files.length + 1).padStart(2, "0")}-${stage.name}.txt`), content });
  };
}

/** Modes 1 and 6 on an artifact. */
function showArtifact(file: string, json: string | undefined, mode: "1" | "6", console: Console): void {
  const bytes = readBytes(file, "the artifact");
  if (mode === "1") writeJson(json ?? "", artifactJson(bytes));
  else for (const line of infoLines(readArtifact(bytes), bytes.length)) console.out(line);
}

/** Lines of a `--keep_dtype` file: one node, or OpType::Type, each. */
function keptDtypes(path: string): readonly string[] {
  return readText(path, "the list of nodes that keep their type").split(/\r?\n/).map((l) => l.trim()).filter((l) => l !== "" && !l.startsWith("#"));
}

/** `--allow_approximate`: true, false, or names of rules. */
function allowedApproximations(text: string | undefined): boolean | readonly string[] {
  if (text === undefined || text === "false") return false;
  return text === "true" ? true : text.split(",").map((n) => n.trim()).filter((n) => n !== "");
}

/** `--precision_mode` or its newer form, of which GE takes one at a time. */
function keepsOriginTypes(values: Values): boolean {
  const first = values["precision_mode"], second = values["precision_mode_v2"];
  if (first !== undefined && second !== undefined) fail("OF1002", "--precision_mode and --precision_mode_v2 exclude each other", { hint: "give one of them" });
  return first === "must_keep_origin_dtype" || second === "origin";
}

/** `--output`, which must name a file. */
function outputPath(values: Values): string {
  const output = values["output"] ?? "";
  if (output === "") fail("OF1002", "--output is missing", { hint: "give where to write, --output=model" });
  if (/[\\/]$/.test(output) || [".", ".."].includes(basename(output))) fail("OF1002", `--output=${output} names a folder`, { place: { field: "output" }, hint: `add the file's name, --output=${join(output, "model")}` });
  return output;
}

async function compileOptions(values: Values, environment: Environment): Promise<CompileOptions> {
  const fuel = values["max_rewrites"];
  if (fuel !== undefined && !/^\d+$/.test(fuel)) fail("OF1002", `--max_rewrites=${fuel} is not a number of rewrites`);
  const inputShapes = parseInputShapes(values["input_shape"] ?? "", "input_shape");
  checkGears(values, inputShapes);
  const externalWeights = ({ 1: "each", 2: "combined" } as const)[values["external_weight"] ?? ""];
  return {
    inputShapes, dims: parseDims([values["dim"] ?? ""]),
    enableFusion: values["enable_fusion"] !== "false",
    freezeInitializers: values["freeze_initializers"] === "true",
    allowApproximate: allowedApproximations(values["allow_approximate"]),
    ...(keepsOriginTypes(values) ? { precisionMode: "must_keep_origin_dtype" as const } : {}),
    ...(fuel === undefined ? {} : { fuel: Number(fuel) }),
    reuseMemory: values["disable_reuse_memory"] !== "1",
    winograd: values["winograd"] !== "false",
    strip: values["strip"] === "true",
    ...(values["state"] === undefined ? {} : { states: parseStates([values["state"]]) }),
    ...(values["weights"] === "f16" || values["weights"] === "int8" ? { weights: values["weights"] } : {}),
    ...(values["keep_dtype"] === undefined ? {} : { keepDtype: keptDtypes(values["keep_dtype"]) }),
    ...(externalWeights === undefined ? {} : { externalWeights }),
    fusionSwitches: fusionSwitchesOf({ file: values["fusion_switch_file"], environment, level: values["oo_level"], inline: values["optimization_switch"], onlyRule: values["only_rule"] }),
    ...(await ruleOptions(values["fusion_rules"], values["rules"])),
    ...(values["output_type"] === undefined ? {} : { outputTypes: parseOutputTypes(values["output_type"]) }),
    ...(values["soc_version"] === undefined ? {} : { socVersion: values["soc_version"] }),
    ...(values["out_nodes"] === undefined ? {} : { outputs: values["out_nodes"].split(";").filter((n) => n !== "") }),
  };
}

const withExtension = (path: string, extension: string): string => (path.endsWith(extension) ? path : `${path}${extension}`);

function logReport({ report, typeOf }: Pick<CompileResult, "report" | "typeOf">, level: string, console: Console): void {
  if (level === "null" || level === "error") return;
  for (const w of report.warnings) console.out(`[GE] Warning: ${formatDiagnostic(w)}`);
  if (level === "warning") return;
  for (const line of [...fusionLines(report, typeOf), ...summaryLines(report)]) console.out(line);
  if (level === "debug") for (const line of refusalLines(report)) console.out(line);
}

function statistics(report: CompileResult["report"], values: Values): OutputFile[] {
  const form = values["export_compile_stat"] ?? "1";
  return [
    ...(form === "0" ? [] : [{ path: "fusion_result.json", content: jsonText(fusionResult(report)) }]),
    ...(form === "2" ? [{ path: "fusion_op.csv", content: fusionOpCsv(report) }] : []),
  ];
}
