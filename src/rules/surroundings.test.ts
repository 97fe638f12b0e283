/**
 * Every rule in every surrounding that its examples can be put in: whether it fires there or not, the graph stays whole,
 * its results keep their names and types, and stay equal within the rule's numerics. Then all rules at once, on examples
 * in several surroundings chosen at random.
 */
import { describe, expect, test } from "vitest";
import { randomFrom } from "../../test/support/random.ts";
import { difference, feedsFor, type Feeds, type Kind } from "../../test/support/rule-check.ts";
import { surroundings } from "../../test/support/surroundings.ts";
import { DiagnosticError } from "../core/diagnostic.ts";
import { isFloat } from "../core/dtype.ts";
import { fromNumbers, toNumbers, type Tensor } from "../core/tensor.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { Graph } from "../graph/graph.ts";
import { verifyGraph } from "../graph/verify.ts";
import { Mul, Neg, Relu } from "../ops/index.ts";
import { canonicalise } from "../passes/canonicalise.ts";
import { Ledger } from "../passes/ledger.ts";
import { simplify } from "../passes/simplify.ts";
import { interpret } from "../reference/interpret.ts";
import { applyRules } from "../rewrite/driver.ts";
import { op, value } from "../rewrite/pattern.ts";
import { defineRule, exact, reassociates, type Numerics, type Rule } from "../rewrite/rule.ts";
import { rules } from "./index.ts";

type Make = () => Graph | undefined;

const changed = (t: Tensor, f: (x: number) => number): Tensor => fromNumbers(t.dtype, t.dims, Array.from(toNumbers(t), f));
/** Inputs of a kind, all of them, and once more with conditions turned and what may be replaced replaced. */
function feedings(graph: Graph, kind: Kind, size: number): readonly Feeds[] {
  const feeds = feedsFor(graph, kind, size);
  const turned = Object.fromEntries(Object.entries(feeds).map(([name, t]) => [name, name.startsWith("surrounding_condition") ? changed(t, (x) => 1 - x) : t]));
  const defaults = graph.inputs.flatMap((v) => (v.default ? [[v.name, changed(v.default, (x) => (isFloat(v.type.dtype) ? x / 2 : x))] as const] : []));
  return [feeds, { ...turned, ...Object.fromEntries(defaults) }];
}

/** What goes wrong when `optimise` changes the graph; undefined where nothing does. */
function wrong(make: Make, optimise: (graph: Graph) => void, numerics: Numerics, kinds: readonly Kind[], sizes: readonly number[]): string | undefined {
  const original = make(), changed = make();
  if (!original || !changed) return undefined;
  optimise(changed);
  verifyGraph(changed);
  for (const kind of kinds) for (const size of sizes) for (const feeds of feedings(original, kind, size)) {
    const before = computed(original, feeds);
    if (!before) continue;
    const after = interpret(changed, feeds);
    if (Object.keys(before).join() !== Object.keys(after).join()) return `outputs ${Object.keys(before)} became ${Object.keys(after)}`;
    for (const [name, t] of Object.entries(before)) {
      const u = after[name], found = u ? difference(t, u, numerics) : "is gone";
      if (found) return `${kind} inputs, size ${size}, output ${name}: ${found}`;
    }
  }
  return undefined;
}
/** Undefined where the original itself cannot run on such inputs. */
function computed(graph: Graph, feeds: Feeds): Record<string, Tensor> | undefined {
  try { return interpret(graph, feeds); } catch (e) { if (e instanceof DiagnosticError) return undefined; throw e; }
}

const apply = (rule: Rule) => (graph: Graph): void => {
  canonicalise(graph, new Ledger());
  applyRules(graph, [rule], { allowApproximate: true, verify: verifyGraph });
};
const examplesOf = (rule: Rule): readonly (() => Graph)[] => [rule.example, ...(rule.examples ?? [])];
const kindsOf = (rule: Rule): readonly Kind[] => (rule.numerics.kind === "approximates" ? ["normal", "negative"] : ["normal", "special"]);

/** Every place of a surrounding in one example. */
function places(rule: Rule, example: () => Graph, name: string, thorough = true): string[] {
  const found: string[] = [];
  const make = (at: number): Graph | undefined => surroundings[name]?.(example(), at);
  for (let at = 0; make(at); at++) {
    const problem = wrong(() => make(at), apply(rule), rule.numerics, thorough ? kindsOf(rule) : ["normal"], thorough ? [0, 3] : [3]);
    if (problem) found.push(`place ${at}: ${problem}`);
  }
  return found;
}

describe.each(rules.map((rule) => [rule.name, rule] as const))("%s stays right where", (_, rule) => {
  test.each(Object.keys(surroundings))("%s", (name) => {
    expect(examplesOf(rule).flatMap((example, i) => places(rule, example, name, i === 0).map((p) => `example ${i}, ${p}`))).toEqual([]);
  });
  test("a size is zero", () => {
    expect(examplesOf(rule).map((example) => wrong(example, apply(rule), rule.numerics, ["normal"], [0]))).toEqual(examplesOf(rule).map(() => undefined));
  });
});

test("all rules at once stay right in several surroundings", () => {
  const random = randomFrom(20), names = Object.keys(surroundings);
  const everything = (graph: Graph): void => {
    simplify(graph, new Ledger());
    applyRules(graph, rules, { verify: verifyGraph });
    simplify(graph, new Ledger());
  };
  for (let run = 0; run < 400; run++) {
    const rule = random.pick(rules), example = random.pick(examplesOf(rule));
    const steps = Array.from({ length: 2 + random.int(2) }, () => ({ name: random.pick(names), at: random.int(6) }));
    const last = steps.findIndex((s) => s.name === "it stands in a branch");
    if (last >= 0) steps.push(...steps.splice(last, 1));
    const make: Make = () => steps.reduce<Graph>((g, { name, at }) => surroundings[name]?.(g, at) ?? g, example());
    expect(wrong(make, everything, reassociates(1e-4), ["normal"], [0, 3]), `${rule.name}: ${steps.map((s) => `${s.name} (${s.at})`).join(", ")}`).toBeUndefined();
  }
});

test("a rule that forgets who else reads a value is seen", () => {
  const careless = defineRule({
    name: "careless", doc: "Takes an inner value for its own.", numerics: exact, refuses: {},
    match: op(Relu, [op(Neg, [value("x")], { as: "negated", shared: true })]),
    rewrite({ x, negated }, edit) {
      for (const v of negated.outputs) edit.graph.replaceUses(v, x);
      return edit.insert(Relu, [edit.insert(Mul, [x, edit.constant(fromNumbers("float32", [], [-1]), "minus")])]);
    },
    example() { const b = new GraphBuilder(); return b.build(b.add(Relu, [b.add(Neg, [b.input("x", [3, 4])])])); },
  });
  expect(places(careless, careless.example, "it stands twice")).toEqual([]);
  for (const name of ["an inner value is read elsewhere", "an inner value is captured"]) expect(places(careless, careless.example, name), name).not.toEqual([]);
});
