/**
 * From element values to loops: each store gets its loop nest; an expression is computed in the outermost loop that
 * binds everything it depends on, once. So the mean of a row is computed per row, and a softmax row is three passes.
 * Expressions whose loads are only valid under a `select` stay under it.
 */
import { assertNever, invariant } from "../core/assert.ts";
import { dimSub } from "../core/dim.ts";
import { axisOf, constant, dimExpr, i32, local, type Axis, type Buffer, type Expr, type Type } from "./expr.ts";
import { nonNegativeIfNotEmpty } from "./linear.ts";
import type { ExprTable } from "./share.ts";
import { block, loop, type Stmt } from "./stmt.ts";
import { mapChildren, operandsOf, visitExpr } from "./traverse.ts";

type Reduce = Extract<Expr, { kind: "reduce" }>;
type Select = Extract<Expr, { kind: "select" }>;

/** One store: `value` and `indices` over `axes`, outermost first; stores whose axes begin alike share those loops. */
export interface ElementStore {
  readonly axes: readonly Axis[];
  readonly buffer: Buffer;
  readonly indices: readonly Expr[];
  readonly value: Expr;
  /** Others read what it stores: within the loops that all of them share, it comes first. */
  readonly first?: true;
}
/** A local that the stores read, computed in their innermost loop. */
export interface Definition { readonly name: string; readonly axes: readonly Axis[]; readonly value: Expr }

interface Scope {
  readonly parent: Scope | undefined;
  /** The loop variable bound here, and what it is called in the statements. */
  readonly bound: ReadonlyMap<Axis, Axis>;
  /** A branch of an `if`: only what is valid everywhere may leave it. */
  readonly branch: boolean;
  readonly statements: Stmt[];
  readonly values: Map<Expr, Expr>;
}

/** Loops for all stores, in one statement. Expressions are shared through `table`. */
export function buildLoops(table: ExprTable, stores: readonly ElementStore[], definitions: readonly Definition[] = []): Stmt {
  return new LoopBuilder(table, stores, definitions).build();
}

class LoopBuilder {
  readonly #table: ExprTable;
  readonly #stores: readonly ElementStore[];
  readonly #definitions: readonly (Definition & { readonly shared: Expr })[];
  readonly #uses = new Map<Expr, number>();
  readonly #free = new Map<Expr, ReadonlySet<Axis>>();
  readonly #safe = new Map<Expr, boolean>();
  readonly #index = new Map<Expr, boolean>();
  readonly #reduces: Reduce[] = [];
  readonly #begun = new Set<Reduce>();
  readonly #axisNames = new Set<string>();
  #locals = 0;

  constructor(table: ExprTable, stores: readonly ElementStore[], definitions: readonly Definition[]) {
    this.#table = table;
    this.#stores = stores.map((s) => ({ ...s, indices: s.indices.map((e) => table.make(e)), value: table.make(s.value) }));
    this.#definitions = definitions.map((d) => ({ ...d, shared: table.make(d.value) }));
    const seen = new Set<Expr>();
    const count = (e: Expr): void => { this.#uses.set(e, (this.#uses.get(e) ?? 0) + 1); };
    const visit = (root: Expr): void => {
      count(root);
      visitExpr(root, (e) => {
        operandsOf(e).forEach(count);
        if (e.kind === "reduce") this.#reduces.push(e);
      }, seen);
    };
    for (const d of this.#definitions) visit(d.shared);
    for (const s of this.#stores) { s.indices.forEach(visit); visit(s.value); }
  }

  build(): Stmt {
    const root: Scope = { parent: undefined, bound: new Map(), branch: false, statements: [], values: new Map() };
    this.#nest(this.#stores, 0, root);
    return block(...root.statements);
  }

  /** Stores that share their first `depth` axes. */
  #nest(stores: readonly ElementStore[], depth: number, scope: Scope): void {
    const here = stores.filter((s) => s.axes.length === depth);
    const deeper = new Map<Axis, ElementStore[]>();
    for (const s of stores) {
      const axis = s.axes[depth];
      if (!axis) continue;
      const group = deeper.get(axis);
      if (group) group.push(s);
      else deeper.set(axis, [s]);
    }
    const nests = [...deeper], early = nests.filter(([, group]) => group.every((s) => s.first)), late = nests.filter(([, group]) => !group.every((s) => s.first));
    for (const nest of early) this.#nestIn(nest, depth, scope);
    if (here.length) this.#leaf(here, scope);
    for (const nest of late) this.#nestIn(nest, depth, scope);
  }
  #nestIn([axis, group]: readonly [Axis, readonly ElementStore[]], depth: number, scope: Scope): void {
    const name = this.#freshAxis(axis, axis.name), inner = this.#inside(scope, new Map([[axis, name]]), false);
    this.#nest(group, depth + 1, inner);
    scope.statements.push(loop(name, constant(0, i32), dimExpr(name.extent), 1, block(...inner.statements)));
  }
  #inside(parent: Scope, bound: ReadonlyMap<Axis, Axis>, branch: boolean): Scope {
    return { parent, bound, branch, statements: [], values: new Map() };
  }
  #freshAxis(axis: Axis, hint: string): Axis {
    let name = hint;
    for (let n = 0; this.#axisNames.has(name); n++) name = `${hint}_${n}`;
    this.#axisNames.add(name);
    return name === axis.name ? axis : { name, extent: axis.extent };
  }

  /** Every value is computed before the first store, so that a store never hides what another value reads. */
  #leaf(stores: readonly ElementStore[], scope: Scope): void {
    for (const d of this.#definitions) if (stores.some((s) => s.axes.length === d.axes.length && s.axes.every((a, i) => a === d.axes[i]))) this.#define(d, scope);
    const values = stores.map((s) => {
      const value = this.#place(s.value, scope);
      return stores.length > 1 && !isLeaf(value) ? this.#bind(s.value, value, scope) : value;
    });
    stores.forEach((s, i) => {
      const value = values[i];
      invariant(value, "a store without value");
      scope.statements.push({ kind: "store", buffer: s.buffer, indices: s.indices.map((e) => this.#place(e, scope)), value });
    });
  }
  #define(d: Definition & { readonly shared: Expr }, scope: Scope): void {
    const e = d.shared;
    if (e.kind === "reduce") this.#reduceInto([{ reduce: e, name: d.name }], scope);
    else scope.statements.push({ kind: "let", name: d.name, value: this.#place(e, scope) });
  }

  /** The value of a shared expression, usable at the end of `scope`. */
  #place(e: Expr, scope: Scope): Expr {
    if (e.kind === "const" || e.kind === "dim" || e.kind === "local") return e;
    if (e.kind === "axis") return axisOf(this.#bound(e.axis, scope));
    const home = this.#home(e, scope);
    const known = this.#lookup(e, home);
    if (known) return known;
    if (e.kind === "reduce") return this.#reduce(e, home);
    if (e.kind === "select" && !this.#isLazy(e)) return this.#branches(e, home);
    const value = mapChildren(e, (c) => this.#place(c, home));
    return this.#worthNaming(e, home, scope) ? this.#bind(e, value, home) : value;
  }
  #lookup(e: Expr, scope: Scope): Expr | undefined {
    for (let s: Scope | undefined = scope; s; s = s.parent) {
      const known = s.values.get(e);
      if (known) return known;
    }
    return undefined;
  }
  #bound(axis: Axis, scope: Scope): Axis {
    for (let s: Scope | undefined = scope; s; s = s.parent) {
      const name = s.bound.get(axis);
      if (name) return name;
    }
    return invariant(false, `axis ${axis.name} is not bound`) as never;
  }
  #home(e: Expr, scope: Scope): Scope {
    const free = this.#freeAxes(e);
    let home = scope;
    while (home.parent && !bindsAny(home, free) && (!home.branch || this.#isSafe(e))) home = home.parent;
    return home;
  }
  #bind(e: Expr, value: Expr, scope: Scope): Expr {
    if (value.kind === "local") return value;
    const name = this.#freshLocal();
    scope.statements.push({ kind: "let", name, value });
    const out = local(name, e.type);
    scope.values.set(e, out);
    return out;
  }
  #freshLocal(): string {
    let name = `t${this.#locals++}`;
    while (this.#definitions.some((d) => d.name === name)) name = `t${this.#locals++}`;
    return name;
  }

  /** Index arithmetic stays in place, where addressing can use it; other work is named when it is used again or leaves a loop. */
  #worthNaming(e: Expr, home: Scope, scope: Scope): boolean {
    const uses = this.#uses.get(e) ?? 1;
    if (this.#isIndex(e)) return uses > 1 && e.kind === "binary" && (e.op === "div" || e.op === "rem");
    if (home.branch ? false : !this.#isSafe(e) && this.#underSelect.has(e)) return false;
    return uses > 1 || (home !== scope && loops(home, scope));
  }
  readonly #underSelect = new Set<Expr>();

  /** Whether an expression can say it: neither side holds a reduction, or shared work, that is not valid elsewhere. */
  #isLazy(e: Select): boolean {
    const unsafe: Expr[] = [], seen = new Set<Expr>();
    for (const side of [e.a, e.b]) visitExpr(side, (x) => { if (!this.#isSafe(x)) unsafe.push(x); }, seen);
    if (unsafe.some((x) => x.kind === "reduce" || ((this.#uses.get(x) ?? 1) > 1 && x.kind !== "load" && !this.#isIndex(x)))) return false;
    for (const x of unsafe) this.#underSelect.add(x);
    return true;
  }
  #branches(e: Select, home: Scope): Expr {
    const name = this.#freshLocal();
    const side = (value: Expr): Stmt => {
      const inner = this.#inside(home, new Map(), true);
      const result = this.#place(value, inner);
      return block(...inner.statements, { kind: "assign", name, value: result });
    };
    const condition = this.#place(e.condition, home);
    const a = side(e.a), b = side(e.b);
    home.statements.push({ kind: "let", name, value: zero(e.type) }, { kind: "if", condition, then: a, else: b });
    const out = local(name, e.type);
    home.values.set(e, out);
    return out;
  }

  #reduce(e: Reduce, home: Scope): Expr {
    const together = this.#reduces.filter((r) => r === e || (this.#joins(r, e, home) && this.#isReady(r, e)));
    for (const r of together) this.#begun.add(r);
    this.#reduceInto(together.map((reduce) => ({ reduce, name: this.#freshLocal() })), home);
    return this.#lookup(e, home) ?? invariant(false, "a reduction has no value") as never;
  }
  /** Another reduction over the same axes, in the same loop, that does not wait for this one. */
  #joins(r: Reduce, e: Reduce, home: Scope): boolean {
    if (r.axes.length !== e.axes.length || r.axes.some((a, i) => a !== e.axes[i])) return false;
    if (this.#definitions.some((d) => d.shared === r || d.shared === e)) return false;
    if (this.#begun.has(r) || !this.#isSafe(r) || this.#lookup(r, home) || this.#dependsOnLocal(r)) return false;
    const free = this.#freeAxes(r), own = this.#freeAxes(e);
    if (free.size !== own.size || [...free].some((a) => !own.has(a))) return false;
    return !this.#contains(r, e) && !this.#contains(e, r);
  }
  /** Whether what `r` reads of what the kernel stores first is stored where `e` is computed: where that reads it too. */
  #isReady(r: Reduce, e: Reduce): boolean {
    if (!this.#stores.some((s) => s.first)) return true;
    const storedFirst = (of: Reduce): ReadonlySet<Buffer> => {
      const read = new Set<Buffer>();
      visitExpr(of, (x) => { if (x.kind === "load" && this.#stores.some((s) => s.first && s.buffer === x.buffer)) read.add(x.buffer); });
      return read;
    };
    const known = storedFirst(e);
    return [...storedFirst(r)].every((b) => known.has(b));
  }
  #contains(outer: Expr, inner: Expr): boolean {
    let found = false;
    visitExpr(outer, (x) => { if (x === inner) found = true; });
    return found;
  }
  #dependsOnLocal(e: Expr): boolean {
    let found = false;
    visitExpr(e, (x) => { if (x.kind === "local") found = true; });
    return found;
  }
  #reduceInto(all: readonly { readonly reduce: Reduce; readonly name: string }[], home: Scope): void {
    const first = all[0]?.reduce;
    invariant(first, "no reduction");
    for (const { reduce, name } of all) home.statements.push({ kind: "let", name, value: this.#place(reduce.init, home) });
    const names = first.axes.map((axis) => ({ axis, name: this.#freshAxis({ name: "", extent: axis.extent }, "k") }));
    const inner = names.reduce<Scope>((scope, { axis, name }) => this.#inside(scope, new Map([[axis, name]]), false), home);
    for (const { reduce, name } of all) inner.statements.push({ kind: "accumulate", name, op: reduce.op, value: this.#place(reduce.body, inner) });
    let scope = inner;
    for (const { name } of [...names].reverse()) {
      const parent = scope.parent;
      invariant(parent, "a loop without surroundings");
      parent.statements.push(loop(name, constant(0, i32), dimExpr(name.extent), 1, block(...scope.statements)));
      scope = parent;
    }
    for (const { reduce, name } of all) home.values.set(reduce, local(name, reduce.type));
  }

  #freeAxes(e: Expr): ReadonlySet<Axis> {
    const known = this.#free.get(e);
    if (known) return known;
    const out = new Set<Axis>();
    if (e.kind === "axis") out.add(e.axis);
    if (e.kind === "local") for (const a of this.#definitions[0]?.axes ?? []) out.add(a);
    for (const c of operandsOf(e)) for (const a of this.#freeAxes(c)) out.add(a);
    if (e.kind === "reduce") for (const a of e.axes) out.delete(a);
    this.#free.set(e, out);
    return out;
  }
  /** True where every load below is within its buffer whatever a condition says. */
  #isSafe(e: Expr): boolean {
    let safe = this.#safe.get(e);
    if (safe === undefined) {
      safe = operandsOf(e).every((c) => this.#isSafe(c)) && (e.kind !== "load" || e.indices.every((x, d) => this.#within(x, e.buffer, d)));
      this.#safe.set(e, safe);
    }
    return safe;
  }
  #within(index: Expr, buffer: Buffer, d: number): boolean {
    const { lower, upper } = this.#table.bounds(this.#table.linear(index));
    const size = buffer.shape[d];
    return lower !== undefined && upper !== undefined && size !== undefined && nonNegativeIfNotEmpty(lower) && nonNegativeIfNotEmpty(dimSub(dimSub(size, 1), upper));
  }
  /** Integer arithmetic on loop variables and sizes only. */
  #isIndex(e: Expr): boolean {
    let is = this.#index.get(e);
    if (is === undefined) {
      const { scalar } = e.type;
      is = (scalar === "i32" || scalar === "bool") && e.kind !== "load" && e.kind !== "local" && e.kind !== "reduce" && operandsOf(e).every((c) => this.#isIndex(c));
      this.#index.set(e, is);
    }
    return is;
  }
}

const isLeaf = (e: Expr): boolean => e.kind === "const" || e.kind === "axis" || e.kind === "dim" || e.kind === "local";
/** True when a loop lies between two scopes. */
function loops(outer: Scope, inner: Scope): boolean {
  for (let s: Scope | undefined = inner; s && s !== outer; s = s.parent) if (s.bound.size > 0) return true;
  return false;
}
function zero(type: Type): Expr {
  switch (type.scalar) {
    case "i64": case "u64": return constant(0n, type);
    case "bool": case "i8": case "u8": case "i16": case "u16": case "i32": case "u32": case "f32": case "f64": return constant(0, type);
    default: return assertNever(type.scalar);
  }
}

/** Whether the loops of a scope bind one of these axes. */
function bindsAny(scope: Scope, axes: ReadonlySet<Axis>): boolean {
  if (axes.size === 0) return false;
  for (const axis of scope.bound.keys()) if (axes.has(axis)) return true;
  return false;
}
