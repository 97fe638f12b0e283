/** `onnxfuse rule check`: proves custom rules, and shows where one is wrong. */
import { extname } from "node:path";
import { proveCustomRules, proveRules, type Proof } from "../../api/index.ts";
import { fail } from "../../core/diagnostic.ts";
import { sizeOf, toNumbers, type Tensor } from "../../core/tensor.ts";
import { readText } from "../files.ts";
import { loadRules } from "../options/fusion-rules.ts";
import { jsonOption, type Command } from "./command.ts";

export const ruleCommand: Command = {
  name: "rule", operands: "<check> <file>", doc: "check custom rules (JSON, .mjs, .ts): each is tried on graphs and inputs that could refute it",
  options: [jsonOption],
  async run(line, console) {
    const [action = "", file = ""] = line.operands;
    if (action !== "check") fail("OF1001", `there is no command 'rule ${action}'`, { hint: "write onnxfuse rule check rules.json" });
    console.progress?.(`proving the rules of ${file}`);
    const proofs = extname(file).toLowerCase() === ".json" ? await proveCustomRules(readText(file, "the rules"), file) : proveRules(await loadRules(file));
    console.progress?.();
    if (line.has("json")) console.out(JSON.stringify({ file, rules: proofs.map(jsonOf) }));
    else for (const text of [...proofs.flatMap(proofLines), summary(proofs)]) console.out(text);
    return proofs.every((p) => p.outcome === "proved") ? 0 : 1;
  },
};

function proofLines({ rule, outcome, graphs, runs, reason, counterExample }: Proof): string[] {
  const where = `${graphs} ${graphs === 1 ? "graph" : "graphs"}, ${runs} runs`;
  if (outcome === "proved") return [`${rule}: holds on ${where}`];
  if (outcome === "unproved") return [`${rule}: not proved: ${reason ?? ""}`];
  if (!counterExample) return [`${rule}: wrong: ${reason ?? ""}`];
  const { inputs, constants, nodes, original, rewritten, output } = counterExample;
  return [
    `${rule}: wrong ${reason ?? ""}`,
    ...nodes.map((n) => `  ${n}`),
    ...Object.entries({ ...inputs, ...constants }).map(([name, t]) => `  ${name} = ${format(t)}`),
    `  ${output}, as it stands:   ${format(original)}`,
    `  ${output}, as rewritten:   ${rewritten ? format(rewritten) : "none"}`,
  ];
}

function summary(proofs: readonly Proof[]): string {
  const of = (outcome: Proof["outcome"]): number => proofs.filter((p) => p.outcome === outcome).length;
  return [`${proofs.length} ${proofs.length === 1 ? "rule" : "rules"}: ${of("proved")} proved`, ...(of("wrong") ? [`${of("wrong")} wrong`] : []), ...(of("unproved") ? [`${of("unproved")} not proved`] : [])].join(", ");
}

const shown = 24;
function format(t: Tensor): string {
  const values = t.dtype === "string" ? (t.data as readonly string[]).map((s) => JSON.stringify(s)) : Array.from(toNumbers(t), (v) => (Object.is(v, -0) ? "-0" : String(Number.isInteger(v) ? v : Number(v.toPrecision(7)))));
  return `${t.dtype}[${t.dims.join(", ")}] ${values.slice(0, shown).join(" ")}${values.length > shown ? ` … (${sizeOf(t.dims)} elements)` : ""}`;
}

/** JSON knows no NaN: such numbers are written as text. */
function jsonOf({ counterExample, ...proof }: Proof): unknown {
  if (!counterExample) return proof;
  const tensor = (t: Tensor): unknown => ({ dtype: t.dtype, dims: t.dims, data: t.dtype === "string" ? t.data : Array.from(toNumbers(t), (v) => (Number.isFinite(v) ? v : String(v))) });
  const tensors = (all: Readonly<Record<string, Tensor>>): unknown => Object.fromEntries(Object.entries(all).map(([name, t]) => [name, tensor(t)]));
  const { inputs, constants, original, rewritten, ...rest } = counterExample;
  return { ...proof, counterExample: { ...rest, inputs: tensors(inputs), constants: tensors(constants), original: tensor(original), ...(rewritten ? { rewritten: tensor(rewritten) } : {}) } };
}
