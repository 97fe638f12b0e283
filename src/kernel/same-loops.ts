/** Compares loops and expressions part by part: whether they are the same but for the buffers that they work on. */
import { dimEqual, shapeEqual } from "../core/dim.ts";
import type { Axis, Buffer, Expr, Type } from "./expr.ts";
import type { Stmt } from "./stmt.ts";
import { operandsOf } from "./traverse.ts";

/** Whether two lists are the same, pair by pair. */
export const samePairs = <T>(a: readonly T[] | undefined, b: readonly T[] | undefined, same: (x: T, y: T) => boolean): boolean => {
  const x = a ?? [], y = b ?? [];
  return x.length === y.length && x.every((v, i) => { const w = y[i]; return w !== undefined && same(v, w); });
};

export const sameTypes = (a: Type, b: Type): boolean => a.scalar === b.scalar && a.lanes === b.lanes;

/** Two statements, or parts of structures, side by side. Where one shares an expression, the other must. */
export class Comparison {
  readonly buffers: (a: Buffer, b: Buffer) => boolean;
  readonly #axes = new Map<Axis, Axis>();
  readonly #paired = new Map<Expr, Expr>();
  readonly #theirs = new Set<Expr>();

  constructor(buffers: (a: Buffer, b: Buffer) => boolean) {
    this.buffers = buffers;
  }

  statements(a: Stmt, b: Stmt): boolean {
    const e = (x: Expr, y: Expr): boolean => this.expressions(x, y), s = (x: Stmt, y: Stmt): boolean => this.statements(x, y);
    switch (a.kind) {
      case "for": return b.kind === "for" && a.step === b.step && a.mode === b.mode && dimEqual(a.work ?? -1, b.work ?? -1) && this.axes(a.axis, b.axis) && e(a.begin, b.begin) && e(a.end, b.end) && s(a.body, b.body);
      case "split": return b.kind === "split" && a.from === b.from && a.to === b.to && a.grain === b.grain && shapeEqual([a.outer, a.inner], [b.outer, b.inner]) && s(a.body, b.body);
      case "block": return b.kind === "block" && samePairs(a.body, b.body, s);
      case "let": case "assign": return b.kind === a.kind && a.name === b.name && e(a.value, b.value);
      case "accumulate": return b.kind === "accumulate" && a.name === b.name && a.op === b.op && e(a.value, b.value);
      case "store": return b.kind === "store" && a.along === b.along && this.buffers(a.buffer, b.buffer) && samePairs(a.indices, b.indices, e) && e(a.value, b.value);
      case "storeAt": return b.kind === "storeAt" && a.offset === b.offset && a.dtype === b.dtype && e(a.pointer, b.pointer) && e(a.value, b.value);
      case "if": return b.kind === "if" && e(a.condition, b.condition) && s(a.then, b.then) && (a.else && b.else ? s(a.else, b.else) : a.else === b.else);
    }
  }

  axes(a: Axis, b: Axis): boolean {
    const known = this.#axes.get(a);
    if (known) return known === b;
    this.#axes.set(a, b);
    return a.name === b.name && dimEqual(a.extent, b.extent);
  }

  expressions(a: Expr, b: Expr): boolean {
    if (a.kind !== b.kind || !sameTypes(a.type, b.type)) return false;
    const known = this.#paired.get(a);
    if (known) return known === b;
    if (!this.#sameNode(a, b)) return false;
    const mine = operandsOf(a), theirs = operandsOf(b);
    if (mine.length === 0) return true;
    if (this.#theirs.has(b)) return false;
    this.#paired.set(a, b);
    this.#theirs.add(b);
    return samePairs(mine, theirs, (x, y) => this.expressions(x, y));
  }

  /** The same, operands aside. */
  #sameNode(a: Expr, b: Expr): boolean {
    switch (a.kind) {
      case "const": return b.kind === "const" && Object.is(a.value, b.value);
      case "axis": return b.kind === "axis" && this.axes(a.axis, b.axis);
      case "dim": return b.kind === "dim" && dimEqual(a.dim, b.dim);
      case "local": return b.kind === "local" && a.name === b.name;
      case "load": return b.kind === "load" && a.along === b.along && this.buffers(a.buffer, b.buffer);
      case "address": return b.kind === "address" && this.buffers(a.buffer, b.buffer);
      case "loadAt": return b.kind === "loadAt" && a.offset === b.offset && a.dtype === b.dtype && a.splat === b.splat;
      case "unary": return b.kind === "unary" && a.op === b.op;
      case "binary": return b.kind === "binary" && a.op === b.op;
      case "madd": return b.kind === "madd" && a.relaxed === b.relaxed;
      case "extract": return b.kind === "extract" && a.lane === b.lane;
      case "shuffle": return b.kind === "shuffle" && samePairs(a.bytes, b.bytes, (x, y) => x === y);
      case "extend": return b.kind === "extend" && a.half === b.half;
      case "reduce": return b.kind === "reduce" && a.op === b.op && samePairs(a.axes, b.axes, (x, y) => this.axes(x, y));
      case "select": case "cast": case "bitcast": case "splat": case "lanes": case "swizzle": case "dot": case "byteDot": case "relaxed": return true;
    }
  }
}
