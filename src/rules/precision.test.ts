/** Folding in narrow types: what overflows or loses too much is not folded, and the refusal says which channel and why. */
import { expect, test } from "vitest";
import type { DType } from "../core/dtype.ts";
import { toNumbers } from "../core/tensor.ts";
import { GraphBuilder } from "../graph/build.ts";
import { BatchNormalization, Conv, Dropout, Mul } from "../ops/index.ts";
import { applyRules } from "../rewrite/driver.ts";
import type { Site } from "../rewrite/site.ts";
import { foldBatchNormIntoConv } from "./fold-batch-norm-into-conv.ts";
import { mergeFactors } from "./merge-factors.ts";

function fold(dtype: DType, gamma: number, weight: number, between?: "dropout"): { readonly site: Site; readonly folded: readonly number[] } {
  const b = new GraphBuilder();
  const numbers = (...values: readonly number[]) => b.numbers(values, [values.length], dtype);
  const y = b.add(Conv, [b.input("x", [1, 1, 2, 2], dtype), b.numbers([weight, 0.5], [2, 1, 1, 1], dtype)], {}, "conv");
  const dropped = between ? b.add(Dropout, [y, 0.5, b.numbers([1], [], "bool")], {}, "drop") : y;
  const graph = b.build(b.add(BatchNormalization, [dropped, numbers(gamma, 1), numbers(0, 0), numbers(0, 0), numbers(1, 1)], { epsilon: 0 }, "norm"));
  const [site] = applyRules(graph, [foldBatchNormIntoConv]).sites;
  if (!site) throw new Error("no candidate");
  const constant = graph.nodes[0]?.inputs[1]?.constant;
  return { site, folded: constant ? Array.from(toNumbers(constant)) : [] };
}

test("a float16 weight that fits is folded, computed in float64 and rounded once", () => {
  expect(fold("float16", 3, 0.1)).toMatchObject({ site: { outcome: "fired" }, folded: [0.2998046875, 0.5] });
});
test("a float16 weight that overflows refuses", () => {
  expect(fold("float16", 300, 300).site).toMatchObject({ outcome: "refused", code: "precision-loss", reason: expect.stringMatching(/9\.00?.*e\+4 at element 0, which overflows float16/), nodes: ["conv", "norm"] });
  expect(fold("float32", 300, 300).site.outcome).toBe("fired");
});
test("a float16 weight that becomes denormal refuses", () => {
  expect(fold("float16", 1e-3, 1e-4).site).toMatchObject({ outcome: "refused", code: "precision-loss", reason: expect.stringMatching(/would lose .* of channel 0 in float16/) });
  expect(fold("float32", 1e-3, 1e-4).site.outcome).toBe("fired");
});
test("training Dropout between stands in the way", () => {
  expect(fold("float32", 1, 1, "dropout").site).toMatchObject({ outcome: "refused", code: "non-deterministic-between", nodes: ["conv", "drop", "norm"] });
});
test("factors between which a value would overflow or vanish stay apart", () => {
  const reason = (first: number, second: number): string | undefined => {
    const b = new GraphBuilder(), y = b.add(Mul, [b.add(Mul, [b.input("x", [2]), b.scalar(first)]), b.scalar(second)]);
    return applyRules(b.build(y), [mergeFactors]).sites.find((s) => s.outcome === "refused")?.reason;
  };
  expect([reason(1e-6, 1e6), reason(1e6, 1e-6), reason(-2, 0)]).toEqual([expect.stringMatching(/small values/), expect.stringMatching(/large values to infinity, times/), expect.stringMatching(/large values to infinity, times 0/)]);
  expect([reason(0.1, 1e6), reason(1e6, 2), reason(8, 0.5), reason(0.5, 0)]).toEqual([undefined, undefined, undefined, undefined]);
});
