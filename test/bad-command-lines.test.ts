/**
 * Command lines drawn at random: known and unknown options, right and wrong values, missing and foreign files, folders
 * for files, outputs that cannot be written, environment variables. Each succeeds, or prints diagnostics and leaves every
 * file as it was.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { compile } from "../src/api/index.ts";
import { atc } from "../src/cli/atc-command.ts";
import { atcOptions, refusedOptions } from "../src/cli/options/atc-options.ts";
import { modelOptions } from "../src/cli/commands/command.ts";
import { onnxfuse } from "../src/cli/onnxfuse-command.ts";
import { float } from "./support/article-models.ts";
import { modelBytes, type ModelSpec } from "./support/model-spec.ts";

const seed = Number(process.env["ONNXFUSE_FUZZ_SEED"] ?? 1), numRuns = Number(process.env["ONNXFUSE_FUZZ_CASES"] ?? 150);

const small: ModelSpec = {
  opset: 13, inputs: { x: { dtype: "float32", dims: ["N", 4] } }, outputs: { y: { dtype: "float32", dims: ["N", 4] } }, initializers: { c: float([4], [1, 2, 3, 4]) },
  nodes: [{ type: "Add", name: "add", inputs: ["x", "c"], outputs: ["a"] }, { type: "Relu", name: "relu", inputs: ["a"], outputs: ["y"] }],
};
const fixture = new Map<string, Uint8Array | string>([
  ["m.onnx", modelBytes(small)], ["cut.onnx", modelBytes(small).subarray(0, 60)], ["empty", ""], ["unknown.onnx", modelBytes({ ...small, nodes: [{ type: "Addd", inputs: ["x", "c"], outputs: ["y"] }] })],
  ["rules.json", '{"mine": {"pattern": ["Add", "Relu"], "output_op": "Mine", "conditions": {}}}'], ["wrong.json", '{"mine": {"pattern": "Add", "output": 3}, "constructor": []}'], ["broken.json", '{\n"a": ]'],
  ["switches.json", '{"Switch":{"UBFusion":{"ALL":"off","__proto__":"on"}}}'], ["switches.cfg", "ALL:off\nFusedElementwise:on\n"], ["bad.cfg", "constructor:on\nA:of\n"],
  ["x.json", "[[1, 2, 3, 4]]"], ["deep.json", `${"[".repeat(50_000)}${"]".repeat(50_000)}`], ["ragged.json", "[[1, 2], [3]]"], ["x.npy", "\x93NUMPY"], ["x.raw", new Uint8Array(16)], ["binary", Uint8Array.from({ length: 300 }, (_, i) => i * 7)],
]);

let folder = "", home = "";
function lay(): void {
  for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true, force: true });
  for (const [name, content] of fixture) writeFileSync(join(folder, name), content);
  mkdirSync(join(folder, "folder.om"));
}
/** Every path with what it holds. */
const snapshot = (): string[] => readdirSync(folder, { recursive: true }).map(String).sort().map((name) => `${name} ${statSync(join(folder, name)).isDirectory() ? "is a folder" : readFileSync(join(folder, name)).toString("base64")}`);

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "onnxfuse-lines-"));
  home = process.cwd();
  const { artifact } = await compile(modelBytes(small));
  fixture.set("m.om", artifact).set("cut.om", artifact.subarray(0, 700));
  process.chdir(folder);
  lay();
});
afterAll(() => { process.chdir(home); rmSync(folder, { recursive: true, force: true }); });

const files = [...fixture.keys(), "m.om", "cut.om", "none.onnx", "folder.om", ".", "", "/proc/nowhere/o", "m.onnx/o", "deep/er/o", "o", "o", "o.onnx", "x".repeat(300), "-", "ü o"];
const counts = ["0", "1", "2", "-1", "1.5", "", "NaN", "x"];
const texts = [
  ...counts, "9".repeat(30), "true", "false", "constructor", "__proto__", "toString:on", "constructor:off;constructor:off", "FusedElementwise:off", "ALL:on;ALL:off", "fold-batch-norm-into-conv", "x:2,4", "x:-1,4", "x:1~8,4", "x:", "x:a", "z:1", "x:4;x:4", "N=3", "N=-1", "M=2", "N=3,N=4", "__proto__=3",
  "x:9999999999999999999999,4", "y", "relu:0", "add:0;y", "add:99999999999", "FP16", "y:FP16", "y:constructor", "z:FP16", "1,2,4", "1,2;3,4", "null", "debug", "info", "O1", "O3", "om", "onnx", "standard", "each", "combined", "x=x.json", "x=x.npy", "x=x.raw", "x=deep.json", "z=x.json", "=", "x=none", "OpType::Relu", "\u0001", "a".repeat(5000),
];
const value = (name: string): fc.Arbitrary<string> => (/iterations|warmup|check$|budget|seed/.test(name) ? fc.constantFrom(...counts) : /weight|mode|level|number|stat|info|reuse/.test(name) ? fc.constantFrom("0", "1", "2", "3", "6", ...texts) : fc.oneof(fc.constantFrom(...texts), fc.constantFrom(...files)));
const given = (name: string): fc.Arbitrary<string[]> => fc.tuple(value(name), fc.integer({ min: 0, max: 9 })).map(([v, form]) => (form === 0 ? [`--${name}`] : form < 4 ? [`--${name}`, v] : [`--${name}=${v}`]));

const atcNames = [...atcOptions.map((o) => o.name), ...Object.keys(refusedOptions).slice(0, 3), "constructor", "valueOf", "modle", "input_shap"];
const atcLine = fc.tuple(
  fc.constantFrom(["--model=m.onnx"], ["--model=m.onnx"], ["--model=m.onnx"], ["--model=cut.onnx"], ["--model=unknown.onnx"], [], ["--om=m.om", "--mode=6"]), fc.constantFrom(["--output=o"], ["--output=o"], ["--output", "deep/er/o"], []),
  fc.array(fc.constantFrom(...atcNames).chain(given), { maxLength: 4 }),
).map((parts) => parts.flat(2));

const commands = ["compile", "run", "run", "bench", "profile", "explain", "report", "inspect", "compare", "simplify", "rule", "compil", "constructor", ""];
const names = [...modelOptions.map((o) => o.flags.split(" ")[0] ?? ""), "output", "emit", "emit-level", "external-weights", "strip", "verify", "verify-budget", "input", "seed", "output-dir", "json", "iterations", "warmup", "node", "rule", "missed", "steps", "time", "tolerance", "check", "constructor"];
const line = fc.tuple(
  fc.constantFrom(...commands), fc.array(fc.oneof(fc.constantFrom("m.onnx", "m.om"), fc.constantFrom(...files)), { minLength: 1, maxLength: 2 }), fc.array(fc.constantFrom(...names).chain(given), { maxLength: 3 }),
).map(([command, operands, options]) => [command, ...operands, ...options.flat(), ...(command === "bench" ? ["--iterations=1", "--warmup=0"] : [])]);

const variables = ["DUMP_GE_GRAPH", "DUMP_GRAPH_LEVEL", "DUMP_GRAPH_FORMAT", "DUMP_GRAPH_PATH", "GE_GRAPH_SAVE_PATH", "GE_DISABLE_CONV_BN_RELU_FUSION", "GE_DISABLE_constructor_FUSION", "GE_DISABLE___proto___FUSION"];
const environment = fc.oneof({ weight: 2, arbitrary: fc.constant({}) }, { weight: 1, arbitrary: fc.dictionary(fc.constantFrom(...variables), fc.oneof(fc.constantFrom("1", "2", "3", "4", "readable", "onnx", "ge_proto", "PreRunBegin|AfterUbFusion", "PreRunBegn"), fc.constantFrom(...files)), { minKeys: 1, maxKeys: 4 }) });

interface Printed { readonly out: readonly string[]; readonly error: readonly string[] }
async function printed(run: (console: { out(l: string): void; error(l: string): void }) => Promise<number>): Promise<Printed & { readonly code: number }> {
  const out: string[] = [], error: string[] = [];
  const code = await run({ out: (l) => out.push(l), error: (l) => error.push(l) });
  return { code, out, error };
}

/** Checks a finished command and lays the files anew where it may have changed them. `writes`: this failure is one that writes its report. */
function judge({ code, out, error }: Printed & { readonly code: number }, before: readonly string[], { silent, writes }: { readonly silent: boolean; readonly writes: boolean }): void {
  const said = error.flatMap((e) => e.split("\n"));
  expect([0, 1]).toContain(code);
  if (code === 1) {
    for (const l of said) expect(l).toMatch(/^(OF[1-7]\d{3}: |size .* was not given)/);
    expect(said.some((l) => l.startsWith("OF")) || silent, out.join("\n")).toBe(true);
    expect(Math.max(0, ...said.map((l) => l.length))).toBeLessThan(5000);
    if (!writes) expect(snapshot()).toEqual(before);
  } else expect(said.filter((l) => !l.startsWith("size "))).toEqual([]);
  if (code === 0 || writes) lay();
}

describe("command lines drawn at random", () => {
  const outcomes = { done: 0, refused: 0 };
  const count = (code: number): void => { if (code === 0) outcomes.done++; else outcomes.refused++; };
  it(`atc, ${numRuns} times from seed ${seed}`, { timeout: 3_600_000 }, async () => {
    await fc.assert(fc.asyncProperty(atcLine, environment, async (argv, env) => {
      const before = snapshot(), done = await printed((c) => atc(argv, env, c));
      count(done.code);
      judge(done, before, { silent: false, writes: argv.some((a, i) => a === "--mode=3" || (a === "3" && argv[i - 1] === "--mode")) });
    }), { seed, numRuns });
  });
  it(`onnxfuse, ${numRuns} times from seed ${seed}`, { timeout: 3_600_000 }, async () => {
    await fc.assert(fc.asyncProperty(line, async (argv) => {
      const before = snapshot(), done = await printed((c) => onnxfuse(argv, c));
      count(done.code);
      // What differs is an answer of its own.
      judge(done, before, { silent: argv[0] === "compare" && done.out.length > 0, writes: false });
    }), { seed, numRuns, examples: ["deep", "ragged"].map((name) => [["run", "m.onnx", "--input", `x=${name}.json`]]) });
  });
  it("both outcomes were had", () => {
    expect(outcomes.done).toBeGreaterThan(numRuns / 20);
    expect(outcomes.refused).toBeGreaterThan(numRuns / 4);
  });
  it("a file that changes is seen", async () => {
    const before = snapshot();
    writeFileSync(join(folder, "empty"), "x");
    expect(() => judge({ code: 1, out: [], error: ["OF1001: no"] }, before, { silent: false, writes: false })).toThrow();
    expect(() => judge({ code: 1, out: [], error: ["TypeError: no"] }, snapshot(), { silent: false, writes: false })).toThrow();
    lay();
  });
});
