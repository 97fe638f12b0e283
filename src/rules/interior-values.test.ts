/** Every rule on its examples with an inner value as a second result: nobody's value is lost, and results stay. */
import { expect, test } from "vitest";
import { evaluateDim } from "../core/dim.ts";
import { isFloat } from "../core/dtype.ts";
import { fromNumbers, sizeOf, toNumbers } from "../core/tensor.ts";
import type { Graph } from "../graph/graph.ts";
import { verifyGraph } from "../graph/verify.ts";
import { interpret } from "../reference/interpret.ts";
import { applyRules } from "../rewrite/driver.ts";
import { rules } from "./index.ts";

/** The example with the `at`-th inner value as one more result; undefined past the last. */
function exposed(build: () => Graph, at: number): Graph | undefined {
  const graph = build();
  const inner = graph.nodes.flatMap((n) => n.outputs).filter((v) => v.uses.length > 0 && !graph.outputs.includes(v));
  const value = inner[at];
  if (value) graph.setOutputs([...graph.outputs, value]);
  return value && graph;
}

test.each(rules.map((rule) => [rule.name, rule] as const))("%s", (_, rule) => {
  let seed = 3;
  const random = (): number => (seed = (seed * 48271) % 2147483647) / 2147483647;
  for (let at = 0; ; at++) {
    const original = exposed(rule.example, at), rewritten = exposed(rule.example, at);
    if (!original || !rewritten) break;
    applyRules(rewritten, [rule], { allowApproximate: true, verify: verifyGraph });
    const feeds = Object.fromEntries(original.inputs.filter((v) => !v.default).map(({ name, type }) => {
      const dims = type.shape.map((d) => evaluateDim(d, () => 3));
      return [name, fromNumbers(type.dtype, dims, Array.from({ length: sizeOf(dims) }, () => (isFloat(type.dtype) ? 2 * random() - 1 : Math.floor(2 * random()))))];
    }));
    const before = interpret(original, feeds), after = interpret(rewritten, feeds);
    expect(Object.keys(after)).toEqual(Object.keys(before));
    const bound = rule.numerics.kind === "exact" ? 0 : Math.max(rule.numerics.bound, 1e-5);
    for (const [name, tensor] of Object.entries(before)) {
      const x = Array.from(toNumbers(tensor)), y = Array.from(toNumbers(after[name] ?? tensor));
      const most = Math.max(1, ...x.filter(Number.isFinite).map(Math.abs));
      x.forEach((v, i) => expect(Object.is(v, y[i]) ? 0 : Math.abs(v - (y[i] ?? NaN)), `${name}[${i}]`).toBeLessThanOrEqual(bound * most));
    }
  }
});
