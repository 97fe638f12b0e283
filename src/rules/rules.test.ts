/** Every rule, by its own examples: it fires and stays equal, it refuses with the code it says, and it is named as its file. */
import { readdirSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { difference, feedsFor, kinds } from "../../test/support/rule-check.ts";
import type { Tensor } from "../core/tensor.ts";
import type { Graph } from "../graph/graph.ts";
import { verifyGraph } from "../graph/verify.ts";
import { Ledger } from "../passes/ledger.ts";
import { canonicalise } from "../passes/canonicalise.ts";
import { interpret } from "../reference/interpret.ts";
import { applyRules } from "../rewrite/driver.ts";
import { exact, type Rule } from "../rewrite/rule.ts";
import { rules } from "./index.ts";

const firings = (rule: Rule, graph: Graph, allowApproximate: boolean) => {
  canonicalise(graph, new Ledger());
  return applyRules(graph, [rule], { allowApproximate, verify: verifyGraph }).sites;
};

/** What goes wrong when a rule is applied to a graph it should fire on. */
function check(rule: Rule, build: () => Graph): string | undefined {
  const original = build(), rewritten = build();
  const sites = firings(rule, rewritten, true);
  if (!sites.some((s) => s.outcome === "fired")) return `did not fire: ${sites.map((s) => `${s.code} (${s.reason})`).join("; ") || "no candidate"}`;
  for (const kind of kinds) {
    if (rule.numerics.kind === "approximates" && kind !== "normal" && kind !== "negative") continue;
    for (const size of [1, 3]) {
      const feeds = feedsFor(original, kind, size);
      const before = interpret(original, feeds), after = interpret(rewritten, feeds);
      if (Object.keys(before).join() !== Object.keys(after).join()) return `outputs ${Object.keys(before)} became ${Object.keys(after)}`;
      for (const [name, tensor] of Object.entries(before)) {
        const wrong = difference(tensor, after[name] as Tensor, rule.numerics);
        if (wrong) return `${kind} inputs, size ${size}, output ${name}: ${wrong}`;
      }
    }
  }
  return undefined;
}

describe.each(rules.map((rule) => [rule.name, rule] as const))("%s", (_, rule) => {
  test.each([rule.example, ...(rule.examples ?? [])].map((build, i) => [i, build] as const))("fires and stays equal: example %i", (_, build) => {
    expect(check(rule, build)).toBeUndefined();
  });
  test.each(Object.entries(rule.refuses))("refuses: %s", (code, build) => {
    const sites = firings(rule, build(), code !== "approximate");
    expect(sites.map((s) => s.code ?? s.outcome)).toContain(code);
    expect(sites.filter((s) => s.outcome === "fired")).toEqual([]);
    for (const s of sites) expect([s.reason, s.remedy]).toEqual([expect.stringMatching(/./), expect.stringMatching(/./)]);
  });
  test("says what it is", () => {
    expect(rule.doc.length).toBeGreaterThan(20);
    expect(Object.keys(rule.refuses)).not.toEqual([]);
  });
});

test("rules are named as their files", () => {
  const files = readdirSync(new URL(".", import.meta.url)).filter((f) => f.endsWith(".ts")).map((f) => f.slice(0, -3));
  for (const { name } of rules) expect(files).toContain(name);
  expect(new Set(rules.map((r) => r.name)).size).toBe(rules.length);
});

test("the check notices a rule that is wrong", () => {
  const rule = rules.find((r) => r.name === "fold-batch-norm-into-conv") as Rule;
  const wrong: Rule = { ...rule, rewrite: (match, edit) => rule.rewrite({ ...match, beta: (match as { gamma: unknown }).gamma }, edit) };
  expect(check(rule, rule.example)).toBeUndefined();
  expect(check(wrong, rule.example)).toMatch(/became/);
  expect(check({ ...rule, numerics: exact }, rule.example)).toMatch(/bits differ/);
});
