import { describe, expect, test } from "vitest";
import { DiagnosticError } from "../core/diagnostic.ts";
import { broadcastShapes } from "../core/dim.ts";
import { tensor } from "../core/tensor.ts";
import { GraphBuilder } from "../graph/build.ts";
import { Graph, type Value } from "../graph/graph.ts";
import { defineOp, required, type OpDef, type TypeInfo } from "../graph/op.ts";
import { applyRules, type ApplyOptions } from "./driver.ts";
import { anyOf, commuted, constant, literal, numberIn, op, optionalInput, value } from "./pattern.ts";
import { approximates, defineRule, exact, refuse, type Rule } from "./rule.ts";
import { withoutMoot, type Site } from "./site.ts";

const like = (x: TypeInfo | undefined): TypeInfo => ({ dtype: x?.dtype ?? "float32", shape: x?.shape ?? [] });
const unary = (type: string, more: Partial<OpDef> = {}): OpDef =>
  ({ ...defineOp({ type, domain: "", since: 1, inputs: { x: "required" }, attributes: {}, fusionKind: "elementwise", infer: ({ x }) => [like(x)] }), ...more });
const binary = (type: string): OpDef =>
  defineOp({ type, domain: "", since: 1, inputs: { a: "required", b: "required", c: "optional" }, attributes: {}, fusionKind: "broadcast", infer: ({ a, b }) => [{ dtype: "float32", shape: broadcastShapes(a.shape, b.shape) ?? [] }] });
const Neg = unary("Neg"), Exp = unary("Exp"), Tick = unary("Tick", { sideEffects: true }), Noise = unary("Noise", { deterministic: false });
const Add = binary("Add"), Mul = binary("Mul"), Fused = binary("Fused");
const Branch: OpDef = defineOp({ type: "Branch", domain: "", since: 1, inputs: { x: "required" }, attributes: { body: required("graph") }, fusionKind: "opaque", infer: ({ x }) => [like(x)] });

const nothing = (): Graph => new Graph();
const mulAdd: Rule = defineRule({
  name: "mul-add", doc: "", numerics: exact, example: nothing, refuses: {},
  match: commuted(Add, [commuted(Mul, [value("x"), constant("scale")], { as: "mul" }), constant("shift"), optionalInput(value("extra"))]),
  where: [({ scale }) => (numberIn(scale) === 13 ? refuse("unlucky", "scale is 13", "use 14") : true)],
  rewrite: ({ x, scale, shift, mul }, edit) => edit.insert(Fused, [x, scale, shift], {}, { name: mul.name }),
});
const negNeg: Rule = defineRule({
  name: "neg-neg", doc: "", numerics: exact, example: nothing, refuses: {},
  match: op(Neg, [op(Neg, [value("x")])]),
  rewrite: ({ x }) => x,
});

function mulAddGraph(between?: (b: GraphBuilder, product: Value) => Value, more?: (b: GraphBuilder, product: Value) => readonly Value[], scale = 2): Graph {
  const b = new GraphBuilder();
  const x = b.input("x", [2, 3]);
  const product = b.add(Mul, [b.scalar(scale), x], {}, "mul");
  const y = b.add(Add, [b.scalar(1), between ? between(b, product) : product], {}, "add");
  return b.build(y, ...(more?.(b, product) ?? []));
}
const only = (graph: Graph, rule: Rule, options: ApplyOptions = {}): Site => {
  const { sites } = applyRules(graph, [rule], options);
  expect(sites).toHaveLength(1);
  return sites[0] as Site;
};

describe("a rule that fires", () => {
  test("commutes operands, keeps the output's name and merges origins", () => {
    const graph = mulAddGraph();
    const site = only(graph, mulAdd);
    expect(site).toMatchObject({ name: "mul-add", at: "add", nodes: ["mul", "add"], outcome: "fired", nodesSaved: 1 });
    expect(graph.nodes.map((n) => [n.op.type, n.name, n.origins])).toEqual([["Fused", "mul", ["mul", "add"]]]);
    expect(graph.outputs.map((v) => v.name)).toEqual(["add_out"]);
  });
  test("cascades to a fixpoint", () => {
    const b = new GraphBuilder();
    let v = b.input("x", [2]);
    for (let i = 0; i < 7; i++) v = b.add(Neg, [v]);
    const graph = b.build(b.add(Exp, [v]));
    expect(applyRules(graph, [negNeg])).toMatchObject({ rewrites: 3, nodesSaved: 6 });
    expect(graph.nodes.map((n) => n.op.type)).toEqual(["Neg", "Exp"]);
  });
  test("works inside subgraphs", () => {
    const b = new GraphBuilder();
    const x = b.input("x", [2]);
    const inner = new GraphBuilder(new Graph("body", b.graph));
    inner.build(inner.add(Neg, [inner.add(Neg, [inner.add(Exp, [x])])]));
    const graph = b.build(b.add(Branch, [x], { body: inner.graph }));
    expect(applyRules(graph, [negNeg]).rewrites).toBe(1);
    expect(inner.graph.nodes.map((n) => n.op.type)).toEqual(["Exp"]);
  });
  test("burns fuel", () => {
    const b = new GraphBuilder();
    let v = b.input("x", [2]);
    for (let i = 0; i < 9; i++) v = b.add(Neg, [v]);
    const graph = b.build(b.add(Exp, [v]));
    expect(applyRules(graph, [negNeg], { fuel: 2 }).rewrites).toBe(2);
    expect(graph.nodeCount).toBe(6);
  });
  test("takes work that grows with the graph", () => {
    const time = (n: number): number => {
      const b = new GraphBuilder();
      let v = b.input("x", [2]);
      for (let i = 0; i < n; i++) v = b.add(Exp, [b.add(Neg, [b.add(Neg, [v])])]);
      const graph = b.build(v);
      const start = performance.now();
      expect(applyRules(graph, [negNeg]).rewrites).toBe(n);
      return performance.now() - start;
    };
    time(500);
    expect(time(16000)).toBeLessThan(80 * Math.max(time(1000), 5));
  });
});

describe("a rule that refuses says why", () => {
  const refusalOf = (graph: Graph, options?: ApplyOptions): unknown => {
    const site = only(graph, mulAdd, options);
    expect(site.outcome).toBe("refused");
    expect(site.reason).toBeTruthy();
    expect(site.remedy).toBeTruthy();
    return [site.code, site.nodes];
  };
  test("a second consumer", () => {
    expect(refusalOf(mulAddGraph(undefined, (b, p) => [b.add(Exp, [p], {}, "exp")]))).toEqual(["interior-value-used", ["mul", "add"]]);
  });
  test("an output", () => { expect(refusalOf(mulAddGraph(undefined, (_, p) => [p]))).toEqual(["graph-output", ["mul", "add"]]); });
  test("a capture", () => {
    expect(refusalOf(mulAddGraph(undefined, (b, p) => {
      const inner = new GraphBuilder(new Graph("body", b.graph));
      inner.build(inner.add(Exp, [p], {}, "exp"));
      return [b.add(Branch, [b.scalar(1)], { body: inner.graph })];
    }))).toEqual(["captured-by-subgraph", ["mul", "add"]]);
  });
  test("a value that a subgraph returns", () => {
    expect(refusalOf(mulAddGraph(undefined, (b, p) => {
      const inner = new Graph("body", b.graph);
      inner.setOutputs([p]);
      return [b.add(Branch, [b.scalar(1)], { body: inner })];
    }))).toEqual(["captured-by-subgraph", ["mul", "add"]]);
  });
  test("side effects and randomness between", () => {
    expect(refusalOf(mulAddGraph((b, p) => b.add(Tick, [p], {}, "tick")))).toEqual(["side-effect-between", ["mul", "tick", "add"]]);
    expect(refusalOf(mulAddGraph((b, p) => b.add(Noise, [p], {}, "noise")))).toEqual(["non-deterministic-between", ["mul", "noise", "add"]]);
  });
  test("another operator between is no candidate", () => {
    expect(applyRules(mulAddGraph((b, p) => b.add(Exp, [p])), [mulAdd]).sites).toEqual([]);
  });
  test("something that is not constant, or may be replaced", () => {
    const b = new GraphBuilder();
    const x = b.input("x", [2]);
    b.build(b.add(Add, [b.add(Mul, [x, b.scalar(2)], {}, "mul"), x], {}, "add"));
    expect(refusalOf(b.graph)).toEqual(["not-constant", ["mul", "add"]]);
    const c = new GraphBuilder();
    const shift = c.overridable("shift", tensor("float32", [1], new Float32Array(1)));
    c.build(c.add(Add, [c.add(Mul, [c.input("x", [2]), c.scalar(2)], {}, "mul"), shift], {}, "add"));
    expect(refusalOf(c.graph)).toEqual(["overridable-initializer", ["mul", "add"]]);
  });
  test("a guard", () => { expect(refusalOf(mulAddGraph(undefined, undefined, 13))).toEqual(["unlucky", ["mul", "add"]]); });
  test("a switch", () => {
    expect(refusalOf(mulAddGraph(), { isEnabled: () => false })).toEqual(["switched-off", ["mul", "add"]]);
    expect(refusalOf(mulAddGraph(), { isEnabled: (rule) => rule !== mulAdd })).toEqual(["switched-off", ["mul", "add"]]);
  });
  test("an approximation without consent", () => {
    const rule: Rule = { ...mulAdd, numerics: approximates(1e-3, "it rounds") };
    expect(only(mulAddGraph(), rule)).toMatchObject({ outcome: "refused", code: "approximate", reason: "it rounds" });
    expect(only(mulAddGraph(), rule, { allowApproximate: true }).outcome).toBe("fired");
  });
  test("an output that cannot take the name", () => {
    const b = new GraphBuilder();
    b.build(b.add(Neg, [b.add(Neg, [b.input("x", [2])])]));
    expect(only(b.graph, negNeg)).toMatchObject({ outcome: "refused", code: "graph-output" });
  });
});

describe("patterns", () => {
  test("the same name is the same value", () => {
    const rule = defineRule({
      name: "square", doc: "", numerics: exact, example: nothing, refuses: {},
      match: commuted(Mul, [value("x"), anyOf(op(Exp, [value("x")]), op(Neg, [value("x")]))]),
      rewrite: ({ x }, edit) => edit.insert(Fused, [x, x]),
    });
    const build = (same: boolean): Graph => {
      const b = new GraphBuilder();
      const x = b.input("x", [2]), y = b.input("y", [2]);
      return b.build(b.add(Mul, [b.add(Neg, [x], {}, "neg"), same ? x : y]));
    };
    expect(only(build(true), rule).outcome).toBe("fired");
    expect(only(build(false), rule)).toMatchObject({ outcome: "refused", code: "different-operand" });
  });
  test("literals have the tolerance of their dtype", () => {
    const rule = (x: number, relative?: number): Rule => defineRule({
      name: "third", doc: "", numerics: exact, example: nothing, refuses: {},
      match: op(Mul, [value("x"), literal(x, relative)]),
      rewrite: ({ x: v }, edit) => edit.insert(Neg, [v]),
    });
    const build = (): Graph => { const b = new GraphBuilder(); return b.build(b.add(Mul, [b.input("x", [1]), b.scalar(1 / 3)])); };
    expect(applyRules(build(), [rule(1 / 3)]).rewrites).toBe(1);
    expect(applyRules(build(), [rule(0.3333)]).rewrites).toBe(0);
    expect(applyRules(build(), [rule(0.3333, 1e-3)]).rewrites).toBe(1);
  });
  test("a shared term may be used elsewhere and then stays", () => {
    const rule = defineRule({
      name: "shared", doc: "", numerics: exact, example: nothing, refuses: {},
      match: op(Neg, [op(Exp, [value("x")], { shared: true })]),
      rewrite: ({ x }, edit) => edit.insert(Fused, [x, x]),
    });
    const b = new GraphBuilder();
    const e = b.add(Exp, [b.input("x", [2])]);
    b.build(b.add(Neg, [e]), e);
    expect(only(b.graph, rule)).toMatchObject({ outcome: "fired", nodesSaved: 0 });
    expect(b.graph.nodes.map((n) => n.op.type)).toEqual(["Exp", "Fused"]);
  });
});

test("rules that undo each other are stopped", () => {
  const swap = (name: string, from: OpDef, to: OpDef): Rule =>
    defineRule({ name, doc: "", numerics: exact, example: nothing, refuses: {}, match: op(from, [value("x")]), rewrite: ({ x }, edit) => edit.insert(to, [x]) });
  const b = new GraphBuilder();
  b.build(b.add(Neg, [b.input("x", [1])]));
  expect(() => applyRules(b.graph, [swap("there", Neg, Exp), swap("back", Exp, Neg)])).toThrow(DiagnosticError);
});

test("a refusal is moot when its nodes took part in one rewrite that fired", () => {
  const site = (name: string, nodes: readonly string[], outcome: Site["outcome"]): Site => ({ kind: "rule", name, at: "n", nodes, outcome });
  const sites = [site("a", ["p", "q"], "refused"), site("b", ["p", "q", "r"], "fired"), site("c", ["q", "s"], "refused")];
  expect(withoutMoot(sites).map((s) => s.name)).toEqual(["b", "c"]);
});

test("recognition takes the longest spelling, also where a rewrite beside it has its nodes looked at again", () => {
  const short: Rule = defineRule({
    name: "mul", doc: "", numerics: exact, example: nothing, refuses: {}, stage: "recognise",
    match: op(Mul, [value("a"), value("b")]), rewrite: ({ a, b }, edit) => edit.insert(Fused, [a, b]),
  });
  const recognised = [{ ...mulAdd, stage: "recognise" as const }, short, { ...negNeg, stage: "recognise" as const }];
  const graph = mulAddGraph(undefined, (b, product) => [b.add(Exp, [b.add(Neg, [b.add(Neg, [product.producer?.node.inputs[1]])])])]);
  expect(applyRules(graph, recognised).sites.filter((s) => s.outcome === "fired").map((s) => s.name)).toEqual(["neg-neg", "mul-add"]);
  expect(applyRules(mulAddGraph(), [short]).sites.map((s) => s.name)).toEqual(["mul"]);
});
