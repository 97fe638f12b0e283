/** What statements cost as a size, roughly in instructions: symbolic where they loop over symbolic sizes. */
import { dimAdd, dimCeilDiv, dimMul, type Dim } from "../../core/dim.ts";
import type { Expr } from "../../kernel/expr.ts";
import type { Stmt } from "../../kernel/stmt.ts";
import { expressionsOf } from "../../kernel/traverse.ts";
import { expressionCost } from "../loops/cost.ts";
import type { Loop } from "../loops/nest.ts";

/** One run of a statement, inner loops counted as often as they run; at least 1. */
export function loopWork(s: Stmt): Dim {
  switch (s.kind) {
    case "for": return dimAdd(1, dimMul(iterations(s), loopWork(s.body)));
    case "block": return s.body.reduce<Dim>((n, b) => dimAdd(n, loopWork(b)), 1);
    case "if": return s.else ? dimAdd(loopWork(s.then), loopWork(s.else)) : loopWork(s.then);
    default: return 1 + expressionCost(valuesOf(s));
  }
}
const valuesOf = (s: Stmt): readonly Expr[] => (s.kind === "store" ? [s.value] : expressionsOf(s));

/** How often a loop runs; one that does not start from 0 does what another has left. */
function iterations({ axis, begin, end, step }: Loop): Dim {
  if (begin.kind === "const" && end.kind === "const") return Math.max(0, Math.ceil((Number(end.value) - Number(begin.value)) / step));
  return begin.kind === "const" && begin.value === 0 ? dimCeilDiv(axis.extent, step) : 2;
}
