/** Loops over elements that stay apart say why, once a pair; what the remedy says makes them one. */
import { describe, expect, test } from "vitest";
import { GraphBuilder } from "../graph/build.ts";
import type { Value } from "../graph/graph.ts";
import type { OpDef } from "../graph/op.ts";
import * as op from "../ops/index.ts";
import type { Site } from "../rewrite/site.ts";
import { partition } from "./partition.ts";

type Build = (b: GraphBuilder) => readonly Value[];
function parts(build: Build, isEnabled = (): boolean => true): { readonly kernels: number; readonly refusals: readonly Site[] } {
  const b = new GraphBuilder(), graph = b.build(...build(b));
  const { regions, sites } = partition(graph, { fusion: true, isEnabled, opTypesOf: (n) => n.replace(/\d+$/, "") });
  return { kernels: regions.filter((r) => r.execution === "kernel").length, refusals: sites.filter((s) => s.outcome === "refused") };
}

const firstRows = (b: GraphBuilder, x: Value): Value => b.add(op.Neg, [b.add(op.Slice, [x, b.int64(0), b.int64(2), b.int64(0)], {}, "slice")], {}, "neg");
const rowSums = (b: GraphBuilder, x: Value): Value => b.add(op.Sub, [x, b.add(op.MatMul, [x, b.random([6, 1])], {}, "matmul")], {}, "sub");
const manyResults = (count: number): Build => (b) => {
  let v = b.add(op.Exp, [b.input("x", [8, 6])], {}, "exp");
  const all = [v];
  while (all.length < count) all.push((v = b.add(op.Tanh, [v], {}, `tanh${all.length}`)));
  return all;
};
const chain = (length: number, of: OpDef = op.Neg): Build => (b) => {
  let v = b.input("x", [8, 6]);
  for (let i = 0; i < length; i++) v = b.add(of, [v], {}, `link${i}`);
  return [v];
};

/** By code: a graph whose loops stay apart, and one that differs in the reason alone, with its count of kernels. */
const apart: Readonly<Record<string, readonly [refused: Build, joined: Build, kernels?: number]>> = {
  "loops-differ": [
    (b) => { const y = b.add(op.Exp, [b.input("x", [8, 6])], {}, "exp"); return [firstRows(b, y), y]; },
    (b) => [firstRows(b, b.add(op.Exp, [b.input("x", [8, 6])], {}, "exp"))],
  ],
  "work-repeated": [
    (b) => [b.add(op.Add, [b.add(op.Exp, [b.input("x", [1, 6])], {}, "exp"), b.input("z", [500, 6])], {}, "add")],
    (b) => [b.add(op.Add, [b.add(op.Exp, [b.input("x", [500, 6])], {}, "exp"), b.input("z", [500, 6])], {}, "add")],
  ],
  "residual-cycle": [
    (b) => [rowSums(b, b.add(op.Exp, [b.input("x", [8, 6])], {}, "exp"))],
    (b) => { const x = b.input("x", [8, 6]); return [b.add(op.Sub, [b.add(op.Exp, [x], {}, "exp"), b.add(op.MatMul, [x, b.random([6, 1])], {}, "matmul")], {}, "sub")]; },
    2,
  ],
  "concatenation-between": [
    (b) => [b.add(op.Neg, [b.add(op.Concat, [b.add(op.MatMul, [b.input("x", [8, 6]), b.random([6, 6])], {}, "matmul"), b.input("z", [8, 6])], { axis: 0 }, "concat")], {}, "neg")],
    (b) => [b.add(op.Neg, [b.add(op.Concat, [b.add(op.Abs, [b.input("x", [8, 6])], {}, "abs"), b.input("z", [8, 6])], { axis: 0 }, "concat")], {}, "neg")],
  ],
  "interior-value-used": [manyResults(6), manyResults(4)],
  "group-full": [chain(130), chain(128)],
  "switched-off": [chain(2), chain(2)],
};

describe("loops over elements stay apart", () => {
  test.each(Object.entries(apart))("%s", (code, [refused, joined, kernels = 1]) => {
    const { refusals, kernels: more } = parts(refused, () => code !== "switched-off");
    expect(refusals.filter((s) => s.name === "FusedElementwise").map((s) => s.code), JSON.stringify(refusals)).toEqual([code]);
    expect(more).toBe(code === "concatenation-between" ? 3 : kernels + 1);
    for (const s of refusals) expect([s.reason, s.remedy, s.nodes.length > 1]).toEqual([expect.stringMatching(/./), expect.stringMatching(/./), true]);
    expect(parts(joined).kernels).toBe(kernels);
  });
  test("where expressions would nest too deep to be walked", () => {
    const { kernels, refusals } = parts(chain(47, op.Tanh));
    expect([kernels, refusals.map((s) => s.code)]).toEqual([2, ["group-full"]]);
    expect(refusals[0]?.reason).toMatch(/^47 nodes of about 611 operations an element/);
    expect(parts(chain(46, op.Tanh))).toEqual({ kernels: 1, refusals: [] });
    expect(parts((b) => [b.add(op.Relu, [b.add(op.MatMul, [...chain(1)(b), b.random([6, 2])], {}, "matmul")], {}, "relu")]).refusals).toEqual([]);
  });
  test("with one record a pair, however many readers a value has", () => {
    const readers = (count: number): Build => (b) => { const x = b.input("x", [8, 6]); return Array.from({ length: count }, (_, i) => b.add(op.Tanh, [x], {}, `tanh${i}`)); };
    expect(parts(readers(4))).toEqual({ kernels: 1, refusals: [] });
    const { kernels, refusals } = parts(readers(41));
    expect(kernels).toBe(11);
    expect(refusals.length).toBe(10);
    expect(new Set(refusals.map((s) => s.nodes.join())).size).toBe(10);
  });
  test("where a view between them is read elsewhere", () => {
    const through = (shared: boolean): Build => (b) => {
      const view = b.add(op.Unsqueeze, [b.add(op.Exp, [b.input("x", [8, 6])], {}, "exp"), b.int64(1)], {}, "unsqueeze"), y = b.add(op.Neg, [view], {}, "neg");
      return shared ? [y, b.add(op.MatMul, [view, b.random([6, 2])], {}, "matmul")] : [y];
    };
    expect(parts(through(true))).toMatchObject({ kernels: 3, refusals: [{ code: "interior-value-used", nodes: ["exp", "unsqueeze", "neg"], remedy: expect.stringMatching(/^none/) as string }] });
    expect(parts(through(false))).toEqual({ kernels: 1, refusals: [] });
  });
  test("and a remedy is only given where it helps", () => {
    const used = (b: GraphBuilder): readonly Value[] => { const y = b.add(op.Exp, [b.input("x", [1, 6])], {}, "exp"); return [b.add(op.Add, [y, b.input("z", [500, 6])], {}, "add"), y]; };
    expect(parts(apart["loops-differ"]?.[0] ?? used).refusals[0]?.remedy).toBe("use 'exp_out' nowhere else");
    expect(parts(used).refusals[0]).toMatchObject({ code: "loops-differ", remedy: expect.stringMatching(/^none/) as string });
  });
});

test("a border around what is interpolated is computed with it; a picture that is copied is copied whole", () => {
  const bordered = (mode: string, size: number): Build => (b) => {
    const larger = b.add(op.Resize, [b.input("x", [1, 2, size, size]), undefined, b.numbers([1, 1, 2, 2])], { mode });
    return [b.add(op.Pad, [larger, b.int64(0, 0, 1, 1, 0, 0, 1, 1)], { mode: "edge" })];
  };
  expect([bordered("linear", 40), bordered("nearest", 40), bordered("linear", 4)].map((b) => parts(b).kernels)).toEqual([1, 2, 2]);
});
