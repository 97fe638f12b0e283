/** The sizes a kernel's code reads: every symbolic dim in its expressions, deduplicated by key. */
import { isSymbolic, type Dim, type SymbolicDim } from "../core/dim.ts";
import type { Expr } from "./expr.ts";
import type { Stmt } from "./stmt.ts";
import { bodiesOf, visitOwnExprs } from "./traverse.ts";

/**
 * Symbolic dims that `body` reads through `dim` expressions, the extents of its reductions and the counts of its splits, in
 * order of appearance. `visit` is shown every expression on the way.
 */
export function dimsOfBody(body: Stmt, into: Map<string, SymbolicDim> = new Map(), visit: (e: Expr) => void = () => undefined): Map<string, SymbolicDim> {
  const seen = new Set<Expr>();
  const note = (d: Dim): void => { if (isSymbolic(d) && !into.has(d.key)) into.set(d.key, d); };
  const noteSizes = (e: Expr): void => {
    if (e.kind === "dim") note(e.dim);
    else if (e.kind === "reduce") for (const a of e.axes) note(a.extent);
    visit(e);
  };
  const statement = (s: Stmt): void => {
    if (s.kind === "split") { note(s.outer); note(s.inner); }
    visitOwnExprs(s, noteSizes, seen);
    for (const inner of bodiesOf(s)) statement(inner);
  };
  statement(body);
  return into;
}
