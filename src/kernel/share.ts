/**
 * Value numbering: a table in which equal expressions become one object, simplified on the way in. Reductions are equal
 * up to the names of their own axes, so that two spellings of one mean are one mean.
 */
import { dimMul, dimSub, isSymbolic, type Dim } from "../core/dim.ts";
import { atomBounds, linearBounds } from "./bounds.ts";
import { axisOf, constant, dimExpr, i32, type Axis, type Expr } from "./expr.ts";
import { linearAdd, linearConstant, linearScale, sameDim, type Bounds, type Linear, type Term } from "./linear.ts";
import { NodeTable } from "./node-table.ts";
import { linearOf, simplifyNode, type Algebra } from "./simplify.ts";
import { mapChildren, mapExpr, operandsOf } from "./traverse.ts";

type Reduce = Extract<Expr, { kind: "reduce" }>;

/** What is known of an expression. */
class Entry {
  /** The one object that stands for it and its equals, once that was asked for. */
  shared: Expr | undefined = undefined;
  /** Not negative once it has one. */
  id = -1;
  linear: Linear | undefined = undefined;
  bounds: Bounds | undefined = undefined;
}

export class ExprTable implements Algebra {
  readonly #nodes = new NodeTable((e) => this.#idOf(e));
  /** Of every expression that was given; equal ones have one entry. */
  readonly #entries = new Map<Expr, Entry>();
  #count = 0;
  readonly #heights = new Map<Expr, number>();
  readonly #reduceAxes = new Map<string, Axis>();

  /** The one object that stands for every expression equal to `e`. */
  make(e: Expr): Expr {
    const known = this.#entries.get(e)?.shared;
    if (known) return known;
    const parts = mapChildren(e, this.#makeOperand);
    const out = parts.kind === "reduce" ? this.#makeReduce(parts) : simplifyNode(parts, this) ?? this.#number(parts);
    const entry = this.#entryOf(out);
    entry.shared = out;
    if (out !== e) this.#entries.set(e, entry);
    return out;
  }

  readonly #makeOperand = (e: Expr): Expr => this.make(e);

  /** A number that equal expressions share; in order of first appearance. */
  id(e: Expr): number { return this.#idOf(this.make(e)); }

  linear(e: Expr): Linear {
    const entry = this.#entryOf(e);
    return (entry.linear ??= linearOf(e, this.#linearOfOperand));
  }

  readonly #linearOfOperand = (e: Expr): Linear => this.linear(e);

  /** Terms in order of first appearance, quotients and remainders of one division put together again. */
  fromLinear(given: Linear): Expr {
    const sum = this.#rejoin(given);
    const terms = sum.terms.length < 2 ? sum.terms : [...sum.terms].sort((x, y) => Number(isNegative(x)) - Number(isNegative(y)) || this.#idOf(x.atom) - this.#idOf(y.atom));
    let out: Expr | undefined;
    const append = (e: Expr, negative: boolean): void => {
      out = out ? this.#number({ kind: "binary", op: negative ? "sub" : "add", a: out, b: e, type: i32 }) : e;
    };
    for (const { atom, coefficient } of terms) {
      const negative = out !== undefined && isNegative({ atom, coefficient });
      const factor = negative ? dimMul(coefficient, -1) : coefficient;
      append(factor === 1 ? atom : this.#number({ kind: "binary", op: "mul", a: atom, b: this.#size(factor), type: i32 }), negative);
    }
    if (!out) return this.#size(sum.constant);
    if (sum.constant !== 0) {
      const negative = typeof sum.constant === "number" && sum.constant < 0;
      append(this.#size(negative ? dimMul(sum.constant, -1) : sum.constant), negative);
    }
    const entry = this.#entryOf(out);
    entry.linear = sum;
    entry.shared = out;
    return out;
  }
  #size(d: Dim): Expr { return this.#number(isSymbolic(d) ? dimExpr(d) : constant(d | 0, i32)); }

  bounds(sum: Linear): Bounds { return linearBounds(sum, (atom) => this.#atomBounds(atom)); }
  #atomBounds(e: Expr): Bounds {
    const entry = this.#entryOf(e);
    return (entry.bounds ??= atomBounds(e, (c) => (c.type.scalar === "i32" && c.type.lanes === 1 ? this.bounds(this.linear(this.make(c))) : { lower: undefined, upper: undefined })));
  }

  /** c·(L mod D) + c·D·(L div D) = c·L; the same with L divided by C first. */
  #rejoin(sum: Linear): Linear {
    for (const part of sum.terms) {
      const { atom } = part;
      if (atom.kind !== "binary" || atom.op !== "rem") continue;
      const divisor = this.linear(atom.b);
      if (divisor.terms.length > 0) continue;
      const inner = atom.a.kind === "binary" && atom.a.op === "div" ? atom.a : undefined;
      const wholes = [{ of: atom.a, by: divisor.constant }];
      if (inner) {
        const by = this.linear(inner.b);
        if (by.terms.length === 0) wholes.push({ of: inner.a, by: dimMul(by.constant, divisor.constant) });
      }
      const partner = sum.terms.find(({ atom: q, coefficient }) => sameDim(coefficient, dimMul(part.coefficient, divisor.constant)) && q.kind === "binary" && q.op === "div"
        && wholes.some((w) => q.kind === "binary" && q.a === w.of && isSize(this.linear(q.b), w.by)));
      if (!partner) continue;
      const others: Linear = { terms: sum.terms.filter((t) => t !== part && t !== partner), constant: sum.constant };
      return this.#rejoin(linearAdd(others, linearScale(this.linear(atom.a), part.coefficient)));
    }
    return sum;
  }

  /** Renames a reduction's axes by its height, its position and their extents; those of extent 1 are 0 in its body and go. */
  #makeReduce(given: Reduce): Expr {
    const e = given.axes.every((a) => a.extent !== 1) ? given : { ...given, axes: given.axes.filter((a) => a.extent !== 1) };
    if (e.axes.length === 0) return this.make({ kind: "binary", op: e.op, a: e.init, b: e.body, type: e.type });
    const height = this.#height(e.body) + 1;
    const rename = new Map<Axis, Axis>();
    const axes = e.axes.map((axis, i) => {
      const key = `${height}:${i}:${typeof axis.extent === "number" ? axis.extent : axis.extent.key}`;
      let own = this.#reduceAxes.get(key);
      if (!own) this.#reduceAxes.set(key, (own = { name: `r${height}_${i}`, extent: axis.extent }));
      rename.set(axis, own);
      return own;
    });
    if (e.axes.every((a, i) => a === axes[i])) return this.#number(e);
    const body = this.make(mapExpr(e.body, (x) => (x.kind === "axis" && rename.has(x.axis) ? axisOf(rename.get(x.axis) ?? x.axis) : x)));
    return this.#number({ ...e, axes, body });
  }
  #height(e: Expr): number {
    let h = this.#heights.get(e);
    if (h === undefined) {
      h = Math.max(0, ...operandsOf(e).map((c) => this.#height(c))) + (e.kind === "reduce" ? 1 : 0);
      this.#heights.set(e, h);
    }
    return h;
  }

  #number(e: Expr): Expr {
    const out = this.#nodes.find(e);
    if (out === e) {
      const entry = this.#entryOf(e);
      entry.shared = e;
      if (entry.id < 0) entry.id = this.#count++;
    }
    return out;
  }
  #entryOf(e: Expr): Entry {
    let entry = this.#entries.get(e);
    if (!entry) this.#entries.set(e, (entry = new Entry()));
    return entry;
  }
  #idOf(e: Expr): number {
    const entry = this.#entryOf(e);
    if (entry.id < 0) entry.id = this.#count++;
    return entry.id;
  }
}

const isNegative = (t: Term): boolean => typeof t.coefficient === "number" && t.coefficient < 0;
const isSize = (sum: Linear, d: Dim): boolean => sum.terms.length === 0 && sameDim(sum.constant, d);

/** The extent of an index, one past its largest value, where it is known. */
export function extentOf(table: ExprTable, e: Expr): Dim | undefined {
  const { upper } = table.bounds(table.linear(table.make(e)));
  return upper === undefined ? undefined : dimSub(upper, -1);
}
/** The sum of a whole linear address: Σ strides·indices + offset. */
export function linearAddress(table: ExprTable, indices: readonly Expr[], strides: readonly Dim[], offset: Dim): Linear {
  const sum = indices.reduce<Linear>((total, e, d) => linearAdd(total, linearScale(table.linear(table.make(e)), strides[d] ?? 0)), linearConstant(offset));
  return table.linear(table.fromLinear(sum));
}
