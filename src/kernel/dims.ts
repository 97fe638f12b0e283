/** The sizes a kernel's code reads: every symbolic dim in its expressions, deduplicated by key. */
import { isSymbolic, type Dim, type SymbolicDim } from "../core/dim.ts";
import { assertNever } from "../core/assert.ts";
import type { Expr } from "./expr.ts";
import type { Stmt } from "./stmt.ts";

/** The expressions directly inside `e`. */
export function operandsOf(e: Expr): readonly Expr[] {
  switch (e.kind) {
    case "const": case "axis": case "dim": case "local": return [];
    case "load": case "address": return e.indices;
    case "loadAt": return [e.pointer];
    case "unary": case "cast": case "bitcast": case "splat": case "extract": case "extend": return [e.a];
    case "binary": case "shuffle": case "dot": return [e.a, e.b];
    case "select": return [e.condition, e.a, e.b];
    case "madd": return [e.a, e.b, e.c];
    case "lanes": return e.elements;
    case "reduce": return [e.init, e.body];
    default: return assertNever(e);
  }
}

/** The expressions directly inside a statement, those of nested statements not included. */
export function expressionsOf(s: Stmt): readonly Expr[] {
  switch (s.kind) {
    case "for": return [s.begin, s.end];
    case "block": return [];
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
    case "for": return [s.body];
    case "block": return s.body;
    case "if": return s.else ? [s.then, s.else] : [s.then];
    default: return [];
  }
}

/** Symbolic dims that `body` reads through `dim` expressions and the extents of its reductions, in order of appearance. */
export function dimsOfBody(body: Stmt, into: Map<string, SymbolicDim> = new Map()): Map<string, SymbolicDim> {
  const seen = new Set<Expr>();
  const note = (d: Dim): void => { if (isSymbolic(d) && !into.has(d.key)) into.set(d.key, d); };
  const expression = (e: Expr): void => {
    if (seen.has(e)) return;
    seen.add(e);
    if (e.kind === "dim") note(e.dim);
    if (e.kind === "reduce") e.axes.forEach((a) => note(a.extent));
    operandsOf(e).forEach(expression);
  };
  const statement = (s: Stmt): void => {
    expressionsOf(s).forEach(expression);
    bodiesOf(s).forEach(statement);
  };
  statement(body);
  return into;
}
