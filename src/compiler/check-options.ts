/** Options as callers without types may give them: refused by name where they are not what they should be. */
import { fail, nearestName } from "../core/diagnostic.ts";
import { isChoices } from "../schedule/choices.ts";
import type { OptimiseOptions } from "./optimise.ts";

type Check = readonly [wanted: string, isRight: (value: unknown) => boolean];

const isRecord = (v: unknown): v is Readonly<Record<string, unknown>> => typeof v === "object" && v !== null && !Array.isArray(v);
/** Whether JSON can say a value: no cycles, no bigint. */
function isJson(v: unknown): boolean {
  try {
    return JSON.stringify(v) !== undefined;
  } catch {
    return false;
  }
}
const boolean: Check = ["true or false", (v) => typeof v === "boolean"];
const count: Check = ["a number of at least 0", (v) => typeof v === "number" && v >= 0];
const text: Check = ["text", (v) => typeof v === "string"];
const recordOf = (wanted: string, isRight: (value: unknown) => boolean): Check => [wanted, (v) => isRecord(v) && Object.values(v).every(isRight)];

const checks: Readonly<Record<keyof OptimiseOptions | "check" | "verify" | "verifyBudget", Check>> = {
  target: ["'wasm'", (v) => v === "wasm"],
  enableFusion: boolean, freezeInitializers: boolean, reuseMemory: boolean, winograd: boolean, separateSteps: boolean, strip: boolean, verify: boolean,
  allowApproximate: ["true, false or a list of rules", (v) => typeof v === "boolean" || (Array.isArray(v) && v.every((name) => typeof name === "string"))],
  precisionMode: ["'must_keep_origin_dtype'", (v) => v === "must_keep_origin_dtype"],
  verifyBudget: count, fuel: count, socVersion: text,
  inputShapes: recordOf("lists of sizes by input name", (v) => Array.isArray(v) && v.every((d) => d === undefined || typeof d === "number")),
  dims: recordOf("sizes by name", (v) => typeof v === "number"),
  states: recordOf("names of outputs by input name", (v) => typeof v === "string"),
  fusionSwitches: ["switches, such as { named: { ConvBNReLU: false } }", (v) => isRecord(v) && Object.keys(v).every((key) => ["allRules", "allRegions", "named"].includes(key)) && [v["allRules"], v["allRegions"]].every((on) => on === undefined || typeof on === "boolean") && (v["named"] === undefined || (isRecord(v["named"]) && Object.values(v["named"]).every((on) => typeof on === "boolean")))],
  customRules: ["JSON text or its value", isJson],
  rules: ["a list of rules", Array.isArray],
  keepDtype: ["a list of nodes, such as [\"conv_1\", \"OpType::Softmax\"]", (v) => Array.isArray(v) && v.every((name) => typeof name === "string")],
  outputs: ["a list of names", (v) => Array.isArray(v) && v.every((name) => typeof name === "string")],
  outputTypes: ["an element type, or element types by output", (v) => typeof v === "string" || isRecord(v)],
  externalWeights: ["'each' or 'combined'", (v) => v === "each" || v === "combined"],
  externalLocation: text,
  choices: ["choices by kernel, such as those in a file that onnxfuse tune writes", isChoices],
  weights: ["'f16' or 'int8'", (v) => v === "f16" || v === "int8"],
  level: ["'standard', 'functions' or 'ort'", (v) => v === "standard" || v === "functions" || v === "ort"],
  emitFor: ["'cpu' or 'webgpu'", (v) => v === "cpu" || v === "webgpu"],
  check: ["a whole number of at least 0", (v) => typeof v === "number" && Number.isSafeInteger(v) && v >= 0],
  skip: ["a list of rewrites", (v) => Array.isArray(v) && v.every((s) => isRecord(s) && typeof s["rule"] === "string" && typeof s["at"] === "string")],
  onStage: ["a function", (v) => typeof v === "function"],
};

/** Fails with OF5003 for an option that does not exist (with the nearest name), or that is not what it should be. */
export function checkOptions(options: unknown): void {
  if (!isRecord(options)) return fail("OF5003", "the options are not an object");
  for (const [name, value] of Object.entries(options)) {
    const [, check] = Object.entries(checks).find(([known]) => known === name) ?? [];
    if (!check) {
      const near = nearestName(name, Object.keys(checks));
      return fail("OF5003", `there is no option '${name}'`, { place: { field: name }, hint: near === undefined ? `the options are ${Object.keys(checks).join(", ")}` : `did you mean '${near}'?` });
    }
    if (value !== undefined && !check[1](value)) fail("OF5003", `option '${name}' is not ${check[0]}`, { place: { field: name } });
  }
}

/** Fails with OF2001 for anything but bytes, or an object that holds them. */
export function checkSource(source: unknown): void {
  const bytes = isRecord(source) && !(source instanceof Uint8Array) ? source["model"] : source;
  if (!(bytes instanceof Uint8Array)) return fail("OF2001", "the model is not a Uint8Array", { hint: "pass the file's bytes, or { model, externalData }" });
  const read = isRecord(source) && !(source instanceof Uint8Array) ? source["externalData"] : undefined;
  if (read !== undefined && typeof read !== "function") fail("OF2001", "`externalData` is not a function", { hint: "pass { model, externalData: (location) => bytes }" });
}
