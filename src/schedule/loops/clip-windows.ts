/**
 * Windows with borders: a reduction that skips what lies outside by a condition runs over the part of the window that
 * lies inside instead. Guarantees the same bits: what is skipped is what the accumulator starts from.
 */
import { isSymbolic } from "../../core/dim.ts";
import { add, and, constant, dimExpr, div, ge, i32, le, max, min, type Axis, type BinaryOp, type Expr, type ReduceOp } from "../../kernel/expr.ts";
import { linearScale, linearSub, type Linear } from "../../kernel/linear.ts";
import { block, loop, type Stmt } from "../../kernel/stmt.ts";
import { isWhole, statementsOf, wholeLoop, type Loop } from "./nest.ts";
import type { Strides } from "./strides.ts";

export interface Clipped {
  /** Loops over the inside only. */
  readonly inside: Stmt;
  /** The same where the whole window is inside: no conditions. */
  readonly whole: Stmt;
  /** Holds where the whole window is inside. */
  readonly isWhole: Expr;
}

/** `body` with its windows clipped; undefined where it has none that only conditions on its loops keep inside. */
export function clipWindows(body: Stmt, strides: Strides): Clipped | undefined {
  const statements = statementsOf(body);
  const starts = new Map<string, Expr>();
  const inside: Stmt[] = [], whole: Stmt[] = [];
  let condition: Expr | undefined;
  for (const s of statements) {
    if (s.kind === "let") starts.set(s.name, s.value);
    const clipped = s.kind === "for" ? clipLoop(s, starts, strides) : undefined;
    inside.push(clipped ? clipped.inside : s);
    whole.push(clipped ? clipped.whole : s);
    if (clipped) condition = condition ? and(condition, clipped.isWhole) : clipped.isWhole;
  }
  return condition && { inside: block(...inside), whole: block(...whole), isWhole: condition };
}

interface Bounds { begin: Expr; end: Expr }

function clipLoop(s: Loop, starts: ReadonlyMap<string, Expr>, strides: Strides): Clipped | undefined {
  const axes: Axis[] = [];
  let inner: Stmt = s;
  while (inner.kind === "for" && isWhole(inner) && statementsOf(inner.body).length === 1) {
    axes.push(inner.axis);
    inner = statementsOf(inner.body)[0] ?? inner.body;
  }
  if (inner.kind !== "accumulate" || inner.value.kind !== "select") return undefined;
  const { condition, a, b } = inner.value;
  const start = starts.get(inner.name);
  if (!start || !isNeutral(inner.op, b, start)) return undefined;
  const bounds = new Map(axes.map((axis): [Axis, Bounds] => [axis, { begin: constant(0, i32), end: dimExpr(axis.extent) }]));
  const full: Expr[] = [], left: Expr[] = [];
  for (const part of conjuncts(condition)) if (!tighten(part, axes, bounds, full, strides)) left.push(part);
  if (full.length === 0) return undefined;
  const rest = left.reduce<Expr | undefined>((all, c) => (all ? and(all, c) : c), undefined);
  const own: Stmt = { ...inner, value: rest ? { ...inner.value, condition: rest } : a };
  return {
    inside: axes.reduceRight<Stmt>((body, axis) => { const at = bounds.get(axis); return at ? loop(axis, at.begin, at.end, 1, body) : body; }, own),
    whole: axes.reduceRight<Stmt>((body, axis) => wholeLoop(axis, body), own),
    isWhole: full.reduce(and),
  };
}

/** Folding in `skipped` changes nothing about an accumulator that began at `start`. */
function isNeutral(op: ReduceOp, skipped: Expr, start: Expr): boolean {
  if (skipped.kind !== "const" || start.kind !== "const" || !Object.is(skipped.value, start.value)) return false;
  return op === "max" || op === "min" || (op === "add" && Object.is(Number(skipped.value), 0));
}

function conjuncts(e: Expr): Expr[] {
  return e.kind === "binary" && e.op === "and" && e.type.scalar === "bool" ? [...conjuncts(e.a), ...conjuncts(e.b)] : [e];
}

/** Makes a comparison a bound of the one window axis it is about. Adds to `full` when the bound takes nothing away. */
function tighten(e: Expr, axes: readonly Axis[], bounds: ReadonlyMap<Axis, Bounds>, full: Expr[], strides: Strides): boolean {
  const { table } = strides;
  if (e.kind !== "binary" || e.a.type.scalar !== "i32") return false;
  let difference = linearSub(table.linear(table.make(e.a)), table.linear(table.make(e.b)));
  const own = difference.terms.find((t) => t.atom.kind === "axis" && axes.includes(t.atom.axis));
  if (!own || own.atom.kind !== "axis" || isSymbolic(own.coefficient) || own.coefficient === 0) return false;
  const { axis } = own.atom, at = bounds.get(axis);
  let op: BinaryOp | undefined = e.op;
  let factor = own.coefficient;
  if (factor < 0) { difference = linearScale(difference, -1); factor = -factor; op = mirrored(op); }
  const rest: Linear = { ...difference, terms: difference.terms.filter((t) => !(t.atom.kind === "axis" && t.atom.axis === axis)) };
  if (!at || rest.terms.some((t) => axes.some((a) => strides.axesOf(t.atom).has(a)))) return false;
  // factor·k ≥ limit, or factor·k < limit.
  const limit = table.fromLinear(linearScale(rest, -1));
  const turned = op === "ge" || op === "lt" ? limit : op === "gt" || op === "le" ? table.make(add(limit, 1)) : undefined;
  if (!turned) return false;
  const first = factor === 1 ? turned : table.make(div(add(turned, factor - 1), factor));
  if (op === "ge" || op === "gt") {
    at.begin = table.make(max(at.begin, first));
    full.push(table.make(le(first, 0)));
  } else {
    at.end = table.make(min(at.end, first));
    full.push(table.make(ge(first, dimExpr(axis.extent))));
  }
  return true;
}
function mirrored(op: BinaryOp): BinaryOp | undefined {
  switch (op) {
    case "lt": return "gt";
    case "le": return "ge";
    case "gt": return "lt";
    case "ge": return "le";
    default: return undefined;
  }
}
