/**
 * Index expressions as sums: Σ coefficient·atom + constant, where coefficients and the constant are sizes and atoms are
 * expressions that are not sums themselves. Exact for i32 arithmetic that wraps, since sizes form a ring.
 */
import { dimAdd, dimEqual, dimExactDiv, dimMul, dimRange, isSymbolic, substituteDim, symbol, symbolsOf, type Dim } from "../core/dim.ts";
import type { Expr } from "./expr.ts";

export interface Term { readonly atom: Expr; readonly coefficient: Dim }
export interface Linear { readonly terms: readonly Term[]; readonly constant: Dim }

/** Bounds of an index expression, both inclusive; undefined where nothing is known. */
export interface Bounds { readonly lower: Dim | undefined; readonly upper: Dim | undefined }

export const linearConstant = (constant: Dim): Linear => ({ terms: [], constant });
export const linearAtom = (atom: Expr): Linear => ({ terms: [{ atom, coefficient: 1 }], constant: 0 });

/** Sum; atoms are the same when they are the same object. No coefficient of a sum is 0. */
export function linearAdd(a: Linear, b: Linear): Linear {
  const constant = dimAdd(a.constant, b.constant);
  if (b.terms.length === 0) return { terms: a.terms, constant };
  if (a.terms.length === 0) return { terms: b.terms, constant };
  const terms = new Map<Expr, Term>();
  for (const t of a.terms) terms.set(t.atom, t);
  for (const t of b.terms) {
    const own = terms.get(t.atom);
    if (!own) { terms.set(t.atom, t); continue; }
    const coefficient = dimAdd(own.coefficient, t.coefficient);
    if (coefficient === 0) terms.delete(t.atom);
    else terms.set(t.atom, { atom: t.atom, coefficient });
  }
  return { terms: [...terms.values()], constant };
}
export function linearScale(a: Linear, by: Dim): Linear {
  if (by === 0) return linearConstant(0);
  if (by === 1) return a;
  return { terms: a.terms.map((t) => ({ atom: t.atom, coefficient: dimMul(t.coefficient, by) })), constant: dimMul(a.constant, by) };
}
export const linearSub = (a: Linear, b: Linear): Linear => linearAdd(a, linearScale(b, -1));

/** a = quotient·divisor + rest, taking into the quotient every term that divides exactly. */
export function linearSplit(a: Linear, divisor: Dim): { quotient: Linear; rest: Linear } {
  const inQuotient: Term[] = [], inRest: Term[] = [];
  for (const t of a.terms) {
    const q = dimExactDiv(t.coefficient, divisor);
    if (q === undefined) inRest.push(t);
    else inQuotient.push({ atom: t.atom, coefficient: q });
  }
  const [whole, part] = splitDim(a.constant, divisor);
  return { quotient: { terms: inQuotient, constant: whole }, rest: { terms: inRest, constant: part } };
}
function splitDim(d: Dim, divisor: Dim): [Dim, Dim] {
  const exact = dimExactDiv(d, divisor);
  if (exact !== undefined) return [exact, 0];
  if (!isSymbolic(d)) {
    if (isSymbolic(divisor) || divisor === 0) return [0, d];
    const q = Math.floor(d / divisor);
    return [q, d - q * divisor];
  }
  let whole: Dim = 0, part: Dim = 0;
  for (const t of d.terms) {
    const term: Dim = t.atoms.length ? { kind: "dim", terms: [t], key: termKey(t) } : t.coefficient;
    const q = dimExactDiv(term, divisor);
    if (q === undefined) part = dimAdd(part, term);
    else whole = dimAdd(whole, q);
  }
  return [whole, part];
}
const termKey = (t: { coefficient: number; atoms: readonly { key: string }[] }): string => {
  const key = t.atoms.map((a) => a.key).join("*");
  return t.coefficient === 1 ? key : `${t.coefficient}*${key}`;
};

/** True when the size is at least 0 for every binding. */
export const nonNegative = (d: Dim): boolean => dimRange(d).lower >= 0;
export const positive = (d: Dim): boolean => dimRange(d).lower >= 1;
/** True when the size is at least 0 for every binding of the symbols to sizes of at least 1. */
export function nonNegativeIfNotEmpty(d: Dim): boolean {
  if (!isSymbolic(d)) return d >= 0;
  const shifted = new Map([...symbolsOf(d)].map((s): [string, Dim] => [s, dimAdd(symbol(s), 1)]));
  return dimRange(substituteDim(d, shifted)).lower >= 0;
}
export const sameDim = dimEqual;
