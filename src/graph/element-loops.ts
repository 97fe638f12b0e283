/**
 * Loops over elements and rows: what a region without an anchor computes, and what that costs. The cost counts the
 * operations that the loops run, so that work repeated by inlining (a value pulled in every pass of a reduction, or for
 * every element it is broadcast to) shows before a kernel is chosen.
 */
import { assertNever } from "../core/assert.ts";
import { dimEqual, dimProduct, evaluateDim, type Dim } from "../core/dim.ts";
import { axisOf, constant, i32, load, type Axis, type Buffer, type Expr } from "../kernel/expr.ts";
import { buildLoops, type ElementStore } from "../kernel/hoist.ts";
import { ExprTable } from "../kernel/share.ts";
import type { Stmt } from "../kernel/stmt.ts";
import { bodiesOf, expressionsOf, mapExpr, mapStmtExprs, operandsOf, visitExpr } from "../kernel/traverse.ts";
import { Elements } from "./elements.ts";
import type { Node, Value } from "./graph.ts";

export interface ElementLoops { readonly body: Stmt; /** Working memory: a row at a time. */ readonly scratch: readonly Buffer[] }

/**
 * The naive loops that store `outputs`, computed by `nodes`; outputs whose leading sizes agree share loops. What passes over
 * a row read several times, such as a residual sum that is normalised, is stored a row at a time before them: where it is
 * an output in its memory, else in working memory where that costs less than computing it in every pass.
 */
export function elementLoops(nodes: Iterable<Node>, outputs: readonly Value[], bufferOf: (value: Value) => Buffer): ElementLoops {
  const group = new Set(nodes), table = new ExprTable(), axes = new SharedAxes();
  const plain = new Elements({ table, inline: group, bufferOf });
  const storeIn = (elements: Elements) => (value: Value): ElementStore => {
    const own = axes.of(value.type.shape), indices = own.map(indexOf);
    return { axes: own.filter((a) => a !== undefined), buffer: bufferOf(value), indices, value: elements.at(value, indices) };
  };
  const apart = (): ElementLoops => ({ body: buildLoops(table, outputs.map(storeIn(plain))), scratch: [] });
  const row = rowReadAgain(group, outputs);
  if (!row) return apart();
  const { shape, dtype } = row.type, isOutput = outputs.includes(row), whole = isOutput ? bufferOf(row) : { name: "row", dtype, shape };
  const reading = new Elements({ table, inline: new Set([...group].filter((n) => n !== row.producer?.node)), bufferOf: (v) => (v === row ? whole : bufferOf(v)) });
  const others = outputs.filter((v) => v !== row).map(storeIn(reading)), around = axes.of(shape), shared = sharedIndices(around, whole, others, table);
  if (shared === undefined || estimate(dimProduct(shape.slice(shared))) < leastRow) return apart();
  const own = around.map((axis, d) => (axis && d >= shared ? { ...axis } : axis)), indices = own.map(indexOf);
  const first: ElementStore = { first: true, axes: own.filter((a) => a !== undefined), buffer: whole, indices, value: plain.at(row, indices) };
  const body = buildLoops(table, [first, ...others]);
  if (isOutput) return { body, scratch: [] };
  const inline = apart(), one: Buffer = { name: "row", dtype, shape: shape.slice(shared) };
  return statementCost(body) < statementCost(inline.body) ? { body: inBuffer(body, whole, one, shared), scratch: [one] } : inline;
}
/** The statements with `to` in the place of `from`, which lacks the leading axes. Loops stand already where these are bound. */
function inBuffer(s: Stmt, from: Buffer, to: Buffer, leading: number): Stmt {
  const memo = new Map<Expr, Expr>(), inner = (x: Stmt): Stmt => inBuffer(x, from, to, leading);
  const change = (root: Expr): Expr => mapExpr(root, (e) => (e.kind === "load" && e.buffer === from ? load(to, e.indices.slice(leading)) : e), memo);
  switch (s.kind) {
    case "block": return { ...s, body: s.body.map(inner) };
    case "for": return { ...s, body: inner(s.body) };
    case "if": return { ...s, condition: change(s.condition), then: inner(s.then), ...(s.else ? { else: inner(s.else) } : {}) };
    case "store": return { ...s, indices: s.buffer === from ? s.indices.slice(leading).map(change) : s.indices.map(change), value: change(s.value), buffer: s.buffer === from ? to : s.buffer };
    default: return mapStmtExprs(s, change);
  }
}
const indexOf = (axis: Axis | undefined): Expr => (axis ? axisOf(axis) : constant(0, i32));
/** Passes over shorter rows are better run side by side. */
const leastRow = 16;

/** What is computed element by element in `group` and read there by a reduction: an output, or a value that nothing else reads. */
function rowReadAgain(group: ReadonlySet<Node>, outputs: readonly Value[]): Value | undefined {
  const reduces = (n: Node): boolean => group.has(n) && (n.op.fusionKind === "reduction" || n.op.fusionKind === "opaque");
  const found = [...group].filter((n) => n.outputs.length === 1 && (n.op.fusionKind === "elementwise" || n.op.fusionKind === "broadcast"))
    .flatMap((n) => n.outputs).filter((v) => v.uses.some((u) => reduces(u.node)));
  return found.find((v) => outputs.includes(v) && outputs.length > 1) ?? found.find((v) => !outputs.includes(v) && v.uses.every((u) => group.has(u.node)));
}

/**
 * How many leading axes of a row's buffer are read only where the loops around stand, when others are not; undefined
 * where none is, or nothing else.
 */
function sharedIndices(axes: readonly (Axis | undefined)[], buffer: Buffer, stores: readonly ElementStore[], table: ExprTable): number | undefined {
  let shared = axes.length;
  const seen = new Set<Expr>();
  for (const s of stores) visitExpr(s.value, (e) => {
    if (e.kind !== "load" || e.buffer !== buffer) return;
    const differs = axes.findIndex((axis, d) => axis !== undefined && e.indices[d] !== table.make(axisOf(axis)));
    if (differs >= 0) shared = Math.min(shared, differs);
  }, seen);
  return shared < axes.length && axes.slice(0, shared).some((a) => a !== undefined) ? shared : undefined;
}

/** Loop variables that outputs share as long as their leading sizes agree; none for sizes of 1. */
class SharedAxes {
  readonly #known: { readonly prefix: readonly Dim[]; readonly axis: Axis }[] = [];
  of(shape: readonly Dim[]): (Axis | undefined)[] {
    return shape.map((extent, d) => {
      if (extent === 1) return undefined;
      const prefix = shape.slice(0, d + 1);
      const same = this.#known.find((k) => k.prefix.length === prefix.length && k.prefix.every((size, i) => dimEqual(size, prefix[i] ?? 1)));
      if (same) return same.axis;
      const axis = { name: `i${d}`, extent };
      this.#known.push({ prefix, axis });
      return axis;
    });
  }
}

/** What an unknown size is taken for when work is estimated. */
export const assumedSize = 64;
export const estimate = (d: Dim): number => evaluateDim(d, () => assumedSize);

export interface ElementWork {
  /** Operations that the loops run, in units of one addition. */
  readonly cost: number;
  /** A reduction runs inside another one. */
  readonly nested: boolean;
}
/** What the loops of `elementLoops` would do. */
export function elementWork(nodes: Iterable<Node>, outputs: readonly Value[]): ElementWork {
  const body = loopsOf(nodes, outputs);
  return { cost: statementCost(body), nested: hasNestedReduction(body) };
}
/** The most operations that one result of a node alone takes: how much deeper an expression gets with it, at most. */
export const elementDepth = (node: Node): number => deepest(loopsOf([node], node.outputs));
const deepest = (s: Stmt): number => Math.max(0, ...expressionsOf(s).map(exprCost), ...bodiesOf(s).map(deepest));

function loopsOf(nodes: Iterable<Node>, outputs: readonly Value[]): Stmt {
  const buffers = new Map<Value, Buffer>();
  const bufferOf = (value: Value): Buffer => {
    let buffer = buffers.get(value);
    if (!buffer) buffers.set(value, (buffer = { name: value.name, dtype: value.type.dtype, shape: value.type.shape }));
    return buffer;
  };
  return elementLoops(nodes, outputs, bufferOf).body;
}

function hasNestedReduction(s: Stmt): boolean {
  const inner = bodiesOf(s);
  if (s.kind === "block" && inner.some((c) => c.kind === "accumulate") && inner.some((c) => c.kind === "for")) return true;
  return inner.some(hasNestedReduction);
}
function statementCost(s: Stmt): number {
  const own = expressionsOf(s).reduce((sum, e) => sum + exprCost(e), s.kind === "store" ? 2 : s.kind === "accumulate" ? 1 : 0);
  const inner = bodiesOf(s).reduce((sum, body) => sum + statementCost(body), 0);
  return s.kind === "for" ? own + inner * Math.max(1, estimate(s.axis.extent)) : own + inner;
}

function exprCost(e: Expr): number {
  const parts = operandsOf(e);
  if (e.kind === "select") {
    const [condition = 0, a = 0, b = 0] = parts.map(exprCost);
    return condition + Math.max(a, b) + 1;
  }
  return parts.reduce((sum, c) => sum + exprCost(c), operationCost(e));
}
/** Index sums are free: addressing does them once a loop. */
function operationCost(e: Expr): number {
  switch (e.kind) {
    case "const": case "axis": case "dim": case "local": case "address": case "relaxed": return 0;
    case "load": case "loadAt": return 1;
    case "binary": {
      const heavy = e.op === "div" || e.op === "rem";
      if (e.op === "pow") return 24;
      if (e.type.scalar === "i32") return heavy ? 6 : 0.25;
      return heavy ? 4 : 1;
    }
    case "unary": return transcendental.has(e.op) ? 12 : e.op === "sqrt" ? 4 : 1;
    case "cast": case "bitcast": case "select": case "madd": case "splat": case "lanes": case "extract": case "shuffle": case "swizzle": case "dot": case "byteDot": case "extend": return 1;
    case "reduce": return 0;
    default: return assertNever(e);
  }
}
const transcendental: ReadonlySet<string> = new Set([
  "exp", "decay", "log", "tanh", "erf", "gelu", "silu", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh",
]);
