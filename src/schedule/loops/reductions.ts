/** Reductions inside expressions become loops that accumulate into a local, before the statement that uses them. */
import { constant, dimExpr, i32, local, type Axis, type Expr } from "../../kernel/expr.ts";
import { block, loop, type Stmt } from "../../kernel/stmt.ts";
import { mapChildren, mapStmtExprs, someExprOf } from "../../kernel/traverse.ts";
import type { Fresh } from "../fresh.ts";

type Reduce = Extract<Expr, { kind: "reduce" }>;

/**
 * The body without `reduce`. A reduction below a select is computed whatever the condition says, so its loads must be
 * within their buffers regardless.
 */
export function expandReductions(body: Stmt, fresh: Fresh): Stmt {
  if (!someExprOf(body, (e) => e.kind === "reduce")) return body;
  switch (body.kind) {
    case "block": return block(...body.body.map((s) => expandReductions(s, fresh)));
    case "split": return { ...body, body: expandReductions(body.body, fresh) };
    case "for": return expandOwn({ ...body, body: expandReductions(body.body, fresh) }, fresh);
    case "if": return expandOwn({ ...body, then: expandReductions(body.then, fresh), ...(body.else ? { else: expandReductions(body.else, fresh) } : {}) }, fresh);
    default: return expandOwn(body, fresh);
  }
}

/** The reductions in the statement's own expressions. */
function expandOwn(s: Stmt, fresh: Fresh): Stmt {
  const before: Stmt[] = [];
  const memo = new Map<Expr, Expr>();
  const expand = (e: Expr): Expr => {
    let out = memo.get(e);
    if (!out) memo.set(e, (out = e.kind === "reduce" ? accumulate(e, before, fresh) : mapChildren(e, expand)));
    return out;
  };
  const own = mapStmtExprs(s, expand);
  return block(...before, own);
}

function accumulate(e: Reduce, before: Stmt[], fresh: Fresh): Expr {
  const name = fresh("r");
  before.push(expandReductions({ kind: "let", name, value: e.init }, fresh));
  const add: Stmt = expandReductions({ kind: "accumulate", name, op: e.op, value: e.body }, fresh);
  before.push([...e.axes].reverse().reduce((inner: Stmt, axis: Axis) => loop(axis, constant(0, i32), dimExpr(axis.extent), 1, inner), add));
  return local(name, e.type);
}
