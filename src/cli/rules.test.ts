/** `--rules` and `onnxfuse rule check`, as they are used. */
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { modelBytes, type ModelSpec } from "../../test/support/model-spec.ts";
import { DiagnosticError } from "../core/diagnostic.ts";
import { atc } from "./atc-command.ts";
import { loadRules } from "./options/fusion-rules.ts";
import { onnxfuse } from "./onnxfuse-command.ts";

const folder = mkdtempSync(join(tmpdir(), "onnxfuse-rules-"));
const file = (name: string, text: string | Uint8Array): string => { const path = join(folder, name); writeFileSync(path, text); return path; };
const run = async (...argv: string[]): Promise<{ code: number; out: string; error: string }> => {
  const out: string[] = [], error: string[] = [];
  const code = await onnxfuse(argv, { out: (l) => out.push(l), error: (l) => error.push(l) });
  return { code, out: out.join("\n"), error: error.join("\n") };
};
const x = { dtype: "float32" as const, dims: ["n", 3] };
const spec: ModelSpec = { opset: 17, inputs: { x }, outputs: { y: x }, initializers: {}, nodes: [{ type: "Neg", name: "minus", inputs: ["x"], outputs: ["m"] }, { type: "Abs", name: "size", inputs: ["m"], outputs: ["y"] }] };
const model = file("model.onnx", modelBytes(spec));

const rule = (made: string): string => `
export default ({ defineRule, operator, pattern, exact, GraphBuilder }) => defineRule({
  name: "abs-of-neg", doc: "The sign does not matter to the absolute value.", numerics: exact,
  match: pattern.op(operator("Abs"), [pattern.op(operator("Neg"), [pattern.value("x")])]),
  rewrite: (m, edit) => edit.insert(operator("${made}"), [m.x]),
  example() { const b = new GraphBuilder(); return b.build(b.add(operator("Abs"), [b.add(operator("Neg"), [b.input("x", ["n", 3])])])); },
  refuses: {},
});`;
const right = file("right.mjs", rule("Abs")), wrong = file("wrong.mjs", rule("Relu"));

describe("--rules", () => {
  it("compiles with rules of a module, before the built-in ones", async () => {
    const { code, out } = await run("compile", model, "--rules", right, "--json", "--output", join(folder, "a.om"));
    expect(code).toBe(0);
    const { report } = JSON.parse(out) as { report: { sites: { name: string; outcome: string; nodes: string[] }[] } };
    expect(report.sites).toContainEqual(expect.objectContaining({ name: "abs-of-neg", outcome: "fired", nodes: ["minus", "size"] }));
    expect(readFileSync(join(folder, "a.om")).includes('"rules":["abs-of-neg"]')).toBe(true);
  });
  it("goes into emitted ONNX, which --verify compares with the model", async () => {
    const { code, out } = await run("compile", model, "--rules", right, "--emit", "onnx", "--emit-level", "ort", "--verify", "--output", join(folder, "e.onnx"));
    expect([code, out]).toEqual([0, expect.stringMatching(/\nCompared with the original on 6 inputs: equal within 1e-5\n/) as string]);
  });
  it("works in atc too", async () => {
    const lines: string[] = [];
    const code = await atc([`--model=${model}`, `--output=${join(folder, "b")}`, "--framework=5", `--rules=${right}`, "--log=info", "--export_compile_stat=0"], {}, { out: (l) => lines.push(l), error: (l) => lines.push(l) });
    expect([code, lines.join("\n")]).toEqual([0, expect.stringMatching(/After optimization: 1 nodes/) as string]);
  });
  it("refuses a rule that its example refutes, and writes nothing", async () => {
    const { code, error } = await run("compile", model, "--rules", wrong, "--output", join(folder, "c.om"));
    expect(code).toBe(1);
    expect(error).toMatch(/OF4027: rule 'abs-of-neg' is not right: on normal inputs/);
    expect(() => readFileSync(join(folder, "c.om"))).toThrow();
  });
  it("says what is wrong with a file", async () => {
    const codes = async (name: string, text: string): Promise<string> => (await run("compile", model, "--rules", file(name, text), "--output", join(folder, "d.om"))).error.slice(0, 6);
    expect(await codes("none.mjs", "export const a = 1;")).toBe("OF1019");
    expect(await codes("broken.mjs", "export default (")).toBe("OF1019");
    expect(await codes("rules.yaml", "")).toBe("OF1019");
    expect(await codes("part.mjs", "export default { name: 'x', match: { kind: 'op', ops: [], inputs: [] }, rewrite() {} };")).toBe("OF4024");
    expect(await codes("taken.mjs", rule("Abs").replace("abs-of-neg", "fold-add-into-conv"))).toBe("OF4025");
    expect(await codes("foreign.mjs", rule("Abs").replace('operator("Abs"), [pattern', '{ ...operator("Abs") }, [pattern'))).toBe("OF4026");
    expect(await codes("unknown.mjs", rule("Abss"))).toBe("OF4022");
    expect((await run("compile", model, "--rules", join(folder, "gone.mjs"))).error).toMatch(/^OF1004/);
  });
  it("says which engine reads TypeScript", async () => {
    const path = file("typed.ts", "export default [];");
    const unreadable = (): Promise<never> => Promise.reject(Object.assign(new TypeError("Unknown file extension"), { code: "ERR_UNKNOWN_FILE_EXTENSION" }));
    const error: unknown = await loadRules(path, unreadable).catch((e: unknown) => e);
    expect(error instanceof DiagnosticError && error.diagnostics[0]).toMatchObject({ code: "OF1019", hint: expect.stringMatching(/22\.18/) as string });
  });
});

const json = (by: string): string => JSON.stringify({
  RuleName: "Twice", OuterInputs: [{ name: "In0" }], OuterOutputs: [{ name: "Out0" }],
  OriginGraph: { Nodes: [{ name: "A", type: "Relu" }, { name: "B", type: "Relu" }], Edges: [{ src: "In0", dst: "A" }, { src: "A", dst: "B" }, { src: "B", dst: "Out0" }] },
  FusionGraph: { Nodes: [{ name: "N", type: by }], Edges: [{ src: "In0", dst: "N" }, { src: "N", dst: "Out0" }] },
});

describe("rule check", () => {
  it("says on how much a rule holds", async () => {
    expect(await run("rule", "check", right)).toEqual({ code: 0, error: "", out: "abs-of-neg: holds on 1 graph, 21 runs\n1 rule: 1 proved" });
    expect((await run("rule", "check", file("right.json", json("Relu")))).out).toMatch(/^Twice: holds on \d+ graphs, \d+ runs\n1 rule: 1 proved$/);
  });
  it("shows a counter-example", async () => {
    const { code, out } = await run("rule", "check", file("wrong.json", json("Abs")));
    expect(code).toBe(1);
    expect(out).toMatch(/^Twice: wrong on \w+ inputs, 'B_out': element \d+: -?[\d.]+ became [\d.]+/);
    expect(out).toMatch(/\n {2}A_out = Relu\(In0\)\n {2}B_out = Relu\(A_out\)\n {2}In0 = float32\[.*\n {2}B_out, as it stands: .*\n {2}B_out, as rewritten: .*\n1 rule: 0 proved, 1 wrong$/);
  });
  it("gives it as JSON", async () => {
    const { code, out } = await run("rule", "check", wrong, "--json");
    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject({ rules: [{ rule: "abs-of-neg", outcome: "wrong", counterExample: { kind: "normal", original: { dtype: "float32" }, rewritten: { dtype: "float32" } } }] });
  });
  it("knows no other action", async () => {
    expect((await run("rule", "chek", right)).error).toMatch(/OF1001/);
  });
});
