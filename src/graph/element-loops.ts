/**
 * Loops over elements and rows: what a region without an anchor computes, and what that costs. The cost counts the
 * operations that the loops run, so that work repeated by inlining (a value pulled in every pass of a reduction, or for
 * every element it is broadcast to) shows before a kernel is chosen.
 */
import { assertNever } from "../core/assert.ts";
import { dimEqual, evaluateDim, type Dim } from "../core/dim.ts";
import { axisOf, constant, i32, type Axis, type Buffer, type Expr } from "../kernel/expr.ts";
import { buildLoops, type ElementStore } from "../kernel/hoist.ts";
import { ExprTable } from "../kernel/share.ts";
import type { Stmt } from "../kernel/stmt.ts";
import { bodiesOf, expressionsOf, operandsOf, visitExpr } from "../kernel/traverse.ts";
import { Elements } from "./elements.ts";
import type { Node, Value } from "./graph.ts";

/**
 * The naive loops that store `outputs`, computed by `nodes`; outputs whose leading sizes agree share loops. What is stored
 * anyway and read again row by row, such as a residual sum that is then normalised, is stored a row at a time before
 * the passes over that row, which read it there.
 */
export function elementLoops(nodes: Iterable<Node>, outputs: readonly Value[], bufferOf: (value: Value) => Buffer): Stmt {
  const group = new Set(nodes), table = new ExprTable(), axes = new SharedAxes();
  const plain = new Elements({ table, inline: group, bufferOf });
  const store = (value: Value, elements: Elements): ElementStore => {
    const own = axes.of(value.type.shape), indices = own.map(indexOf);
    return { axes: own.filter((a) => a !== undefined), buffer: bufferOf(value), indices, value: elements.at(value, indices) };
  };
  const row = rowReadAgain(group, outputs);
  const reading = row && new Elements({ table, inline: new Set([...group].filter((n) => n !== row.producer?.node)), bufferOf });
  const others = outputs.filter((v) => v !== row).map((v) => store(v, reading ?? plain));
  const shared = row && sharedIndices(axes.of(row.type.shape), bufferOf(row), others, table);
  if (!row || shared === undefined) return buildLoops(table, outputs.map((v) => store(v, plain)));
  const own = axes.of(row.type.shape).map((axis, d) => (axis && d >= shared ? { ...axis } : axis)), indices = own.map(indexOf);
  const first: ElementStore = { first: true, axes: own.filter((a) => a !== undefined), buffer: bufferOf(row), indices, value: plain.at(row, indices) };
  return buildLoops(table, [first, ...others]);
}
const indexOf = (axis: Axis | undefined): Expr => (axis ? axisOf(axis) : constant(0, i32));

/** An output that a reduction among `group` reads, computed by one node with one result. */
function rowReadAgain(group: ReadonlySet<Node>, outputs: readonly Value[]): Value | undefined {
  if (outputs.length < 2) return undefined;
  const reduces = (n: Node): boolean => group.has(n) && (n.op.fusionKind === "reduction" || n.op.fusionKind === "opaque");
  return outputs.find((v) => v.producer?.node.outputs.length === 1 && !reduces(v.producer.node) && v.uses.some((u) => reduces(u.node)));
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
  const buffers = new Map<Value, Buffer>();
  const bufferOf = (value: Value): Buffer => {
    let buffer = buffers.get(value);
    if (!buffer) buffers.set(value, (buffer = { name: value.name, dtype: value.type.dtype, shape: value.type.shape }));
    return buffer;
  };
  const body = elementLoops(nodes, outputs, bufferOf);
  return { cost: statementCost(body), nested: hasNestedReduction(body) };
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
    case "const": case "axis": case "dim": case "local": case "address": return 0;
    case "load": case "loadAt": return 1;
    case "binary": {
      const heavy = e.op === "div" || e.op === "rem";
      if (e.op === "pow") return 24;
      if (e.type.scalar === "i32") return heavy ? 6 : 0.25;
      return heavy ? 4 : 1;
    }
    case "unary": return transcendental.has(e.op) ? 12 : e.op === "sqrt" ? 4 : 1;
    case "cast": case "bitcast": case "select": case "madd": case "splat": case "lanes": case "extract": case "shuffle": case "swizzle": case "dot": case "extend": return 1;
    case "reduce": return 0;
    default: return assertNever(e);
  }
}
const transcendental: ReadonlySet<string> = new Set([
  "exp", "decay", "log", "tanh", "erf", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh",
]);
