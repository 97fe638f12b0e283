/** How far the memory that an access touches moves when a loop variable moves: in elements, by layouts. */
import { evaluateDim, type Dim } from "../../core/dim.ts";
import type { Axis, Buffer, Expr } from "../../kernel/expr.ts";
import type { Layout } from "../../kernel/kernel.ts";
import { linearAdd, linearConstant, linearScale, type Linear } from "../../kernel/linear.ts";
import type { ExprTable } from "../../kernel/share.ts";
import type { Stmt } from "../../kernel/stmt.ts";
import { expressionsOf, operandsOf, visitExpr, visitStmt } from "../../kernel/traverse.ts";

export interface Access {
  readonly buffer: Buffer;
  readonly store: boolean;
  /** Element offset from the buffer's first element. */
  readonly offset: Linear;
}

export class Strides {
  readonly table: ExprTable;
  private readonly layoutOf: (b: Buffer) => Layout;
  private readonly uses = new Map<Expr, ReadonlySet<Axis>>();

  constructor(table: ExprTable, layoutOf: (b: Buffer) => Layout) {
    this.table = table;
    this.layoutOf = layoutOf;
  }

  access(buffer: Buffer, indices: readonly Expr[], store: boolean): Access {
    const { strides } = this.layoutOf(buffer);
    const offset = indices.reduce<Linear>((sum, e, d) => linearAdd(sum, linearScale(this.table.linear(this.table.make(e)), strides[d] ?? 0)), linearConstant(0));
    return { buffer, store, offset: this.table.linear(this.table.fromLinear(offset)) };
  }

  /** Elements the access moves per step of `axis`; undefined where that is not a size. */
  along(access: Access, axis: Axis): Dim | undefined {
    let stride: Dim = 0;
    for (const { atom, coefficient } of access.offset.terms) {
      if (atom.kind === "axis" && atom.axis === axis) stride = coefficient;
      else if (this.axesOf(atom).has(axis)) return undefined;
    }
    return stride;
  }

  /** Loop variables an expression depends on; locals count for none. */
  axesOf(e: Expr): ReadonlySet<Axis> {
    let axes = this.uses.get(e);
    if (!axes) {
      const found = new Set<Axis>();
      visitExpr(e, (x) => { if (x.kind === "axis") found.add(x.axis); });
      this.uses.set(e, (axes = found));
    }
    return axes;
  }

  /** Every access below a statement, each with the number of times it runs when the statement does. */
  accesses(body: Stmt): { readonly access: Access; readonly times: number }[] {
    const out: { access: Access; times: number }[] = [];
    const seen = new Set<Expr>();
    const walk = (s: Stmt, times: number): void => {
      for (const root of expressionsOf(s)) visitExpr(root, (e) => { if (e.kind === "load") out.push({ access: this.access(e.buffer, e.indices, false), times }); }, seen);
      if (s.kind === "store") out.push({ access: this.access(s.buffer, s.indices, true), times });
      if (s.kind === "for") walk(s.body, times * typical(s.axis.extent));
      else if (s.kind === "block") s.body.forEach((b) => walk(b, times));
      else if (s.kind === "if") { walk(s.then, times); if (s.else) walk(s.else, times); }
    };
    walk(body, 1);
    return out;
  }
}

/** A size to weigh costs with: symbols count as 64. */
export const typical = (d: Dim): number => evaluateDim(d, () => 64);

/** Axes that occur in anything but linear parts of access offsets: conditions, values, divisions, data-dependent indices. */
export function axesUsedAsValues(body: Stmt, strides: Strides): Set<Axis> {
  const used = new Set<Axis>();
  const seen = new Set<Expr>();
  const note = (e: Expr): void => { for (const a of strides.axesOf(e)) used.add(a); };
  const value = (e: Expr): void => {
    if (seen.has(e)) return;
    seen.add(e);
    if (e.kind === "axis") { used.add(e.axis); return; }
    if (e.kind === "load") { indices(e.buffer, e.indices); return; }
    operandsOf(e).forEach(value);
  };
  const indices = (buffer: Buffer, list: readonly Expr[]): void => {
    for (const { atom } of strides.access(buffer, list, false).offset.terms) if (atom.kind !== "axis") note(atom);
    // Data-dependent parts are values themselves.
    list.forEach((i) => visitExpr(i, (x) => { if (x.kind === "load") value(x); }));
  };
  visitStmt(body, (s) => {
    if (s.kind === "store") { indices(s.buffer, s.indices); value(s.value); return; }
    expressionsOf(s).forEach(value);
  });
  return used;
}
