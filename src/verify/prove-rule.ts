/**
 * The proof of a rule, as far as trying can give one: on its examples (or on graphs drawn from its conditions) it has to
 * fire, and what it makes has to give what stood there, on inputs of every kind. The first that differs is shown.
 */
import { readCustomRules, ruleEntries } from "../compiler/custom-rules/custom-rules.ts";
import type { CustomRule } from "../compiler/custom-rules/custom-rule.ts";
import { graphRuleOf } from "../compiler/custom-rules/graph-rules.ts";
import { DiagnosticError } from "../core/diagnostic.ts";
import { evaluateDim, symbolsOf } from "../core/dim.ts";
import { isTensor, type Datum } from "../core/datum.ts";
import { isFloat } from "../core/dtype.ts";
import { toNumbers, type Tensor } from "../core/tensor.ts";
import type { Graph, Value } from "../graph/graph.ts";
import { verifyGraph } from "../graph/verify.ts";
import { canonicalise } from "../passes/canonicalise.ts";
import { Ledger } from "../passes/ledger.ts";
import { interpret } from "../reference/interpret.ts";
import { applyRules } from "../rewrite/driver.ts";
import type { Numerics, Rule } from "../rewrite/rule.ts";
import { disagreement } from "./disagreement.ts";
import { generateTensor, proofKinds } from "./inputs.ts";
import { described, type CounterExample, type Proof } from "./proof.ts";
import { provedKernel } from "./prove-kernel.ts";
import { chainAsGraph, drawGraphs } from "./rule-graphs.ts";

/** Proofs of rules made by `defineRule`, one each: on their examples, and by what they must refuse. */
export const proveRules = (rules: readonly Rule[]): Proof[] => rules.map(proveRule);

/** Proofs of custom rules in JSON. Fails as `readCustomRules` does. */
export async function proveCustomRules(source: unknown, file?: string): Promise<Proof[]> {
  const out: Proof[] = [], rules = readCustomRules(source, file), entries = new Map(ruleEntries(source, file));
  for (const rule of rules) out.push(await proveCustomRule(rule, rule.kind === "chain" ? { [rule.name]: entries.get(rule.name) } : entries.get(rule.name)));
  return out;
}

function proveRule(rule: Rule): Proof {
  const wrong = (reason: string): Proof => ({ rule: rule.name, outcome: "wrong", graphs: 0, runs: 0, reason });
  for (const [code, build] of Object.entries(rule.refuses)) {
    const sites = fire(rule, build(), code !== "approximate");
    if (sites.some((s) => s.outcome === "fired")) return wrong(`it fires on the graph on which it has to refuse with '${code}'`);
    if (!sites.some((s) => s.code === code)) return wrong(`on the graph for '${code}' it refuses with ${[...new Set(sites.map((s) => `'${s.code ?? ""}'`))].join(", ") || "no code"}`);
  }
  return provedOn(rule, [rule.example, ...(rule.examples ?? [])].map((build) => ({ original: build(), rewritten: build() })), true);
}

/** `alone` is the rule's JSON, without the others of its file. */
async function proveCustomRule(rule: CustomRule, alone: unknown): Promise<Proof> {
  const graphRule = rule.kind === "chain" ? chainAsGraph(rule) : rule;
  const made = graphRuleOf(graphRule, false), drawn = drawGraphs(graphRule);
  if (drawn.length === 0) return { rule: rule.name, outcome: "unproved", graphs: 0, runs: 0, reason: "no shapes were found that its operators accept; say more of its inputs in its conditions" };
  if (!made) return provedKernel(rule.name, alone, drawn);
  const again = drawGraphs(graphRule);
  return provedOn(made, drawn.flatMap((original, i) => { const rewritten = again[i]; return rewritten ? [{ original, rewritten }] : []; }), false);
}

/** What the engine does with a graph and this rule alone. */
function fire(rule: Rule, graph: Graph, allowApproximate: boolean, canonical = true): ReturnType<typeof applyRules>["sites"] {
  if (canonical) canonicalise(graph, new Ledger());
  return applyRules(graph, [rule], { allowApproximate, verify: verifyGraph }).sites;
}

/** Compares each graph with what the rule makes of a second one like it. On examples it has to fire. */
function provedOn(rule: Rule, pairs: readonly { readonly original: Graph; readonly rewritten: Graph }[], examples: boolean): Proof {
  let graphs = 0, runs = 0;
  const refusals: string[] = [];
  for (const { original, rewritten } of pairs) {
    const sites = fire(rule, rewritten, true, examples);
    const odd = sites.find((s) => s.code === "result-type-differs");
    if (odd) return { rule: rule.name, outcome: "wrong", graphs, runs, reason: `of the graph ${described(original).nodes.join("; ")}: ${odd.reason ?? ""}` };
    if (!sites.some((s) => s.outcome === "fired")) {
      refusals.push(sites.map((s) => `${s.code}: ${s.reason}`).join("; ") || "its pattern does not match");
      continue;
    }
    graphs++;
    const compared = compare(original, rewritten, rule.numerics);
    runs += compared.runs;
    if (compared.reason !== undefined) return { rule: rule.name, outcome: "wrong", graphs, runs, reason: compared.reason, ...(compared.counterExample ? { counterExample: compared.counterExample } : {}) };
  }
  const refusal = refusals[0];
  if (graphs === 0 || (examples && refusal !== undefined)) return { rule: rule.name, outcome: "unproved", graphs, runs, reason: `it does not fire on ${examples ? "its example" : "any graph that its conditions allow"} (${refusal ?? ""})` };
  return { rule: rule.name, outcome: "proved", graphs, runs };
}

/** Sizes given to all symbols. */
const sizes: readonly number[] = [3, 1, 4];

interface Compared { readonly runs: number; readonly reason?: string; readonly counterExample?: CounterExample }

function compare(original: Graph, rewritten: Graph, numerics: Numerics): Compared {
  const symbolic = original.inputs.some((v) => v.type.shape.some((d) => symbolsOf(d).size > 0));
  const kinds = numerics.kind === "approximates" ? proofKinds.filter((k) => k === "normal" || k === "negative") : proofKinds;
  let runs = 0;
  for (const kind of kinds) for (const size of symbolic ? sizes : [1]) {
    const feeds = Object.fromEntries(original.inputs.filter((v) => !v.default).map((v, i) => [v.name, generateTensor(v.type.dtype, v.type.shape.map((d) => evaluateDim(d, () => size)), kind, 100 * size + i)]));
    const before = attempt(original, feeds);
    if (!before.results || (kind === "huge" && numerics.kind !== "exact" && before.overflowed)) continue;
    const after = attempt(rewritten, feeds);
    runs++;
    for (const [output, expected] of Object.entries(before.results)) {
      const actual = after.results?.[output];
      const found = after.results ? disagreement(expected, actual, numerics) : { reason: `the rewritten graph cannot be run: ${after.problem ?? ""}` };
      if (found) return { runs, reason: `on ${kind} inputs, '${output}': ${found.reason}`, counterExample: { kind, inputs: feeds, ...described(original), output, original: expected, ...(actual ? { rewritten: actual } : {}) } };
    }
  }
  return { runs };
}

interface Attempt {
  readonly results?: Readonly<Record<string, Tensor>>;
  /** Whether something on the way is not finite: a rule that reassociates need not overflow where the original does. */
  readonly overflowed?: boolean;
  readonly problem?: string;
}

function attempt(graph: Graph, feeds: Readonly<Record<string, Tensor>>): Attempt {
  let overflowed = false;
  const observe = (value: Value, datum: Datum): void => {
    if (isFloat(value.type.dtype) && isTensor(datum) && Array.from(toNumbers(datum)).some((x) => !Number.isFinite(x))) overflowed = true;
  };
  try {
    return { results: interpret(graph, feeds, { observe }), overflowed };
  } catch (e) {
    if (e instanceof DiagnosticError) return { problem: e.message };
    throw e;
  }
}
