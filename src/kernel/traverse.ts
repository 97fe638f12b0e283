/** Walking and rebuilding expressions and statements. Rebuilding keeps an object whose parts did not change. */
import { assertNever } from "../core/assert.ts";
import type { Expr } from "./expr.ts";
import type { Stmt } from "./stmt.ts";

/** Direct operands, in evaluation order. */
export function operandsOf(e: Expr): readonly Expr[] {
  switch (e.kind) {
    case "const": case "axis": case "dim": case "local": case "relaxed": return [];
    case "load": case "address": return e.indices;
    case "loadAt": return [e.pointer];
    case "unary": case "cast": case "bitcast": case "splat": case "extract": case "extend": return [e.a];
    case "binary": case "shuffle": case "swizzle": case "dot": return [e.a, e.b];
    case "select": return [e.condition, e.a, e.b];
    case "madd": case "byteDot": return [e.a, e.b, e.c];
    case "lanes": return e.elements;
    case "reduce": return [e.init, e.body];
    default: return assertNever(e);
  }
}

/** The same operation on mapped operands. */
export function mapChildren(e: Expr, f: (child: Expr) => Expr): Expr {
  switch (e.kind) {
    case "const": case "axis": case "dim": case "local": case "relaxed": return e;
    case "load": case "address": {
      const indices = mapList(e.indices, f);
      return indices === e.indices ? e : { ...e, indices };
    }
    case "lanes": {
      const elements = mapList(e.elements, f);
      return elements === e.elements ? e : { ...e, elements };
    }
    case "loadAt": {
      const pointer = f(e.pointer);
      return pointer === e.pointer ? e : { ...e, pointer };
    }
    case "unary": case "cast": case "bitcast": case "splat": case "extract": case "extend": {
      const a = f(e.a);
      return a === e.a ? e : { ...e, a };
    }
    case "binary": case "shuffle": case "swizzle": case "dot": {
      const a = f(e.a), b = f(e.b);
      return a === e.a && b === e.b ? e : { ...e, a, b };
    }
    case "select": {
      const condition = f(e.condition), a = f(e.a), b = f(e.b);
      return condition === e.condition && a === e.a && b === e.b ? e : { ...e, condition, a, b };
    }
    case "madd": case "byteDot": {
      const a = f(e.a), b = f(e.b), c = f(e.c);
      return a === e.a && b === e.b && c === e.c ? e : { ...e, a, b, c };
    }
    case "reduce": {
      const init = f(e.init), body = f(e.body);
      return init === e.init && body === e.body ? e : { ...e, init, body };
    }
    default: return assertNever(e);
  }
}
function mapList(list: readonly Expr[], f: (child: Expr) => Expr): readonly Expr[] {
  const mapped = list.map(f);
  return mapped.every((x, i) => x === list[i]) ? list : mapped;
}

/** Rewrites bottom-up; an object that occurs several times is rewritten once. */
export function mapExpr(e: Expr, f: (rebuilt: Expr) => Expr, memo: Map<Expr, Expr> = new Map()): Expr {
  const known = memo.get(e);
  if (known) return known;
  const out = f(mapChildren(e, (c) => mapExpr(c, f, memo)));
  memo.set(e, out);
  return out;
}

/** Calls `visit` once for every distinct object below `e`, operands first. */
export function visitExpr(e: Expr, visit: (e: Expr) => void, seen: Set<Expr> = new Set()): void {
  const before = seen.size;
  if (seen.add(e).size === before) return;
  visitOperands(e, visit, seen);
  visit(e);
}

/** As `operandsOf` has them; this is where compiling spends its time, so no lists are made. */
function visitOperands(e: Expr, visit: (e: Expr) => void, seen: Set<Expr>): void {
  switch (e.kind) {
    case "const": case "axis": case "dim": case "local": case "relaxed": return;
    case "load": case "address": for (const i of e.indices) visitExpr(i, visit, seen); return;
    case "loadAt": visitExpr(e.pointer, visit, seen); return;
    case "unary": case "cast": case "bitcast": case "splat": case "extract": case "extend": visitExpr(e.a, visit, seen); return;
    case "binary": case "shuffle": case "swizzle": case "dot":
      visitExpr(e.a, visit, seen);
      visitExpr(e.b, visit, seen);
      return;
    default: for (const c of operandsOf(e)) visitExpr(c, visit, seen);
  }
}

/** Calls `visit` once for every distinct object in the expressions of a statement and of those nested in it. */
export function visitExprsOf(s: Stmt, visit: (e: Expr) => void, seen: Set<Expr> = new Set()): void {
  visitOwnExprs(s, visit, seen);
  for (const inner of bodiesOf(s)) visitExprsOf(inner, visit, seen);
}

/** Calls `visit` once for every distinct object in the expressions that a statement holds itself. */
export function visitOwnExprs(s: Stmt, visit: (e: Expr) => void, seen: Set<Expr>): void {
  switch (s.kind) {
    case "for":
      visitExpr(s.begin, visit, seen);
      visitExpr(s.end, visit, seen);
      return;
    case "block": case "split": return;
    case "let": case "assign": case "accumulate": visitExpr(s.value, visit, seen); return;
    case "store":
      for (const i of s.indices) visitExpr(i, visit, seen);
      visitExpr(s.value, visit, seen);
      return;
    case "storeAt":
      visitExpr(s.pointer, visit, seen);
      visitExpr(s.value, visit, seen);
      return;
    case "if": visitExpr(s.condition, visit, seen); return;
    default: assertNever(s);
  }
}

/** Whether `test` holds of an expression in a statement or in those nested in it; asks no further than it must. */
export function someExprOf(s: Stmt, test: (e: Expr) => boolean, seen: Set<Expr> = new Set()): boolean {
  switch (s.kind) {
    case "for": return someExpr(s.begin, test, seen) || someExpr(s.end, test, seen) || someExprOf(s.body, test, seen);
    case "split": return someExprOf(s.body, test, seen);
    case "block": return s.body.some((inner) => someExprOf(inner, test, seen));
    case "let": case "assign": case "accumulate": return someExpr(s.value, test, seen);
    case "store": return s.indices.some((i) => someExpr(i, test, seen)) || someExpr(s.value, test, seen);
    case "storeAt": return someExpr(s.pointer, test, seen) || someExpr(s.value, test, seen);
    case "if": return someExpr(s.condition, test, seen) || someExprOf(s.then, test, seen) || (s.else !== undefined && someExprOf(s.else, test, seen));
    default: return assertNever(s);
  }
}
function someExpr(e: Expr, test: (e: Expr) => boolean, seen: Set<Expr>): boolean {
  const before = seen.size;
  if (seen.add(e).size === before) return false;
  if (test(e)) return true;
  switch (e.kind) {
    case "const": case "axis": case "dim": case "local": return false;
    case "loadAt": return someExpr(e.pointer, test, seen);
    case "binary": return someExpr(e.a, test, seen) || someExpr(e.b, test, seen);
    default: return operandsOf(e).some((c) => someExpr(c, test, seen));
  }
}

/** The expressions a statement holds itself, not those of nested statements. */
export function expressionsOf(s: Stmt): readonly Expr[] {
  switch (s.kind) {
    case "for": return [s.begin, s.end];
    case "block": case "split": return [];
    case "let": case "assign": case "accumulate": return [s.value];
    case "store": return [...s.indices, s.value];
    case "storeAt": return [s.pointer, s.value];
    case "if": return [s.condition];
    default: return assertNever(s);
  }
}

/** The statements directly inside a statement. */
export function bodiesOf(s: Stmt): readonly Stmt[] {
  switch (s.kind) {
    case "for": case "split": return [s.body];
    case "block": return s.body;
    case "if": return s.else ? [s.then, s.else] : [s.then];
    default: return none;
  }
}
const none: readonly Stmt[] = [];

/** Every statement, outermost first. */
export function visitStmt(s: Stmt, visit: (s: Stmt) => void): void {
  visit(s);
  switch (s.kind) {
    case "for": case "split": visitStmt(s.body, visit); return;
    case "block": for (const child of s.body) visitStmt(child, visit); return;
    case "if":
      visitStmt(s.then, visit);
      if (s.else) visitStmt(s.else, visit);
      return;
    default:
  }
}

/** Whether `test` holds of a statement or of one nested in it; asks no further than it must. */
export function someStmt(s: Stmt, test: (s: Stmt) => boolean): boolean {
  if (test(s)) return true;
  switch (s.kind) {
    case "for": case "split": return someStmt(s.body, test);
    case "block": return s.body.some((child) => someStmt(child, test));
    case "if": return someStmt(s.then, test) || (s.else !== undefined && someStmt(s.else, test));
    default: return false;
  }
}

/** The same statement with every expression in it mapped. */
export function mapStmtExprs(s: Stmt, f: (e: Expr) => Expr): Stmt {
  switch (s.kind) {
    case "for": return { ...s, begin: f(s.begin), end: f(s.end), body: mapStmtExprs(s.body, f) };
    case "split": return { ...s, body: mapStmtExprs(s.body, f) };
    case "block": return { kind: "block", body: s.body.map((child) => mapStmtExprs(child, f)) };
    case "let": case "assign": case "accumulate": return { ...s, value: f(s.value) };
    case "store": return { ...s, indices: s.indices.map(f), value: f(s.value) };
    case "storeAt": return { ...s, pointer: f(s.pointer), value: f(s.value) };
    case "if": return { ...s, condition: f(s.condition), then: mapStmtExprs(s.then, f), ...(s.else ? { else: mapStmtExprs(s.else, f) } : {}) };
    default: return assertNever(s);
  }
}
