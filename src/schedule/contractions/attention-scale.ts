/**
 * A score that is the dot product times a constant, and nothing else of it, becomes the dot product of queries that were
 * multiplied before: once for every query instead of once for every score. Powers of two give the same bits; others
 * round every product once more, as sums of products do anyway. Where nothing is added to the product, the queries are
 * multiplied by log2(e) too, and weights are powers of two.
 */
import type { Expr } from "../../kernel/expr.ts";
import type { AttentionStructure } from "../../kernel/structure.ts";
import { mapExpr, operandsOf, visitExpr } from "../../kernel/traverse.ts";

/** Factors in this range take no product out of float32's range that was in it, but for what is nearly 0. */
const leastFactor = 2 ** -16;

export interface Prescaled {
  /** Its scores read the product of scaled queries. */
  readonly structure: AttentionStructure;
  /** What queries are to be multiplied by, if anything. */
  readonly scale?: number;
  /** Scores are logarithms to base 2 of what they weigh. */
  readonly binary: boolean;
}

export function prescaled(s: AttentionStructure): Prescaled {
  const factorOf = (e: Expr): number | undefined => {
    if (e.kind !== "binary" || e.op !== "mul") return undefined;
    const [x, y] = e.a.kind === "const" ? [e.b, e.a] : [e.a, e.b];
    return isDot(x) && y.kind === "const" ? Number(y.value) : undefined;
  };
  const isDot = (e: Expr): boolean => e.kind === "local" && e.name === s.dot.name;
  const factors = new Set<number>(isDot(s.score) ? [1] : []);
  visitExpr(s.score, (e) => { if (operandsOf(e).some(isDot)) factors.add(factorOf(e) ?? 1); });
  const [scale = 0] = factors;
  if (factors.size !== 1 || !(Math.abs(scale) >= leastFactor && Math.abs(scale) <= 1)) return { structure: s, binary: false };
  const score = scale === 1 ? s.score : mapExpr(s.score, (e) => (factorOf(e) === undefined || e.kind !== "binary" ? e : isDot(e.a) ? e.a : e.b));
  const structure = { ...s, score }, plain = s.sink === undefined && isChoice(score, isDot);
  if (plain) return { structure, scale: scale * Math.LOG2E, binary: true };
  return scale === 1 ? { structure: s, binary: false } : { structure, scale, binary: false };
}

/** Whether a score is the product or -∞, by conditions that do not hang on the product. */
function isChoice(e: Expr, isDot: (e: Expr) => boolean): boolean {
  if (e.kind === "const") return e.value === -Infinity;
  if (e.kind !== "select") return isDot(e);
  let free = true;
  visitExpr(e.condition, (c) => { free &&= !isDot(c); });
  return free && isChoice(e.a, isDot) && isChoice(e.b, isDot);
}
