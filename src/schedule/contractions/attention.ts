/**
 * Scaled dot-product attention that never holds the scores: online softmax (Milakov & Gimelshein; Dao et al.,
 * "FlashAttention") over blocks of keys. Eight queries lie in the lanes of two vectors, so that scores of a block are a
 * product keys × queries, the softmax runs vertically, and the weighted values are a product value dims × queries.
 * Fewer than eight queries (decoding) take one row of scores each.
 *
 * A -∞ that is not the maximum of a whole row adds nothing, as in the plain softmax; a row of nothing but -∞ gives NaN,
 * as its weights sum up to 0. Where such rows weigh nothing, the sum of weighted values is 0 already, or NaN where a value
 * is none; where that holds for every row without a softmax, weights that are NaN count in their sum only.
 */
import { assertNever } from "../../core/assert.ts";
import { byteSize } from "../../core/dtype.ts";
import { dimMul, dimProduct, dimRange, isSymbolic, type Dim } from "../../core/dim.ts";
import {
  add, axisOf, binary, constant, eq, f32, f32x4, i32, lt, min, mul, select, splat, sub, type Axis, type Buffer, type Expr,
} from "../../kernel/expr.ts";
import { assign, block, type Stmt } from "../../kernel/stmt.ts";
import type { AttentionStructure, EpilogueStore } from "../../kernel/structure.ts";
import { visitExpr } from "../../kernel/traverse.ts";
import { affineAccess, bytesAlong, plus, substituteAxes, times, toIndex } from "../loops/affine.ts";
import { addressOf, loadAt, storeAt, type KernelBuilder } from "../builder.ts";
import { Epilogue } from "./epilogue.ts";
import { emitFill } from "../fill.ts";
import { emitGemm, type DirectRows, type DotColumns, type GatheredRows, type RowColumns } from "./gemm.ts";
import { emitInterleave, emitZero, isDistance, overRun, transpose4 } from "../loops/runs.ts";
import { accumulate, declareAccumulators, laneOf, type ARows } from "./tile.ts";
import { replaceLocal } from "../loops/lanes.ts";
import { expOfNegativeF32 } from "../legal/math-f32.ts";

/** Queries and keys that a block of scores holds. */
export const attentionBlock = { queries: 8, keys: 256 } as const;

const { queries: lanes, keys: blockKeys } = attentionBlock;
const vectors = lanes / 4;

/** Loops for float32 attention with known depths; undefined otherwise. */
export function scheduleAttention(b: KernelBuilder, s: AttentionStructure): Stmt | undefined {
  if (s.accumulator.type.scalar !== "f32" || isSymbolic(s.dim.extent) || isSymbolic(s.valueDim.extent)) return undefined;
  const body: Stmt[] = [];
  const { lower, upper } = dimRange(s.query.extent);
  const work = dimProduct([s.query.extent, workOfQuery(s)]);
  b.parallel(body, "b", s.batch.extent, 1, dimMul(work, s.head.extent), (batch, perBatch) =>
    b.parallel(perBatch, "h", s.head.extent, 1, work, (head, inner) => {
      const positions = new Map<Axis, Expr>([[s.batch, batch], [s.head, head]]);
      const few: Stmt[] = [], many: Stmt[] = [];
      if (lower < lanes) b.serially(() => fewQueries(b, few, s, positions));
      if (upper >= lanes) manyQueries(b, many, s, positions);
      if (many.length === 0) inner.push(...few);
      else if (few.length === 0) inner.push(...many);
      else inner.push({ kind: "if", condition: lt(toIndex(s.query.extent), lanes), then: block(...few), else: block(...many) });
    }));
  return { kind: "block", body };
}

/** Instructions for a query, roughly. */
const workOfQuery = (s: AttentionStructure): Dim => dimMul(s.key.extent, Math.ceil((Number(s.dim.extent) + Number(s.valueDim.extent)) / 2) + 16);

/** Rows of one operand: a float32 matrix over an outer and an inner axis, read in place or gathered. */
interface Operand { readonly pointer: Expr; readonly rowBytes: Dim; readonly stepBytes: Dim }

function inPlace(b: KernelBuilder, into: Stmt[], e: Expr, rows: Axis, steps: Axis, positions: ReadonlyMap<Axis, Expr>): Operand | undefined {
  if (e.kind !== "load" || e.buffer.dtype !== "float32") return undefined;
  const access = affineAccess(e.buffer, e.indices.map((x) => substituteAxes(x, positions)), new Set([rows, steps]), b.layout(e.buffer));
  return access && { pointer: b.let(into, "operand", access.base), rowBytes: bytesAlong(access, rows), stepBytes: bytesAlong(access, steps) };
}

/** Evaluates `count` rows of an operand from `first` on into scratch, contiguous along `along`. */
function gathered(b: KernelBuilder, into: Stmt[], e: Expr, rows: Axis, along: Axis, first: Expr, count: Expr, buffer: Buffer, positions: ReadonlyMap<Axis, Expr>): Operand {
  const start = b.let(into, "gathered", addressOf(buffer));
  const width = Number(along.extent);
  b.loop(into, "i", 0, count, 1, blockKeys, (i, body) =>
    emitFill(b, body, { to: b.let(body, "to", plus(start, times(i, width * 4))), dtype: "float32", value: e, along, count: width, positions: new Map([...positions, [rows, b.let(body, "row", plus(first, i))]]) }));
  return { pointer: start, rowBytes: width * 4, stepBytes: 4 };
}

function manyQueries(b: KernelBuilder, into: Stmt[], s: AttentionStructure, positions: Map<Axis, Expr>): void {
  const depth = Number(s.dim.extent), width = Number(s.valueDim.extent), rowBytes = lanes * 4;
  const scratch = {
    queries: b.temporary("queries", "float32", [depth, lanes]), scores: b.temporary("scores", "float32", [blockKeys, lanes]),
    sums: b.temporary("sums", "float32", [width, lanes]), rows: b.temporary("rows", "float32", [lanes, width]),
  };
  const total = b.letIndex(into, "queries", toIndex(s.query.extent)), keys = b.letIndex(into, "keys", toIndex(s.key.extent));
  const k = keyRows(b, into, s, positions), v = valuePanels(b, into, s, positions);
  const [q, p, o, rows] = ([["queries", scratch.queries], ["scores", scratch.scores], ["sums", scratch.sums], ["rows", scratch.rows]] as const).map(([name, x]) => b.let(into, name, addressOf(x)));
  if (!q || !p || !o || !rows) return;
  // All keys in one block: nothing comes before it that sums would go on from.
  const single = keys.kind === "const" && Number(keys.value) > 0 && Number(keys.value) <= blockKeys && !s.keysFrom && !s.keysTo;
  b.parallel(into, "s", s.query.extent, lanes, dimMul(workOfQuery(s), lanes), (from, body) => {
    // The last block ends with the last query; what the block before has stored is not stored again.
    const first = b.let(body, "first", min(from, sub(total, lanes)));
    queryLanes(b, body, s, q, first, positions);
    if (!single) emitZero(b, body, o, width * lanes);
    const sink = sinkAt(b, body, s, positions);
    const most = overVectors((i) => b.let(body, `most${i}`, splat(sink ?? constant(-Infinity, f32), 4))), sum = overVectors((i) => b.let(body, `sum${i}`, splat(sink ? constant(1, f32) : emptySum(keys), 4)));
    const at = (e: Expr | undefined, query: Expr): Expr | undefined => e && substituteAxes(e, new Map([...positions, [s.query, query]]));
    const begin = b.letIndex(body, "begin", at(s.keysFrom, first) ?? constant(0, i32)), seenTo = at(s.keysTo, plus(first, lanes - 1));
    const end = seenTo ? b.let(body, "end", min(keys, seenTo)) : keys;
    b.loop(body, "t", begin, end, blockKeys, s.key.extent, (t, inner) => {
      const count = b.let(inner, "count", min(constant(blockKeys, i32), sub(end, t)));
      const kRows: Operand = { ...k, pointer: b.let(inner, "k", plus(k.pointer, times(t, toIndex(k.rowBytes)))) };
      const epilogue = new Epilogue(b, scoreStore(s, positions, { address: plus(plus(p, times(t, -rowBytes)), times(first, -4)), rowBytes }));
      epilogue.begin(inner);
      overRows(b, inner, count, (body4, i, n) => {
        const accumulators = declareAccumulators(b, body4, { kind: "float" }, { rows: n, columns: lanes, lanes: 4 });
        accumulate(b, body4, { kind: "float" }, accumulators, 4, rowsFrom(kRows, i, n), { pointer: q, offsets: offsets(), stepBytes: rowBytes }, constant(depth, i32));
        epilogue.store(body4, { row: plus(t, i), column: first, columns: lanes, accumulators });
      });
      softmaxBlock(b, inner, s, { scores: p, count, most, sum, values: single ? undefined : o, width });
      overRows(b, inner, constant(width, i32), (body4, e, n) => {
        const at = b.let(body4, "o", plus(o, times(e, rowBytes)));
        const accumulators = Array.from({ length: n }, (_, i) => overVectors((j) => b.let(body4, "acc", single ? constant(0, f32x4) : loadAt(at, i * rowBytes + j * 16, "float32", f32x4))));
        accumulate(b, body4, { kind: "float" }, accumulators, 4, v(body4, e, n, t), { pointer: p, offsets: offsets(), stepBytes: rowBytes }, count);
        accumulators.forEach((row, i) => row.forEach((acc, j) => body4.push(storeAt(at, i * rowBytes + j * 16, "float32", acc))));
      });
    });
    normalised(b, body, s, { values: o, sum, rows, width });
    const epilogue = new Epilogue(b, { stores: s.stores, accumulator: s.accumulator.name, rows: [s.query], column: s.valueDim, positions });
    epilogue.begin(body);
    b.loop(body, "i", sub(from, first), constant(lanes, i32), 1, lanes, (i, inner) =>
      epilogue.storeRow(inner, b.let(inner, "row", plus(first, i)), b.let(inner, "from", plus(rows, times(i, width * 4))), "float32", width));
  });
}

/** to[dim][query], for the queries from `first` on. Where dims lie together, and where they are computed from such, they are read along them. */
function queryLanes(b: KernelBuilder, into: Stmt[], s: AttentionStructure, to: Expr, first: Expr, positions: ReadonlyMap<Axis, Expr>): void {
  const depth = Number(s.dim.extent);
  if (alongLanes(b, s.q, s, positions) || depth < 4) {
    b.loop(into, "d", 0, constant(depth, i32), 1, depth, (d, inner) =>
      emitFill(b, inner, { to: b.let(inner, "to", plus(to, times(d, lanes * 4))), dtype: "float32", value: s.q, along: s.query, from: first, count: lanes, positions: new Map([...positions, [s.dim, d]]) }));
    return;
  }
  const q = inPlace(b, into, s.q, s.query, s.dim, positions);
  const rows = q && isDistance(q.stepBytes, 4) ? { ...q, pointer: b.let(into, "from", plus(q.pointer, times(first, toIndex(q.rowBytes)))) }
    : gathered(b, into, s.q, s.query, s.dim, first, constant(lanes, i32), b.temporary("query_rows", "float32", [lanes, depth]), positions);
  emitInterleave(b, into, rows.pointer, to, depth, lanes, rows.rowBytes);
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
function keyRows(b: KernelBuilder, into: Stmt[], s: AttentionStructure, positions: ReadonlyMap<Axis, Expr>): Operand {
  const depth = Number(s.dim.extent), k = inPlace(b, into, s.k, s.key, s.dim, positions);
  const copy = (): Buffer => b.temporary("keys", "float32", [s.key.extent, depth]);
  if (!k) return gathered(b, into, s.k, s.key, s.dim, constant(0, i32), toIndex(s.key.extent), copy(), positions);
  if (!isDistance(k.rowBytes, 4) || isDistance(k.stepBytes, 4) || depth === 1) return k;
  const start = b.let(into, "keys", addressOf(copy()));
  emitInterleave(b, into, k.pointer, start, toIndex(s.key.extent), depth, k.stepBytes);
  return { pointer: start, rowBytes: depth * 4, stepBytes: 4 };
}

/** Value dims `first` … of the keys from `key` on, as rows of a tile. */
type ValueRows = (into: Stmt[], first: Expr, count: number, key: Expr) => ARows;

/** Blocks of queries that repay a copy of the values. */
const repaying = 2;

/**
 * Values, whose dims are rows: where they lie, or in panels [four dims][key][4], copied once a head. A tile of four dims
 * passes over a block of keys; in place it would touch a line of the cache for each of them, at a distance that is often a
 * power of two, so that the next tile finds none of these lines any more.
 */
function valuePanels(b: KernelBuilder, into: Stmt[], s: AttentionStructure, positions: ReadonlyMap<Axis, Expr>): ValueRows {
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

/** The sink of the head at hand. */
const sinkAt = (b: KernelBuilder, into: Stmt[], s: AttentionStructure, positions: ReadonlyMap<Axis, Expr>): Expr | undefined =>
  s.sink && b.let(into, "sink", substituteAxes(s.sink, positions));

/** Without keys there is nothing to divide by: the result is the empty sum, 0. */
const emptySum = (keys: Expr): Expr => (keys.kind === "const" ? constant(keys.value === 0 ? 1 : 0, f32) : select(eq(keys, 0), constant(1, f32), constant(0, f32)));

const overVectors = <T>(f: (i: number) => T): T[] => Array.from({ length: vectors }, (_, i) => f(i));
const offsets = (): number[] => overVectors((i) => i * 16);
const columnsOf = (o: Operand): Operand => ({ pointer: o.pointer, rowBytes: o.stepBytes, stepBytes: o.rowBytes });

/** The score expression as an epilogue that writes to scratch: rows are keys, lanes queries. */
function scoreStore(s: AttentionStructure, positions: ReadonlyMap<Axis, Expr>, destination: { readonly address: Expr; readonly rowBytes: Dim }) {
  const store: EpilogueStore = { buffer: { name: "scores", dtype: "float32", shape: [] }, indices: [], value: s.score };
  return { stores: [store], accumulator: s.dot.name, rows: [s.key], column: s.query, positions, destinations: new Map([[store, destination]]) };
}

function rowsFrom(o: Operand, first: Expr, count: number): ARows {
  const start = plus(o.pointer, times(first, toIndex(o.rowBytes)));
  if (!isSymbolic(o.rowBytes)) return { pointers: [start], rowBytes: o.rowBytes, stepBytes: o.stepBytes };
  return { pointers: Array.from({ length: count }, (_, i) => plus(start, times(constant(i, i32), toIndex(o.rowBytes)))), stepBytes: o.stepBytes };
}

/** Rows in tiles of 4, then what is left: one by one where only running tells how many. */
function overRows(b: KernelBuilder, into: Stmt[], count: Expr, body: (into: Stmt[], first: Expr, rows: number) => void): void {
  const known = count.kind === "const" ? Number(count.value) : undefined;
  const whole = known === undefined ? b.let(into, "whole", binary("and", count, constant(-4, i32))) : constant(known & -4, i32);
  if (known === undefined || known >= 4) b.loop(into, "r", 0, whole, 4, blockKeys, (i, inner) => body(inner, i, 4));
  if (known === undefined) b.loop(into, "r", whole, count, 1, blockKeys, (i, inner) => body(inner, i, 1));
  else if (known % 4 > 0) body(into, whole, known % 4);
}

/** Turns a block of scores into weights relative to the new maximum, and brings sums and values so far to that maximum. */
function softmaxBlock(b: KernelBuilder, into: Stmt[], s: AttentionStructure, { scores, count, most, sum, values, width }: ScoreBlock): void {
  const now = most.map((m) => b.let(into, "now", m));
  const rowBytes = lanes * 4;
  const end = b.let(into, "end", plus(scores, times(count, rowBytes))), pairs = b.let(into, "pairs", plus(scores, times(binary("and", count, constant(-2, i32)), rowBytes)));
  // Two keys a turn: vectors enough for operations not to wait for each other, as long as all loads stand before all stores.
  const each = (visit: (offsets: readonly number[], p: Expr, body: Stmt[]) => void): void => {
    const over = (begin: Expr, end: Expr, offsets: readonly number[]): void => {
      const axis: Axis = { name: b.name("p"), extent: 2 ** 31 - 1 };
      const body: Stmt[] = [];
      visit(offsets, axisOf(axis), body);
      into.push({ kind: "for", axis, begin, end, step: offsets.length * rowBytes, mode: "serial", body: block(...body) });
    };
    over(scores, pairs, [0, rowBytes]);
    over(pairs, end, [0]);
  };
  each((offsets, p, body) => offsets.forEach((offset) => now.forEach((m, i) => set(body, m, larger(m, loadAt(p, offset + i * 16, "float32", f32x4))))));
  const base = now.map((m) => b.let(into, "base", select(binary("eq", m, constant(-Infinity, f32x4)), constant(0, f32x4), m)));
  const scale = most.map((m, i) => b.let(into, "scale", expOfNegativeF32(sub(m, base[i] ?? m))));
  sum.forEach((x, i) => set(into, x, mul(x, scale[i] ?? x)));
  most.forEach((m, i) => set(into, m, now[i] ?? m));
  each((offsets, p, body) => {
    const weights = offsets.flatMap((offset) => base.map((m, i) => ({ at: offset + i * 16, i, value: b.let(body, "weight", expOfNegativeF32(sub(loadAt(p, offset + i * 16, "float32", f32x4), m))) })));
    for (const { at, i, value } of weights) {
      body.push(storeAt(p, at, "float32", weighed(s, value)));
      const total = sum[i];
      if (total) set(body, total, add(total, value));
    }
  });
  if (values) b.loop(into, "e", 0, constant(width * lanes * 4, i32), lanes * 4, width * lanes * 4, (e, body) => {
    const at = b.let(body, "at", plus(values, e));
    scale.forEach((x, i) => body.push(storeAt(at, i * 16, "float32", mul(loadAt(at, i * 16, "float32", f32x4), weighed(s, x)))));
  });
}
interface ScoreBlock { readonly scores: Expr; readonly count: Expr; readonly most: readonly Expr[]; readonly sum: readonly Expr[]; readonly values: Expr | undefined; readonly width: number }

/** A weight as it is met by values: 0 for NaN where rows without a softmax weigh nothing. */
const weighed = (s: AttentionStructure, weight: Expr): Expr => (s.emptyRows === "undefined" ? binary("pmax", zeroLike(weight), weight) : weight);
const zeroLike = (e: Expr): Expr => constant(0, e.type);
/** The weighted values over the sum of weights, which is 0 or NaN for rows that weigh nothing. */
function quotientOf(s: AttentionStructure, values: Expr, total: Expr): Expr {
  const plain = binary("div", values, total), nothing = mul(values, zeroLike(values));
  switch (s.emptyRows) {
    case undefined: return plain;
    case "hidden": return select(binary("eq", total, zeroLike(total)), nothing, plain);
    case "undefined": return select(binary("gt", total, zeroLike(total)), plain, nothing);
    default: return assertNever(s.emptyRows);
  }
}
/** The larger one; a NaN score is passed over, and met when it is weighed. */
const larger = (a: Expr, b: Expr): Expr => binary("pmax", a, b);
function set(into: Stmt[], target: Expr, value: Expr): void {
  if (target.kind === "local") into.push(assign(target.name, value));
}

/** rows[query][e] = values[e][query] / sum[query]. */
function normalised(b: KernelBuilder, into: Stmt[], s: AttentionStructure, { values, sum, rows, width }: Pick<ScoreBlock, "sum" | "width"> & { readonly values: Expr; readonly rows: Expr }): void {
  const whole = width - (width % 4);
  const quotient = (body: Stmt[], at: Expr, offset: number, i: number): Expr => quotientOf(s, b.let(body, "values", loadAt(at, offset + i * 16, "float32", f32x4)), sum[i] ?? at);
  if (whole > 0) b.loop(into, "e", 0, constant(whole, i32), 4, width, (e, body) => {
    const from = b.let(body, "from", plus(values, times(e, lanes * 4))), to = b.let(body, "to", plus(rows, times(e, 4)));
    sum.forEach((_, i) => {
      const tile = [0, 1, 2, 3].map((r) => b.let(body, "v", quotient(body, from, r * lanes * 4, i)));
      transpose4(b, body, tile).forEach((v, r) => body.push(storeAt(to, (i * 4 + r) * width * 4, "float32", v)));
    });
  });
  for (let e = whole; e < width; e++) sum.forEach((_, i) => {
    const v = b.let(into, "v", quotient(into, values, e * lanes * 4, i));
    for (let r = 0; r < 4; r++) into.push(storeAt(rows, ((i * 4 + r) * width + e) * 4, "float32", laneOf(v, r)));
  });
}

/** At most 7 queries: a row of scores each, softmax over it, and its product with the values. */
function fewQueries(b: KernelBuilder, into: Stmt[], s: AttentionStructure, positions: Map<Axis, Expr>): void {
  const depth = Number(s.dim.extent);
  const keys = s.key.extent, count = b.letIndex(into, "keys", toIndex(keys));
  const scores = b.temporary("row", "float32", [keys]);
  const row = b.let(into, "row", addressOf(scores));
  const k = keyColumns(b, into, s, positions), v = valueColumns(b, into, s, positions);
  b.loop(into, "s", 0, toIndex(s.query.extent), 1, lanes, (query, body) => {
    positions.set(s.query, query);
    const one: Axis = { name: "row", extent: 1 };
    const store: EpilogueStore = { buffer: { name: "scores", dtype: "float32", shape: [] }, indices: [], value: s.score };
    const q: GatheredRows = { kind: "gathered", depth, fill: (inner, _, to) => emitFill(b, inner, { to, dtype: "float32", value: s.q, along: s.dim, count: depth, positions }) };
    emitGemm(b, body, {
      kind: { kind: "float" }, rows: 1, columns: keys, steps: depth, a: q, b: k(body),
      epilogue: new Epilogue(b, { stores: [store], accumulator: s.dot.name, rows: [one], column: s.key, positions, destinations: new Map([[store, { address: row, rowBytes: 0 }]]) }),
    });
    const total = softmaxRow(b, body, s, { row, count, sink: sinkAt(b, body, s, positions) });
    const weights: DirectRows = { kind: "direct", pointer: row, rowBytes: 0, stepBytes: 4 };
    const scaled = s.stores.map((x): EpilogueStore => ({ ...x, value: replaceLocal(x.value, s.accumulator.name, (acc) => quotientOf(s, acc, total)) }));
    emitGemm(b, body, {
      kind: { kind: "float" }, rows: 1, columns: s.valueDim.extent, steps: keys, a: weights, b: v(body),
      epilogue: new Epilogue(b, { stores: scaled, accumulator: s.accumulator.name, rows: [one], column: s.valueDim, positions }),
    });
    positions.delete(s.query);
  });
}

/** Keys as columns of scores: read along the keys or along the depth, or gathered so that depth is contiguous. */
function keyColumns(b: KernelBuilder, into: Stmt[], s: AttentionStructure, positions: ReadonlyMap<Axis, Expr>): (body: Stmt[]) => RowColumns | DotColumns {
  const k = inPlace(b, into, s.k, s.key, s.dim, positions);
  if (k && isDistance(k.rowBytes, 4)) return () => ({ kind: "rows", pointer: k.pointer, stepBytes: k.stepBytes });
  if (k && isDistance(k.stepBytes, 4)) return () => ({ kind: "dots", pointer: k.pointer, columnBytes: k.rowBytes });
  const rows = gathered(b, into, s.k, s.key, s.dim, constant(0, i32), toIndex(s.key.extent), b.temporary("all_keys", "float32", [s.key.extent, s.dim.extent]), positions);
  return () => ({ kind: "dots", pointer: rows.pointer, columnBytes: rows.rowBytes });
}
function valueColumns(b: KernelBuilder, into: Stmt[], s: AttentionStructure, positions: ReadonlyMap<Axis, Expr>): (body: Stmt[]) => RowColumns | DotColumns {
  const v = inPlace(b, into, s.v, s.key, s.valueDim, positions);
  if (v && isDistance(v.stepBytes, 4)) return () => ({ kind: "rows", pointer: v.pointer, stepBytes: v.rowBytes });
  if (v && isDistance(v.rowBytes, 4)) return () => ({ kind: "dots", pointer: v.pointer, columnBytes: v.stepBytes });
  const rows = gathered(b, into, s.v, s.key, s.valueDim, constant(0, i32), toIndex(s.key.extent), b.temporary("all_values", "float32", [s.key.extent, s.valueDim.extent]), positions);
  return () => ({ kind: "rows", pointer: rows.pointer, stepBytes: rows.rowBytes });
}

/** Scores at `row` become exp(score − maximum); gives their sum, with that of the sink, as a scalar. */
function softmaxRow(b: KernelBuilder, into: Stmt[], s: AttentionStructure, { row, count, sink }: { readonly row: Expr; readonly count: Expr; readonly sink: Expr | undefined }): Expr {
  const at = (i: Expr): [Expr, number] => (i.kind === "const" ? [row, Number(i.value) * 4] : [plus(row, times(i, 4)), 0]);
  const read = (i: Expr, n: 1 | 4): Expr => { const [p, offset] = at(i); return loadAt(p, offset, "float32", n === 4 ? f32x4 : f32); };
  const wide = b.let(into, "most", constant(-Infinity, f32x4)), narrow = b.let(into, "most", sink ?? constant(-Infinity, f32));
  overRun(b, into, count, (body, i, n) => { const m = n === 4 ? wide : narrow; set(body, m, larger(m, read(i, n))); });
  const most = b.let(into, "most", [0, 1, 2, 3].reduce<Expr>((m, lane) => larger(m, laneOf(wide, lane)), narrow));
  const base = b.let(into, "base", select(binary("eq", most, constant(-Infinity, f32)), constant(0, f32), most));
  const bases = b.let(into, "bases", splat(base, 4));
  const sums = b.let(into, "sum", constant(0, f32x4)), sum = b.let(into, "sum", constant(0, f32));
  overRun(b, into, count, (body, i, n) => {
    const weight = b.let(body, "weight", expOfNegativeF32(sub(read(i, n), n === 4 ? bases : base)));
    const [p, offset] = at(i);
    body.push(storeAt(p, offset, "float32", weighed(s, weight)));
    const total = n === 4 ? sums : sum;
    set(body, total, add(total, weight));
  });
  return b.let(into, "total", [0, 1, 2, 3].reduce<Expr>((m, lane) => add(m, laneOf(sums, lane)), add(sum, sink ? expOfNegativeF32(sub(sink, base)) : emptySum(count))));
}
