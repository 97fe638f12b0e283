/** Files of choices that `onnxfuse tune` writes and `--choices` reads: what was measured, for which model, and what follows from it. */
import { checksum } from "../../artifact/checksum.ts";
import { fail } from "../../core/diagnostic.ts";
import { isChoices, type Choices, type Measurements } from "../../profile/tune.ts";
import { readText, writeJson } from "../files.ts";
import { parseJson } from "../json.ts";

const format = "onnxfuse choices 1";

export interface ChoicesFile {
  /** Of the model and the options that change its program. */
  readonly model: number;
  readonly measured: Measurements;
  /** Absent while measuring is not done. */
  readonly choices?: Choices;
}

/** What a model compiled with these options is known by. */
export const modelKey = (model: Uint8Array, options: unknown): number => checksum(new TextEncoder().encode(`${checksum(model)} ${JSON.stringify(options)}`));

const isRecord = (v: unknown): v is Readonly<Record<string, unknown>> => typeof v === "object" && v !== null && !Array.isArray(v);
const isPair = (v: unknown): boolean => Array.isArray(v) && v.length === 2 && v.every((x) => typeof x === "number" && x > 0);
const isMeasured = (v: unknown): v is Measurements => isRecord(v) && Object.values(v).every((m) => isRecord(m) && Object.values(m).every(isPair));

/** A file of choices. Fails with OF1020 for another. */
export function readChoicesFile(path: string): ChoicesFile {
  const json = parseJson(readText(path, "the choices"), path, "OF1020");
  const wrong = (what: string): never => fail("OF1020", `this is no file of choices: ${what}`, { place: { file: path }, hint: "write one with onnxfuse tune model.onnx" });
  if (!isRecord(json) || json["format"] !== format) return wrong(`it does not say "format": "${format}"`);
  const { model, measured, choices } = json;
  if (typeof model !== "number" || !isMeasured(measured)) return wrong("it says of no model what was measured");
  if (choices !== undefined && !isChoices(choices)) return wrong("its choices are none");
  return { model, measured, ...(choices ? { choices } : {}) };
}

/** The choices in a file. Fails with OF1020 where they are not there, also where measuring was interrupted. */
export function readChoices(path: string): Choices {
  return readChoicesFile(path).choices ?? fail("OF1020", "its measurements are not complete", { place: { file: path }, hint: "let onnxfuse tune go on, with the same command" });
}

export const writeChoicesFile = (path: string, file: ChoicesFile): void => writeJson(path, { format, ...file });
