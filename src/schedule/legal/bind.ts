/**
 * Places the computations of a legal kernel: what does not change in a loop is computed before it, what is used more
 * than once is computed once and named, what is used once stays where it is used. Sums of indices are split by the loops
 * that bind their terms, so that every loop adds its own part only. A side of a scalar select that needs names of its own
 * becomes a branch. Loads move out of loops only where they would be read anyway.
 */
import { invariant } from "../../core/assert.ts";
import { dimMul, dimRange, isSymbolic, type Dim } from "../../core/dim.ts";
import { binary, constant, dimExpr, i32, local, type Buffer, type Expr, type Type } from "../../kernel/expr.ts";
import { linearAdd, linearConstant, type Linear } from "../../kernel/linear.ts";
import type { ExprTable } from "../../kernel/share.ts";
import { block, loop, type Stmt } from "../../kernel/stmt.ts";
import { bodiesOf, expressionsOf, mapChildren, operandsOf, visitExpr, visitOwnExprs, visitStmt } from "../../kernel/traverse.ts";
import { assignedLocals } from "../../kernel/unchanging.ts";
import {
  branchScope, forget, functionScope, guardScope, homeOf, independent, intersects, lookup, loopScope, rootsOf, unchanged, unite, type Changes, type Dependence, type Memory, type Scope,
} from "./scope.ts";

type Select = Extract<Expr, { kind: "select" }>;
type Loop = Extract<Stmt, { kind: "for" }>;

export interface BindOptions {
  readonly table: ExprTable;
  /** Buffers that nothing in the kernel writes. */
  readonly constant: ReadonlySet<Buffer>;
  /** Loads valid wherever their loop variables are in range. */
  readonly safe: ReadonlySet<Expr>;
  readonly fresh: (hint: string) => string;
}

/** The body with every value placed. Its expressions must be shared through the table. */
export function bindValues(body: Stmt, options: BindOptions): Stmt {
  return new Binder(body, options).run(body);
}

class Binder {
  private readonly table: ExprTable;
  private readonly options: BindOptions;
  private readonly uses = new Map<Expr, number>();
  private readonly dependences = new Map<Expr, Dependence>();
  private readonly changed = new Map<Stmt, Changes>();
  private readonly roots = new Map<string, ReadonlySet<Memory>>();
  private readonly renames = new Map<string, Expr>();
  private readonly assigned: ReadonlySet<string>;
  /** Whether an expression has a scalar select somewhere. */
  private readonly choices = new Map<Expr, boolean>();

  constructor(body: Stmt, options: BindOptions) {
    this.table = options.table;
    this.options = options;
    this.assigned = assignedLocals(body);
    const count = (e: Expr): void => { this.uses.set(e, (this.uses.get(e) ?? 0) + 1); };
    const countOperands = (e: Expr): void => { for (const operand of operandsOf(e)) count(operand); };
    const seen = new Set<Expr>();
    visitStmt(body, (s) => {
      for (const root of expressionsOf(s)) count(root);
      visitOwnExprs(s, countOperands, seen);
    });
    // Twice: a pointer may be assigned from one that is declared before it but assigned later.
    for (let pass = 0; pass < 2; pass++) visitStmt(body, (s) => {
      if ((s.kind === "let" || s.kind === "assign") && s.value.type.scalar === "i32") this.roots.set(s.name, new Set([...this.rootsOfLocal(s.name), ...this.rootsOf(s.value)]));
    });
  }

  run(body: Stmt): Stmt {
    const scope = functionScope();
    this.statement(body, scope);
    return block(...scope.statements);
  }

  private rootsOfLocal(name: string): ReadonlySet<Memory> { return this.roots.get(name) ?? new Set(); }
  private rootsOf(pointer: Expr): ReadonlySet<Memory> { return rootsOf(pointer, (name) => this.rootsOfLocal(name)); }
  private memoryAt(pointer: Expr): Memory[] {
    const roots = [...this.rootsOf(pointer)];
    return roots.length ? roots : ["unknown"];
  }

  private dependence(e: Expr): Dependence {
    let d = this.dependences.get(e);
    if (!d) this.dependences.set(e, (d = this.dependenceOf(e)));
    return d;
  }
  private dependenceOf(e: Expr): Dependence {
    if (e.kind === "axis") return { ...independent, axes: new Set([e.axis]) };
    if (e.kind === "local") return { ...independent, locals: new Set([e.name]) };
    const parts = operandsOf(e).map((c) => this.dependence(c)).reduce(unite, independent);
    if (e.kind !== "loadAt") return parts;
    const memory = new Set<Memory>(this.memoryAt(e.pointer).filter((m) => m === "unknown" || !this.options.constant.has(m)));
    return unite(parts, { ...independent, memory, loads: true, unsafe: !this.options.safe.has(e) });
  }

  private changes(s: Stmt): Changes {
    let c = this.changed.get(s);
    if (c) return c;
    c = this.changesOf(s);
    this.changed.set(s, c);
    return c;
  }
  private changesOf(s: Stmt): Changes {
    switch (s.kind) {
      case "assign": case "accumulate": return { ...unchanged, locals: new Set([s.name]) };
      case "storeAt": return { ...unchanged, memory: new Set(this.memoryAt(s.pointer)) };
      case "for": case "split": return this.changes(s.body);
      default: {
        const all = { locals: new Set<string>(), memory: new Set<Memory>() };
        for (const inner of bodiesOf(s)) {
          const { locals, memory } = this.changes(inner);
          for (const name of locals) all.locals.add(name);
          for (const m of memory) all.memory.add(m);
        }
        return all;
      }
    }
  }

  private statement(s: Stmt, scope: Scope): void {
    switch (s.kind) {
      case "block": s.body.forEach((b) => this.statement(b, scope)); return;
      case "let": this.declare(s.name, s.value, scope); return;
      case "assign": case "accumulate":
        scope.statements.push({ ...s, value: this.lower(s.value, scope) });
        forget(this.changes(s), scope, (e) => this.dependence(e));
        return;
      case "storeAt": {
        const value = this.lower(s.value, scope);
        scope.statements.push({ ...s, pointer: this.lower(s.pointer, scope), value });
        forget(this.changes(s), scope, (e) => this.dependence(e));
        return;
      }
      case "if": {
        const condition = this.lower(s.condition, scope);
        const then = this.branch(s.then, scope);
        const otherwise = s.else ? this.branch(s.else, scope) : undefined;
        scope.statements.push({ kind: "if", condition, then, ...(otherwise ? { else: otherwise } : {}) });
        forget(this.changes(s), scope, (e) => this.dependence(e));
        return;
      }
      case "for": this.loop(s, scope); return;
      case "split": {
        // Values of its own stay inside, so that a range needs nothing but its bounds.
        const inner = branchScope(scope);
        inner.declared.add(s.from).add(s.to);
        this.statement(s.body, inner);
        scope.statements.push({ ...s, body: block(...inner.statements) });
        forget(this.changes(s), scope, (e) => this.dependence(e));
        return;
      }
      case "store": invariant(false, "a logical store where addresses are expected");
    }
  }
  private branch(s: Stmt, scope: Scope): Stmt {
    const inner = branchScope(scope);
    this.statement(s, inner);
    return block(...inner.statements);
  }

  private declare(name: string, value: Expr, scope: Scope): void {
    if (this.assigned.has(name)) {
      scope.statements.push({ kind: "let", name, value: this.lower(value, scope) });
      scope.declared.add(name);
      return;
    }
    const lowered = this.lower(value, scope);
    if (lowered.kind === "local" || isTrivial(lowered)) {
      this.renames.set(name, lowered);
      this.declaringScope(lowered, scope).declared.add(name);
      return;
    }
    scope.statements.push({ kind: "let", name, value: lowered });
    scope.declared.add(name);
    this.hold(value, local(name, value.type), scope);
  }
  private declaringScope(e: Expr, scope: Scope): Scope {
    if (e.kind === "local") for (let s: Scope | undefined = scope; s; s = s.parent) if (s.declared.has(e.name)) return s;
    return e.kind === "const" || e.kind === "dim" ? outermost(scope) : scope;
  }

  private loop(s: Loop, scope: Scope): void {
    const changes = this.changes(s);
    const begin = this.lower(s.begin, scope), end = this.lower(s.end, scope);
    forget(changes, scope, (e) => this.dependence(e));
    const certain = runsAlways(s.begin, s.end);
    const guard = guardScope(scope, certain);
    const inner = loopScope(guard, s.axis, changes);
    this.statement(s.body, inner);
    const done = loop(s.axis, begin, end, s.step, block(...inner.statements), s.mode);
    const guarded = !certain && guard.statements.some((x) => expressionsOf(x).some(readsMemory) || x.kind === "if");
    if (guarded) scope.statements.push({ kind: "if", condition: binary("lt", begin, end), then: block(...guard.statements, done) });
    else {
      scope.statements.push(...guard.statements, done);
      for (const [e, value] of guard.values) this.hold(e, value, scope);
      for (const name of guard.declared) scope.declared.add(name);
    }
    forget(changes, scope, (e) => this.dependence(e));
  }

  /** An expression whose value is `e`'s, for the next statement of `scope`. */
  private lower(e: Expr, scope: Scope): Expr {
    if (e.kind === "local") return this.renames.get(e.name) ?? e;
    if (isTrivial(e)) return e;
    const known = lookup(e, scope);
    if (known) return known;
    const home = homeOf(this.dependence(e), scope);
    if (home !== scope) return this.bind(e, home);
    return (this.uses.get(e) ?? 0) > 1 && e.kind !== "const" ? this.bind(e, scope) : this.rebuild(e, scope);
  }
  private bind(e: Expr, home: Scope): Expr {
    const known = lookup(e, home);
    if (known) return known;
    return this.name(e, this.rebuild(e, home), home);
  }
  private name(e: Expr, value: Expr, home: Scope): Expr {
    if (value.kind === "local" || isTrivial(value)) return value;
    const name = this.options.fresh("v");
    home.statements.push({ kind: "let", name, value });
    home.declared.add(name);
    const named = local(name, e.type);
    this.hold(e, named, home);
    return named;
  }
  private hold(e: Expr, value: Expr, scope: Scope): void {
    scope.values.set(e, value);
    const { locals, memory } = this.dependence(e);
    if (memory.size > 0 || intersects(locals, this.assigned)) scope.changeable.add(e);
  }

  private rebuild(e: Expr, scope: Scope): Expr {
    if (e.kind === "binary" && e.type.scalar === "i32" && e.type.lanes === 1 && (e.op === "add" || e.op === "sub" || e.op === "mul")) {
      const sum = this.table.linear(e);
      if (sum.terms.length + (sum.constant === 0 ? 0 : 1) > 1) return this.sum(sum, scope);
    }
    if (e.kind === "select" && e.condition.type.lanes === 1) return this.select(e, scope);
    if (isVectorShift(e)) return mapChildren(e, (c) => (c === e.b ? this.shiftCount(c, scope) : this.lower(c, scope)));
    return mapChildren(e, (c) => this.lower(c, scope));
  }
  /** A count that is the same for all lanes stays visibly so. */
  private shiftCount(e: Expr, scope: Scope): Expr {
    return e.kind === "splat" ? mapChildren(e, (c) => this.lower(c, scope)) : e.kind === "const" ? e : this.lower(e, scope);
  }

  /** Terms are added outermost loop first, each partial sum in the loop that binds its last term. */
  private sum(sum: Linear, scope: Scope): Expr {
    const levels = new Map<Scope, Linear>();
    for (const term of sum.terms) {
      const home = homeOf(this.dependence(term.atom), scope);
      levels.set(home, linearAdd(levels.get(home) ?? linearConstant(0), { terms: [term], constant: 0 }));
    }
    const order = [...levels.keys()].sort((a, b) => depth(a) - depth(b));
    // The constant goes with the innermost part that is not recomputed here.
    const constantAt = order.findLast((s) => s !== scope) ?? order[0];
    let partial = linearConstant(0);
    let value: Expr | undefined;
    for (const home of order) {
      const own = linearAdd(levels.get(home) ?? linearConstant(0), linearConstant(home === constantAt ? sum.constant : 0));
      partial = linearAdd(partial, own);
      if (home === scope) { value = this.append(value, own, scope); continue; }
      const key = this.table.fromLinear(partial);
      value = lookup(key, home) ?? this.name(key, this.append(value, own, home), home);
    }
    return value ?? this.table.fromLinear(sum);
  }
  private append(before: Expr | undefined, own: Linear, scope: Scope): Expr {
    let out = before;
    const put = (e: Expr, negative: boolean): void => { out = out ? binary(negative ? "sub" : "add", out, e) : negative ? binary("sub", constant(0, i32), e) : e; };
    for (const { atom, coefficient } of [...own.terms].sort((a, b) => Number(isNegative(a.coefficient)) - Number(isNegative(b.coefficient)))) {
      const negative = isNegative(coefficient), factor = negative ? dimMul(coefficient, -1) : coefficient;
      const value = this.lower(atom, scope);
      put(factor === 1 ? value : binary("mul", value, dimExpr(factor)), negative);
    }
    if (own.constant !== 0 || !out) {
      const negative = isNegative(own.constant);
      put(dimExpr(negative ? dimMul(own.constant, -1) : own.constant), negative);
    }
    return out ?? constant(0, i32);
  }

  private select(e: Select, scope: Scope): Expr {
    const condition = this.lower(e.condition, scope);
    this.hoistCommon(e, scope);
    const a = branchScope(scope), b = branchScope(scope);
    const valueA = this.lower(e.a, a), valueB = this.lower(e.b, b);
    if (a.statements.length + b.statements.length === 0) return { ...e, condition, a: valueA, b: valueB };
    const name = this.options.fresh("s");
    const side = (inner: Scope, value: Expr): Stmt => block(...inner.statements, { kind: "assign", name, value });
    scope.statements.push({ kind: "let", name, value: zero(e.type) }, { kind: "if", condition, then: side(a, valueA), else: side(b, valueB) });
    scope.declared.add(name);
    const chosen = local(name, e.type);
    this.hold(e, chosen, scope);
    return chosen;
  }
  /** What both sides of a select need and is chosen in turn is computed before it: else it would be written out in each, as often as there are ways to it. */
  private hoistCommon(e: Select, scope: Scope): void {
    if (!this.hasChoice(e.a) || !this.hasChoice(e.b)) return;
    const inB = new Set<Expr>(), seen = new Set<Expr>();
    const isNew = (x: Expr, among: Set<Expr>): boolean => { const before = among.size; return this.hasChoice(x) && among.add(x).size > before; };
    visitNeeded(e.b, (x) => isNew(x, inB));
    visitNeeded(e.a, (x) => {
      if (!isNew(x, seen)) return false;
      if (inB.has(x)) this.bind(x, homeOf(this.dependence(x), scope));
      return !inB.has(x);
    });
  }
  private hasChoice(e: Expr): boolean {
    let has = this.choices.get(e);
    if (has === undefined) this.choices.set(e, (has = (e.kind === "select" && e.condition.type.lanes === 1) || operandsOf(e).some((c) => this.hasChoice(c))));
    return has;
  }
}

/** Visits what computing an expression always computes, operations with operands that are computed, as far as `visit` answers that it should go on. */
function visitNeeded(e: Expr, visit: (e: Expr) => boolean): void {
  if (!visit(e)) return;
  if (e.kind === "select" && e.condition.type.lanes === 1) visitNeeded(e.condition, visit);
  else for (const operand of operandsOf(e)) visitNeeded(operand, visit);
}

const isVectorShift = (e: Expr): e is Expr & { kind: "binary" } => e.kind === "binary" && e.type.lanes > 1 && (e.op === "shl" || e.op === "shr");
const outermost = (scope: Scope): Scope => (scope.parent ? outermost(scope.parent) : scope);
const depth = (scope: Scope): number => (scope.parent ? 1 + depth(scope.parent) : 0);
const isNegative = (d: Dim): boolean => typeof d === "number" ? d < 0 : d.terms.every((t) => t.coefficient < 0);
const isTrivial = (e: Expr): boolean => (e.kind === "const" && e.type.lanes === 1) || e.kind === "axis" || e.kind === "dim" || e.kind === "address";
const zero = (type: Type): Expr => constant(type.scalar === "i64" || type.scalar === "u64" ? 0n : 0, type);

/** True when a loop surely runs at least once. */
export function runsAlways(begin: Expr, end: Expr): boolean {
  const from = sizeOf(begin), to = sizeOf(end);
  if (from === undefined || to === undefined) return false;
  if (!isSymbolic(from) && !isSymbolic(to)) return from < to;
  return from === 0 && isSymbolic(to) && dimRange(to).lower >= 1;
}
const sizeOf = (e: Expr): Dim | undefined => (e.kind === "const" ? Number(e.value) : e.kind === "dim" ? e.dim : undefined);

function readsMemory(e: Expr): boolean {
  let found = false;
  visitExpr(e, (x) => { if (x.kind === "loadAt") found = true; });
  return found;
}
