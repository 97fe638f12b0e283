/** Every rule, by its own examples: it fires and stays equal, it refuses with the code it says, and it is named as its file. */
import { readdirSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { isFloat, type DType } from "../core/dtype.ts";
import { evaluateDim } from "../core/dim.ts";
import { fromNumbers, sizeOf, toNumbers, type Tensor } from "../core/tensor.ts";
import type { Graph } from "../graph/graph.ts";
import { verifyGraph } from "../graph/verify.ts";
import { Ledger } from "../passes/ledger.ts";
import { canonicalise } from "../passes/canonicalise.ts";
import { interpret } from "../reference/interpret.ts";
import { applyRules } from "../rewrite/driver.ts";
import { exact, type Numerics, type Rule } from "../rewrite/rule.ts";
import { rules } from "./index.ts";

type Feeds = Readonly<Record<string, Tensor>>;
const kinds = ["normal", "negative", "zero", "large", "denormal", "special"] as const;
type Kind = (typeof kinds)[number];

/** Inputs of one kind; symbolic sizes are `size`. */
function feedsFor(graph: Graph, kind: Kind, size: number): Feeds {
  let seed = 7;
  const random = (): number => (seed = (seed * 48271) % 2147483647) / 2147483647;
  const normal = (): number => Math.sqrt(-2 * Math.log(random())) * Math.cos(2 * Math.PI * random());
  const specials = [NaN, Infinity, -Infinity, -0, 0, 1];
  const number: Readonly<Record<Kind, () => number>> = {
    normal, negative: () => -Math.abs(normal()), zero: () => 0, large: () => (random() < 0.5 ? -1e4 : 1e4),
    denormal: () => 1e-40 * normal(), special: () => (random() < 0.2 ? specials[Math.floor(random() * specials.length)] ?? 0 : normal()),
  };
  const element = (dtype: DType): number => (isFloat(dtype) ? number[kind]() : Math.floor(random() * 2));
  return Object.fromEntries(graph.inputs.filter((v) => !v.default).map(({ name, type }) => {
    const dims = type.shape.map((d) => evaluateDim(d, () => size));
    return [name, fromNumbers(type.dtype, dims, Array.from({ length: sizeOf(dims) }, () => element(type.dtype)))];
  }));
}

/** Why two tensors differ by more than the numerics allow; undefined where they do not. */
function difference(a: Tensor, b: Tensor, numerics: Numerics): string | undefined {
  if (a.dtype !== b.dtype || a.dims.join() !== b.dims.join()) return `${a.dtype}[${a.dims}] became ${b.dtype}[${b.dims}]`;
  const x = toNumbers(a), y = toNumbers(b);
  if (numerics.kind === "exact") {
    const at = Array.from(x).findIndex((v, i) => !Object.is(v, y[i]));
    return at < 0 ? undefined : `bits differ: element ${at}: ${x[at]} became ${y[at]}`;
  }
  const most = Math.max(...Array.from(x, (v) => (Number.isFinite(v) ? Math.abs(v) : 0)));
  const unit = a.dtype === "float16" ? 2 ** 13 : 1;
  for (let i = 0; i < x.length; i++) {
    const p = x[i] ?? NaN, q = y[i] ?? NaN;
    if (Object.is(p, q) || p === q) continue;
    if (!(Math.abs(p - q) <= numerics.bound * unit * most + 1e-38)) return `element ${i}: ${p} became ${q} (largest ${most})`;
  }
  return undefined;
}

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
