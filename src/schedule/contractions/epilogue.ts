/**
 * Stores a register tile: applies a structure's epilogue (bias, activation, residual, requantisation …) to accumulators
 * while they are in registers. Rows of the tile run along one or several collapsed axes, columns along one axis, whose
 * neighbours are the lanes. Cheap epilogues are unrolled over the tile; costly ones loop over a copy of the tile, so
 * that code stays small.
 */
import { present } from "../../core/assert.ts";
import { dimEqual, dimMul, type Dim } from "../../core/dim.ts";
import { byteSize, type DType } from "../../core/dtype.ts";
import { add, axisOf, binary, constant, i32, type Axis, type Buffer, type Expr, type Type } from "../../kernel/expr.ts";
import type { Layout } from "../../kernel/kernel.ts";
import type { Stmt } from "../../kernel/stmt.ts";
import type { EpilogueStore } from "../../kernel/structure.ts";
import { operandsOf, visitExpr } from "../../kernel/traverse.ts";
import { affineAccess, bytesAlong, mentions, plus, substituteAxes, times, toIndex, type AffineAccess } from "../loops/affine.ts";
import { addressOf, loadAt, storeAt, type KernelBuilder } from "../builder.ts";
import { ElementExpression, moved, operationCost, type LanePointer, type LanePosition } from "../loops/lanes.ts";
import { rowValues } from "../loops/rows.ts";
import { transposedRow } from "../loops/vectorize.ts";
import { laneOf, type Accumulators } from "./tile.ts";

type Load = Extract<Expr, { kind: "load" }>;

export interface EpilogueSpec {
  readonly stores: readonly EpilogueStore[];
  readonly accumulator: string;
  /** Accumulators of further products, whose sums lie in memory when the epilogue runs. */
  readonly others?: readonly string[];
  /** The tile's rows run along these, outermost first; several only where `collapsible` holds. */
  readonly rows: readonly Axis[];
  readonly column: Axis;
  /** What the structure's other axes stand for: expressions over values bound outside, `rows` and `column`. */
  readonly positions: ReadonlyMap<Axis, Expr>;
  /** Stores that go to memory instead of to their buffer's indices: the address of row 0, column 0; columns are consecutive unless said. */
  readonly destinations?: ReadonlyMap<EpilogueStore, Destination>;
  /** Told of every vector of four that a tile stores, by its number in the row, where the epilogue is `inVectors`. */
  readonly stored?: (into: Stmt[], vector: number, value: Expr) => void;
}

export interface Destination { readonly address: Expr; readonly rowBytes: Dim; readonly columnBytes?: number }

export interface TileStore {
  /** Collapsed row and column of the tile's first element. */
  readonly row: Expr;
  readonly column: Expr;
  /** Columns that exist, also when only running tells; accumulators past them are dropped. */
  readonly columns: number | Expr;
  readonly accumulators: Accumulators;
  /** Where the tiles of the other accumulators lie, row by row. */
  readonly others?: readonly Expr[];
}

/** Unrolling a tile's epilogue beyond this many operations a vector costs more code than looping costs time. */
const unrolledCost = 12;
/** Costly epilogues are unrolled over so many columns of a row. */
const unrolledColumns = 8;

/** Every load and store of an epilogue. */
function epilogueAccesses(stores: readonly EpilogueStore[]): { readonly key: Load | EpilogueStore; readonly buffer: Buffer; readonly indices: readonly Expr[] }[] {
  const out: { key: Load | EpilogueStore; buffer: Buffer; indices: readonly Expr[] }[] = [];
  const seen = new Set<Expr>();
  for (const s of stores) {
    out.push({ key: s, buffer: s.buffer, indices: s.indices });
    visitExpr(s.value, (e) => { if (e.kind === "load") out.push({ key: e, buffer: e.buffer, indices: e.indices }); }, seen);
  }
  return out;
}

/** True when an access moves along `outer` as if `inner` went on counting past its extent. */
export const collapses = (access: AffineAccess, outer: Axis, inner: Axis): boolean =>
  dimEqual(bytesAlong(access, outer), dimMul(bytesAlong(access, inner), inner.extent));

/**
 * How many trailing axes of `axes` may run as one loop: every access of the epilogue, and those of `also`, must move by
 * a constant along the collapsed axis. At least 1.
 */
export function collapsibleAxes(axes: readonly Axis[], column: Axis, stores: readonly EpilogueStore[], layout: (b: Buffer) => Layout, also: readonly AffineAccess[]): number {
  const all = new Set([...axes, column]);
  const accesses = [...also];
  for (const s of epilogueAccesses(stores)) {
    const access = affineAccess(s.buffer, s.indices, all, layout(s.buffer));
    if (!access) return 1;
    accesses.push(access);
  }
  const rowsInValue = new Set(axes);
  if (stores.some((s) => usesAxisAsValue(s.value, rowsInValue))) return 1;
  let count = 1;
  while (count < axes.length) {
    const inner = present(axes[axes.length - count], "axis"), outer = present(axes[axes.length - count - 1], "axis");
    // Collapsing outer·inner·rest: inner must already move as the product of what is inside it.
    if (!accesses.every((a) => outer.extent === 1 || collapses(a, outer, inner))) break;
    count++;
  }
  return count;
}

/** True when an axis is computed with, other than to index a load. What is used many times is looked at once. */
function usesAxisAsValue(e: Expr, axes: ReadonlySet<Axis>, seen: Set<Expr> = new Set()): boolean {
  if (seen.has(e)) return false;
  seen.add(e);
  if (e.kind === "load") return e.indices.some((x) => mentions(x, axes) && hasLoad(x));
  if (e.kind === "axis") return axes.has(e.axis);
  return operandsOf(e).some((c) => usesAxisAsValue(c, axes, seen));
}
function hasLoad(e: Expr): boolean {
  let found = false;
  visitExpr(e, (x) => { if (x.kind === "load") found = true; });
  return found;
}

/** Operations a vector of an epilogue takes, roughly. */
const costOf = (stores: readonly EpilogueStore[]): number => stores.reduce((n, s) => n + operationCost(s.value), 0);
/** Costly epilogues are not unrolled over a tile. */
export const isCostly = (stores: readonly EpilogueStore[]): boolean => costOf(stores) > unrolledCost;
/** Beyond this many operations, a turn of a loop takes one vector. */
const mostRepeated = 100;

/** A vector (or a single scalar) of a row. */
interface Element {
  readonly column: Expr;
  /** One of each accumulator. */
  readonly sums: readonly Expr[];
  /** Lanes that exist. */
  readonly valid: number;
  /** Which vector of the tile's row it is. */
  readonly vector?: number;
  readonly pointer: (key: Load | EpilogueStore) => LanePointer | undefined;
  /** Takes a vector instead of its being stored. */
  readonly take?: (store: EpilogueStore, value: Expr) => boolean;
}

interface Access { readonly key: Load | EpilogueStore; readonly base: Expr; readonly rowBytes: Dim; readonly columnBytes: Dim }

export class Epilogue {
  private readonly b: KernelBuilder;
  readonly spec: EpilogueSpec;
  private readonly values: readonly { readonly store: EpilogueStore; readonly expression: ElementExpression }[];
  private readonly accumulators: readonly string[];
  private accesses: readonly Access[] = [];
  private readonly varying = new Map<Expr, boolean>();
  /** Whether unrolling this over a tile would cost more code than looping costs time. */
  readonly costly: boolean;
  private readonly cost: number;
  private tileCopy: Buffer | undefined;

  constructor(b: KernelBuilder, spec: EpilogueSpec) {
    this.b = b;
    this.spec = spec;
    this.values = spec.stores.map((store) => ({ store, expression: new ElementExpression(store.value) }));
    this.accumulators = [spec.accumulator, ...(spec.others ?? [])];
    this.cost = costOf(spec.stores);
    this.costly = isCostly(spec.stores);
  }

  /** Whether tiles of whole vectors, no wider than `unrolledColumns`, are stored by vectors. */
  get inVectors(): boolean {
    return this.values.every(({ store, expression }) => this.spec.destinations?.has(store) === true && expression.vectorisable(expression.value) && expression.value.type.scalar !== "bool");
  }

  /** Declares the addresses that rows and columns start from. Everything outside the tile's axes must be bound here. */
  begin(into: Stmt[]): void {
    const { rows, column, positions, stores } = this.spec;
    const axes = new Set([...rows, column]);
    const innermost = present(rows[rows.length - 1], "row axis");
    const accesses: Access[] = [];
    for (const { key, buffer, indices } of epilogueAccesses(stores)) {
      const to = "value" in key && "buffer" in key ? this.spec.destinations?.get(key) : undefined;
      if (to) {
        accesses.push({ key, base: this.b.letIndex(into, "base", to.address), rowBytes: to.rowBytes, columnBytes: to.columnBytes ?? byteSize(buffer.dtype) });
        continue;
      }
      const access = affineAccess(buffer, indices.map((e) => substituteAxes(e, positions)), axes, this.b.layout(buffer));
      if (!access) continue;
      accesses.push({ key, base: this.b.let(into, "base", access.base), rowBytes: bytesAlong(access, innermost), columnBytes: bytesAlong(access, column) });
    }
    this.accesses = accesses;
  }

  /** Applies the epilogue to a tile and stores it. `begin` must have run in an enclosing block. */
  store(into: Stmt[], tile: TileStore): void {
    const lanes = tile.accumulators[0]?.[0]?.type.lanes === 4 ? 4 : 1;
    const { columns } = tile;
    if (typeof columns !== "number" || (this.costly && lanes === 4 && (tile.accumulators.length > 1 || (tile.accumulators[0]?.length ?? 0) > 1))) return this.storeLooped(into, tile);
    const pointers = this.accesses.map((a) => ({ ...a, pointer: this.b.letIndex(into, "p", plus(plus(a.base, times(tile.row, toIndex(a.rowBytes))), times(tile.column, toIndex(a.columnBytes)))) }));
    const across = new Map(tile.accumulators.length === 4 ? pointers.filter(isAcross).map((a) => [a.key, { to: a, columns: new Map<number, Expr[]>() }]) : []);
    tile.accumulators.forEach((row, i) => {
      const rowPointers = new Map(pointers.map((a) => [a.key, { access: a, at: this.settled(into, moved({ pointer: a.pointer, offset: 0, laneBytes: a.columnBytes }, a.rowBytes, i)) }]));
      row.forEach((acc, j) => {
        const valid = Math.min(lanes, columns - j * lanes);
        const at = (key: Load | EpilogueStore): LanePointer | undefined => {
          const p = rowPointers.get(key);
          return p && moved(p.at, p.access.columnBytes, j * lanes);
        };
        const width = row.length * lanes, others = (tile.others ?? []).map((from) => this.b.let(into, "other", loadAt(from, (i * width + j * lanes) * 4, dtypeOf(acc.type), acc.type)));
        const take = (store: EpilogueStore, value: Expr): boolean => {
          const taken = across.get(store)?.columns;
          taken?.set(j, [...(taken.get(j) ?? []), value.kind === "local" ? value : this.b.let(into, "v", value)]);
          return taken !== undefined;
        };
        this.elements(into, plus(tile.row, i), [{ column: plus(tile.column, j * lanes), sums: [acc, ...others], valid, vector: j, pointer: at, take }]);
      });
    });
    for (const { to, columns: taken } of across.values()) for (const [j, rows] of taken) this.storeAcross(into, to, j * 4, rows);
  }

  /** Four rows' vectors of the columns from `column` on, where rows lie one after the other: a vector of rows for each column. */
  private storeAcross(into: Stmt[], { key, pointer, columnBytes }: Access & { readonly pointer: Expr }, column: number, rows: readonly Expr[]): void {
    for (let c = 0; c < 4; c++) {
      const to = moved({ pointer, offset: 0, laneBytes: columnBytes }, columnBytes, column + c);
      into.push(storeAt(to.pointer, to.offset, bufferOf(key).dtype, transposedRow(rows, c)));
    }
  }

  /** The tile goes to memory, and a loop applies the epilogue vector by vector. */
  private storeLooped(into: Stmt[], tile: TileStore): void {
    const width = (tile.accumulators[0]?.length ?? 0) * 4;
    const type = present(tile.accumulators[0]?.[0], "accumulator").type;
    const dtype = dtypeOf(type);
    const copy = (this.tileCopy ??= this.b.temporary("tile", dtype, [maxTile]));
    const start = this.b.let(into, "tile", addressOf(copy));
    tile.accumulators.forEach((row, i) => row.forEach((acc, j) => into.push(storeAt(start, (i * width + j * 4) * 4, dtype, acc))));
    const columns = toIndex(tile.columns);
    const whole = columns.kind === "const" ? constant(Math.floor(Number(columns.value) / 4) * 4, i32) : this.b.let(into, "whole", binary("and", columns, constant(-4, i32)));
    this.b.loop(into, "i", 0, constant(tile.accumulators.length, i32), 1, tile.accumulators.length, (i, body) => {
      const row = this.b.let(body, "row", plus(tile.row, i));
      const from = [start, ...(tile.others ?? [])].map((at) => this.b.let(body, "from", add(at, times(i, width * 4))));
      if (typeof tile.columns === "number" && tile.columns <= unrolledColumns) return this.storeVectors(body, row, tile.column, tile.columns, from, dtype, type);
      this.columns(body, row, tile.column, whole, columns, width, this.sumsAt(from, dtype));
    });
  }

  /** A row of few columns, whose accumulators lie at `from`: its vectors one after the other, which overlap better than a loop. */
  private storeVectors(into: Stmt[], row: Expr, column: Expr, columns: number, from: readonly Expr[], dtype: DType, type: Type): void {
    const starts = new Map(this.accesses.map((a) => [a.key, { laneBytes: a.columnBytes, offset: 0, pointer: this.b.letIndex(into, "p", plus(plus(a.base, times(row, toIndex(a.rowBytes))), times(column, toIndex(a.columnBytes)))) }]));
    const vectors = Array.from({ length: Math.ceil(columns / 4) }, (_, v): Element => ({
      column: plus(column, v * 4), valid: Math.min(4, columns - v * 4), vector: v, sums: from.map((at) => this.b.let(into, "acc", loadAt(at, v * 16, dtype, type))),
      pointer: (key) => { const p = starts.get(key); return p && moved(p, p.laneBytes, v * 4); },
    }));
    this.elements(into, row, vectors);
  }

  /** The sums of a vector or an element of a row, each accumulator's one after the other at its own address. */
  private sumsAt(from: readonly Expr[], dtype: DType): (into: Stmt[], j: Expr, lanes: 1 | 4) => readonly Expr[] {
    const scalar = dtype === "float32" ? "f32" : "i32";
    return (into, j, lanes) => from.map((at) => this.b.let(into, "acc", loadAt(plus(at, times(j, 4)), 0, dtype, { scalar, lanes })));
  }

  /** Applies the epilogue to `count` columns of a row whose accumulators lie one after the other at `from`, those of other products at `others`. */
  storeRow(into: Stmt[], row: Expr, from: Expr, dtype: DType, count: number, others: readonly Expr[] = []): void {
    this.columns(into, row, constant(0, i32), constant(count - (count % 4), i32), constant(count, i32), count, this.sumsAt([from, ...others], dtype));
  }

  /** Applies the epilogue to the `count` columns of a row from `column` on, whose accumulators lie one after the other at `from`. */
  storeColumns(into: Stmt[], row: Expr, column: Expr, from: Expr, dtype: DType, count: Expr, extent: Dim): void {
    this.columns(into, row, column, this.b.let(into, "whole", binary("and", count, constant(-4, i32))), count, extent, this.sumsAt([from], dtype));
  }

  /** Whether rows of `columns` columns follow each other in all that is read and written, so that several may run as one. */
  rowsFollow(columns: number): boolean {
    const { rows, column, positions, stores } = this.spec;
    const own = new Set([...rows, column]);
    const bound = new Set([...own, ...[...positions].filter(([, e]) => mentions(e, own)).map(([axis]) => axis)]);
    return this.accesses.length === epilogueAccesses(stores).length && this.values.every(({ expression }) => expression.vectorisable(expression.value)) && !stores.some((s) => usesAxisAsValue(s.value, bound))
      && this.accesses.every((a) => dimEqual(a.rowBytes, dimMul(a.columnBytes, columns)) && (a.columnBytes === 0 || a.columnBytes === byteSize(bufferOf(a.key).dtype)));
  }

  /** Applies the epilogue to `count` elements, a multiple of 4, from the start of `row` on; `rowsFollow` must hold. */
  storeRun(into: Stmt[], row: Expr, from: Expr, dtype: DType, count: Expr, most: Dim, others: readonly Expr[] = []): void {
    this.columns(into, row, constant(0, i32), count, count, most, this.sumsAt([from, ...others], dtype));
  }

  /** Evaluates the stores for columns [begin, end) of a row without an accumulator. `begin()` must have run. */
  fill(into: Stmt[], row: Expr, begin: Expr, count: Expr, extent: Dim): void {
    const whole = count.kind === "const" ? constant(Math.floor(Number(count.value) / 4) * 4, i32) : this.b.let(into, "whole", binary("and", count, constant(-4, i32)));
    this.columns(into, row, begin, whole, count, extent, (_, __, lanes) => [constant(0, { scalar: "f32", lanes })]);
  }

  /** Loops over the columns of a row: vectors up to `whole`, several a turn where they are costly, then single elements up to `count`. */
  private columns(into: Stmt[], row: Expr, column: Expr, whole: Expr, count: Expr, extent: Dim, sums: (into: Stmt[], j: Expr, lanes: 1 | 4) => readonly Expr[]): void {
    const starts = this.accesses.map((a) => ({ ...a, pointer: this.b.letIndex(into, "p", plus(plus(a.base, times(row, toIndex(a.rowBytes))), times(column, toIndex(a.columnBytes)))) }));
    const step = (lanes: 1 | 4, vectors: number, begin: Expr, end: Expr): void => {
      if (begin === end || (begin.kind === "const" && end.kind === "const" && begin.value >= end.value)) return;
      this.b.loop(into, "j", begin, end, lanes * vectors, extent, (j, inner) => {
        const pointers = new Map<Load | EpilogueStore, LanePointer>(starts.map((a) => [a.key, { pointer: this.b.letIndex(inner, "q", plus(a.pointer, times(j, toIndex(a.columnBytes)))), offset: 0, laneBytes: a.columnBytes }]));
        this.elements(inner, row, Array.from({ length: vectors }, (_, v): Element => ({
          column: plus(plus(column, j), v * lanes), sums: sums(inner, plus(j, v * lanes), lanes), valid: lanes,
          pointer: (key) => { const p = pointers.get(key); return p && moved(p, p.laneBytes, v * lanes); },
        })));
      });
    };
    const zero = constant(0, i32), group = 4 * this.turnVectors();
    if (group === 4) step(4, 1, zero, whole);
    else {
      const grouped = whole.kind === "const" ? constant(Number(whole.value) - (Number(whole.value) % group), i32) : this.b.let(into, "grouped", binary("and", whole, constant(-group, i32)));
      step(4, group / 4, zero, grouped);
      step(4, 1, grouped, whole);
    }
    step(1, 1, whole, count);
  }

  /** How many vectors a turn takes: several of a costly epilogue, whose operations then overlap and share the reading of constants. */
  private turnVectors(): number {
    if (!this.costly || this.cost > mostRepeated || !this.values.every(({ expression }) => expression.vectorisable(expression.value))) return 1;
    const reads = this.accesses.length - this.values.length + this.accumulators.length;
    return reads <= 3 ? 4 : reads <= 6 ? 2 : 1;
  }

  /** Vectors (or single scalars) of each accumulator. All values of a store stand before all its stores: engines let no load pass a store. */
  private elements(into: Stmt[], row: Expr, all: readonly Element[]): void {
    const at = rowValues(this.spec.rows, row);
    const ready = all.map((e) => ({ ...e, position: this.position(into, at, e), lanes: present(e.sums[0], "accumulator").type.lanes }));
    for (const { store, expression } of this.values) {
      const vectors: { readonly to: LanePointer; readonly value: Expr; readonly vector: number | undefined; readonly take: Element["take"] }[] = [];
      for (const { column, valid, pointer, position, lanes, vector: number, take } of ready) {
        const to = pointer(store);
        const vector = lanes === 4 && valid === 4 && to !== undefined && expression.vectorisable(expression.value) && expression.value.type.scalar !== "bool";
        if (vector) {
          const value = expression.build(this.b, position, 4);
          vectors.push({ to, value: all.length > 1 || this.spec.stored ? this.b.let(into, "v", value) : value, vector: number, take });
        } else for (let lane = 0; lane < valid; lane++) {
          const value = expression.build(this.b, position, 1, lane);
          if (!to) into.push({ kind: "store", buffer: store.buffer, indices: store.indices.map((e) => substituteAxes(e, this.axisMap(at, plus(column, lane)))), value });
          else { const p = moved(to, to.laneBytes, lane); into.push(storeAt(p.pointer, p.offset, store.buffer.dtype, value)); }
        }
      }
      for (const { to, value, vector, take } of vectors) {
        if (vector !== undefined) this.spec.stored?.(into, vector, value);
        if (!take?.(store, value)) this.storeVector(into, store, to, value);
      }
    }
  }

  private position(into: Stmt[], at: ReadonlyMap<Axis, Expr>, { column, sums, pointer }: Element): LanePosition {
    return {
      into,
      pointer,
      axis: (axis, lane) => this.axisMap(at, plus(column, lane)).get(axis),
      local: (name, wanted, lane) => {
        const sum = sums[this.accumulators.indexOf(name)];
        return sum && (wanted === 4 ? sum : laneOf(sum, lane));
      },
      varies: (e) => this.varies(e),
    };
  }

  private storeVector(into: Stmt[], store: EpilogueStore, at: LanePointer, value: Expr): void {
    const { dtype } = store.buffer;
    if (at.laneBytes === byteSize(dtype)) { into.push(storeAt(at.pointer, at.offset, dtype, value)); return; }
    const v = this.b.let(into, "v", value);
    for (let lane = 0; lane < 4; lane++) {
      const to = moved(at, at.laneBytes, lane);
      into.push(storeAt(to.pointer, to.offset, dtype, laneOf(v, lane)));
    }
  }

  /** A pointer expression used several times becomes a local. */
  private settled(into: Stmt[], p: LanePointer): LanePointer {
    return { ...p, pointer: this.b.letIndex(into, "p", p.pointer) };
  }

  private axisMap(rows: ReadonlyMap<Axis, Expr>, column: Expr): Map<Axis, Expr> {
    const inner = new Map<Axis, Expr>([...rows, [this.spec.column, column]]);
    return new Map([...inner, ...[...this.spec.positions].map(([axis, e]): [Axis, Expr] => [axis, substituteAxes(e, inner)])]);
  }
  private varies(e: Expr): boolean {
    const known = this.varying.get(e);
    if (known !== undefined) return known;
    let result = false;
    if (e.kind === "local") result = this.accumulators.includes(e.name);
    else if (e.kind === "axis") {
      const at = this.spec.positions.get(e.axis) ?? axisOf(e.axis);
      result = mentions(at, new Set([this.spec.column]));
    } else result = operandsOf(e).some((c) => this.varies(c));
    this.varying.set(e, result);
    return result;
  }
}
/** Whether rows are neighbours where this is written and columns are not. */
const isAcross = ({ key, rowBytes, columnBytes }: Access): boolean => "value" in key && byteSize(key.buffer.dtype) === 4 && rowBytes === 4 && columnBytes !== 4;
/** Accumulators a tile has at most. */
export const maxTile = 256;
const dtypeOf = (type: Type): DType => (type.scalar === "f32" ? "float32" : "int32");
const bufferOf = (key: Load | EpilogueStore): Buffer => key.buffer;
