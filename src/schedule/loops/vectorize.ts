/**
 * Vector bodies: the statements of a loop for 4 neighbouring iterations at once, in lanes, and several such groups side
 * by side. Every lane applies the operations of the scalar body in the same order, so that both give the same bits.
 *
 * Loads that move by one element are vector loads; by none, one element in all lanes; by two, every other element of two
 * vectors. Others read lane by lane, or, where a neighbouring loop is unrolled by 4 too and moves them by one element,
 * as transposed 4x4 blocks. What has no vector form (64-bit values, guarded or data-dependent loads) is done lane by lane.
 */
import { invariant } from "../../core/assert.ts";
import { dimSub, type Dim } from "../../core/dim.ts";
import { byteSize } from "../../core/dtype.ts";
import { add, constant, i32, local, type Axis, type Buffer, type Expr, type Scalar, type Type } from "../../kernel/expr.ts";
import { nonNegativeIfNotEmpty } from "../../kernel/linear.ts";
import { block, loop, type Stmt } from "../../kernel/stmt.ts";
import { expressionsOf, mapChildren, mapExpr, operandsOf, visitExpr, visitStmt } from "../../kernel/traverse.ts";
import type { Fresh } from "../fresh.ts";
import type { Strides } from "./strides.ts";

type Load = Extract<Expr, { kind: "load" }>;
type Select = Extract<Expr, { kind: "select" }>;
type Store = Extract<Stmt, { kind: "store" }>;

export const lanes = 4;
const laneScalars: ReadonlySet<Scalar> = new Set<Scalar>(["f32", "i32", "u32", "bool"]);
const vectorOf = (t: Type): Type => ({ scalar: t.scalar, lanes });

/** Where one copy of the body stands. */
export interface Position {
  /** The vector axis's value in lane 0. */
  readonly base: Expr;
  /** An axis unrolled by 4: its value in the first copy, and this copy's number. */
  readonly jam?: { readonly axis: Axis; readonly base: Expr; readonly copy: number };
}

/** A local of the scalar body that the copies accumulate into in their own way. */
export type Redirect = (name: string, part: number) => string | undefined;

/** What of a loop body depends on the vector axis. */
export class LaneAnalysis {
  readonly axis: Axis;
  readonly strides: Strides;
  readonly varyingLocals: ReadonlySet<string>;
  private readonly memo = new Map<Expr, boolean>();
  private readonly safe = new Map<Expr, boolean>();

  constructor(axis: Axis, body: Stmt, strides: Strides, varying: Iterable<string> = []) {
    this.axis = axis;
    this.strides = strides;
    const names = new Set(varying);
    for (let before = -1; before !== names.size;) {
      before = names.size;
      this.memo.clear();
      visitStmt(body, (s) => { if ((s.kind === "let" || s.kind === "assign" || s.kind === "accumulate") && this.variesWith(s.value, names)) names.add(s.name); });
    }
    this.memo.clear();
    this.varyingLocals = names;
  }

  varies(e: Expr): boolean { return this.variesWith(e, this.varyingLocals); }
  private variesWith(e: Expr, names: ReadonlySet<string>): boolean {
    const known = this.memo.get(e);
    if (known !== undefined) return known;
    const out = e.kind === "axis" ? e.axis === this.axis : e.kind === "local" ? names.has(e.name) : operandsOf(e).some((c) => this.variesWith(c, names));
    this.memo.set(e, out);
    return out;
  }

  /** Elements an access moves from lane to lane; undefined where data says. */
  stride(buffer: Buffer, indices: readonly Expr[]): Dim | undefined {
    if (indices.some((i) => this.hasVaryingLocal(i))) return undefined;
    return this.strides.along(this.strides.access(buffer, indices, false), this.axis);
  }
  private hasVaryingLocal(e: Expr): boolean {
    let found = false;
    visitExpr(e, (x) => { if (x.kind === "local" && this.varyingLocals.has(x.name)) found = true; });
    return found;
  }

  /** True where every load below is within its buffer whatever any condition says. */
  isSafe(e: Expr): boolean {
    let safe = this.safe.get(e);
    if (safe === undefined) {
      safe = operandsOf(e).every((c) => this.isSafe(c)) && (e.kind !== "load" || e.indices.every((i, d) => this.within(i, e.buffer.shape[d] ?? 0)));
      this.safe.set(e, safe);
    }
    return safe;
  }
  private within(index: Expr, size: Dim): boolean {
    const { table } = this.strides;
    const { lower, upper } = table.bounds(table.linear(table.make(index)));
    return lower !== undefined && upper !== undefined && nonNegativeIfNotEmpty(lower) && nonNegativeIfNotEmpty(dimSub(dimSub(size, 1), upper));
  }

  /** Whether every iteration of the axis takes the same branches. */
  branchesAlike(body: Stmt): boolean {
    let alike = true;
    visitStmt(body, (s) => { if (s.kind === "if" && this.varies(s.condition)) alike = false; });
    return alike;
  }

  /** Whether the body has a vector form: bounds and branches are the same in all lanes, values fit lanes. */
  supports(body: Stmt): boolean {
    let fine = this.branchesAlike(body);
    visitStmt(body, (s) => {
      switch (s.kind) {
        case "for": if (this.varies(s.begin) || this.varies(s.end)) fine = false; return;
        case "let": case "assign": case "accumulate": if (this.varyingLocals.has(s.name) && !laneScalars.has(s.value.type.scalar)) fine = false; return;
        case "store": if (!laneScalars.has(s.value.type.scalar) || s.along !== undefined) fine = false; return;
        case "storeAt": case "split": fine = false; return;
        case "block": case "if": return;
      }
    });
    visitStmt(body, (s) => expressionsOf(s).forEach((e) => visitExpr(e, (x) => { if (x.type.lanes !== 1 || x.kind === "loadAt" || x.kind === "address" || x.kind === "reduce") fine = false; })));
    return fine;
  }
}

export class LaneBody {
  private readonly a: LaneAnalysis;
  private readonly fresh: Fresh;
  private readonly positions: readonly Position[];
  private readonly redirect: Redirect;
  private readonly names: readonly Map<string, string>[];
  private readonly memo: readonly Map<Expr, Expr>[];
  private readonly scalars: readonly Map<Expr, Expr>[][];

  constructor(analysis: LaneAnalysis, fresh: Fresh, positions: readonly Position[], redirect: Redirect = () => undefined) {
    this.a = analysis;
    this.fresh = fresh;
    this.positions = positions;
    this.redirect = redirect;
    this.names = positions.map(() => new Map());
    this.memo = positions.map(() => new Map());
    this.scalars = positions.map(() => Array.from({ length: lanes }, () => new Map<Expr, Expr>()));
  }

  /** The statement for all positions, copies side by side, which all take the same branches. */
  statement(s: Stmt): Stmt {
    switch (s.kind) {
      case "block": return block(...s.body.map((b) => this.statement(b)));
      case "for": return loop(s.axis, this.uniform(s.begin, 0), this.uniform(s.end, 0), s.step, this.statement(s.body), s.mode);
      case "if": return { kind: "if", condition: this.uniform(s.condition, 0), then: this.statement(s.then), ...(s.else ? { else: this.statement(s.else) } : {}) };
      case "store": return this.stores(s);
      default: return block(...this.positions.map((_, part) => this.copy(s, part)));
    }
  }

  /** All copies' values, then their stores: engines let no load pass a store, so that otherwise a copy would wait for the one before. */
  private stores(s: Store): Stmt {
    if (this.positions.length === 1) return this.store(s, 0, this.vector(s.value, 0));
    const before: Stmt[] = [];
    const values = this.positions.map((_, part): Expr => {
      const value = this.vector(s.value, part);
      if (value.kind === "const" || value.kind === "local") return value;
      const name = this.fresh("out");
      before.push({ kind: "let", name, value });
      return local(name, value.type);
    });
    return block(...before, ...values.map((value, part) => this.store(s, part, value)));
  }

  private copy(s: Stmt, part: number): Stmt {
    switch (s.kind) {
      case "let": {
        const value = this.value(s.name, s.value, part);
        const name = this.fresh(s.name);
        this.names[part]?.set(s.name, name);
        return { kind: "let", name, value };
      }
      case "assign": return { ...s, name: this.nameOf(s.name, part), value: this.value(s.name, s.value, part) };
      case "accumulate": return { ...s, name: this.redirect(s.name, part) ?? this.nameOf(s.name, part), value: this.value(s.name, s.value, part) };
      default: return invariant(false, `${s.kind} in a vector body`) as never;
    }
  }
  private nameOf(name: string, part: number): string { return this.names[part]?.get(name) ?? name; }
  private value(name: string, e: Expr, part: number): Expr { return this.a.varyingLocals.has(name) ? this.vector(e, part) : this.uniform(e, part); }

  private store(s: Store, part: number, value: Expr): Stmt {
    const stride = this.a.stride(s.buffer, s.indices);
    if (stride === 1) return { kind: "storeAt", pointer: this.address(s.buffer, s.indices, part, 0), offset: 0, dtype: s.buffer.dtype, value };
    const name = this.fresh("out");
    const scalar: Type = { scalar: value.type.scalar, lanes: 1 };
    return block({ kind: "let", name, value }, ...laneNumbers.map((lane): Stmt => ({
      kind: "store", buffer: s.buffer, indices: s.indices.map((i) => this.scalar(i, part, lane)), value: { kind: "extract", a: local(name, value.type), lane, type: scalar },
    })));
  }
  private address(buffer: Buffer, indices: readonly Expr[], part: number, lane: number): Expr {
    return { kind: "address", buffer, indices: indices.map((i) => this.scalar(i, part, lane)), type: i32 };
  }

  /** A value that is the same in all lanes. */
  private uniform(e: Expr, part: number): Expr { return this.scalar(e, part, 0); }

  /** The scalar value in one lane. */
  private scalar(e: Expr, part: number, lane: number): Expr {
    const memo = this.scalars[part]?.[lane];
    const known = memo?.get(e);
    if (known) return known;
    const out = this.scalarOf(e, part, lane);
    memo?.set(e, out);
    return out;
  }
  private scalarOf(e: Expr, part: number, lane: number): Expr {
    const at = this.positions[part];
    invariant(at, "a position");
    if (e.kind === "axis") {
      if (e.axis === this.a.axis) return lane === 0 ? at.base : add(at.base, lane);
      if (at.jam && e.axis === at.jam.axis) return at.jam.copy === 0 ? at.jam.base : add(at.jam.base, at.jam.copy);
      return e;
    }
    if (e.kind === "local") {
      const name = this.nameOf(e.name, part);
      return this.a.varyingLocals.has(e.name) ? { kind: "extract", a: local(name, vectorOf(e.type)), lane, type: e.type } : local(name, e.type);
    }
    return mapChildren(e, (c) => this.scalar(c, part, lane));
  }

  private vector(e: Expr, part: number): Expr {
    const memo = this.memo[part];
    const known = memo?.get(e);
    if (known) return known;
    const out = this.vectorForm(e, part);
    memo?.set(e, out);
    return out;
  }
  private vectorForm(e: Expr, part: number): Expr {
    const type = vectorOf(e.type);
    if (e.kind === "const") return constant(e.value, type);
    if (!this.a.varies(e)) return { kind: "splat", a: this.uniform(e, part), type };
    if (operandsOf(e).some((c) => !laneScalars.has(c.type.scalar))) return this.byLane(e, part);
    switch (e.kind) {
      case "axis": return add({ kind: "splat", a: this.scalar(e, part, 0), type }, { kind: "lanes", elements: laneNumbers.map((l) => constant(l, i32)), type });
      case "local": return local(this.nameOf(e.name, part), type);
      case "load": return this.load(e, part);
      case "select": return this.select(e, part);
      case "binary":
        if ((e.op === "shl" || e.op === "shr") && !this.a.varies(e.b)) return { ...e, a: this.vector(e.a, part), b: this.uniform(e.b, part), type };
        return { ...e, a: this.vector(e.a, part), b: this.vector(e.b, part), type };
      case "unary": case "cast": case "bitcast": case "madd": return { ...mapChildren(e, (c) => this.vector(c, part)), type };
      default: return this.byLane(e, part);
    }
  }
  private byLane(e: Expr, part: number): Expr {
    return { kind: "lanes", elements: laneNumbers.map((lane) => this.scalar(e, part, lane)), type: vectorOf(e.type) };
  }

  private select(e: Select, part: number): Expr {
    const type = vectorOf(e.type);
    if (!this.a.varies(e.condition)) return { kind: "select", condition: this.uniform(e.condition, part), a: this.vector(e.a, part), b: this.vector(e.b, part), type };
    if (!this.a.isSafe(e.a) || !this.a.isSafe(e.b)) return this.byLane(e, part);
    return { kind: "select", condition: this.vector(e.condition, part), a: this.vector(e.a, part), b: this.vector(e.b, part), type };
  }

  private load(e: Load, part: number): Expr {
    const type = vectorOf(e.type), stride = this.a.stride(e.buffer, e.indices);
    const read = (lane: number): Expr => ({ kind: "loadAt", pointer: this.address(e.buffer, e.indices, part, lane), offset: 0, dtype: e.buffer.dtype, splat: false, type });
    if (stride === 1) return read(0);
    if (stride === 0) return { kind: "splat", a: this.scalar(e, part, 0), type };
    if (stride === 2) return { kind: "shuffle", a: read(0), b: this.shifted(read(0), 3 * byteSize(e.buffer.dtype)), bytes: everyOther, type };
    return this.transposed(e, part) ?? this.byLane(e, part);
  }
  private shifted(e: Expr, bytes: number): Expr {
    return e.kind === "loadAt" ? { ...e, offset: e.offset + bytes } : e;
  }

  /** One row of a transposed 4x4 block, where the load moves by one element along the jammed axis. */
  private transposed(e: Load, part: number): Expr | undefined {
    const at = this.positions[part];
    if (!at?.jam || byteSize(e.buffer.dtype) !== 4) return undefined;
    const { strides } = this.a;
    if (strides.along(strides.access(e.buffer, e.indices, false), at.jam.axis) !== 1) return undefined;
    const first = this.positions.findIndex((p) => p.base === at.base && p.jam?.base === at.jam?.base && p.jam?.copy === 0);
    const rows = laneNumbers.map((lane): Expr => ({ kind: "loadAt", pointer: this.address(e.buffer, e.indices, first, lane), offset: 0, dtype: e.buffer.dtype, splat: false, type: vectorOf(e.type) }));
    return transposedRow(rows, at.jam.copy);
  }
}

const laneNumbers = [0, 1, 2, 3];
const bytesOfWords = (...words: readonly number[]): number[] => words.flatMap((w) => [4 * w, 4 * w + 1, 4 * w + 2, 4 * w + 3]);
/** Words 0 and 2 of the first vector, 1 and 3 of the second. */
const everyOther = bytesOfWords(0, 2, 5, 7);

/** Row `row` of the transposed 4x4 block, by two levels of interleaving. */
export function transposedRow(rows: readonly Expr[], row: number): Expr {
  const [r0, r1, r2, r3] = rows;
  invariant(r0 && r1 && r2 && r3, "four rows");
  const interleave = (a: Expr, b: Expr, high: boolean): Expr => ({ kind: "shuffle", a, b, bytes: high ? bytesOfWords(2, 6, 3, 7) : bytesOfWords(0, 4, 1, 5), type: a.type });
  const high = row >= 2;
  return { kind: "shuffle", a: interleave(r0, r1, high), b: interleave(r2, r3, high), bytes: row % 2 === 0 ? bytesOfWords(0, 1, 4, 5) : bytesOfWords(2, 3, 6, 7), type: r0.type };
}

/** A scalar copy of a body, its loop variable replaced and its locals renamed. */
export function scalarCopy(body: Stmt, map: ReadonlyMap<Axis, Expr>, fresh: Fresh): Stmt {
  const names = new Map<string, string>();
  const memo = new Map<Expr, Expr>();
  const change = (e: Expr): Expr => mapExpr(e, (x) => (x.kind === "axis" ? map.get(x.axis) ?? x : x.kind === "local" ? local(names.get(x.name) ?? x.name, x.type) : x), memo);
  const walk = (s: Stmt): Stmt => {
    switch (s.kind) {
      case "block": return block(...s.body.map(walk));
      case "for": { const begin = change(s.begin), end = change(s.end); return loop(s.axis, begin, end, s.step, walk(s.body), s.mode); }
      case "if": return { kind: "if", condition: change(s.condition), then: walk(s.then), ...(s.else ? { else: walk(s.else) } : {}) };
      case "let": {
        const value = change(s.value), name = fresh(s.name);
        names.set(s.name, name);
        memo.clear();
        return { kind: "let", name, value };
      }
      case "assign": case "accumulate": return { ...s, name: names.get(s.name) ?? s.name, value: change(s.value) };
      case "store": return { ...s, indices: s.indices.map(change), value: change(s.value) };
      case "storeAt": return { ...s, pointer: change(s.pointer), value: change(s.value) };
      case "split": return { ...s, body: walk(s.body) };
    }
  };
  return walk(body);
}
