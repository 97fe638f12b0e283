/**
 * Strength reduction: in an innermost loop, an address that moves by the same number of bytes every iteration becomes a
 * pointer that is set before the loop and moved at its end (Cocke and Kennedy, "An algorithm for reduction of operator
 * strength", 1977). Engines do not do it for WebAssembly.
 */
import { dimMul } from "../../core/dim.ts";
import { assign, block, letLocal, type Stmt } from "../../kernel/stmt.ts";
import { dimExpr, i32, local, type Axis, type Expr } from "../../kernel/expr.ts";
import { linearAdd, linearScale, type Linear } from "../../kernel/linear.ts";
import type { ExprTable } from "../../kernel/share.ts";
import { expressionsOf, mapExpr, mapStmtExprs, visitExpr, visitStmt } from "../../kernel/traverse.ts";
import { hasLoops } from "../loops/cost.ts";

type Loop = Extract<Stmt, { kind: "for" }>;

/** Beyond this many pointers, moving them costs more registers than adding the index costs time. */
const mostPointers = 8;

/** Rewrites every innermost loop. Expressions of `body` and of the result are shared through `table`. */
export function reduceStrength(body: Stmt, table: ExprTable, fresh: (hint: string) => string): Stmt {
  switch (body.kind) {
    case "block": return block(...body.body.map((s) => reduceStrength(s, table, fresh)));
    case "if": return { ...body, then: reduceStrength(body.then, table, fresh), ...(body.else ? { else: reduceStrength(body.else, table, fresh) } : {}) };
    case "split": return { ...body, body: reduceStrength(body.body, table, fresh) };
    case "for": return hasLoops(body.body) ? { ...body, body: reduceStrength(body.body, table, fresh) } : reduceLoop(body, table, fresh);
    default: return body;
  }
}

function reduceLoop(s: Loop, table: ExprTable, fresh: (hint: string) => string): Stmt {
  const inside = localsOf(s.body);
  const moving = new Map<Expr, { readonly name: string; readonly start: Expr; readonly step: Expr }>();
  for (const pointer of pointersOf(s.body)) {
    if (moving.size === mostPointers) break;
    // A loop that counts addresses already is such a pointer.
    if (pointer.kind === "axis") continue;
    const sum = table.linear(pointer);
    const own = sum.terms.find((t) => t.atom.kind === "axis" && t.atom.axis === s.axis);
    if (!own || sum.terms.some((t) => t !== own && depends(t.atom, s.axis, inside))) continue;
    const start: Linear = linearAdd({ ...sum, terms: sum.terms.filter((t) => t !== own) }, linearScale(table.linear(table.make(s.begin)), own.coefficient));
    moving.set(pointer, { name: fresh("p"), start: table.fromLinear(start), step: table.make(dimExpr(dimMul(own.coefficient, s.step))) });
  }
  if (moving.size === 0) return s;
  const body = mapStmtExprs(replaceStored(s.body, moving), (e) => table.make(mapExpr(e, (x) => {
    const to = x.kind === "loadAt" ? moving.get(x.pointer) : undefined;
    return to && x.kind === "loadAt" ? { ...x, pointer: local(to.name, i32) } : x;
  })));
  const lets = [...moving.values()].map((m) => letLocal(m.name, m.start));
  const moves = [...moving.values()].map((m) => assign(m.name, table.fromLinear(linearAdd(table.linear(table.make(local(m.name, i32))), table.linear(m.step)))));
  return block(...lets, { ...s, body: block(body, ...moves) });
}

function replaceStored(s: Stmt, moving: ReadonlyMap<Expr, { readonly name: string }>): Stmt {
  switch (s.kind) {
    case "block": return { kind: "block", body: s.body.map((b) => replaceStored(b, moving)) };
    case "if": return { ...s, then: replaceStored(s.then, moving), ...(s.else ? { else: replaceStored(s.else, moving) } : {}) };
    case "storeAt": { const to = moving.get(s.pointer); return to ? { ...s, pointer: local(to.name, i32) } : s; }
    default: return s;
  }
}

/** Every address that is read or written, in order of appearance. */
function pointersOf(body: Stmt): Set<Expr> {
  const found = new Set<Expr>(), seen = new Set<Expr>();
  visitStmt(body, (s) => {
    expressionsOf(s).forEach((root) => visitExpr(root, (e) => { if (e.kind === "loadAt") found.add(e.pointer); }, seen));
    if (s.kind === "storeAt") found.add(s.pointer);
  });
  return found;
}

function localsOf(body: Stmt): Set<string> {
  const names = new Set<string>();
  visitStmt(body, (s) => { if (s.kind === "let" || s.kind === "assign" || s.kind === "accumulate") names.add(s.name); });
  return names;
}

function depends(e: Expr, axis: Axis, locals: ReadonlySet<string>): boolean {
  let found = false;
  visitExpr(e, (x) => { if ((x.kind === "axis" && x.axis === axis) || (x.kind === "local" && locals.has(x.name)) || x.kind === "loadAt") found = true; });
  return found;
}
