/**
 * 64-bit integer arithmetic done in 32 bits where that gives the same: engines have four 32-bit lanes and operations
 * for them that 64 bits lack (comparison, minimum, conversion to float). Two facts carry it. The low 32 bits of sums,
 * differences, products and bit operations hang on the low 32 bits of the operands alone, so what is cut to 32 bits
 * may be computed in them. And where ranges prove that a value fits 32 bits, so does everything that is done with it:
 * comparing, dividing, converting to float. What is stored as int64 is widened last.
 */
import type { Tensor } from "../../core/tensor.ts";
import { binary, cast, constant, i32, select, unary, type BinaryOp, type Buffer, type Expr } from "../../kernel/expr.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Program, Step } from "../../kernel/program.ts";
import { allSteps } from "../../kernel/segments.ts";
import type { Stmt } from "../../kernel/stmt.ts";
import { bodiesOf, expressionsOf, mapChildren, mapStmtExprs, visitExpr, visitStmt } from "../../kernel/traverse.ts";
import { assignedLocals } from "../../kernel/unchanging.ts";
import { fits32, rangeOf, union, type KnownRanges, type Range } from "./integer-ranges.ts";

/** Narrows kernels of a program; those with a structure stay, since their loops are rebuilt from it. */
export function integerNarrowing(program: Program): (kernel: Kernel) => Kernel {
  const ranges = bufferRanges(program);
  return (kernel) => (kernel.structure || !computesWide(kernel.body) ? kernel : narrowKernel(kernel, (b) => ranges.get(b)));
}

/** One kernel; `ranges` says what is known of buffers. */
export function narrowKernel(kernel: Kernel, ranges: (b: Buffer) => Range | undefined): Kernel {
  const locals = localsOf(kernel.body, ranges);
  const narrowing = new Narrowing({ buffer: ranges, local: (name) => locals.get(name) });
  return { ...kernel, body: mapStmtExprs(kernel.body, (e) => narrowing.expression(e)) };
}

const computesWide = (body: Stmt): boolean => {
  let found = false;
  visitStmt(body, (s) => { for (const e of expressionsOf(s)) visitExpr(e, (x) => { found ||= x.type.scalar === "i64" && x.kind !== "const"; }); });
  return found;
};

/** Ranges of locals that are set once. */
function localsOf(body: Stmt, buffer: KnownRanges["buffer"]): ReadonlyMap<string, Range | undefined> {
  const out = new Map<string, Range | undefined>(), changed = assignedLocals(body);
  visitStmt(body, (s) => { if (s.kind === "let" && !changed.has(s.name)) out.set(s.name, rangeOf(s.value, { buffer, local: (name) => out.get(name) })); });
  return out;
}

/** Operations whose low half hangs on the low halves of their operands. */
const lowHalf: ReadonlySet<BinaryOp> = new Set<BinaryOp>(["add", "sub", "mul", "and", "or", "xor"]);
const comparisons: ReadonlySet<BinaryOp> = new Set<BinaryOp>(["eq", "ne", "lt", "le", "gt", "ge"]);

class Narrowing {
  readonly #known: KnownRanges;
  readonly #ranges = new Map<Expr, Range | undefined>();
  readonly #done = new Map<Expr, Expr>();
  readonly #low = new Map<Expr, Expr>();
  readonly #weights = new Map<Expr, Weight>();
  constructor(known: KnownRanges) { this.#known = known; }

  /** The same value, of the same type. */
  expression(e: Expr): Expr {
    let done = this.#done.get(e);
    if (!done) this.#done.set(e, (done = this.#rebuilt(e)));
    return done;
  }

  #rebuilt(e: Expr): Expr {
    if (e.kind === "cast" && isWide(e.a) && this.#pays(e.a) && (e.type.scalar === "i32" || ((e.type.scalar === "f32" || e.type.scalar === "f64") && this.#fits(e.a)))) return cast(this.#narrow(e.a), e.type.scalar);
    if (e.kind === "binary" && comparisons.has(e.op) && isWide(e.a) && this.#fits(e.a) && this.#fits(e.b) && this.#pays(e.a, e.b)) return binary(e.op, this.#narrow(e.a), this.#narrow(e.b));
    if (isWide(e) && this.#weight(e).operations > 0 && this.#pays(e) && this.#fits(e)) return cast(this.#narrow(e), "i64");
    return mapChildren(e, (c) => this.expression(c));
  }

  #weight(e: Expr): Weight {
    let weight = this.#weights.get(e);
    if (!weight) {
      const operands = wideOperands(e).map((x) => this.#weight(x));
      weight = operands.length > 0
        ? operands.reduce((sum, w) => ({ operations: sum.operations + w.operations, cuts: sum.cuts + w.cuts }), { operations: 1, cuts: 0 })
        : { operations: 0, cuts: e.kind === "const" || (e.kind === "cast" && is32(e.a)) ? 0 : 1 };
      this.#weights.set(e, weight);
    }
    return weight;
  }
  /** Whether no more values have to be cut than operations become narrower. */
  #pays(...all: readonly Expr[]): boolean {
    const weights = all.map((e) => this.#weight(e));
    return weights.reduce((n, w) => n + w.cuts, 0) <= weights.reduce((n, w) => n + w.operations, 0);
  }
  #fits(e: Expr): boolean { return fits32(rangeOf(e, this.#known, this.#ranges)); }

  /** The low 32 bits of a 64-bit expression, as an i32: its value where that fits. */
  #narrow(e: Expr): Expr {
    let low = this.#low.get(e);
    if (!low) this.#low.set(e, (low = this.#lowBits(e)));
    return low;
  }
  #lowBits(e: Expr): Expr {
    switch (e.kind) {
      case "const": return constant(Number(BigInt.asIntN(32, BigInt(e.value))), { ...i32, lanes: e.type.lanes });
      case "cast": if (is32(e.a)) return cast(this.expression(e.a), "i32"); break;
      case "select": return select(this.expression(e.condition), this.#narrow(e.a), this.#narrow(e.b));
      case "unary": if (e.op === "neg" || (e.op === "abs" && this.#fits(e.a))) return unary(e.op, this.#narrow(e.a)); break;
      case "binary": if (lowHalf.has(e.op) || this.#divides(e) || (isExtreme(e.op) && this.#fits(e.a) && this.#fits(e.b))) return binary(e.op, this.#narrow(e.a), this.#narrow(e.b)); break;
      default:
    }
    return cast(mapChildren(e, (c) => this.expression(c)), "i32");
  }
  /** A division in 32 bits: of operands that fit, and not of the least number by -1, which has no answer there. */
  #divides(e: Expr & { readonly kind: "binary" }): boolean {
    if (e.op !== "div" && e.op !== "rem") return false;
    const a = rangeOf(e.a, this.#known, this.#ranges), b = rangeOf(e.b, this.#known, this.#ranges);
    return fits32(a) && fits32(b) && (a.low > -(2 ** 31) || b.low > -1 || b.high < -1);
  }
}

const isWide = (e: Expr): boolean => e.type.scalar === "i64";
const is32 = (e: Expr): boolean => e.type.scalar === "i32" || e.type.scalar === "u32" || e.type.scalar === "bool";
const isExtreme = (op: BinaryOp): boolean => op === "min" || op === "max" || op === "pmin" || op === "pmax";

/** What narrowing an expression changes: operations that become 32-bit, and 64-bit values that have to be cut for it. */
interface Weight { readonly operations: number; readonly cuts: number }
const wideOperands = (e: Expr): readonly Expr[] => (e.kind === "binary" || e.kind === "select" ? [e.a, e.b] : e.kind === "unary" ? [e.a] : []).filter(isWide);

/**
 * What is known of the elements of buffers: constants, and what kernels store. Nothing is of those that other steps
 * write, or that an iteration of a loop writes again.
 */
function bufferRanges(program: Program): ReadonlyMap<Buffer, Range | undefined> {
  const out = new Map<Buffer, Range | undefined>();
  // A weight may be padded with zeros.
  for (const { buffer, source } of program.weights) if (!("input" in source)) out.set(buffer, union(tensorRange(source), { low: 0, high: 0 }));
  const unknown = writtenOtherwise(program.steps);
  for (const s of allSteps(program.steps)) {
    if (s.kind !== "call") continue;
    for (const [b, r] of storedRanges(s.kernel, (x) => out.get(x))) out.set(b, unknown.has(b) ? undefined : out.has(b) ? union(out.get(b), r) : r);
  }
  return out;
}

/** Buffers that steps other than kernels write, and those with several writers of which one is in a loop. */
function writtenOtherwise(steps: readonly Step[]): ReadonlySet<Buffer> {
  const out = new Set<Buffer>(), writers = new Map<Buffer, number>();
  const walk = (list: readonly Step[], inLoop: boolean): void => {
    for (const s of list) switch (s.kind) {
      case "call": for (const b of s.kernel.outputs) writers.set(b, (writers.get(b) ?? 0) + (inLoop ? 1.5 : 1)); break;
      case "host": for (const b of s.outputs) if (b) out.add(b); break;
      case "move": for (const m of s.moves) out.add(m.to); break;
      case "if": walk(s.then, inLoop); walk(s.else, inLoop); break;
      case "loop":
        for (const b of [...s.carry.flatMap((c) => [c.input, c.result]), ...s.stack.map((k) => k.to), s.iteration]) if (b) out.add(b);
        walk(s.body, true);
        break;
      case "check": break;
    }
  };
  walk(steps, false);
  for (const [b, n] of writers) if (n > 2) out.add(b);
  return out;
}

function storedRanges(kernel: Kernel, buffer: KnownRanges["buffer"]): ReadonlyMap<Buffer, Range | undefined> {
  const out = new Map<Buffer, Range | undefined>(), wide = kernel.outputs.filter((b) => b.dtype === "int64" || b.dtype === "int32");
  if (wide.length === 0) return out;
  const locals = localsOf(kernel.body, buffer), known: KnownRanges = { buffer, local: (name) => locals.get(name) };
  const visit = (s: Stmt): void => {
    if (s.kind === "store" && wide.includes(s.buffer)) { const r = rangeOf(s.value, known); out.set(s.buffer, out.has(s.buffer) ? union(out.get(s.buffer), r) : r); }
    bodiesOf(s).forEach(visit);
  };
  visit(kernel.body);
  for (const b of wide) if (!out.has(b)) out.set(b, undefined);
  return out;
}

/** The least and the largest of integers. */
function tensorRange({ dtype, data }: Tensor): Range | undefined {
  if ((dtype !== "int64" && dtype !== "int32") || data.length === 0) return undefined;
  let low = Infinity, high = -Infinity;
  for (const x of data) { const v = Number(x); if (v < low) low = v; if (v > high) high = v; }
  return Number.isSafeInteger(low) && Number.isSafeInteger(high) ? { low, high } : undefined;
}
