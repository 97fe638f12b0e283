/**
 * The nest of loops and branches that a legal kernel is rebuilt in, and how far outwards a value may be computed.
 * A `guard` is the place just before a loop that is reached only if the loop runs at least once.
 */
import type { Axis, Buffer, Expr } from "../../kernel/expr.ts";
import type { Stmt } from "../../kernel/stmt.ts";
import { operandsOf } from "../../kernel/traverse.ts";

/** Memory a load reads: a buffer, or `unknown` where its pointer does not tell. */
export type Memory = Buffer | "unknown";

/** What a value depends on besides sizes. */
export interface Dependence {
  readonly axes: ReadonlySet<Axis>;
  readonly locals: ReadonlySet<string>;
  /** Memory that may change while the kernel runs. */
  readonly memory: ReadonlySet<Memory>;
  readonly loads: boolean;
  /** Has a load that is valid only where it stands. */
  readonly unsafe: boolean;
}
export const independent: Dependence = { axes: new Set(), locals: new Set(), memory: new Set(), loads: false, unsafe: false };

export function unite(a: Dependence, b: Dependence): Dependence {
  if (a === independent) return b;
  if (b === independent || a === b) return a;
  return { axes: union(a.axes, b.axes), locals: union(a.locals, b.locals), memory: union(a.memory, b.memory), loads: a.loads || b.loads, unsafe: a.unsafe || b.unsafe };
}
function union<T>(a: ReadonlySet<T>, b: ReadonlySet<T>): ReadonlySet<T> {
  if (b.size === 0) return a;
  if (a.size === 0) return b;
  return new Set([...a, ...b]);
}

/** Locals assigned and memory written somewhere in a statement. */
export interface Changes { readonly locals: ReadonlySet<string>; readonly memory: ReadonlySet<Memory> }
export const unchanged: Changes = { locals: new Set(), memory: new Set() };

export interface Scope {
  readonly kind: "function" | "loop" | "guard" | "branch";
  readonly parent: Scope | undefined;
  /** A loop's variable. */
  readonly axis: Axis | undefined;
  /** What a loop's body changes. */
  readonly changes: Changes | undefined;
  /** A guard whose loop is known to run. */
  readonly certain: boolean;
  readonly declared: Set<string>;
  readonly statements: Stmt[];
  /** Values that locals hold, by shared expression. */
  readonly values: Map<Expr, Expr>;
  /** Those of `values` that read what the kernel changes somewhere. */
  readonly changeable: Set<Expr>;
}
export const functionScope = (): Scope => ({ kind: "function", parent: undefined, axis: undefined, changes: undefined, certain: true, declared: new Set(), statements: [], values: new Map(), changeable: new Set() });
export const loopScope = (parent: Scope, axis: Axis, changes: Changes): Scope => ({ ...functionScope(), kind: "loop", parent, axis, changes });
export const guardScope = (parent: Scope, certain: boolean): Scope => ({ ...functionScope(), kind: "guard", parent, certain });
export const branchScope = (parent: Scope): Scope => ({ ...functionScope(), kind: "branch", parent });

/** The outermost place before a loop where the value can be computed; `from` itself when it is no loop's invariant. */
export function homeOf(d: Dependence, from: Scope): Scope {
  let home = from;
  for (let s = from; s.parent && mayLeave(d, s); s = s.parent) if (s.kind === "loop" || (s.kind === "guard" && home === s)) home = s.parent;
  return home;
}
function mayLeave(d: Dependence, s: Scope): boolean {
  if (intersects(s.declared, d.locals)) return false;
  switch (s.kind) {
    case "function": return false;
    case "loop": {
      const { axis, changes } = s;
      if (axis && d.axes.has(axis)) return false;
      return !changes || (!intersects(changes.locals, d.locals) && !touches(changes.memory, d.memory));
    }
    case "guard": return !d.loads || s.certain;
    case "branch": return !d.unsafe;
  }
}
export const intersects = <T>(a: ReadonlySet<T>, b: ReadonlySet<T>): boolean => {
  const [small, large] = a.size < b.size ? [a, b] : [b, a];
  for (const x of small) if (large.has(x)) return true;
  return false;
};
/** Writing `written` may change what was read from `read`. */
export function touches(written: ReadonlySet<Memory>, read: ReadonlySet<Memory>): boolean {
  if (written.size === 0 || read.size === 0) return false;
  return written.has("unknown") || read.has("unknown") || intersects(written, read);
}

/** The local that holds a value here, if one does. */
export function lookup(e: Expr, scope: Scope): Expr | undefined {
  for (let s: Scope | undefined = scope; s; s = s.parent) {
    const known = s.values.get(e);
    if (known) return known;
  }
  return undefined;
}
/** Forgets what locals hold of values that `changes` may have altered. */
export function forget(changes: Changes, scope: Scope, dependence: (e: Expr) => Dependence): void {
  if (changes.locals.size === 0 && changes.memory.size === 0) return;
  for (let s: Scope | undefined = scope; s; s = s.parent) {
    for (const e of s.changeable) {
      const d = dependence(e);
      if (!intersects(changes.locals, d.locals) && !touches(changes.memory, d.memory)) continue;
      s.values.delete(e);
      s.changeable.delete(e);
    }
  }
}

/** The buffers whose addresses a pointer is made of. */
export function rootsOf(pointer: Expr, local: (name: string) => ReadonlySet<Memory>): ReadonlySet<Memory> {
  const roots = new Set<Memory>();
  const visit = (e: Expr): void => {
    if (e.type.scalar !== "i32" && e.type.scalar !== "u32") return;
    if (e.kind === "address") roots.add(e.buffer);
    else if (e.kind === "local") for (const r of local(e.name)) roots.add(r);
    else if (e.kind === "select") { visit(e.a); visit(e.b); }
    else if (e.kind === "binary" && (e.op === "add" || e.op === "sub")) operandsOf(e).forEach(visit);
  };
  visit(pointer);
  return roots;
}
