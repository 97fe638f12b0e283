/** Removes locals that nothing reads, with all that is assigned to them, and loops and branches left empty. Expressions have no effects. */
import { expressionsOf, visitExpr, visitStmt } from "../../kernel/traverse.ts";
import type { Expr } from "../../kernel/expr.ts";
import { block, type Stmt } from "../../kernel/stmt.ts";

export function dropUnused(body: Stmt): Stmt {
  const read = liveLocals(body);
  const keep = (s: Stmt): boolean => (s.kind !== "let" && s.kind !== "assign" && s.kind !== "accumulate") || read.has(s.name);
  const clean = (s: Stmt): Stmt => {
    if (!keep(s)) return block();
    switch (s.kind) {
      case "block": return block(...s.body.map(clean));
      case "split": case "for": { const inner = clean(s.body); return isEmpty(inner) ? inner : { ...s, body: inner }; }
      case "if": {
        const then = clean(s.then), otherwise = s.else && clean(s.else);
        return isEmpty(then) && (!otherwise || isEmpty(otherwise)) ? block() : { ...s, then, ...(otherwise ? { else: otherwise } : {}) };
      }
      default: return s;
    }
  };
  return clean(body);
}

const isEmpty = (s: Stmt): boolean => s.kind === "block" && s.body.length === 0;

/** Locals that stores, loop bounds and conditions need, directly or through other locals. */
function liveLocals(body: Stmt): Set<string> {
  const sources = new Map<string, Expr[]>();
  const live = new Set<string>();
  const pending: Expr[] = [];
  visitStmt(body, (s) => {
    if (s.kind === "let" || s.kind === "assign" || s.kind === "accumulate") {
      const list = sources.get(s.name);
      if (list) list.push(s.value);
      else sources.set(s.name, [s.value]);
    } else pending.push(...expressionsOf(s));
  });
  const seen = new Set<Expr>();
  for (let root = pending.pop(); root; root = pending.pop()) {
    visitExpr(root, (e) => {
      if (e.kind !== "local" || live.has(e.name)) return;
      live.add(e.name);
      pending.push(...(sources.get(e.name) ?? []));
    }, seen);
  }
  return live;
}
