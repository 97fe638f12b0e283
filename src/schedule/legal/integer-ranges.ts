/**
 * Ranges of integer expressions: interval arithmetic on exact integers. A bound is kept only while it is an integer that
 * a double holds exactly; an operation whose exact result might not fit its type says nothing, since it may wrap. Loop
 * variables and sizes are those of memory that can be addressed, so they fit 31 bits.
 */
import { dimRange } from "../../core/dim.ts";
import type { DType } from "../../core/dtype.ts";
import type { BinaryOp, Buffer, Expr, Scalar } from "../../kernel/expr.ts";

/** All values lie between the two, which are included. */
export interface Range { readonly low: number; readonly high: number }

const largest32 = 2 ** 31 - 1;
const typeRanges: Partial<Readonly<Record<Scalar, Range>>> = {
  bool: { low: 0, high: 1 }, i32: { low: -(2 ** 31), high: largest32 }, u32: { low: 0, high: 2 ** 32 - 1 },
  i8: { low: -128, high: 127 }, u8: { low: 0, high: 255 }, i16: { low: -32768, high: 32767 }, u16: { low: 0, high: 65535 },
};
const storedRanges: Partial<Readonly<Record<DType, Range>>> = {
  int8: { low: -128, high: 127 }, uint8: { low: 0, high: 255 }, int16: { low: -32768, high: 32767 }, uint16: { low: 0, high: 65535 }, bool: { low: 0, high: 1 },
};

export const fits32 = (r: Range | undefined): r is Range => r !== undefined && r.low >= -(2 ** 31) && r.high <= largest32;
/** Where both may be. */
export const union = (a: Range | undefined, b: Range | undefined): Range | undefined => (a && b ? { low: Math.min(a.low, b.low), high: Math.max(a.high, b.high) } : undefined);

export interface KnownRanges {
  /** Of a buffer's elements, where anything is known beyond their type. */
  readonly buffer: (b: Buffer) => Range | undefined;
  readonly local: (name: string) => Range | undefined;
}

/** The range of an integer or bool expression, of each lane; undefined where nothing is known, and for floats. */
export function rangeOf(e: Expr, known: KnownRanges, memo: Map<Expr, Range | undefined> = new Map()): Range | undefined {
  if (memo.has(e)) return memo.get(e);
  const range = within(e.type.scalar, computed(e, known, (x) => rangeOf(x, known, memo)));
  memo.set(e, range);
  return range;
}

/** What an exact result says of one that its type holds: itself where it fits, else no more than the type does. */
function within(scalar: Scalar, r: Range | undefined): Range | undefined {
  const type = typeRanges[scalar];
  if (type) return r && r.low >= type.low && r.high <= type.high ? r : type;
  return scalar === "i64" && r && Number.isSafeInteger(r.low) && Number.isSafeInteger(r.high) ? r : undefined;
}

function computed(e: Expr, known: KnownRanges, of: (x: Expr) => Range | undefined): Range | undefined {
  switch (e.kind) {
    case "const": { const v = Number(e.value); return Number.isSafeInteger(v) ? { low: v, high: v } : undefined; }
    case "axis": return { low: 0, high: Math.max(0, Math.min(dimRange(e.axis.extent).upper - 1, largest32)) };
    case "dim": { const r = dimRange(e.dim); return { low: Math.max(r.lower, -(2 ** 31)), high: Math.min(r.upper, largest32) }; }
    case "local": return known.local(e.name);
    case "load": return known.buffer(e.buffer) ?? storedRanges[e.buffer.dtype];
    case "loadAt": return storedRanges[e.dtype];
    case "unary": return e.op === "neg" ? negated(of(e.a)) : e.op === "abs" ? magnitude(of(e.a)) : undefined;
    case "binary": return binaryRange(e.op, of(e.a), of(e.b));
    case "select": return union(of(e.a), of(e.b));
    case "cast": return of(e.a);
    case "splat": case "extract": return of(e.a);
    case "lanes": return e.elements.map(of).reduce(union);
    case "reduce": return e.op === "max" || e.op === "min" ? union(of(e.init), of(e.body)) : undefined;
    default: return undefined;
  }
}

const negated = (a: Range | undefined): Range | undefined => a && { low: -a.high, high: -a.low };
const magnitude = (a: Range | undefined): Range | undefined => a && { low: a.low > 0 ? a.low : a.high < 0 ? -a.high : 0, high: Math.max(Math.abs(a.low), Math.abs(a.high)) };
const corners = (values: readonly number[]): Range => ({ low: Math.min(...values), high: Math.max(...values) });

function binaryRange(op: BinaryOp, a: Range | undefined, b: Range | undefined): Range | undefined {
  if (op === "and") return masked(a, b);
  if (op === "rem" && b) return remainder(a, b);
  if (!a || !b) return undefined;
  switch (op) {
    case "add": return { low: a.low + b.low, high: a.high + b.high };
    case "sub": return { low: a.low - b.high, high: a.high - b.low };
    case "mul": return corners([a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high]);
    case "min": case "pmin": return { low: Math.min(a.low, b.low), high: Math.min(a.high, b.high) };
    case "max": case "pmax": return { low: Math.max(a.low, b.low), high: Math.max(a.high, b.high) };
    // Dividing by zero gives zero; otherwise the magnitude does not grow.
    case "div": { const m = magnitude(a); return m && a.low >= 0 && b.low >= 0 ? { low: 0, high: Math.floor(a.high / Math.max(1, b.low)) } : m && { low: -m.high, high: m.high }; }
    default: return undefined;
  }
}
/** Bits that a mask which is not negative leaves. */
function masked(a: Range | undefined, b: Range | undefined): Range | undefined {
  const tops = [a, b].filter((r): r is Range => r !== undefined && r.low >= 0).map((r) => r.high);
  return tops.length ? { low: 0, high: Math.min(...tops) } : undefined;
}
/** Below the divisor's magnitude, with the sign of the dividend; 0 where the divisor is 0. */
function remainder(a: Range | undefined, b: Range): Range {
  const most = Math.max(Math.abs(b.low), Math.abs(b.high), 1) - 1;
  return { low: a && a.low >= 0 ? 0 : -(a ? Math.min(most, -a.low) : most), high: a && a.high <= 0 ? 0 : a ? Math.min(most, a.high) : most };
}
