/** When an expression may be computed again, or although it may not be needed. */
import type { Expr } from "../../kernel/expr.ts";

/** Computing it again costs no more than reading a local. */
export const isCheap = (e: Expr): boolean => e.kind === "const" && e.type.lanes === 1 || e.kind === "local" || e.kind === "axis" || e.kind === "dim" || e.kind === "address" || e.kind === "relaxed";

/** True where computing a side of a select that is not chosen is harmless and cheap. */
export function isEager(e: Expr, budget = 4): boolean {
  const cost = (x: Expr): number => {
    switch (x.kind) {
      case "const": case "axis": case "dim": case "local": case "address": return 0;
      case "unary": return 1 + cost(x.a);
      case "bitcast": case "cast": case "splat": case "extract": case "extend": return 1 + cost(x.a);
      case "binary": return (x.op === "div" || x.op === "rem" ? Infinity : 1) + cost(x.a) + cost(x.b);
      case "madd": return 2 + cost(x.a) + cost(x.b) + cost(x.c);
      default: return Infinity;
    }
  };
  return cost(e) <= budget;
}
