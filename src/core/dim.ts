/**
 * Sizes that may be unknown until a model runs. A `SymbolicDim` is an integer polynomial in canonical form over
 * atoms (symbols, floor divisions, remainders, minima, maxima), so that equal sizes compare equal by `key`.
 * Symbols stand for sizes: integers of at least 0.
 */
import { assertNever } from "./assert.ts";

export type Dim = number | SymbolicDim;

export interface SymbolicDim {
  readonly kind: "dim";
  /** Sorted by key; no zero coefficients; at least one term has atoms. */
  readonly terms: readonly DimTerm[];
  /** Canonical text; equal keys mean equal values for every binding. */
  readonly key: string;
}
export interface DimTerm { readonly coefficient: number; readonly atoms: readonly DimAtom[] }
export type DimAtom =
  | { readonly kind: "symbol"; readonly name: string; readonly key: string }
  | { readonly kind: "floordiv" | "mod" | "min" | "max" | "broadcast"; readonly a: Dim; readonly b: Dim; readonly key: string };

/** Values for symbols. */
export type DimBinding = (symbol: string) => number;

/** Axes that a tensor may have: as many as numpy's. */
export const mostAxes = 64;

export const isSymbolic = (d: Dim): d is SymbolicDim => typeof d !== "number";
export const isStatic = (dims: readonly Dim[]): dims is readonly number[] => dims.every((d) => typeof d === "number");

/** The size called `name` in the model. */
export const symbol = (name: string): SymbolicDim => fromAtom({ kind: "symbol", name, key: name });

const keyOf = (d: Dim): string => (typeof d === "number" ? String(d) : d.key);
const termKey = (t: DimTerm): string => t.atoms.map((a) => a.key).join("*");
const fromAtom = (atom: DimAtom): SymbolicDim => build([{ coefficient: 1, atoms: [atom] }]) as SymbolicDim;
const termsOf = (d: Dim): readonly DimTerm[] => (typeof d === "number" ? (d === 0 ? [] : [{ coefficient: d, atoms: [] }]) : d.terms);

function build(terms: readonly DimTerm[]): Dim {
  const merged = new Map<string, DimTerm>();
  for (const t of terms) {
    const key = termKey(t);
    const before = merged.get(key);
    merged.set(key, before ? { coefficient: before.coefficient + t.coefficient, atoms: t.atoms } : t);
  }
  const kept = [...merged].filter(([, t]) => t.coefficient !== 0).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  const only = kept[0];
  if (!only) return 0;
  if (kept.length === 1 && only[1].atoms.length === 0) return only[1].coefficient;
  return { kind: "dim", terms: kept.map(([, t]) => t), key: keyOfTerms(kept) };
}
function keyOfTerms(terms: readonly (readonly [key: string, term: DimTerm])[]): string {
  const key = terms.map(([k, t]) => (k === "" ? String(t.coefficient) : t.coefficient === 1 ? k : `${t.coefficient}*${k}`)).join("+");
  return terms.length > 1 ? `(${key})` : key;
}

export function dimAdd(a: Dim, b: Dim): Dim {
  if (typeof a === "number" && typeof b === "number") return a + b;
  return a === 0 ? b : b === 0 ? a : build([...termsOf(a), ...termsOf(b)]);
}
export const dimSub = (a: Dim, b: Dim): Dim => dimAdd(a, dimMul(-1, b));
export function dimMul(a: Dim, b: Dim): Dim {
  if (typeof a === "number" && typeof b === "number") return a * b;
  if (a === 1) return b;
  if (b === 1) return a;
  if (a === 0 || b === 0) return 0;
  if (typeof a === "number" || typeof b === "number") return typeof a === "number" ? scaled(b, a) : scaled(a, Number(b));
  const products = termsOf(a).flatMap((s) => termsOf(b).map((t): DimTerm => ({
    coefficient: s.coefficient * t.coefficient,
    atoms: [...s.atoms, ...t.atoms].sort((x, y) => (x.key < y.key ? -1 : x.key > y.key ? 1 : 0)),
  })));
  return build(products);
}
/** By a number that is not 0: no two terms become one, and their order stays. */
function scaled(d: Dim, by: number): Dim {
  const terms = termsOf(d).map((t): DimTerm => ({ coefficient: t.coefficient * by, atoms: t.atoms }));
  return { kind: "dim", terms, key: keyOfTerms(terms.map((t): [string, DimTerm] => [termKey(t), t])) };
}
export const dimProduct = (dims: readonly Dim[]): Dim => dims.reduce<Dim>(dimMul, 1);

/** ⌊a / b⌋. Divides exactly where every term of `a` is a multiple of `b`. */
export function dimFloorDiv(a: Dim, b: Dim): Dim {
  if (typeof a === "number" && typeof b === "number") return b === 0 ? 0 : Math.floor(a / b);
  if (b === 1) return a;
  if (keyOf(a) === keyOf(b)) return 1;
  const exact = dimExactDiv(a, b);
  if (exact !== undefined) return exact;
  if (typeof b === "number" && b > 0) {
    // (b·q + r) / b = q + r / b
    const whole = build(termsOf(a).filter((t) => t.coefficient % b === 0).map((t) => ({ ...t, coefficient: t.coefficient / b })));
    const rest = build(termsOf(a).filter((t) => t.coefficient % b !== 0));
    if (whole !== 0) return dimAdd(whole, dimFloorDiv(rest, b));
    // ⌊(⌊x / n⌋ + c) / b⌋ = ⌊(x + c·n) / (n·b)⌋
    const c = termsOf(a).find((t) => t.atoms.length === 0)?.coefficient ?? 0;
    const inner = loneAtom(dimSub(a, c));
    if (inner?.kind === "floordiv" && typeof inner.b === "number" && inner.b > 0) return dimFloorDiv(dimAdd(inner.a, c * inner.b), inner.b * b);
  }
  return fromAtom({ kind: "floordiv", a, b, key: `floor(${keyOf(a)}/${keyOf(b)})` });
}
/** ⌈a / b⌉ for b > 0. */
export const dimCeilDiv = (a: Dim, b: Dim): Dim => dimFloorDiv(dimAdd(a, dimSub(b, 1)), b);

/** a / b where that is a polynomial; undefined where it is not known to divide. */
export function dimExactDiv(a: Dim, b: Dim): Dim | undefined {
  if (typeof a === "number" && typeof b === "number") return b !== 0 && a % b === 0 ? a / b : undefined;
  if (b === 0) return undefined;
  const divisor = termsOf(b);
  const d = divisor[0];
  if (!d || divisor.length !== 1) return keyOf(a) === keyOf(b) ? 1 : undefined;
  const out: DimTerm[] = [];
  for (const t of termsOf(a)) {
    if (t.coefficient % d.coefficient !== 0) return undefined;
    const rest = [...t.atoms];
    for (const atom of d.atoms) {
      const at = rest.findIndex((r) => r.key === atom.key);
      if (at < 0) return undefined;
      rest.splice(at, 1);
    }
    out.push({ coefficient: t.coefficient / d.coefficient, atoms: rest });
  }
  return build(out);
}

/** a mod b, not negative for b > 0. */
export function dimMod(a: Dim, b: Dim): Dim {
  if (typeof a === "number" && typeof b === "number") return b === 0 ? 0 : ((a % b) + b) % b;
  if (dimExactDiv(a, b) !== undefined) return 0;
  return fromAtom({ kind: "mod", a, b, key: `mod(${keyOf(a)},${keyOf(b)})` });
}
export function dimMin(a: Dim, b: Dim): Dim {
  if (typeof a === "number" && typeof b === "number") return Math.min(a, b);
  return minMax("min", a, b);
}
export function dimMax(a: Dim, b: Dim): Dim {
  if (typeof a === "number" && typeof b === "number") return Math.max(a, b);
  return minMax("max", a, b);
}
/** The size that a broadcast of two sizes has: the one that is not 1. */
export function dimBroadcast(a: Dim, b: Dim): Dim {
  const all = [...new Map([...broadcastOperands(a), ...broadcastOperands(b)].filter((d) => d !== 1).map((d) => [keyOf(d), d])).values()];
  const operands = all.filter((d) => !all.some((other) => isCapped(d, other)));
  const fixed = operands.find((d) => typeof d === "number");
  if (fixed !== undefined) return fixed;
  const [first, ...rest] = operands.sort((x, y) => (keyOf(x) < keyOf(y) ? 1 : -1));
  return rest.reduce((joined, d) => fromAtom({ kind: "broadcast", a: d, b: joined, key: `broadcast(${keyOf(d)},${keyOf(joined)})` }), first ?? 1);
}
/** Whether `d` is min(x, constants above 0): where that broadcasts with x, it is x or 1. */
function isCapped(d: Dim, x: Dim): boolean {
  const operands = operandsOf("min", d);
  return operands.length > 1 && operands.every((o) => dimEqual(o, x) || (typeof o === "number" && o > 0)) && operands.some((o) => dimEqual(o, x));
}
function broadcastOperands(d: Dim): readonly Dim[] {
  const atom = loneAtom(d);
  return atom?.kind === "broadcast" ? [...broadcastOperands(atom.a), ...broadcastOperands(atom.b)] : [d];
}
/**
 * Flattened, sorted and without operands that another one decides: equal ones, those on the wrong side of it for every
 * binding, and those that absorption leaves out, since max(a, min(a, b)) = a and min(a, max(a, b)) = a.
 */
function minMax(kind: "min" | "max", a: Dim, b: Dim): Dim {
  const operands: Dim[] = [];
  for (const next of [...operandsOf(kind, a), ...operandsOf(kind, b)]) {
    if (operands.some((other) => absorbs(kind, other, next))) continue;
    operands.splice(0, operands.length, ...operands.filter((other) => !absorbs(kind, next, other)), next);
  }
  operands.sort((x, y) => (keyOf(x) < keyOf(y) ? 1 : -1));
  return operands.reduce((rest, d) => fromAtom({ kind, a: d, b: rest, key: `${kind}(${keyOf(d)},${keyOf(rest)})` }));
}
/** The operands of a minimum or maximum, nested ones too; else the size itself. */
function operandsOf(kind: "min" | "max", d: Dim): readonly Dim[] {
  const atom = loneAtom(d);
  return atom?.kind === kind ? [...operandsOf(kind, atom.a), ...operandsOf(kind, atom.b)] : [d];
}
/** Whether `x` is always the minimum (maximum) of the two. */
function absorbs(kind: "min" | "max", x: Dim, y: Dim): boolean {
  if (dimEqual(x, y)) return true;
  const { lower, upper } = dimRange(dimSub(x, y));
  if (kind === "max" ? lower >= 0 : upper <= 0) return true;
  // max(x, min(x, …)) = x, and max(max(x, …), …) has been flattened; likewise for the minimum.
  const opposite = kind === "max" ? "min" : "max";
  return operandsOf(opposite, y).length > 1 && operandsOf(opposite, y).some((d) => dimEqual(d, x));
}
function loneAtom(d: Dim): DimAtom | undefined {
  const term = typeof d === "number" || d.terms.length !== 1 ? undefined : d.terms[0];
  return term?.coefficient === 1 && term.atoms.length === 1 ? term.atoms[0] : undefined;
}

export const dimEqual = (a: Dim, b: Dim): boolean => a === b || (typeof a !== "number" && typeof b !== "number" && a.key === b.key);
export const shapeEqual = (a: readonly Dim[], b: readonly Dim[]): boolean => a.length === b.length && a.every((d, i) => dimEqual(d, b[i] ?? -1));

/** Bounds that hold for every binding of the symbols to sizes of at least 0. */
export function dimRange(d: Dim): { lower: number; upper: number } {
  if (typeof d === "number") return { lower: d, upper: d };
  let lower = 0, upper = 0;
  for (const t of d.terms) {
    let lo = 1, hi = 1;
    for (const a of t.atoms) {
      const r = atomRange(a);
      const corners = [times(lo, r.lower), times(lo, r.upper), times(hi, r.lower), times(hi, r.upper)];
      [lo, hi] = [Math.min(...corners), Math.max(...corners)];
    }
    lower += t.coefficient > 0 ? times(t.coefficient, lo) : times(t.coefficient, hi);
    upper += t.coefficient > 0 ? times(t.coefficient, hi) : times(t.coefficient, lo);
  }
  return { lower, upper };
}
const times = (a: number, b: number): number => (a === 0 || b === 0 ? 0 : a * b);
function atomRange(a: DimAtom): { lower: number; upper: number } {
  switch (a.kind) {
    case "symbol": return { lower: 0, upper: Infinity };
    case "mod": return { lower: 0, upper: Math.max(0, dimRange(a.b).upper - 1) };
    case "floordiv": {
      const x = dimRange(a.a), y = dimRange(a.b);
      if (y.lower <= 0) return { lower: -Infinity, upper: Infinity };
      return { lower: Math.floor(x.lower / (x.lower < 0 ? y.lower : y.upper)) || 0, upper: Math.floor(x.upper / y.lower) };
    }
    case "min": { const x = dimRange(a.a), y = dimRange(a.b); return { lower: Math.min(x.lower, y.lower), upper: Math.min(x.upper, y.upper) }; }
    case "max": { const x = dimRange(a.a), y = dimRange(a.b); return { lower: Math.max(x.lower, y.lower), upper: Math.max(x.upper, y.upper) }; }
    case "broadcast": { const x = dimRange(a.a), y = dimRange(a.b); return { lower: Math.min(x.lower, y.lower), upper: Math.max(x.upper, y.upper) }; }
    default: return assertNever(a);
  }
}

/** The value under a binding. */
export function evaluateDim(d: Dim, binding: DimBinding): number {
  if (typeof d === "number") return d;
  return d.terms.reduce((sum, t) => sum + t.atoms.reduce((p, a) => p * evaluateAtom(a, binding), t.coefficient), 0);
}
function evaluateAtom(a: DimAtom, binding: DimBinding): number {
  if (a.kind === "symbol") return binding(a.name);
  const x = evaluateDim(a.a, binding), y = evaluateDim(a.b, binding);
  switch (a.kind) {
    case "floordiv": return y === 0 ? 0 : Math.floor(x / y);
    case "mod": return y === 0 ? 0 : ((x % y) + y) % y;
    case "min": return Math.min(x, y);
    case "max": return Math.max(x, y);
    case "broadcast": return x === 1 ? y : x;
    default: return assertNever(a);
  }
}

/** Replaces symbols; those the map does not name stay. */
export function substituteDim(d: Dim, map: ReadonlyMap<string, Dim>): Dim {
  if (typeof d === "number") return d;
  return d.terms.reduce<Dim>((sum, t) => dimAdd(sum, t.atoms.reduce<Dim>((p, a) => dimMul(p, substituteAtom(a, map)), t.coefficient)), 0);
}
function substituteAtom(a: DimAtom, map: ReadonlyMap<string, Dim>): Dim {
  if (a.kind === "symbol") return map.get(a.name) ?? symbol(a.name);
  const x = substituteDim(a.a, map), y = substituteDim(a.b, map);
  switch (a.kind) {
    case "floordiv": return dimFloorDiv(x, y);
    case "mod": return dimMod(x, y);
    case "min": return dimMin(x, y);
    case "max": return dimMax(x, y);
    case "broadcast": return dimBroadcast(x, y);
    default: return assertNever(a);
  }
}

/** The symbols that `d` depends on, in order of appearance. */
export function symbolsOf(d: Dim, into: Set<string> = new Set()): Set<string> {
  if (typeof d === "number") return into;
  for (const t of d.terms) for (const a of t.atoms) {
    if (a.kind === "symbol") into.add(a.name);
    else { symbolsOf(a.a, into); symbolsOf(a.b, into); }
  }
  return into;
}

/** Whether every number in it is one that float64 counts exactly: beyond, sizes are rounded and no memory holds them. */
export function isExact(d: Dim): boolean {
  if (typeof d === "number") return Number.isSafeInteger(d);
  return d.terms.every((t) => Number.isSafeInteger(t.coefficient) && t.atoms.every((atom) => atom.kind === "symbol" || (isExact(atom.a) && isExact(atom.b))));
}

/** Readable text, such as `2*batch+3`. */
export const formatDim = (d: Dim): string => (typeof d === "number" ? String(d) : d.key.replace(/^\((.*)\)$/, "$1"));
export const formatShape = (shape: readonly Dim[]): string => `[${shape.map(formatDim).join(", ")}]`;

/** The size of a numpy broadcast of two sizes; undefined when two constants disagree. */
export function broadcastDim(a: Dim, b: Dim): Dim | undefined {
  if (dimEqual(a, b)) return a;
  if (a === 1) return b;
  if (b === 1) return a;
  if (typeof a === "number" && typeof b === "number") return undefined;
  return dimBroadcast(a, b);
}

/** numpy broadcast of shapes; undefined when they do not broadcast. */
export function broadcastShapes(...shapes: readonly (readonly Dim[])[]): Dim[] | undefined {
  const rank = Math.max(0, ...shapes.map((s) => s.length));
  const out: Dim[] = [];
  for (let d = 0; d < rank; d++) {
    let size: Dim = 1;
    for (const s of shapes) {
      const own = s[d - rank + s.length];
      if (own === undefined) continue;
      const joined = broadcastDim(size, own);
      if (joined === undefined) return undefined;
      size = joined;
    }
    out.push(size);
  }
  return out;
}
