/** The sizes a kernel's code reads: every symbolic dim in its expressions, deduplicated by key. */
import { isSymbolic, type Dim, type SymbolicDim } from "../core/dim.ts";
import type { Expr } from "./expr.ts";
import type { Stmt } from "./stmt.ts";
import { expressionsOf, visitExpr, visitStmt } from "./traverse.ts";

/** Symbolic dims that `body` reads through `dim` expressions, the extents of its reductions and the counts of its splits, in order of appearance. */
export function dimsOfBody(body: Stmt, into: Map<string, SymbolicDim> = new Map()): Map<string, SymbolicDim> {
  const seen = new Set<Expr>();
  const note = (d: Dim): void => { if (isSymbolic(d) && !into.has(d.key)) into.set(d.key, d); };
  visitStmt(body, (s) => {
    if (s.kind === "split") [s.outer, s.inner].forEach(note);
    for (const root of expressionsOf(s)) visitExpr(root, (e) => {
      if (e.kind === "dim") note(e.dim);
      if (e.kind === "reduce") e.axes.forEach((a) => note(a.extent));
    }, seen);
  });
  return into;
}
