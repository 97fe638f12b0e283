/** What loop bodies cost, roughly in instructions, to choose between ways of running them. */
import type { Expr } from "../../kernel/expr.ts";
import type { Stmt } from "../../kernel/stmt.ts";
import { expressionsOf, operandsOf, someStmt, visitStmt } from "../../kernel/traverse.ts";
import { typical } from "./strides.ts";

/** Operations of an expression itself. */
export function operationCost(e: Expr): number {
  switch (e.kind) {
    case "const": case "axis": case "dim": case "local": case "address": case "relaxed": return 0;
    case "unary":
      switch (e.op) {
        case "neg": case "abs": case "not": case "floor": case "ceil": case "trunc": case "nearest": case "isnan": case "isinf": return 1;
        case "sqrt": return 4;
        case "decay": case "silu": return 20;
        case "exp": case "log": return 28;
        case "gelu": return 40;
        case "tanh": case "erf": return 50;
        default: return 80;
      }
    case "binary":
      if (e.op === "pow") return 120;
      return e.op === "div" || e.op === "rem" ? 4 : 1;
    default: return 1;
  }
}

/** Functions that no vector of float32 has: its lanes are computed one after the other. */
export function isLaneByLane(e: Expr): boolean {
  if (e.kind === "binary") return e.op === "pow";
  if (e.kind !== "unary") return false;
  switch (e.op) {
    case "sin": case "cos": case "tan": case "asin": case "acos": case "atan": case "sinh": case "cosh": case "asinh": case "acosh": case "atanh": return true;
    default: return false;
  }
}

/** Operations of expressions, each distinct one once, that are not index arithmetic. */
export function expressionCost(roots: readonly Expr[], seen: Set<Expr> = new Set()): number {
  let cost = 0;
  const visit = (e: Expr): void => {
    if (seen.has(e)) return;
    seen.add(e);
    cost += operationCost(e);
    if (e.kind !== "load") operandsOf(e).forEach(visit);
  };
  roots.forEach(visit);
  return cost;
}

/** One run of a statement, inner loops counted as often as they run. */
export function bodyCost(s: Stmt): number {
  switch (s.kind) {
    case "for": return typical(s.axis.extent) * (1 + bodyCost(s.body));
    case "block": {
      const seen = new Set<Expr>();
      return s.body.reduce((n, b) => n + (b.kind === "for" || b.kind === "if" || b.kind === "block" ? bodyCost(b) : expressionCost(valuesOf(b), seen)), 0);
    }
    case "if": return 1 + Math.max(bodyCost(s.then), s.else ? bodyCost(s.else) : 0);
    default: return expressionCost(valuesOf(s));
  }
}
const valuesOf = (s: Stmt): readonly Expr[] => (s.kind === "store" ? [s.value] : expressionsOf(s));

/** One run of the costliest innermost loop's body, weighed for its latency: what it folds waits for the last fold. */
export function innermostCost(s: Stmt): number {
  let most = 0;
  visitStmt(s, (x) => {
    if (x.kind !== "for" || hasLoops(x.body)) return;
    let folds = 0;
    visitStmt(x.body, (y) => { if (y.kind === "accumulate") folds += y.op === "max" || y.op === "min" ? 6 : 1; });
    most = Math.max(most, bodyCost(x.body) + folds);
  });
  return most;
}

export const hasLoops = (s: Stmt): boolean => someStmt(s, (x) => x.kind === "for");
