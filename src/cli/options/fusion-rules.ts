/**
 * Files of custom rules: JSON (`--fusion_rules`, and `--rules`), or a JavaScript or TypeScript module (`--rules`). All are
 * checked before anything is compiled, and rules of modules have to prove themselves on their examples, as built-in ones
 * do in their tests.
 */
import { extname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { proveRules, ruleKit, type CompileOptions, type Rule } from "../../api/index.ts";
import { checkRules, isRuleLike } from "../../compiler/check-rules.ts";
import { readCustomRules } from "../../compiler/custom-rules/custom-rules.ts";
import { DiagnosticError, fail } from "../../core/diagnostic.ts";
import { readBytes, readText } from "../files.ts";

/** A file's text. Fails with OF4020 to OF4022, which name the file, line and field. */
export function readRulesFile(path: string): string {
  const text = readText(path, "the fusion rules");
  readCustomRules(text, path);
  return text;
}

export type RuleOptions = Pick<CompileOptions, "customRules" | "rules">;

/** The rules of `--fusion_rules` and `--rules` as options. Fails as `readRulesFile` and `loadRules` do, and with OF4027 for a rule that its own examples refute. */
export async function ruleOptions(json: string | undefined, file: string | undefined): Promise<RuleOptions> {
  if (file !== undefined && extname(file).toLowerCase() === ".json") {
    if (json !== undefined) fail("OF1018", "two files of JSON rules are given", { place: { file }, hint: "put their rules into one file" });
    return { customRules: readRulesFile(file) };
  }
  const rules = file === undefined ? [] : await loadRules(file);
  const wrong = proveRules(rules).filter((p) => p.outcome !== "proved");
  if (wrong.length) throw new DiagnosticError(wrong.map((p) => ({ code: "OF4027", message: `rule '${p.rule}' is not right: ${p.reason ?? ""}`, ...(file === undefined ? {} : { place: { file } }), hint: "onnxfuse rule check shows the inputs and both results" })));
  return { ...(json === undefined ? {} : { customRules: readRulesFile(json) }), ...(rules.length ? { rules } : {}) };
}

/** What imports a module; Node's `import` but in tests. */
export type ImportModule = (url: string) => Promise<unknown>;
const importModule: ImportModule = (url) => import(/* @vite-ignore */ url) as Promise<unknown>;

/**
 * The rules that a module exports: by default or by name, one or a list, or what a default export that is a function
 * makes of `ruleKit`. Fails with OF1019 for files that are no modules, cannot be imported or export no rules, and as
 * `checkRules` does.
 */
export async function loadRules(path: string, load: ImportModule = importModule): Promise<readonly Rule[]> {
  const kind = extname(path).toLowerCase();
  const wrong = (message: string, hint: string): never => fail("OF1019", message, { place: { file: path }, hint });
  if (![".js", ".mjs", ".ts", ".mts"].includes(kind)) wrong("rules are read from .json, .js, .mjs, .ts and .mts", "give the file one of these endings");
  readBytes(path, "the rules");
  const exported = await load(pathToFileURL(resolve(path)).href).catch((e: unknown) => wrong(...importProblem(e, kind)));
  const { default: main, ...named } = typeof exported === "object" && exported !== null ? (exported as Readonly<Record<string, unknown>>) : { default: undefined };
  const made: unknown = typeof main === "function" ? await (main as (kit: typeof ruleKit) => unknown)(ruleKit) : main;
  const rules = [...(Array.isArray(made) ? (made as readonly unknown[]) : made === undefined ? [] : [made]), ...Object.values(named).flat().filter(isRuleLike)];
  if (rules.length === 0) wrong("the file exports no rules", "write export default ({ defineRule, operator, pattern }) => [defineRule({ … })]");
  return checkRules([...new Set(rules)]);
}

function importProblem(e: unknown, kind: string): [message: string, hint: string] {
  const code = e instanceof Error && "code" in e ? String(e.code) : "", message = e instanceof Error ? e.message : String(e);
  if (code === "ERR_UNKNOWN_FILE_EXTENSION") return ["this engine does not read TypeScript", "use Node 22.18 or newer, or write the rules in JavaScript (.mjs)"];
  if (code === "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX") return [`this engine can only strip types: ${message}`, "leave out enums, namespaces and parameter properties"];
  if (kind === ".js" && e instanceof SyntaxError) return [`it cannot be read: ${message}`, "an ES module is named .mjs where its package does not say type: module"];
  return [`it cannot be imported: ${message}`, "the file is run as a module; see the message"];
}
