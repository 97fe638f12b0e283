/**
 * Folding vectors of floats into their maximum or minimum. WebAssembly's min and max carry NaN and order zeros, which
 * costs engines some ten instructions each, one waiting for the other. Here NaN is noted beside the fold and put back at
 * its end: both orders of pmax agree but for zeros of different sign, whose bits and-ed are +0 (or-ed, for pmin, -0).
 */
import { binary, bitcast, constant, local, select, type Expr, type ReduceOp, type Type } from "../../kernel/expr.ts";
import { block, type Stmt } from "../../kernel/stmt.ts";
import { expressionsOf, visitExpr, visitStmt } from "../../kernel/traverse.ts";
import type { Fresh } from "../fresh.ts";
import { statementsOf } from "./nest.ts";

/** Fewer folds than this into one local are left as they are. */
const fewestFolds = 3;

/** Rewrites the folds of `s` whose local is not read before the last of them. */
export function foldMaxima(s: Stmt, fresh: Fresh): Stmt {
  switch (s.kind) {
    case "block": {
      let body = s.body.map((b) => foldMaxima(b, fresh));
      for (let i = 0; i < body.length; i++) body = [...body.slice(0, i), ...foldFrom(body.slice(i), fresh)];
      return block(...body);
    }
    case "for": return { ...s, body: foldMaxima(s.body, fresh) };
    case "if": return { ...s, then: foldMaxima(s.then, fresh), ...(s.else ? { else: foldMaxima(s.else, fresh) } : {}) };
    default: return s;
  }
}

/** Statements of which the first may declare the local of a fold. */
function foldFrom(list: Stmt[], fresh: Fresh): Stmt[] {
  const [first, ...rest] = list;
  if (first?.kind !== "let" || first.value.type.scalar !== "f32" || first.value.type.lanes !== 4 || first.value.kind !== "const" || Number.isNaN(Number(first.value.value))) return list;
  const fold = findFold(first.name, rest);
  if (!fold) return list;
  const nan = fresh("nan"), mask: Type = { scalar: "bool", lanes: 4 };
  const folded = rest.slice(0, fold.end).map((s) => replaceFolds(s, first.name, nan, first.value.type, fresh));
  const value = local(first.name, first.value.type);
  return [
    first, { kind: "let", name: nan, value: constant(0, mask) }, ...folded,
    { kind: "assign", name: first.name, value: select(local(nan, mask), constant(NaN, first.value.type), value) }, ...rest.slice(fold.end),
  ];
}

/** Where the folds into a local end, when there are enough of one kind and nothing reads or sets it before. */
function findFold(name: string, rest: readonly Stmt[]): { readonly end: number } | undefined {
  let end = 0, folds = 0;
  let op: ReduceOp | undefined;
  let mixed = false;
  rest.forEach((s, i) => visitStmt(s, (x) => {
    if (x.kind === "assign" && x.name === name) mixed = true;
    if (x.kind !== "accumulate" || x.name !== name) return;
    if ((op !== undefined && op !== x.op) || (x.op !== "max" && x.op !== "min")) mixed = true;
    op = x.op;
    folds += s.kind === "for" ? fewestFolds : 1;
    end = i + 1;
  }));
  if (mixed || folds < fewestFolds || rest.slice(0, end).some((s) => reads(s, name))) return undefined;
  return { end };
}
function reads(s: Stmt, name: string): boolean {
  let found = false;
  visitStmt(s, (x) => expressionsOf(x).forEach((root) => visitExpr(root, (e) => { if (e.kind === "local" && e.name === name) found = true; })));
  return found;
}

function replaceFolds(s: Stmt, name: string, nan: string, type: Type, fresh: Fresh): Stmt {
  switch (s.kind) {
    case "block": return block(...statementsOf(s).map((b) => replaceFolds(b, name, nan, type, fresh)));
    case "for": return { ...s, body: replaceFolds(s.body, name, nan, type, fresh) };
    case "if": return { ...s, then: replaceFolds(s.then, name, nan, type, fresh), ...(s.else ? { else: replaceFolds(s.else, name, nan, type, fresh) } : {}) };
    case "accumulate": {
      if (s.name !== name) return s;
      const next = fresh("x"), x = local(next, type), best = local(name, type);
      const bits: Type = { scalar: "i32", lanes: type.lanes }, mask: Type = { scalar: "bool", lanes: type.lanes };
      const op = s.op === "max" ? "pmax" : "pmin";
      const either = (a: Expr, b: Expr): Expr => bitcast(binary(op, a, b), bits);
      return block(
        { kind: "let", name: next, value: s.value },
        { kind: "assign", name: nan, value: binary("or", local(nan, mask), binary("ne", x, x)) },
        { kind: "assign", name, value: bitcast(binary(s.op === "max" ? "and" : "or", either(x, best), either(best, x)), type) },
      );
    }
    default: return s;
  }
}
