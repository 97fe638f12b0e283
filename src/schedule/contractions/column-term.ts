/**
 * A term that is the same in every row: where an epilogue reads its accumulator only as `accumulator + term[column]`
 * (a bias), the term may be added when a tile is kept, and what is left knows nothing of columns. Same operations, same bits.
 */
import type { Expr } from "../../kernel/expr.ts";
import type { EpilogueStore } from "../../kernel/structure.ts";
import { mapExpr, operandsOf, visitExpr } from "../../kernel/traverse.ts";

export interface ColumnTerm {
  /** A load. */
  readonly term: Extract<Expr, { kind: "load" }>;
  /** The stores with the accumulator in the sum's place. */
  readonly stores: readonly EpilogueStore[];
}

/** The load that every use of the accumulator is added to; undefined where there is none. */
export function columnTerm(stores: readonly EpilogueStore[], accumulator: string): ColumnTerm | undefined {
  const users = new Set<Expr>(), seen = new Set<Expr>();
  const isAccumulator = (e: Expr): boolean => e.kind === "local" && e.name === accumulator;
  for (const s of stores) {
    if (isAccumulator(s.value)) return undefined;
    visitExpr(s.value, (e) => { if (operandsOf(e).some(isAccumulator)) users.add(e); }, seen);
  }
  const [sum, ...others] = users;
  if (!sum || others.length > 0 || sum.kind !== "binary" || sum.op !== "add") return undefined;
  const [acc, term] = isAccumulator(sum.a) ? [sum.a, sum.b] : [sum.b, sum.a];
  if (term.kind !== "load") return undefined;
  const memo = new Map<Expr, Expr>([[sum, acc]]);
  return { term, stores: stores.map((s) => ({ ...s, value: mapExpr(s.value, (e) => e, memo) })) };
}
