/** Full unrolling of short loops with a known number of iterations, as over the windows of a pooling. */
import { isSymbolic } from "../../core/dim.ts";
import { constant, i32 } from "../../kernel/expr.ts";
import type { ExprTable } from "../../kernel/share.ts";
import { block, type Stmt } from "../../kernel/stmt.ts";
import { mapStmtExprs } from "../../kernel/traverse.ts";
import { bodyCost } from "./cost.ts";
import type { Fresh } from "../fresh.ts";
import { isWhole } from "./nest.ts";
import { scalarCopy } from "./vectorize.ts";

/** Most iterations and most operations, all copies together, of an unrolled nest. */
const mostIterations = 16, mostOperations = 160;

/** Unrolls the innermost loops of `s` as far as the limits allow, inner ones first. */
export function unrollWindows(s: Stmt, table: ExprTable, fresh: Fresh): Stmt {
  return unrolled(s, table, fresh).stmt;
}

function unrolled(s: Stmt, table: ExprTable, fresh: Fresh): { readonly stmt: Stmt; readonly copies: number } {
  switch (s.kind) {
    case "block": {
      const parts = s.body.map((b) => unrolled(b, table, fresh));
      return { stmt: block(...parts.map((p) => p.stmt)), copies: Math.max(1, ...parts.map((p) => p.copies)) };
    }
    case "if": {
      const then = unrolled(s.then, table, fresh), otherwise = s.else && unrolled(s.else, table, fresh);
      return { stmt: { ...s, then: then.stmt, ...(otherwise ? { else: otherwise.stmt } : {}) }, copies: Math.max(then.copies, otherwise?.copies ?? 0) };
    }
    case "for": {
      const body = unrolled(s.body, table, fresh);
      const { extent } = s.axis;
      const kept: Stmt = { ...s, body: body.stmt };
      if (isSymbolic(extent) || !isWhole(s) || body.copies === Infinity) return { stmt: kept, copies: Infinity };
      if (extent * body.copies > mostIterations || extent * bodyCost(body.stmt) > mostOperations) return { stmt: kept, copies: Infinity };
      const copies = Array.from({ length: extent }, (_, i) => mapStmtExprs(scalarCopy(body.stmt, new Map([[s.axis, constant(i, i32)]]), fresh), (e) => table.make(e)));
      return { stmt: block(...copies), copies: extent * body.copies };
    }
    default: return { stmt: s, copies: 1 };
  }
}
