/**
 * Scaled dot-product attention that never holds the scores: online softmax (Milakov & Gimelshein; Dao et al.,
 * "FlashAttention") over blocks of keys. Eight queries lie in the lanes of two vectors, so that scores of a block are a
 * product keys × queries, the softmax runs vertically, and the weighted values are a product value dims × queries.
 * Fewer than eight queries (decoding) take one row of scores each.
 *
 * Scores that nothing is added to are logarithms to base 2 (attention-scale.ts). They are weighed relative to an integer, the
 * next one from their maximum: it goes into the number that rounds the exponent, and sums are brought to another maximum
 * by a power of two, without an error.
 *
 * A -∞ that is not the maximum of a whole row adds nothing, as in the plain softmax; a row of nothing but -∞ gives NaN,
 * as its weights sum up to 0. Where such rows weigh nothing, the sum of weighted values is 0 already, or NaN where a value
 * is none; where that holds for every row without a softmax, weights that are NaN count in their sum only.
 */
import { assertNever } from "../../core/assert.ts";
import { dimMul, dimProduct, dimRange, isSymbolic, type Dim } from "../../core/dim.ts";
import {
  add, axisOf, binary, constant, eq, f32, f32x4, i32, lt, min, mul, select, splat, sub, unary, type Axis, type Expr,
} from "../../kernel/expr.ts";
import { assign, block, type Stmt } from "../../kernel/stmt.ts";
import type { AttentionStructure, EpilogueStore } from "../../kernel/structure.ts";
import { plus, substituteAxes, times, toIndex } from "../loops/affine.ts";
import { addressOf, loadAt, storeAt, type KernelBuilder } from "../builder.ts";
import { attentionBlock, gathered, inPlace, keyRows, queryLanes, rowsFrom, valuePanels, type Operand } from "./attention-operands.ts";
import { prescaled } from "./attention-scale.ts";
import { Epilogue } from "./epilogue.ts";
import { emitFill } from "../fill.ts";
import { emitGemm, type DirectRows, type DotColumns, type GatheredRows, type RowColumns } from "./gemm.ts";
import { emitZero, isDistance, overRun, transpose4 } from "../loops/runs.ts";
import { accumulate, declareAccumulators, laneOf } from "./tile.ts";
import { replaceLocal } from "../loops/lanes.ts";
import { expOfNegativeF32, largestPower, powerBelow, powerOf } from "../legal/math-f32.ts";

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

function manyQueries(b: KernelBuilder, into: Stmt[], given: AttentionStructure, positions: Map<Axis, Expr>): void {
  const { structure: s, scale, binary: powers } = prescaled(given);
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
    queryLanes(b, body, s, { to: q, first, scale, positions });
    if (!single) emitZero(b, body, o, width * lanes);
    const sink = sinkAt(b, body, s, positions);
    const most = overVectors((i) => b.let(body, `most${i}`, splat(sink ?? constant(-Infinity, f32), 4))), sum = overVectors((i) => b.let(body, `sum${i}`, splat(sink ? constant(1, f32) : emptySum(keys), 4)));
    const at = (e: Expr | undefined, query: Expr): Expr | undefined => e && substituteAxes(e, new Map([...positions, [s.query, query]]));
    const begin = b.letIndex(body, "begin", at(s.keysFrom, first) ?? constant(0, i32)), seenTo = at(s.keysTo, plus(first, lanes - 1));
    const end = seenTo ? b.let(body, "end", min(keys, seenTo)) : keys;
    b.loop(body, "t", begin, end, blockKeys, s.key.extent, (t, inner) => {
      const count = b.let(inner, "count", min(constant(blockKeys, i32), sub(end, t)));
      const kRows: Operand = { ...k, pointer: b.let(inner, "k", plus(k.pointer, times(t, toIndex(k.rowBytes)))) };
      const now = most.map((m) => b.let(inner, "now", m));
      const epilogue = new Epilogue(b, { ...scoreStore(s, positions, { address: plus(plus(p, times(t, -rowBytes)), times(first, -4)), rowBytes }), stored: (target, i, scores) => set(target, now[i] ?? scores, larger(now[i] ?? scores, scores)) });
      epilogue.begin(inner);
      overRows(b, inner, count, (body4, i, n) => {
        const accumulators = declareAccumulators(b, body4, { kind: "float" }, { rows: n, columns: lanes, lanes: 4 });
        accumulate(b, body4, { kind: "float" }, accumulators, 4, rowsFrom(kRows, i, n), { pointer: q, offsets: offsets(), stepBytes: rowBytes }, constant(depth, i32));
        epilogue.store(body4, { row: plus(t, i), column: first, columns: lanes, accumulators });
      });
      softmaxBlock(b, inner, s, { scores: p, count, most, now, known: epilogue.inVectors, powers, sum, values: single ? undefined : o, width });
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

/** The sink of the head at hand. */
const sinkAt = (b: KernelBuilder, into: Stmt[], s: AttentionStructure, positions: ReadonlyMap<Axis, Expr>): Expr | undefined =>
  s.sink && b.let(into, "sink", substituteAxes(s.sink, positions));

/** Without keys there is nothing to divide by: the result is the empty sum, 0. */
const emptySum = (keys: Expr): Expr => (keys.kind === "const" ? constant(keys.value === 0 ? 1 : 0, f32) : select(eq(keys, 0), constant(1, f32), constant(0, f32)));

const overVectors = <T>(f: (i: number) => T): T[] => Array.from({ length: vectors }, (_, i) => f(i));
const offsets = (): number[] => overVectors((i) => i * 16);

/** The score expression as an epilogue that writes to scratch: rows are keys, lanes queries. */
function scoreStore(s: AttentionStructure, positions: ReadonlyMap<Axis, Expr>, destination: { readonly address: Expr; readonly rowBytes: Dim }) {
  const store: EpilogueStore = { buffer: { name: "scores", dtype: "float32", shape: [] }, indices: [], value: s.score };
  return { stores: [store], accumulator: s.dot.name, rows: [s.key], column: s.query, positions, destinations: new Map([[store, destination]]) };
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
function softmaxBlock(b: KernelBuilder, into: Stmt[], s: AttentionStructure, of: ScoreBlock): void {
  const { scores, count, most, now, known, powers, sum, values, width } = of;
  const rowBytes = lanes * 4;
  const end = b.let(into, "end", plus(scores, times(count, rowBytes))), pairs = b.let(into, "pairs", plus(scores, times(binary("and", count, constant(-2, i32)), rowBytes)));
  // Two keys a turn: vectors enough for operations not to wait for each other, as long as all loads stand before all stores.
  const each: EachKey = (into, visit) => {
    const over = (begin: Expr, end: Expr, offsets: readonly number[]): void => {
      const axis: Axis = { name: b.name("p"), extent: 2 ** 31 - 1 };
      const body: Stmt[] = [];
      visit(offsets, axisOf(axis), body);
      into.push({ kind: "for", axis, begin, end, step: offsets.length * rowBytes, mode: "serial", body: block(...body) });
    };
    over(scores, pairs, [0, rowBytes]);
    over(pairs, end, [0]);
  };
  if (!known) each(into, (offsets, p, body) => offsets.forEach((offset) => now.forEach((m, i) => set(body, m, larger(m, loadAt(p, offset + i * 16, "float32", f32x4))))));
  const { scale, weigh } = powers ? powersOfTwo(b, into, of, each) : exponentials(b, into, of);
  sum.forEach((x, i) => set(into, x, mul(x, scale[i] ?? x)));
  most.forEach((m, i) => set(into, m, now[i] ?? m));
  each(into, (offsets, p, body) => {
    const weights = offsets.flatMap((offset) => sum.map((_, i) => ({ at: offset + i * 16, i, value: b.let(body, "weight", weigh(loadAt(p, offset + i * 16, "float32", f32x4), i)) })));
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

/** What brings sums so far to a block's maximum, and a score of vector i to its weight. */
interface Weighing { readonly scale: readonly Expr[]; readonly weigh: (score: Expr, i: number) => Expr }
/** Visits the keys of a block. */
type EachKey = (into: Stmt[], visit: (offsets: readonly number[], p: Expr, body: Stmt[]) => void) => void;

/** Rows of nothing but -∞ have the base 0, so that their weights are 0. */
const finite = (m: Expr): Expr => select(binary("eq", m, constant(-Infinity, m.type)), zeroLike(m), m);

function exponentials(b: KernelBuilder, into: Stmt[], { most, now }: ScoreBlock): Weighing {
  const base = now.map((m) => b.let(into, "base", finite(m)));
  const scale = most.map((m, i) => b.let(into, "scale", expOfNegativeF32(sub(m, base[i] ?? m))));
  return { scale, weigh: (score, i) => expOfNegativeF32(sub(score, base[i] ?? score)) };
}

/** Scores relative to the next integer of their maximum: where that is too large for `powerOf` to take it off, it is taken off before. */
function powersOfTwo(b: KernelBuilder, into: Stmt[], { most, now }: ScoreBlock, each: EachKey): Weighing {
  const base = now.map((m) => b.let(into, "base", unary("ceil", finite(m))));
  const scale = most.map((m, i) => b.let(into, "scale", powerOf(sub(unary("ceil", m), base[i] ?? m), powerBelow(zeroLike(m)))));
  const left = base.map((x) => b.let(into, "left", x));
  const magnitude = b.let(into, "magnitude", base.map((x) => unary("abs", x)).reduce((x, y) => binary("pmax", x, y)));
  const large: Stmt[] = [];
  each(large, (offsets, p, body) => {
    const scores = offsets.flatMap((offset) => base.map((x, i) => ({ at: offset + i * 16, value: b.let(body, "score", sub(loadAt(p, offset + i * 16, "float32", f32x4), x)) })));
    for (const { at, value } of scores) body.push(storeAt(p, at, "float32", value));
  });
  for (const x of left) set(large, x, zeroLike(x));
  const largest = [0, 1, 2, 3].map((lane) => laneOf(magnitude, lane)).reduce((x, y) => binary("pmax", x, y));
  into.push({ kind: "if", condition: binary("lt", constant(largestPower, f32), largest), then: block(...large) });
  const parts = left.map((x) => { const { low, offset } = powerBelow(x); return { low: b.let(into, "low", low), offset: b.let(into, "offset", offset) }; });
  return { scale, weigh: (score, i) => powerOf(score, parts[i] ?? powerBelow(zeroLike(score))) };
}

interface ScoreBlock {
  readonly scores: Expr;
  readonly count: Expr;
  /** The largest scores before this block, and with it: complete if `known`. */
  readonly most: readonly Expr[];
  readonly now: readonly Expr[];
  readonly known: boolean;
  /** Scores are logarithms to base 2. */
  readonly powers: boolean;
  readonly sum: readonly Expr[];
  /** Weighted values so far; undefined where there are none yet. */
  readonly values: Expr | undefined;
  readonly width: number;
}

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
