/**
 * Loop nests of naive kernels: which loops may run in any order, which only fold into accumulators, and rebuilding a
 * nest over other loop variables.
 */
import { dimEqual, type Dim } from "../../core/dim.ts";
import { constant, dimExpr, i32, type Axis, type Buffer, type Expr } from "../../kernel/expr.ts";
import type { ExprTable } from "../../kernel/share.ts";
import { block, loop, type LoopMode, type Stmt } from "../../kernel/stmt.ts";
import { expressionsOf, mapExpr, mapStmtExprs, visitExpr, visitStmt } from "../../kernel/traverse.ts";
import { assignedLocals } from "../../kernel/unchanging.ts";

export type Loop = Extract<Stmt, { kind: "for" }>;

/** The statements of a block, or the statement alone. */
export const statementsOf = (s: Stmt): readonly Stmt[] => (s.kind === "block" ? s.body : [s]);

/** for (axis = 0; axis < extent; axis++) */
export const wholeLoop = (axis: Axis, body: Stmt, mode: LoopMode = "serial"): Stmt => loop(axis, constant(0, i32), dimExpr(axis.extent), 1, body, mode);
export const wholeNest = (axes: readonly Axis[], body: Stmt, mode: LoopMode = "serial"): Stmt => axes.reduceRight<Stmt>((inner, axis) => wholeLoop(axis, inner, mode), body);

/** True when the loop counts from 0 to its axis's extent by ones. */
export function isWhole(s: Loop): boolean {
  const end: Dim | undefined = s.end.kind === "const" ? Number(s.end.value) : s.end.kind === "dim" ? s.end.dim : undefined;
  return s.step === 1 && s.begin.kind === "const" && Number(s.begin.value) === 0 && end !== undefined && dimEqual(end, s.axis.extent);
}

/**
 * parallel: iterations write different elements and nothing else that the kernel reads, so they may run in any order.
 * reduction: iterations only fold into locals declared outside, and write no memory. serial: anything else.
 */
export type LoopKind = "parallel" | "reduction" | "serial";

export function loopKind(s: Loop, table: ExprTable): LoopKind {
  if (!isWhole(s)) return "serial";
  const declared = new Set<string>(), stored = new Set<Buffer>(), loaded = new Set<Buffer>(), inner = new Set<Axis>();
  let foldsOut = false, assignsOut = false, writes = false, opaque = false, distinct = true;
  const seen = new Set<Expr>();
  visitStmt(s.body, (x) => {
    if (x.kind === "let") declared.add(x.name);
    if (x.kind === "for") inner.add(x.axis);
    if (x.kind === "storeAt") opaque = true;
    if (x.kind === "store") { writes = true; stored.add(x.buffer); }
    expressionsOf(x).forEach((root) => visitExpr(root, (e) => {
      if (e.kind === "load") loaded.add(e.buffer);
      if (e.kind === "loadAt" || e.kind === "address") opaque = true;
    }, seen));
  });
  visitStmt(s.body, (x) => {
    if (x.kind === "accumulate" && !declared.has(x.name)) foldsOut = true;
    if (x.kind === "assign" && !declared.has(x.name)) assignsOut = true;
    if (x.kind === "store" && !x.indices.some((i) => isOwnIndex(i, s.axis, inner, table))) distinct = false;
  });
  if (opaque || assignsOut) return "serial";
  if (!writes) return foldsOut ? "reduction" : "serial";
  return foldsOut || !distinct || [...stored].some((b) => loaded.has(b)) ? "serial" : "parallel";
}
/**
 * Whether each iteration reads and writes rows of its own of every buffer that the loop stores, but for `scratch`, which
 * threads do not share: iterations may be shared out then, though not run side by side in lanes.
 */
export function hasOwnRows(s: Loop, scratch: ReadonlySet<Buffer>): boolean {
  if (!isWhole(s)) return false;
  const declared = new Set<string>(), stored = new Map<Buffer, Set<number>>();
  let own = true;
  const note = (buffer: Buffer, indices: readonly Expr[]): void => {
    const places = indices.flatMap((e, d) => (e.kind === "axis" && e.axis === s.axis ? [d] : [])), known = stored.get(buffer);
    stored.set(buffer, new Set(known ? places.filter((d) => known.has(d)) : places));
  };
  visitStmt(s.body, (x) => {
    if (x.kind === "let") declared.add(x.name);
    if (x.kind === "storeAt") own = false;
    if (x.kind === "store" && !scratch.has(x.buffer)) note(x.buffer, x.indices);
  });
  visitStmt(s.body, (x) => {
    if ((x.kind === "accumulate" || x.kind === "assign") && !declared.has(x.name)) own = false;
    expressionsOf(x).forEach((root) => visitExpr(root, (e) => {
      if (e.kind === "load" && stored.has(e.buffer)) note(e.buffer, e.indices);
      if (e.kind === "loadAt" || e.kind === "address") own = false;
    }));
  });
  return own && stored.size > 0 && [...stored.values()].every((places) => places.size > 0);
}

/** A sum in which, of all that changes in the loop, only its own variable occurs. */
function isOwnIndex(i: Expr, axis: Axis, inner: ReadonlySet<Axis>, table: ExprTable): boolean {
  let own = false;
  for (const { atom } of table.linear(table.make(i)).terms) {
    if (atom.kind === "axis" && atom.axis === axis) own = true;
    else {
      let varies = false;
      visitExpr(atom, (e) => { if (e.kind === "load" || e.kind === "local" || (e.kind === "axis" && (e.axis === axis || inner.has(e.axis)))) varies = true; });
      if (varies) return false;
    }
  }
  return own;
}

export interface Nest {
  /** Outermost first. */
  readonly axes: readonly Axis[];
  readonly body: Stmt;
}
/** The perfect nest that begins with a loop, as far as its loops are of one kind. */
export function nestOf(s: Loop, kind: LoopKind, table: ExprTable): Nest {
  const axes = [s.axis];
  let { body } = s;
  for (;;) {
    const [only, ...more] = statementsOf(body);
    if (!only || more.length || only.kind !== "for" || loopKind(only, table) !== kind) return { axes, body };
    axes.push(only.axis);
    body = only.body;
  }
}

/**
 * Axes that what is folded first does not depend on move inwards, around what is left, so that a fold is done once: the
 * sums of a softmax over the first axis are computed for every place of the others, not for every element.
 */
export function foldBeforeSpreading({ axes, body }: Nest): Nest {
  const all = statementsOf(body), last = all.findLastIndex((s) => s.kind === "for");
  const before = all.slice(0, last + 1), after = all.slice(last + 1);
  if (last < 0 || after.length === 0 || before.some(writes)) return { axes, body };
  const used = new Set<Axis>(), seen = new Set<Expr>();
  before.forEach((b) => visitStmt(b, (s) => expressionsOf(s).forEach((root) => visitExpr(root, (e) => { if (e.kind === "axis") used.add(e.axis); }, seen))));
  const spread = axes.filter((a) => !used.has(a));
  if (spread.length === 0) return { axes, body };
  return { axes: axes.filter((a) => used.has(a)), body: block(...before, wholeNest(spread, block(...after))) };
}
function writes(s: Stmt): boolean {
  let found = false;
  visitStmt(s, (x) => { if (x.kind === "store" || x.kind === "storeAt") found = true; });
  return found;
}

/** Replaces loop variables by expressions. */
export function substitute(s: Stmt, map: ReadonlyMap<Axis, Expr>, table: ExprTable): Stmt {
  const memo = new Map<Expr, Expr>();
  return mapStmtExprs(s, (e) => table.make(mapExpr(e, (x) => (x.kind === "axis" ? map.get(x.axis) ?? x : x), memo)));
}

/**
 * Loops of one iteration go; declarations in front of a loop that is alone with them move into it, but for those that read
 * a buffer of `aliased`: the loop may write over it.
 */
export function perfectNests(s: Stmt, table: ExprTable, aliased: ReadonlySet<Buffer>): Stmt {
  switch (s.kind) {
    case "block": return sinkDeclarations(block(...s.body.map((b) => perfectNests(b, table, aliased))), aliased);
    case "if": return { ...s, then: perfectNests(s.then, table, aliased), ...(s.else ? { else: perfectNests(s.else, table, aliased) } : {}) };
    case "for": {
      if (isWhole(s) && s.axis.extent === 1) return perfectNests(substitute(s.body, new Map([[s.axis, constant(0, i32)]]), table), table, aliased);
      return { ...s, body: perfectNests(s.body, table, aliased) };
    }
    default: return s;
  }
}
function sinkDeclarations(s: Stmt, aliased: ReadonlySet<Buffer>): Stmt {
  const all = statementsOf(s), last = all.at(-1), before = all.slice(0, -1);
  if (!last || before.length === 0 || last.kind !== "for" || !isWhole(last) || before.some((b) => b.kind !== "let" || reads(b.value, aliased))) return s;
  const assigned = assignedLocals(last.body);
  return before.some((b) => b.kind === "let" && assigned.has(b.name)) ? s : { ...last, body: sinkDeclarations(block(...before, last.body), aliased) };
}
function reads(e: Expr, buffers: ReadonlySet<Buffer>): boolean {
  let found = false;
  visitExpr(e, (x) => { if (x.kind === "load" && buffers.has(x.buffer)) found = true; });
  return found;
}
