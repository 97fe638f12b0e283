/**
 * Value numbering: a table in which equal expressions become one object, simplified on the way in. Reductions are equal
 * up to the names of their own axes, so that two spellings of one mean are one mean.
 */
import { dimMul, dimSub, isSymbolic, type Dim } from "../core/dim.ts";
import { atomBounds, linearBounds } from "./bounds.ts";
import { axisOf, constant, dimExpr, i32, type Axis, type BinaryOp, type Buffer, type Expr, type Scalar, type UnaryOp } from "./expr.ts";
import { linearAdd, linearConstant, linearScale, sameDim, type Bounds, type Linear, type Term } from "./linear.ts";
import { linearOf, simplifyNode, type Algebra } from "./simplify.ts";
import { mapChildren, mapExpr, operandsOf } from "./traverse.ts";

type Reduce = Extract<Expr, { kind: "reduce" }>;

export class ExprTable implements Algebra {
  readonly #byKey = new Map<number | string, Expr>();
  readonly #shared = new Map<Expr, Expr>();
  readonly #ids = new Map<object, number>();
  readonly #linear = new Map<Expr, Linear>();
  readonly #bounds = new Map<Expr, Bounds>();
  readonly #heights = new Map<Expr, number>();
  readonly #reduceAxes = new Map<string, Axis>();

  /** The one object that stands for every expression equal to `e`. */
  make(e: Expr): Expr {
    const known = this.#shared.get(e);
    if (known) return known;
    const parts = mapChildren(e, this.#makeOperand);
    const out = parts.kind === "reduce" ? this.#makeReduce(parts) : simplifyNode(parts, this) ?? this.#number(parts);
    this.#shared.set(e, out);
    this.#shared.set(out, out);
    return out;
  }

  readonly #makeOperand = (e: Expr): Expr => this.make(e);

  /** A number that equal expressions share; in order of first appearance. */
  id(e: Expr): number { return this.#idOf(this.make(e)); }

  linear(e: Expr): Linear {
    let sum = this.#linear.get(e);
    if (!sum) {
      sum = linearOf(e, (c) => this.linear(c));
      this.#linear.set(e, sum);
    }
    return sum;
  }

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
    this.#linear.set(out, sum);
    this.#shared.set(out, out);
    return out;
  }
  #size(d: Dim): Expr { return this.#number(isSymbolic(d) ? dimExpr(d) : constant(d | 0, i32)); }

  bounds(sum: Linear): Bounds { return linearBounds(sum, (atom) => this.#atomBounds(atom)); }
  #atomBounds(e: Expr): Bounds {
    let b = this.#bounds.get(e);
    if (!b) {
      b = atomBounds(e, (c) => (c.type.scalar === "i32" && c.type.lanes === 1 ? this.bounds(this.linear(this.make(c))) : { lower: undefined, upper: undefined }));
      this.#bounds.set(e, b);
    }
    return b;
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
    const key = this.#key(e);
    const known = this.#byKey.get(key);
    if (known) return known;
    this.#byKey.set(key, e);
    this.#shared.set(e, e);
    this.#idOf(e);
    return e;
  }
  #idOf(o: object): number {
    let id = this.#ids.get(o);
    if (id === undefined) this.#ids.set(o, (id = this.#ids.size));
    return id;
  }
  /** Equal for equal expressions only. Most are of one or two operands, which a number can say. */
  #key(e: Expr): number | string {
    switch (e.kind) {
      case "binary": return nodeKey(e, binaryCodes[e.op], this.#idOf(e.a), this.#idOf(e.b)) ?? this.#text(e);
      case "unary": return nodeKey(e, unaryCodes[e.op], this.#idOf(e.a), 0) ?? this.#text(e);
      case "cast": return nodeKey(e, castCode, this.#idOf(e.a), 0) ?? this.#text(e);
      case "axis": return nodeKey(e, axisCode, this.#idOf(e.axis), 0) ?? this.#text(e);
      default: return this.#text(e);
    }
  }
  #text(e: Expr): string {
    let key = `${e.kind}:${e.type.scalar}${e.type.lanes}:${this.#detail(e)}:`;
    for (const c of operandsOf(e)) key += `${this.#idOf(c)},`;
    return key;
  }
  #detail(e: Expr): string {
    switch (e.kind) {
      case "const": return Object.is(e.value, -0) ? "-0" : `${e.value}`;
      case "axis": return `${this.#idOf(e.axis)}`;
      case "dim": return typeof e.dim === "number" ? `${e.dim}` : e.dim.key;
      case "local": return e.name;
      case "load": case "address": return `${this.#idOf(e.buffer satisfies Buffer)} ${e.kind === "load" ? e.along ?? "" : ""}`;
      case "loadAt": return `${e.offset} ${e.dtype} ${e.splat}`;
      case "unary": case "binary": return e.op;
      case "madd": return `${e.relaxed}`;
      case "extract": return `${e.lane}`;
      case "shuffle": return e.bytes.join(" ");
      case "extend": return e.half;
      case "reduce": return `${e.op} ${e.axes.map((a) => this.#idOf(a)).join(" ")}`;
      default: return "";
    }
  }
}
/** Numbers for what kinds of node are; below 64. */
const binaryCodes: Readonly<Record<BinaryOp, number>> = {
  add: 0, sub: 1, mul: 2, div: 3, rem: 4, min: 5, max: 6, pmin: 7, pmax: 8, pow: 9, and: 10, or: 11, xor: 12, shl: 13, shr: 14, eq: 15, ne: 16, lt: 17, le: 18, gt: 19, ge: 20,
};
const unaryCodes: Readonly<Record<UnaryOp, number>> = {
  neg: 21, abs: 22, sqrt: 23, floor: 24, ceil: 25, trunc: 26, nearest: 27, not: 28, exp: 29, log: 30, tanh: 31, erf: 32, sin: 33, cos: 34, tan: 35, asin: 36, acos: 37, atan: 38,
  sinh: 39, cosh: 40, asinh: 41, acosh: 42, atanh: 43, isnan: 44, isinf: 45, decay: 48,
};
const castCode = 46, axisCode = 47;
const scalarCodes: Readonly<Record<Scalar, number>> = { bool: 0, i8: 1, u8: 2, i16: 3, u16: 4, i32: 5, u32: 6, i64: 7, u64: 8, f32: 9, f64: 10 };
/** Ids that a key has room for. */
const idLimit = 2 ** 18;

/** A node as a whole number below 2^53: code, scalar, lanes, two ids; undefined where these are too large. */
const nodeKey = (e: Expr, code: number, a: number, b: number): number | undefined =>
  (a < idLimit && b < idLimit ? (((code * 16 + scalarCodes[e.type.scalar]) * 32 + e.type.lanes) * idLimit + a) * idLimit + b : undefined);

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
