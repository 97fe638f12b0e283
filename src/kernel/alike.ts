/**
 * Kernels that are alike: the same loops, or the same structure, over other buffers of the same types, shapes and strides.
 * What a pass makes of one serves the others, with buffers exchanged, so that repeated layers are worked on once; their
 * loops are not even written out unless somebody looks at them.
 */
import type { Dim } from "../core/dim.ts";
import type { Buffer, Expr } from "./expr.ts";
import type { Kernel, Layout, Phase } from "./kernel.ts";
import { Comparison, samePairs } from "./same-loops.ts";
import { sameStructures } from "./same-structures.ts";
import type { Stmt } from "./stmt.ts";
import { mapExpr, mapStmtExprs } from "./traverse.ts";

/** What became of a kernel. */
export interface Changed {
  readonly kernel: Kernel;
  /**
   * Asks of other buffers what was asked of the kernel's own: what those buffers become that the change has brought in,
   * where the answers are the same, else undefined. Absent: nothing was asked, nothing brought in.
   */
  readonly again?: (to: (b: Buffer) => Buffer) => ReadonlyMap<Buffer, Buffer> | undefined;
}
const none: ReadonlyMap<Buffer, Buffer> = new Map();
interface Done extends Changed { readonly before: Kernel }

/** Applies a change to kernels one by one, to each of those that are alike only once. */
export class AlikeKernels {
  readonly #layoutOf: (b: Buffer) => Layout;
  readonly #change: (kernel: Kernel) => Changed;
  readonly #done = new Map<string, Done[]>();

  /**
   * `change` must hang on nothing but the kernel's structure, where it has one, else its loops; its lists of buffers, and the
   * strides of these; and what it asks `again`. It may add working memory, whose names begin with the kernel's or do not matter.
   */
  constructor(layoutOf: (b: Buffer) => Layout, change: (kernel: Kernel) => Changed) {
    this.#layoutOf = layoutOf;
    this.#change = change;
  }

  changed(kernel: Kernel): Kernel {
    const key = this.#key(kernel), known = this.#done.get(key) ?? [];
    for (const { before, kernel: after, again } of known) {
      const buffers = pairing(before, kernel);
      if (!buffers) continue;
      if (after === before) return kernel;
      const brought = again ? again((b) => buffers.get(b) ?? b) : none;
      if (brought) return withBuffers(after, kernel, new Map([...buffers, ...brought]), before);
    }
    const done = { before: kernel, ...this.#change(kernel) };
    this.#done.set(key, [...known, done]);
    return done.kernel;
  }

  /** Equal for kernels that are alike. */
  #key({ inputs, outputs, scratch }: Kernel): string {
    let key = "";
    for (const list of [inputs, outputs, scratch]) {
      for (const b of list) key += `${b.dtype}${listKey(b.shape)}${listKey(this.#layoutOf(b).strides)};`;
      key += "|";
    }
    return key;
  }
}
function listKey(dims: readonly Dim[]): string {
  let key = " ";
  for (const d of dims) key += typeof d === "number" ? `${d},` : `${d.key},`;
  return key;
}

const buffersOf = (k: Kernel): readonly Buffer[] => [...k.inputs, ...k.outputs, ...k.scratch];

/**
 * Which buffer of `b` stands where one of `a` does, if the two are alike: have the same structure, or the same loops where
 * there is none. Types, shapes and strides have been compared.
 */
function pairing(a: Kernel, b: Kernel): ReadonlyMap<Buffer, Buffer> | undefined {
  const theirs = buffersOf(b), buffers = new Map(buffersOf(a).map((x, i): [Buffer, Buffer] => [x, theirs[i] ?? x]));
  if (b.like && (b.like === a || b.like === a.like)) return buffers;
  const same = (x: Buffer, y: Buffer): boolean => buffers.get(x) === y;
  if (buffers.size !== theirs.length || new Set(theirs).size !== theirs.length || !samePairs(a.shared, b.shared, same)) return undefined;
  if (!samePairs(a.inPlace, b.inPlace, (x, y) => same(x.input, y.input) && same(x.output, y.output))) return undefined;
  const comparison = new Comparison(same);
  if (a.structure && b.structure && !sameStructures(comparison, a.structure, b.structure)) return undefined;
  return !a.structure === !b.structure && comparison.statements(a.body, b.body) ? buffers : undefined;
}

/** What the kernel `own`, which is like `before`, becomes where that became `done`. Working memory that was added is its own anew. */
function withBuffers(done: Kernel, own: Kernel, buffers: Map<Buffer, Buffer>, before: Kernel): Kernel {
  for (const b of done.scratch) if (!buffers.has(b)) buffers.set(b, { ...b, name: b.name.startsWith(before.name) ? own.name + b.name.slice(before.name.length) : b.name });
  const memo = new Map<Expr, Expr>(), to = (b: Buffer): Buffer => buffers.get(b) ?? b, list = (all: readonly Buffer[]): readonly Buffer[] => all.map(to);
  const exchange = (e: Expr): Expr => (e.kind === "address" || e.kind === "load" ? { ...e, buffer: to(e.buffer) } : e);
  const loops = (s: Stmt): Stmt => stored(mapStmtExprs(s, (e) => mapExpr(e, exchange, memo)), to);
  const { structure } = own;
  let body: Stmt | undefined;
  return {
    name: own.name, inputs: list(done.inputs), outputs: list(done.outputs), scratch: list(done.scratch), like: done.like ?? done,
    ...(done.shared ? { shared: list(done.shared) } : {}),
    ...(done.structure && structure ? { structure } : {}),
    ...(done.inPlace ? { inPlace: done.inPlace.map(({ input, output }) => ({ input: to(input), output: to(output) })) } : {}),
    ...(done.phases ? { phases: done.phases.map((p) => phaseLike(p, to, loops)) } : {}),
    get body() { return (body ??= loops(done.body)); },
  };
}
function phaseLike(p: Phase, to: (b: Buffer) => Buffer, loops: (s: Stmt) => Stmt): Phase {
  let body: Stmt | undefined;
  return {
    ...(p.split ? { split: p.split } : {}), touched: new Set([...p.touched].map(to)), dims: p.dims, like: p.like ?? p,
    get body() { return (body ??= loops(p.body)); },
  };
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
