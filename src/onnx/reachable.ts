/**
 * Whether sizes exist for which predicates over them come out as required. Sound in one direction: what is called
 * impossible is; what no argument refutes counts as possible. The argument is by cases: each size that two predicates
 * share is 0, 1, … or beyond every constant in them, and in each case the interval of some predicate excludes its answer.
 */
import { dimAdd, dimRange, substituteDim, symbol, symbolsOf, type Dim } from "../core/dim.ts";

/** An answer to a predicate, which is 0 where it does not hold. */
export interface Requirement { readonly predicate: Dim; readonly taken: boolean }

/** Constants up to this are told apart; more cases than this are not looked at. */
const largestCase = 512;
/** Sizes that are split into cases, one inside the other. */
const depth = 2;

/** False only where no sizes give these answers. */
export const possible = (requirements: readonly Requirement[]): boolean => !refuted(requirements, depth);

function refuted(requirements: readonly Requirement[], splits: number): boolean {
  const open: Requirement[] = [];
  for (const r of requirements) {
    const { lower, upper } = dimRange(r.predicate);
    if (r.taken ? lower === 0 && upper === 0 : lower > 0) return true;
    if (r.taken ? lower <= 0 : upper > 0) open.push(r);
  }
  const name = splits > 0 ? sharedSymbol(open) : undefined;
  if (name === undefined) return false;
  const concerned = open.filter(({ predicate }) => symbolsOf(predicate).has(name));
  const beyond = Math.max(...concerned.flatMap(({ predicate }) => constantsIn(predicate))) + 2;
  if (beyond > largestCase) return false;
  const where = (size: Dim): boolean => {
    const map = new Map([[name, size]]);
    return refuted(open.map((r) => ({ ...r, predicate: substituteDim(r.predicate, map) })), splits - 1);
  };
  if (!where(dimAdd(symbol(name), beyond))) return false;
  for (let size = 0; size < beyond; size++) if (!where(size)) return false;
  return true;
}

/** The first size that more than one of them is about. */
function sharedSymbol(requirements: readonly Requirement[]): string | undefined {
  const seen = new Set<string>();
  for (const { predicate } of requirements) {
    for (const name of symbolsOf(predicate)) {
      if (seen.has(name)) return name;
      seen.add(name);
    }
  }
  return undefined;
}

/** Magnitudes of the numbers in a polynomial and its atoms. */
function constantsIn(d: Dim): number[] {
  if (typeof d === "number") return [Math.abs(d)];
  return d.terms.flatMap((t) => [Math.abs(t.coefficient), ...t.atoms.flatMap((a) => (a.kind === "symbol" ? [] : [...constantsIn(a.a), ...constantsIn(a.b)]))]);
}
