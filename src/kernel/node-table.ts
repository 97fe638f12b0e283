/**
 * Finds expressions by what they are made of: operation, type, details and the numbers of their operands, which the
 * caller gives. Nearly all are known by whole numbers that engines keep unboxed, which is what makes numbering values
 * cheap; a text says the rest.
 */
import { dtypes } from "../core/dtype.ts";
import type { BinaryOp, Expr, Scalar, UnaryOp } from "./expr.ts";
import { operandsOf } from "./traverse.ts";

/** Numbers for kinds of node; below 64. */
const binaryCodes: Readonly<Record<BinaryOp, number>> = {
  add: 0, sub: 1, mul: 2, div: 3, rem: 4, min: 5, max: 6, pmin: 7, pmax: 8, pow: 9, and: 10, or: 11, xor: 12, shl: 13, shr: 14, eq: 15, ne: 16, lt: 17, le: 18, gt: 19, ge: 20,
};
const unaryCodes: Readonly<Record<UnaryOp, number>> = {
  neg: 21, abs: 22, sqrt: 23, floor: 24, ceil: 25, trunc: 26, nearest: 27, not: 28, exp: 29, log: 30, tanh: 31, erf: 32, sin: 33, cos: 34, tan: 35, asin: 36, acos: 37, atan: 38,
  sinh: 39, cosh: 40, asinh: 41, acosh: 42, atanh: 43, isnan: 44, isinf: 45, decay: 46, gelu: 59, silu: 60,
};
const castCode = 47, bitcastCode = 48, splatCode = 49, axisCode = 50, constCode = 51, localCode = 52, loadAtCode = 53, maddCode = 54, relaxedMaddCode = 55, selectCode = 56, extractCode = 57, textCode = 58;
const scalarCodes: Readonly<Record<Scalar, number>> = { bool: 0, i8: 1, u8: 2, i16: 3, u16: 4, i32: 5, u32: 6, i64: 7, u64: 8, f32: 9, f64: 10 };
/** Numbers that a part of a key has room for. */
const limit = 2 ** 15;

export class NodeTable {
  readonly #idOf: (e: Expr) => number;
  readonly #byHead = new Map<number, Map<number | string, Expr>>();
  /** Numbers of loop variables and buffers. */
  readonly #names = new Map<object, number>();

  /** `idOf` numbers the operands of what is looked for. */
  constructor(idOf: (e: Expr) => number) {
    this.#idOf = idOf;
  }

  /** The expression that was given first of all that equal `e`, whose operands are numbered. */
  find(e: Expr): Expr {
    switch (e.kind) {
      case "binary": return this.#byIds(e, binaryCodes[e.op], this.#idOf(e.a), this.#idOf(e.b), 0);
      case "unary": return this.#byIds(e, unaryCodes[e.op], this.#idOf(e.a), 0, 0);
      case "cast": return this.#byIds(e, castCode, this.#idOf(e.a), 0, 0);
      case "bitcast": return this.#byIds(e, bitcastCode, this.#idOf(e.a), 0, 0);
      case "splat": return this.#byIds(e, splatCode, this.#idOf(e.a), 0, 0);
      case "extract": return this.#byIds(e, extractCode, this.#idOf(e.a), e.lane, 0);
      case "axis": return this.#byIds(e, axisCode, this.#nameOf(e.axis), 0, 0);
      case "madd": return this.#byIds(e, e.relaxed ? relaxedMaddCode : maddCode, this.#idOf(e.a), this.#idOf(e.b), this.#idOf(e.c));
      case "select": return this.#byIds(e, selectCode, this.#idOf(e.a), this.#idOf(e.b), this.#idOf(e.condition));
      case "loadAt": return this.#byIds(e, loadAtCode, this.#idOf(e.pointer), e.offset, 2 * dtypes[e.dtype].onnx + Number(e.splat));
      case "local": return this.#in(headOf(e, localCode, 0), e.name, e);
      // As a key of a map, 0 is -0.
      case "const": return typeof e.value === "number" && !Object.is(e.value, -0) ? this.#in(headOf(e, constCode, 0), e.value, e) : this.#byText(e);
      default: return this.#byText(e);
    }
  }

  #byIds(e: Expr, code: number, a: number, b: number, c: number): Expr {
    return a < limit && b >= 0 && b < limit && c < limit ? this.#in(headOf(e, code, c), a * limit + b, e) : this.#byText(e);
  }
  #byText(e: Expr): Expr {
    let key = `${e.kind}:${e.type.scalar}${e.type.lanes}:${this.#detail(e)}:`;
    for (const c of operandsOf(e)) key += `${this.#idOf(c)},`;
    return this.#in(textCode, key, e);
  }
  #in(head: number, key: number | string, e: Expr): Expr {
    let nodes = this.#byHead.get(head);
    if (!nodes) this.#byHead.set(head, (nodes = new Map()));
    const known = nodes.get(key);
    if (known) return known;
    nodes.set(key, e);
    return e;
  }
  #nameOf(o: object): number {
    let id = this.#names.get(o);
    if (id === undefined) this.#names.set(o, (id = this.#names.size));
    return id;
  }

  #detail(e: Expr): string {
    switch (e.kind) {
      case "const": return Object.is(e.value, -0) ? "-0" : `${e.value}`;
      case "axis": return `${this.#nameOf(e.axis)}`;
      case "dim": return typeof e.dim === "number" ? `${e.dim}` : e.dim.key;
      case "local": return e.name;
      case "load": case "address": return `${this.#nameOf(e.buffer)} ${e.kind === "load" ? e.along ?? "" : ""}`;
      case "loadAt": return `${e.offset} ${e.dtype} ${e.splat}`;
      case "unary": case "binary": return e.op;
      case "madd": return `${e.relaxed}`;
      case "extract": return `${e.lane}`;
      case "shuffle": return e.bytes.join(" ");
      case "extend": return e.half;
      case "reduce": return `${e.op} ${e.axes.map((a) => this.#nameOf(a)).join(" ")}`;
      default: return "";
    }
  }
}

/** Operation, type and a further number below `limit` as one that stays below 2^30. */
const headOf = (e: Expr, code: number, further: number): number => ((code * 16 + scalarCodes[e.type.scalar]) * 32 + e.type.lanes) * limit + further;
