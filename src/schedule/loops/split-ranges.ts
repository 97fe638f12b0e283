/**
 * Index set splitting: a loop whose body asks where its variable stands (Concat, Pad, borders of windows) becomes one
 * loop for each range in which the answer is known. Each range counts from 0, so that bounds decide the conditions.
 */
import { dimMax, dimMin, dimMul, dimRange, dimSub, isSymbolic, type Dim } from "../../core/dim.ts";
import { add, axisOf, dimExpr, type Axis, type BinaryOp, type Expr } from "../../kernel/expr.ts";
import { linearSub, type Linear } from "../../kernel/linear.ts";
import type { Stmt } from "../../kernel/stmt.ts";
import { expressionsOf, visitExpr, visitStmt } from "../../kernel/traverse.ts";
import { substitute } from "./nest.ts";
import type { Strides } from "./strides.ts";

/** A part of a loop: its own variable, counting from 0, and the body over it. */
export interface Range { readonly axis: Axis; readonly body: Stmt }

/** The ranges of a loop over `axis`; one where nothing is to be split, or it would be more than `most`. */
export function splitRanges(axis: Axis, body: Stmt, strides: Strides, most: number): readonly Range[] {
  const whole: readonly Range[] = [{ axis, body }];
  const bounds = ordered(thresholds(axis, body, strides), axis.extent);
  if (!bounds || bounds.length === 0 || bounds.length + 1 > most) return whole;
  const edges: Dim[] = [0, ...bounds, axis.extent];
  return edges.slice(0, -1).flatMap((from, i): Range[] => {
    const extent = dimSub(edges[i + 1] ?? axis.extent, from);
    if (extent === 0) return [];
    const part: Axis = { name: `${axis.name}_${i}`, extent };
    return [{ axis: part, body: substitute(body, new Map([[axis, add(axisOf(part), dimExpr(from))]]), strides.table) }];
  });
}

/** Distinct thresholds inside the loop in ascending order; undefined where their order is not known. */
function ordered(found: readonly Dim[], extent: Dim): Dim[] | undefined {
  const distinct = new Map<string, Dim>();
  for (const d of found) {
    const inside = dimMin(dimMax(d, 0), extent);
    const key = isSymbolic(inside) ? inside.key : String(inside);
    if (inside !== 0 && key !== (isSymbolic(extent) ? extent.key : String(extent))) distinct.set(key, inside);
  }
  const sorted: Dim[] = [];
  for (const d of distinct.values()) {
    const at = sorted.findIndex((s) => dimRange(dimSub(s, d)).lower >= 0);
    const place = at < 0 ? sorted.length : at;
    if (sorted.slice(0, place).some((s) => dimRange(dimSub(d, s)).lower < 0)) return undefined;
    sorted.splice(place, 0, d);
  }
  return sorted;
}

/** Values of the variable from which on a condition of the body has another answer, or may have. */
function thresholds(axis: Axis, body: Stmt, strides: Strides): Dim[] {
  const { table } = strides;
  const out: Dim[] = [];
  const seen = new Set<Expr>();
  visitStmt(body, (s) => expressionsOf(s).forEach((root) => visitExpr(root, (e) => {
    if (e.kind !== "binary" || e.a.type.scalar !== "i32" || e.a.type.lanes !== 1 || !comparisons.has(e.op)) return;
    const difference = linearSub(table.linear(table.make(e.a)), table.linear(table.make(e.b)));
    const own = difference.terms.find((t) => t.atom.kind === "axis" && t.atom.axis === axis);
    if (!own) return;
    const rest: Linear = { ...difference, terms: difference.terms.filter((t) => t !== own) };
    if (rest.terms.some((t) => strides.axesOf(t.atom).has(axis))) return;
    const { lower, upper } = table.bounds(rest);
    if (lower === undefined || upper === undefined) return;
    for (const bound of rest.terms.length ? [lower, upper] : [lower]) out.push(...turningPoints(e.op, own.coefficient, bound));
  }, seen)));
  return out;
}
const comparisons: ReadonlySet<BinaryOp> = new Set<BinaryOp>(["lt", "le", "gt", "ge", "eq", "ne"]);

/** Where `c·x + k op 0` turns as x grows. */
function turningPoints(op: BinaryOp, c: Dim, k: Dim): Dim[] {
  if (op === "eq" || op === "ne") return [...turningPoints("ge", c, k), ...turningPoints("gt", c, k)];
  if (isSymbolic(c) || c === 0) return [];
  if (c < 0) return turningPoints(mirrored(op), -c, dimMul(k, -1));
  // x ≥ -k/c, or x > -k/c.
  const strict = op === "gt" || op === "le";
  if (c === 1) return [dimSub(strict ? 1 : 0, k)];
  if (isSymbolic(k)) return [];
  return [strict ? Math.floor(-k / c) + 1 : Math.ceil(-k / c)];
}
function mirrored(op: BinaryOp): BinaryOp {
  switch (op) {
    case "lt": return "gt";
    case "le": return "ge";
    case "gt": return "lt";
    case "ge": return "le";
    default: return op;
  }
}

