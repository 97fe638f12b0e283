/**
 * What attention's tiles read: queries as lanes, keys as rows, values as panels. Operands are read where they lie if their
 * elements lie together as the tiles want them; others are copied or computed once a head into working memory.
 */
import { byteSize } from "../../core/dtype.ts";
import { dimRange, isSymbolic, type Dim } from "../../core/dim.ts";
import { binary, constant, f32x4, i32, mul, type Axis, type Buffer, type Expr } from "../../kernel/expr.ts";
import type { Stmt } from "../../kernel/stmt.ts";
import type { AttentionStructure } from "../../kernel/structure.ts";
import { visitExpr } from "../../kernel/traverse.ts";
import { affineAccess, bytesAlong, plus, substituteAxes, times, toIndex } from "../loops/affine.ts";
import { addressOf, loadAt, storeAt, type KernelBuilder } from "../builder.ts";
import { emitFill } from "../fill.ts";
import { emitInterleave, isDistance } from "../loops/runs.ts";
import type { ARows } from "./tile.ts";

/** Queries and keys that a block of scores holds: with four dims of their values it fits in a first-level cache. */
export const attentionBlock = { queries: 8, keys: 512 } as const;

const { queries: lanes } = attentionBlock;

/** Rows of one operand: a float32 matrix over an outer and an inner axis, read in place or gathered. */
export interface Operand { readonly pointer: Expr; readonly rowBytes: Dim; readonly stepBytes: Dim }

export function inPlace(b: KernelBuilder, into: Stmt[], e: Expr, rows: Axis, steps: Axis, positions: ReadonlyMap<Axis, Expr>): Operand | undefined {
  if (e.kind !== "load" || e.buffer.dtype !== "float32") return undefined;
  const access = affineAccess(e.buffer, e.indices.map((x) => substituteAxes(x, positions)), new Set([rows, steps]), b.layout(e.buffer));
  return access && { pointer: b.let(into, "operand", access.base), rowBytes: bytesAlong(access, rows), stepBytes: bytesAlong(access, steps) };
}

/** Evaluates `count` rows of an operand from `first` on into scratch, contiguous along `along`. */
export function gathered(b: KernelBuilder, into: Stmt[], e: Expr, rows: Axis, along: Axis, first: Expr, count: Expr, buffer: Buffer, positions: ReadonlyMap<Axis, Expr>): Operand {
  const start = b.let(into, "gathered", addressOf(buffer));
  const width = Number(along.extent);
  b.loop(into, "i", 0, count, 1, rows.extent, (i, body) =>
    emitFill(b, body, { to: b.let(body, "to", plus(start, times(i, width * 4))), dtype: "float32", value: e, along, count: width, positions: new Map([...positions, [rows, b.let(body, "row", plus(first, i))]]) }));
  return { pointer: start, rowBytes: width * 4, stepBytes: 4 };
}

export interface QueryLanes {
  readonly to: Expr;
  readonly first: Expr;
  /** What they are multiplied by. */
  readonly scale?: number | undefined;
  readonly positions: ReadonlyMap<Axis, Expr>;
}

/** to[dim][query], for the queries from `first` on. Where dims lie together, and where they are computed from such, they are read along them. */
export function queryLanes(b: KernelBuilder, into: Stmt[], s: AttentionStructure, { to, first, scale, positions }: QueryLanes): void {
  const depth = Number(s.dim.extent), scaled = (e: Expr): Expr => (scale === undefined ? e : mul(e, constant(scale, e.type)));
  if (alongLanes(b, s.q, s, positions) || depth < 4) {
    b.loop(into, "d", 0, constant(depth, i32), 1, depth, (d, inner) =>
      emitFill(b, inner, { to: b.let(inner, "to", plus(to, times(d, lanes * 4))), dtype: "float32", value: scaled(s.q), along: s.query, from: first, count: lanes, positions: new Map([...positions, [s.dim, d]]) }));
    return;
  }
  const q = inPlace(b, into, s.q, s.query, s.dim, positions);
  const rows = q && isDistance(q.stepBytes, 4) ? { ...q, pointer: b.let(into, "from", plus(q.pointer, times(first, toIndex(q.rowBytes)))) }
    : gathered(b, into, s.q, s.query, s.dim, first, constant(lanes, i32), b.temporary("query_rows", "float32", [lanes, depth]), positions);
  emitInterleave(b, into, rows.pointer, to, depth, lanes, rows.rowBytes, scaled);
}

/** Whether what is computed for queries and dims is read from elements that lie together along the queries. */
function alongLanes(b: KernelBuilder, e: Expr, s: AttentionStructure, positions: ReadonlyMap<Axis, Expr>): boolean {
  let found = false;
  visitExpr(e, (x) => {
    if (x.kind !== "load") return;
    const access = affineAccess(x.buffer, x.indices.map((i) => substituteAxes(i, positions)), new Set([s.query, s.dim]), b.layout(x.buffer));
    found ||= access !== undefined && isDistance(bytesAlong(access, s.query), byteSize(x.buffer.dtype)) && !isDistance(bytesAlong(access, s.dim), byteSize(x.buffer.dtype));
  });
  return found;
}

/** Keys as rows: where they lie if each is contiguous, else copied or computed once a head, as blocks of them are read for every block of queries. */
export function keyRows(b: KernelBuilder, into: Stmt[], s: AttentionStructure, positions: ReadonlyMap<Axis, Expr>): Operand {
  const depth = Number(s.dim.extent), k = inPlace(b, into, s.k, s.key, s.dim, positions);
  const copy = (): Buffer => b.temporary("keys", "float32", [s.key.extent, depth]);
  if (!k) return gathered(b, into, s.k, s.key, s.dim, constant(0, i32), toIndex(s.key.extent), copy(), positions);
  if (!isDistance(k.rowBytes, 4) || isDistance(k.stepBytes, 4) || depth === 1) return k;
  const start = b.let(into, "keys", addressOf(copy()));
  emitInterleave(b, into, k.pointer, start, toIndex(s.key.extent), depth, k.stepBytes);
  return { pointer: start, rowBytes: depth * 4, stepBytes: 4 };
}

/** Value dims `first` … of the keys from `key` on, as rows of a tile. */
export type ValueRows = (into: Stmt[], first: Expr, count: number, key: Expr) => ARows;

/** Blocks of queries that repay a copy of the values. */
const repaying = 2;

/**
 * Values, whose dims are rows: where they lie, or in panels [four dims][key][4], copied once a head. A tile of four dims
 * passes over a block of keys; in place it would touch a line of the cache for each of them, at a distance that is often a
 * power of two, so that the next tile finds none of these lines any more.
 */
export function valuePanels(b: KernelBuilder, into: Stmt[], s: AttentionStructure, positions: ReadonlyMap<Axis, Expr>): ValueRows {
  const width = Number(s.valueDim.extent), keys = toIndex(s.key.extent);
  const v = inPlace(b, into, s.v, s.valueDim, s.key, positions)
    ?? columnsOf(gathered(b, into, s.v, s.key, s.valueDim, constant(0, i32), keys, b.temporary("values", "float32", [s.key.extent, width]), positions));
  const inRows: ValueRows = (_, first, count, key) => rowsFrom({ ...v, pointer: plus(v.pointer, times(key, toIndex(v.stepBytes))) }, first, count);
  const { upper } = dimRange(s.query.extent);
  if (!isDistance(v.rowBytes, 4) || width < 4 || upper < repaying * lanes) return inRows;
  const panels = b.let(into, "panels", addressOf(b.temporary("panels", "float32", [width >> 2, s.key.extent, 4])));
  const panelBytes = b.letIndex(into, "panelBytes", times(keys, 16));
  b.loop(into, "e", 0, constant(width >> 2, i32), 1, width, (e, body) => {
    const from = b.let(body, "from", plus(v.pointer, times(e, 16))), to = b.let(body, "to", plus(panels, mul(e, panelBytes)));
    b.loop(body, "i", 0, keys, 1, s.key.extent, (i, inner) => inner.push(storeAt(plus(to, times(i, 16)), 0, "float32", loadAt(plus(from, times(i, toIndex(v.stepBytes))), 0, "float32", f32x4))));
  });
  return (body, first, count, key) => {
    if (count < 4 && width % 4 > 0) return inRows(body, first, count, key);
    const panel = mul(binary("shr", first, constant(2, i32)), panelBytes);
    return { pointers: [plus(plus(panels, panel), times(key, 16))], rowBytes: 4, stepBytes: 16 };
  };
}

const columnsOf = (o: Operand): Operand => ({ pointer: o.pointer, rowBytes: o.stepBytes, stepBytes: o.rowBytes });

export function rowsFrom(o: Operand, first: Expr, count: number): ARows {
  const start = plus(o.pointer, times(first, toIndex(o.rowBytes)));
  if (!isSymbolic(o.rowBytes)) return { pointers: [start], rowBytes: o.rowBytes, stepBytes: o.stepBytes };
  return { pointers: Array.from({ length: count }, (_, i) => plus(start, times(constant(i, i32), toIndex(o.rowBytes)))), stepBytes: o.stepBytes };
}
