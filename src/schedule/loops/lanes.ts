/**
 * Builds an element expression for one element, or for 4 consecutive ones along an axis as a vector. Both forms apply
 * the same operations, so a vector body and a scalar tail give the same bits. Whatever has no vector form (64-bit
 * values, data-dependent indices, guarded loads) is computed lane by lane.
 */
import { invariant } from "../../core/assert.ts";
import { dimEqual, dimMul, isSymbolic, type Dim } from "../../core/dim.ts";
import { byteSize } from "../../core/dtype.ts";
import { constant, i32, type Axis, type Buffer, type Expr, type Scalar, type Type } from "../../kernel/expr.ts";
import type { Stmt } from "../../kernel/stmt.ts";
import { mapChildren, mapExpr, operandsOf, visitExpr } from "../../kernel/traverse.ts";
import { foldIndex, plus, times, toIndex } from "./affine.ts";
import { loadAt, splatAt, type KernelBuilder } from "../builder.ts";

type Load = Extract<Expr, { kind: "load" }>;

/** Where an affine load reads for lane 0, and how far apart lanes are. */
export interface LanePointer { readonly pointer: Expr; readonly offset: number; readonly laneBytes: Dim }

/** Moves a pointer by a distance, in its constant offset where that can say it. */
export function moved(p: LanePointer, by: Dim, count: number): LanePointer {
  const distance = dimMul(by, count);
  if (!isSymbolic(distance) && p.offset + distance >= 0) return { ...p, offset: p.offset + distance };
  return { ...p, pointer: plus(p.pointer, isSymbolic(by) ? times(toIndex(by), count) : distance) };
}

/** The place an expression is built for. */
export interface LanePosition {
  /** Value of a loop variable at a lane. */
  axis(axis: Axis, lane: number): Expr | undefined;
  /** Physical address of a load; undefined when it must be written with logical indices. */
  pointer(load: Load): LanePointer | undefined;
  /** Value of a local (the accumulator), with the lanes asked for; `lane` chooses one when it is a scalar. */
  local(name: string, lanes: 1 | 4, lane: number): Expr | undefined;
  /** True when a sub-expression may differ between lanes. */
  varies(e: Expr): boolean;
  /** Values shared by every use at this position are declared here. */
  readonly into: Stmt[];
}

const vectorScalars: ReadonlySet<Scalar> = new Set<Scalar>(["f32", "i32", "u32", "bool"]);
const vectorOf = (type: Type): Type => ({ scalar: type.scalar, lanes: 4 });

/** How an expression is used, found once per expression. */
export class ElementExpression {
  readonly value: Expr;
  private readonly uses = new Map<Expr, number>();
  private readonly vector = new Map<Expr, boolean>();

  constructor(value: Expr) {
    this.value = value;
    this.uses.set(value, 1);
    visitExpr(value, (e) => { for (const c of operandsOf(e)) this.uses.set(c, (this.uses.get(c) ?? 0) + 1); });
  }

  /** Used by more than one expression, and worth a local. */
  shared(e: Expr): boolean {
    return (this.uses.get(e) ?? 0) > 1 && !["const", "axis", "dim", "local"].includes(e.kind);
  }

  /** Every operation has a form on 4 lanes. */
  vectorisable(e: Expr): boolean {
    const known = this.vector.get(e);
    if (known !== undefined) return known;
    const own = vectorScalars.has(e.type.scalar) && !["reduce", "address", "loadAt", "splat", "lanes", "extract", "shuffle", "swizzle", "dot", "byteDot", "relaxed", "extend"].includes(e.kind);
    const result = own && (e.kind === "load" || operandsOf(e).every((c) => this.vectorisable(c)));
    this.vector.set(e, result);
    return result;
  }

  /** The value in a position, as a scalar (of one lane) or 4 lanes. */
  build(b: KernelBuilder, position: LanePosition, lanes: 1 | 4, lane = 0): Expr {
    return new Build(b, this, position).at(this.value, lanes, lane, false);
  }
}

class Build {
  private readonly b: KernelBuilder;
  private readonly expression: ElementExpression;
  private readonly position: LanePosition;
  private readonly memo = new Map<Expr, Map<number, Expr>>();

  constructor(b: KernelBuilder, expression: ElementExpression, position: LanePosition) {
    this.b = b;
    this.expression = expression;
    this.position = position;
  }

  /** `guarded`: inside a side of a select that must only be evaluated when chosen. */
  at(e: Expr, lanes: 1 | 4, lane: number, guarded: boolean): Expr {
    const key = lanes === 4 ? -1 : lane;
    const known = this.memo.get(e)?.get(key);
    if (known) return known;
    const built = lanes === 4 ? this.vectorForm(e, guarded) : this.scalarForm(e, lane, guarded);
    if (guarded || !this.expression.shared(e)) return built;
    const shared = this.b.let(this.position.into, "t", built);
    const memo = this.memo.get(e) ?? new Map<number, Expr>();
    this.memo.set(e, memo.set(key, shared));
    return shared;
  }

  private scalarForm(e: Expr, lane: number, guarded: boolean): Expr {
    switch (e.kind) {
      case "axis": return this.position.axis(e.axis, lane) ?? e;
      case "local": return this.position.local(e.name, 1, lane) ?? e;
      case "load": {
        const p = this.position.pointer(e);
        if (!p) return { ...e, indices: e.indices.map((x) => this.at(x, 1, lane, guarded)) };
        const at = moved(p, p.laneBytes, lane);
        return loadAt(at.pointer, at.offset, e.buffer.dtype, e.type);
      }
      case "select": {
        const inner = guarded || hasGuardedLoad(e);
        return { ...e, condition: this.at(e.condition, 1, lane, guarded), a: this.at(e.a, 1, lane, inner), b: this.at(e.b, 1, lane, inner) };
      }
      default: return foldIndex(mapChildren(e, (c) => this.at(c, 1, lane, guarded)));
    }
  }

  private vectorForm(e: Expr, guarded: boolean): Expr {
    const type = vectorOf(e.type);
    if (e.kind === "const") return constant(e.value, type);
    if (!this.position.varies(e)) return this.broadcast(this.at(e, 1, 0, guarded), e, type);
    if (!this.expression.vectorisable(e)) return this.byLane(e, type, guarded);
    switch (e.kind) {
      case "axis": return this.byLane(e, type, guarded);
      case "local": return this.position.local(e.name, 4, 0) ?? this.byLane(e, type, guarded);
      case "load": return this.vectorLoad(e, type, guarded);
      case "select": {
        if (!this.position.varies(e.condition)) {
          const inner = guarded || hasGuardedLoad(e);
          return { kind: "select", condition: this.at(e.condition, 1, 0, guarded), a: this.at(e.a, 4, 0, inner), b: this.at(e.b, 4, 0, inner), type };
        }
        if (hasGuardedLoad(e)) return this.byLane(e, type, guarded);
        return { kind: "select", condition: this.at(e.condition, 4, 0, guarded), a: this.at(e.a, 4, 0, guarded), b: this.at(e.b, 4, 0, guarded), type };
      }
      case "binary": {
        const shift = e.op === "shl" || e.op === "shr";
        if (shift && !this.position.varies(e.b)) return { ...e, a: this.at(e.a, 4, 0, guarded), b: this.at(e.b, 1, 0, guarded), type };
        if (shift || e.op === "rem" || (e.op === "div" && e.type.scalar !== "f32")) return this.byLane(e, type, guarded);
        return { ...e, a: this.at(e.a, 4, 0, guarded), b: this.at(e.b, 4, 0, guarded), type };
      }
      default: return { ...mapChildren(e, (c) => this.at(c, 4, 0, guarded)), type };
    }
  }

  private broadcast(scalar: Expr, source: Expr, type: Type): Expr {
    if (scalar.kind === "loadAt" && byteSize(scalar.dtype) === 4) return splatAt(scalar.pointer, scalar.offset, scalar.dtype, type);
    if (source.type.scalar !== "bool") return { kind: "splat", a: scalar, type };
    const numbers: Expr = { kind: "splat", a: { kind: "cast", a: scalar, type: i32 }, type: { scalar: "i32", lanes: 4 } };
    return { kind: "binary", op: "ne", a: numbers, b: constant(0, numbers.type), type };
  }

  private vectorLoad(e: Load, type: Type, guarded: boolean): Expr {
    const p = this.position.pointer(e);
    const size = byteSize(e.buffer.dtype);
    if (!p || e.buffer.dtype === "bool") return this.byLane(e, type, guarded);
    if (p.laneBytes === size) return loadAt(p.pointer, p.offset, e.buffer.dtype, type);
    return this.byLane(e, type, guarded);
  }

  private byLane(e: Expr, type: Type, guarded: boolean): Expr {
    invariant(vectorScalars.has(e.type.scalar), "a lane-wise value has a vector type");
    const elements = [0, 1, 2, 3].map((lane) => this.at(e, 1, lane, guarded));
    if (e.type.scalar !== "bool") return { kind: "lanes", elements, type };
    const numbers: Expr = { kind: "lanes", elements: elements.map((x): Expr => ({ kind: "cast", a: x, type: i32 })), type: { scalar: "i32", lanes: 4 } };
    return { kind: "binary", op: "ne", a: numbers, b: constant(0, numbers.type), type };
  }
}

/** True when a side of the select loads at indices that only its condition keeps inside the buffer. */
function hasGuardedLoad(select: Extract<Expr, { kind: "select" }>): boolean {
  let found = false;
  const visit = (e: Expr): void => { if (e.kind === "load" && !alwaysInside(e.buffer, e.indices)) found = true; };
  const seen = new Set<Expr>();
  visitExpr(select.a, visit, seen);
  visitExpr(select.b, visit, seen);
  return found;
}

/** Every index is a loop variable no longer than the dimension, or a constant inside it. */
function alwaysInside(buffer: Buffer, indices: readonly Expr[]): boolean {
  return indices.every((e, d) => {
    const extent = buffer.shape[d];
    if (extent === undefined) return false;
    if (e.kind === "axis") return dimEqual(e.axis.extent, extent) || (!isSymbolic(extent) && !isSymbolic(e.axis.extent) && e.axis.extent <= extent);
    return e.kind === "const" && Number(e.value) >= 0 && !isSymbolic(extent) && Number(e.value) < extent;
  });
}

/** Scalar operations an element costs, for choosing between unrolling and looping. */
export function operationCost(e: Expr): number {
  let cost = 0;
  visitExpr(e, (x) => {
    if (x.kind === "unary") cost += ["neg", "abs", "sqrt", "floor", "ceil", "trunc", "nearest", "not", "isnan", "isinf"].includes(x.op) ? 1 : 20;
    else if (x.kind === "binary") cost += x.op === "pow" ? 40 : x.op === "div" && x.type.scalar === "f32" ? 2 : 1;
    else if (x.kind === "load") cost += 1;
    else if (x.kind === "select" || x.kind === "cast" || x.kind === "madd") cost += 1;
  });
  return cost;
}

/** The expression with a local read through `change`. */
export function replaceLocal(e: Expr, name: string, change: (local: Expr) => Expr): Expr {
  const memo = new Map<Expr, Expr>();
  let replaced: Expr | undefined;
  return mapExpr(e, (x) => (x.kind === "local" && x.name === name ? (replaced ??= change(x)) : x), memo);
}
