/** Statements with other names for their locals, so that the loops of two kernels can stand in one. */
import { assertNever } from "../core/assert.ts";
import type { Expr } from "./expr.ts";
import type { Stmt } from "./stmt.ts";
import { mapExpr, mapStmtExprs } from "./traverse.ts";

/** The same loops, each local named as `name` says; `name` must keep different names different. */
export function renameLocals(body: Stmt, name: (local: string) => string): Stmt {
  const memo = new Map<Expr, Expr>();
  const read = (e: Expr): Expr => mapExpr(e, (x) => (x.kind === "local" ? { ...x, name: name(x.name) } : x), memo);
  return renamed(mapStmtExprs(body, read), name);
}

/** With other names where locals are declared or given a value. */
function renamed(s: Stmt, name: (local: string) => string): Stmt {
  switch (s.kind) {
    case "let": case "assign": case "accumulate": return { ...s, name: name(s.name) };
    case "split": return { ...s, from: name(s.from), to: name(s.to), body: renamed(s.body, name) };
    case "for": return { ...s, body: renamed(s.body, name) };
    case "block": return { ...s, body: s.body.map((inner) => renamed(inner, name)) };
    case "if": return { ...s, then: renamed(s.then, name), ...(s.else ? { else: renamed(s.else, name) } : {}) };
    case "store": case "storeAt": return s;
    default: return assertNever(s);
  }
}
