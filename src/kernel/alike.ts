/**
 * Kernels that are alike: the same loops over other buffers of the same types, shapes and strides. What a pass makes of the
 * loops of one serves the others, with buffers exchanged, so that repeated layers are worked on once.
 */
import { dimEqual, shapeEqual, type Dim } from "../core/dim.ts";
import type { Axis, Buffer, Expr, Type } from "./expr.ts";
import type { Kernel, Layout, Phase } from "./kernel.ts";
import type { Stmt } from "./stmt.ts";
import { mapExpr, mapStmtExprs, operandsOf } from "./traverse.ts";

const keyOf = (d: Dim): string => (typeof d === "number" ? String(d) : d.key);
const buffersOf = (k: Kernel): readonly Buffer[] => [...k.inputs, ...k.outputs, ...k.scratch];
const samePairs = <T>(a: readonly T[] | undefined, b: readonly T[] | undefined, same: (x: T, y: T) => boolean): boolean => {
  const x = a ?? [], y = b ?? [];
  return x.length === y.length && x.every((v, i) => { const w = y[i]; return w !== undefined && same(v, w); });
};

/** Applies a change of loops to kernels one by one, to each of those that are alike only once. */
export class AlikeKernels {
  readonly #layoutOf: (b: Buffer) => Layout;
  readonly #change: (kernel: Kernel) => Kernel;
  readonly #done = new Map<string, { readonly before: Kernel; readonly after: Kernel }[]>();

  /** `change` must hang on nothing but the kernel's loops, its lists of buffers, and the strides of these; and change only the loops, perhaps with working memory that it adds. */
  constructor(layoutOf: (b: Buffer) => Layout, change: (kernel: Kernel) => Kernel) {
    this.#layoutOf = layoutOf;
    this.#change = change;
  }

  changed(kernel: Kernel): Kernel {
    const key = this.#key(kernel), known = this.#done.get(key) ?? [];
    for (const { before, after } of known) {
      const buffers = pairing(before, kernel);
      if (buffers) return withBuffers(after, kernel, buffers, after.scratch.filter((b) => !before.scratch.includes(b)));
    }
    const after = this.#change(kernel);
    this.#done.set(key, [...known, { before: kernel, after }]);
    return after;
  }

  /** Equal for kernels that are alike. */
  #key({ inputs, outputs, scratch }: Kernel): string {
    const one = (b: Buffer): string => `${b.dtype} ${b.shape.map(keyOf).join()} ${this.#layoutOf(b).strides.map(keyOf).join()}`;
    return [inputs, outputs, scratch].map((list) => list.map(one).join(";")).join("|");
  }
}

/** The kernel `own` with the loops of `done`, where one buffer stands for another. What the loops have `added` is its own anew. */
function withBuffers(done: Kernel, own: Kernel, buffers: ReadonlyMap<Buffer, Buffer>, added: readonly Buffer[]): Kernel {
  const fresh = new Map(added.map((b): [Buffer, Buffer] => [b, { ...b }]));
  const memo = new Map<Expr, Expr>(), to = (b: Buffer): Buffer => fresh.get(b) ?? buffers.get(b) ?? b;
  const exchange = (e: Expr): Expr => (e.kind === "address" || e.kind === "load" ? { ...e, buffer: to(e.buffer) } : e);
  const loops = (s: Stmt): Stmt => stored(mapStmtExprs(s, (e) => mapExpr(e, exchange, memo)), to);
  const phase = (p: Phase): Phase => ({ ...p, body: loops(p.body), touched: new Set([...p.touched].map(to)), like: p.like ?? p });
  return { ...own, scratch: [...own.scratch, ...fresh.values()], body: loops(done.body), ...(done.phases ? { phases: done.phases.map(phase) } : {}) };
}

/** With other buffers in its stores. */
function stored(s: Stmt, to: (b: Buffer) => Buffer): Stmt {
  switch (s.kind) {
    case "store": return { ...s, buffer: to(s.buffer) };
    case "for": case "split": return { ...s, body: stored(s.body, to) };
    case "block": return { ...s, body: s.body.map((inner) => stored(inner, to)) };
    case "if": return { ...s, then: stored(s.then, to), ...(s.else ? { else: stored(s.else, to) } : {}) };
    default: return s;
  }
}

/** Which buffer of `b` stands where one of `a` does, if the two are alike. Types, shapes and strides have been compared. */
function pairing(a: Kernel, b: Kernel): ReadonlyMap<Buffer, Buffer> | undefined {
  const theirs = buffersOf(b), buffers = new Map(buffersOf(a).map((x, i): [Buffer, Buffer] => [x, theirs[i] ?? x]));
  const same = (x: Buffer, y: Buffer): boolean => buffers.get(x) === y;
  if (buffers.size !== theirs.length || new Set(theirs).size !== theirs.length || !samePairs(a.shared, b.shared, same)) return undefined;
  if (!samePairs(a.inPlace, b.inPlace, (x, y) => same(x.input, y.input) && same(x.output, y.output))) return undefined;
  return new Comparison(same).statements(a.body, b.body) ? buffers : undefined;
}

const sameTypes = (a: Type, b: Type): boolean => a.scalar === b.scalar && a.lanes === b.lanes;

/** Two statements side by side. Where one shares an expression, the other must. */
class Comparison {
  readonly #sameBuffers: (a: Buffer, b: Buffer) => boolean;
  readonly #axes = new Map<Axis, Axis>();
  readonly #expressions = new Map<Expr, Expr>();
  readonly #theirs = new Set<Expr>();

  constructor(sameBuffers: (a: Buffer, b: Buffer) => boolean) {
    this.#sameBuffers = sameBuffers;
  }

  statements(a: Stmt, b: Stmt): boolean {
    const e = (x: Expr, y: Expr): boolean => this.#same(x, y), s = (x: Stmt, y: Stmt): boolean => this.statements(x, y);
    switch (a.kind) {
      case "for": return b.kind === "for" && a.step === b.step && a.mode === b.mode && dimEqual(a.work ?? -1, b.work ?? -1) && this.#sameAxes(a.axis, b.axis) && e(a.begin, b.begin) && e(a.end, b.end) && s(a.body, b.body);
      case "split": return b.kind === "split" && a.from === b.from && a.to === b.to && a.grain === b.grain && shapeEqual([a.outer, a.inner], [b.outer, b.inner]) && s(a.body, b.body);
      case "block": return b.kind === "block" && samePairs(a.body, b.body, s);
      case "let": case "assign": return b.kind === a.kind && a.name === b.name && e(a.value, b.value);
      case "accumulate": return b.kind === "accumulate" && a.name === b.name && a.op === b.op && e(a.value, b.value);
      case "store": return b.kind === "store" && a.along === b.along && this.#sameBuffers(a.buffer, b.buffer) && samePairs(a.indices, b.indices, e) && e(a.value, b.value);
      case "storeAt": return b.kind === "storeAt" && a.offset === b.offset && a.dtype === b.dtype && e(a.pointer, b.pointer) && e(a.value, b.value);
      case "if": return b.kind === "if" && e(a.condition, b.condition) && s(a.then, b.then) && (a.else && b.else ? s(a.else, b.else) : a.else === b.else);
    }
  }

  #sameAxes(a: Axis, b: Axis): boolean {
    const known = this.#axes.get(a);
    if (known) return known === b;
    this.#axes.set(a, b);
    return a.name === b.name && dimEqual(a.extent, b.extent);
  }

  #same(a: Expr, b: Expr): boolean {
    if (a.kind !== b.kind || !sameTypes(a.type, b.type)) return false;
    const known = this.#expressions.get(a);
    if (known) return known === b;
    if (!this.#sameNode(a, b)) return false;
    const mine = operandsOf(a), theirs = operandsOf(b);
    if (mine.length === 0) return true;
    if (this.#theirs.has(b)) return false;
    this.#expressions.set(a, b);
    this.#theirs.add(b);
    return samePairs(mine, theirs, (x, y) => this.#same(x, y));
  }

  /** The same, operands aside. */
  #sameNode(a: Expr, b: Expr): boolean {
    switch (a.kind) {
      case "const": return b.kind === "const" && Object.is(a.value, b.value);
      case "axis": return b.kind === "axis" && this.#sameAxes(a.axis, b.axis);
      case "dim": return b.kind === "dim" && dimEqual(a.dim, b.dim);
      case "local": return b.kind === "local" && a.name === b.name;
      case "load": return b.kind === "load" && a.along === b.along && this.#sameBuffers(a.buffer, b.buffer);
      case "address": return b.kind === "address" && this.#sameBuffers(a.buffer, b.buffer);
      case "loadAt": return b.kind === "loadAt" && a.offset === b.offset && a.dtype === b.dtype && a.splat === b.splat;
      case "unary": return b.kind === "unary" && a.op === b.op;
      case "binary": return b.kind === "binary" && a.op === b.op;
      case "madd": return b.kind === "madd" && a.relaxed === b.relaxed;
      case "extract": return b.kind === "extract" && a.lane === b.lane;
      case "shuffle": return b.kind === "shuffle" && samePairs(a.bytes, b.bytes, (x, y) => x === y);
      case "extend": return b.kind === "extend" && a.half === b.half;
      case "reduce": return b.kind === "reduce" && a.op === b.op && samePairs(a.axes, b.axes, (x, y) => this.#sameAxes(x, y));
      case "select": case "cast": case "bitcast": case "splat": case "lanes": case "swizzle": case "dot": case "byteDot": case "relaxed": return true;
    }
  }
}
