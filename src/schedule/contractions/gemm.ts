/**
 * C[m, n] = Σ_k A[m, k]·B[k, n] as loops over register tiles, with the epilogue applied to each finished tile.
 *
 * Rows go in tiles of 4, columns in panels of 8; a single row takes 24 columns at a time, which is bound by reading B.
 * Blocks of rows are sized so that A's block stays in the second-level cache while B's panels pass over it, a panel
 * staying in the first (Goto & van de Geijn, "Anatomy of high-performance matrix multiplication").
 */
import { present } from "../../core/assert.ts";
import { dimFloorDiv, dimMul, dimProduct, dimRange, dimSub, isSymbolic, type Dim } from "../../core/dim.ts";
import { binary, constant, gt, i32, lt, min, sub, type Buffer, type Expr } from "../../kernel/expr.ts";
import type { Stmt } from "../../kernel/stmt.ts";
import { plus, times, toIndex } from "../loops/affine.ts";
import { accumulateBlocks } from "./block-weights.ts";
import { addressOf, bytesOf, storeAt, type KernelBuilder } from "../builder.ts";
import { maxTile, type Epilogue } from "./epilogue.ts";
import { eitherEngine, quadColumns, quadsFrom, quadSteps, startSums } from "./byte-dots.ts";
import { dotProducts } from "./dots.ts";
import { stripFor, type Strip } from "./strip.ts";
import { rowsToWiden, widenPanel, widePanel } from "./widen-panel.ts";
import { accumulate, declareAccumulators, type BColumns, type QuadColumns, type TileKind } from "./tile.ts";

/** A's rows, read where they lie. */
export interface DirectRows {
  readonly kind: "direct";
  /** Address of row 0. */
  readonly pointer: Expr;
  readonly rowBytes: Dim;
  readonly stepBytes: Dim;
  /** Bytes from a row of bytes to its sum. */
  readonly sumAt?: number;
}
/** A's rows are computed into scratch, a block at a time: float32, or int16 for pairs, with zeros up to `depth`. */
export interface GatheredRows {
  readonly kind: "gathered";
  /** Elements of a row in scratch; a multiple of 2 for pairs. */
  readonly depth: Dim;
  /** Writes a row; as bytes with their sum behind them where the engine has B in quads. */
  fill(into: Stmt[], row: Expr, to: Expr): void;
}
/** B in panels of `width` columns: [panel][step][width] (each a pair for pairs). */
export interface PanelColumns {
  readonly kind: "panels";
  readonly pointer: Expr;
  readonly width: 4 | 8;
  readonly panelBytes: Dim;
  /** Bytes of one step of a panel. */
  readonly stepBytes: number;
  /** Pairs that engines with relaxed SIMD have as quads. */
  readonly quads?: QuadColumns;
  /** Panels are taken whole. */
  readonly alone?: boolean;
}
/** B's rows, contiguous along n, read where they lie. */
export interface RowColumns { readonly kind: "rows"; readonly pointer: Expr; readonly stepBytes: Dim }

/** B's columns, each contiguous along k: for few rows, as dot products. A must be contiguous along k too. */
export interface DotColumns { readonly kind: "dots"; readonly pointer: Expr; readonly columnBytes: Dim }

export interface Gemm {
  readonly kind: TileKind;
  readonly rows: Dim;
  readonly columns: Dim;
  /** Steps of the contracted axis: k, or half of it (rounded up) for pairs. */
  readonly steps: Dim;
  readonly a: DirectRows | GatheredRows;
  readonly b: PanelColumns | RowColumns | DotColumns;
  /** Right operands of the epilogue's other accumulators, in panels of the same width. */
  readonly others?: readonly PanelColumns[];
  readonly epilogue: Epilogue;
}

/** What blocks and strips hold a multiple of: the rows of the largest tile. */
const rowMultiple = 4;
/** Bytes of A that are to stay in the second-level cache. */
const blockBytes = 256 * 1024;
/** Rows a strip holds at least: every strip reads all of B. */
const stripRows = 32;

/** Writes the loops. Whatever the operands' addresses depend on must be bound. */
export function emitGemm(b: KernelBuilder, into: Stmt[], given: Gemm): void {
  const gemm: Gemm & Pick<BlockGemm, "otherTiles"> = { ...given, otherTiles: (given.others ?? []).map(() => b.temporary("other", "float32", [maxTile])) };
  gemm.epilogue.begin(into);
  const strip = gemm.b.kind === "dots" ? undefined : stripFor(b, into, gemm.epilogue, gemm.kind.kind === "pairs" ? "int32" : "float32", gemm.columns, rowMultiple, stripRows);
  const block = Math.min(blockRows(gemm), strip?.rows ?? Infinity);
  const { rows } = gemm;
  if (gemm.a.kind === "direct" && !isSymbolic(rows) && rows <= block) {
    emitBlock(b, into, { ...gemm, strip }, gemm.a, constant(0, i32), rows, constant(rows, i32), rows);
    return;
  }
  const gathered = gemm.a.kind === "gathered" ? gatherBuffer(b, gemm, gemm.a, block) : undefined;
  const rowsAt = (body: Stmt[], begin: Expr, count: Expr): DirectRows | undefined =>
    gathered ? gathered(body, begin, count) : gemm.a.kind === "direct" ? { ...gemm.a, pointer: b.let(body, "rowsA", plus(gemm.a.pointer, times(begin, toIndex(gemm.a.rowBytes)))) } : undefined;
  // Where only running tells how many rows there are, blocks are of whole tiles, and single rows come after them.
  const apart = isSymbolic(rows) && gemm.b.kind !== "dots" && gemm.kind.kind !== "blocks";
  const tiled = apart ? dimMul(dimFloorDiv(rows, rowMultiple), rowMultiple) : rows;
  const total = b.letIndex(into, "rows", toIndex(tiled)), wholeTiles = apart || (!isSymbolic(rows) && rows % b.tile.rows === 0);
  b.parallel(into, "block", tiled, block, workOfTiles(gemm, block, gemm.columns), (begin, body) => {
    const count = isSymbolic(rows) || rows % block !== 0 ? b.let(body, "count", min(constant(block, i32), sub(total, begin))) : constant(Math.min(block, rows), i32);
    const known = count.kind === "const" ? Number(count.value) : undefined;
    const a = rowsAt(body, begin, count);
    if (a) emitBlock(b, body, { ...gemm, strip, wholeTiles }, a, begin, known, count, rows);
  });
  if (apart) singleRows(b, into, { ...gemm, strip: undefined }, gemm.b, total, dimSub(rows, tiled), rowsAt);
}

/**
 * Writes the loops for `count` rows that lie at `a`, at most `most` and few enough for a cache: rows `firstRow` … of the
 * result. No thread shares them.
 */
export function emitRows(b: KernelBuilder, into: Stmt[], gemm: Omit<Gemm, "a" | "others">, a: DirectRows, firstRow: Expr, count: Expr, most: Dim): void {
  gemm.epilogue.begin(into);
  const strip = stripFor(b, into, gemm.epilogue, "float32", gemm.columns, rowMultiple, stripRows);
  const whole: BlockGemm = { ...gemm, a, strip, otherTiles: [] };
  const known = count.kind === "const" ? Number(count.value) : undefined;
  b.serially(() => {
    if (!strip || (known !== undefined && known <= strip.rows)) { emitBlock(b, into, whole, a, firstRow, known, count, most); return; }
    b.loop(into, "part", 0, count, strip.rows, most, (at, body) => {
      const rows = b.let(body, "count", min(constant(strip.rows, i32), sub(count, at)));
      emitBlock(b, body, whole, { ...a, pointer: b.let(body, "rowsA", plus(a.pointer, times(at, toIndex(a.rowBytes)))) }, plus(firstRow, at), undefined, rows, most);
    });
  });
}

/** Instructions for so many rows and columns, roughly: half of one a multiplication. */
const workOfTiles = (gemm: Gemm, rows: Dim, columns: Dim): Dim => dimFloorDiv(dimProduct([rows, columns, gemm.steps, 1 + (gemm.others?.length ?? 0)]), 2);

/** The rows from `first` on, one by one. */
function singleRows(b: KernelBuilder, into: Stmt[], gemm: BlockGemm, columnsOf: PanelColumns | RowColumns, first: Expr, count: Dim, rowsAt: (into: Stmt[], begin: Expr, count: Expr) => DirectRows | undefined): void {
  b.parallel(into, "row", count, 1, workOfTiles(gemm, 1, gemm.columns), (i, body) => {
    const row = b.let(body, "m", plus(first, i)), one = constant(1, i32);
    const a = rowsAt(body, row, one);
    if (a) forColumns(b, body, columnsOf, gemm.columns, widthsFor(gemm, 1), (inner, column, width, lanes, valid) =>
      emitTile(b, inner, gemm, a, columnsOf, row, constant(0, i32), 1, column, width, lanes, valid), workOfTiles(gemm, 1, 1));
  });
}

function blockRows(gemm: Gemm): number {
  const depth = gemm.a.kind === "gathered" ? gemm.a.depth : gemm.steps;
  const bytes = 4 * (isSymbolic(depth) ? 512 : Math.max(1, depth));
  const fits = Math.floor(blockBytes / bytes / rowMultiple) * rowMultiple;
  const most = Math.max(16, Math.min(512, fits));
  const { upper } = dimRange(gemm.rows);
  // Blocks of equal size: a short last one would read all of B for little.
  const even = Number.isFinite(upper) ? Math.ceil(upper / Math.max(1, Math.ceil(upper / most)) / rowMultiple) * rowMultiple : most;
  return Math.max(rowMultiple, even);
}

/** Scratch for a block of computed rows; gives a function that fills it. */
function gatherBuffer(b: KernelBuilder, gemm: Gemm, a: GatheredRows, block: number) {
  const dtype = gemm.kind.kind === "pairs" ? "int16" : "float32";
  const buffer = b.temporary("rows", dtype, [block, a.depth]);
  const rowBytes = bytesOf(a.depth, dtype);
  return (into: Stmt[], begin: Expr, count: Expr): DirectRows => {
    const start = b.let(into, "gathered", addressOf(buffer));
    b.loop(into, "fill", 0, count, 1, block, (i, body) => a.fill(body, b.let(body, "row", plus(begin, i)), b.let(body, "to", plus(start, times(i, toIndex(rowBytes))))));
    return { kind: "direct", pointer: start, rowBytes, stepBytes: 4, ...(isSymbolic(a.depth) ? {} : { sumAt: a.depth }) };
  };
}

interface BlockGemm extends Gemm {
  readonly strip: Strip | undefined;
  /** For a tile of each of the other products, where there is no strip. */
  readonly otherTiles: readonly Buffer[];
  /** No row is left over from the tiles of a block. */
  readonly wholeTiles?: boolean;
}

/** A block of rows against all of B: panels outermost, so that each stays in the first-level cache. */
function emitBlock(b: KernelBuilder, into: Stmt[], gemm: BlockGemm, a: DirectRows, firstRow: Expr, known: number | undefined, count: Expr, rows: Dim): void {
  emitTiles(b, into, gemm, a, firstRow, known, count, rows);
  gemm.strip?.finish(into, firstRow, count);
}

function emitTiles(b: KernelBuilder, into: Stmt[], gemm: BlockGemm, a: DirectRows, firstRow: Expr, known: number | undefined, count: Expr, rows: Dim): void {
  if (gemm.b.kind === "dots") {
    const operand = gemm.b;
    if (known !== undefined && known === rows) b.parallel(into, "m", known, 1, workOfTiles(gemm, 1, gemm.columns), (m, body) => emitDots(b, body, gemm, a, operand, firstRow, m));
    else b.loop(into, "m", 0, count, 1, rows, (m, body) => emitDots(b, body, gemm, a, operand, firstRow, m));
    return;
  }
  const columnsOf = gemm.b, { rows: tileRows } = b.tile, widths = gemm.kind.kind === "blocks" ? [8] : b.tile.widths;
  const fullRows = gemm.wholeTiles ? count : known === undefined ? b.let(into, "full", binary("and", count, constant(-tileRows, i32))) : constant(known - (known % tileRows), i32);
  if (known === undefined || known >= tileRows) {
    const tiles = (target: Stmt[], wide?: Buffer): void => forColumns(b, target, columnsOf, gemm.columns, widths, (body, column, width, lanes, valid) => {
      const at = wide && gemm.kind.kind === "blocks" ? widenPanel(b, body, gemm.kind, wide, column, columnsAt(columnsOf, column, width, lanes).pointer) : undefined;
      const one = (m: Expr, inner: Stmt[]): void => emitTile(b, inner, gemm, a, columnsOf, firstRow, m, tileRows, column, width, lanes, valid, at);
      if (known !== undefined && known < 2 * tileRows) one(constant(0, i32), body);
      else b.loop(body, "m", 0, fullRows, tileRows, rows, one);
    }, gemm.strip ? undefined : workOfTiles(gemm, known ?? tileRows * 4, 1));
    eachWay(b, into, gemm, known, count, tiles);
  }
  if (known !== undefined) {
    const rest = known % tileRows;
    if (rest > 0) forColumns(b, into, columnsOf, gemm.columns, known < tileRows ? widthsFor(gemm, rest) : widthsOfRest(gemm, rest), (body, column, width, lanes, valid) =>
      emitTile(b, body, gemm, a, columnsOf, firstRow, fullRows, rest, column, width, lanes, valid), known < tileRows && !gemm.strip ? workOfTiles(gemm, rest, 1) : undefined);
    return;
  }
  if (gemm.wholeTiles) return;
  b.loop(into, "m", fullRows, count, 1, rows, (m, inner) =>
    forColumns(b, inner, columnsOf, gemm.columns, isSymbolic(rows) ? widthsFor(gemm, 1) : widthsOfRest(gemm, 1), (body, column, width, lanes, valid) =>
      emitTile(b, body, gemm, a, columnsOf, firstRow, m, 1, column, width, lanes, valid)));
}

/** Columns that so few rows take at a time, in order of preference. */
function widthsFor({ kind, columns }: Gemm, rows: number): readonly number[] {
  if (kind.kind === "blocks") return rows === 1 ? [blocksOfOneRow, 8] : [8];
  return rows === 1 ? (isSymbolic(columns) ? [16, 8] : widthsOfOneRow) : rows === 2 ? [16, 8] : [8];
}
/** The same where the rows are what tiles of many left over: one width that covers the columns, if there is such, as code for others would not pay. */
function widthsOfRest(gemm: Gemm, rows: number): readonly number[] {
  const widths = widthsFor(gemm, rows), { columns } = gemm, one = isSymbolic(columns) ? undefined : widths.find((w) => columns % w === 0);
  return one === undefined ? widths : [one];
}
/** Columns of a tile of one row: enough sums to wait for none of them, and all that a step reads still in registers. */
export const widthsOfOneRow: readonly number[] = [24, 16, 8];
/** Two panels of quantised weights share the row's elements and the loop's own instructions. */
const blocksOfOneRow = 16;

/** Full tiles as they are, or with panels of quantised weights widened first where the rows are many enough to gain by it. */
function eachWay(b: KernelBuilder, into: Stmt[], { kind }: BlockGemm, known: number | undefined, count: Expr, tiles: (into: Stmt[], wide?: Buffer) => void): void {
  if (kind.kind !== "blocks") { tiles(into); return; }
  if (known !== undefined) { tiles(into, known >= rowsToWiden(kind) ? widePanel(b, kind) : undefined); return; }
  const few: Stmt[] = [], many: Stmt[] = [];
  tiles(few);
  tiles(many, widePanel(b, kind));
  into.push({ kind: "if", condition: lt(count, rowsToWiden(kind)), then: { kind: "block", body: few }, else: { kind: "block", body: many } });
}

type ColumnBody = (into: Stmt[], column: Expr, width: number, lanes: 1 | 4, valid: number | Expr) => void;

/**
 * Covers the columns with tiles of the given widths (descending), then with what is left. Threads may share the columns
 * where `work`, the instructions of one of them, is given.
 */
export function forColumns(b: KernelBuilder, into: Stmt[], operand: PanelColumns | RowColumns, columns: Dim, widths: readonly number[], body: ColumnBody, work?: Dim): void {
  const usable = operand.kind === "panels" ? (operand.width === 4 ? [4] : isSymbolic(operand.panelBytes) ? [8] : widths) : widths;
  let begin: Expr = constant(0, i32), share = work;
  const cover = (width: number, lanes: 1 | 4): void => {
    const total = begin.kind === "const" && Number(begin.value) === 0 ? dimMul(dimFloorDiv(columns, width), width) : 0;
    if (total !== 0 && total !== width && share !== undefined) {
      b.parallel(into, "n", total, width, dimMul(share, width), (n, inner) => body(inner, n, width, lanes, width));
      begin = b.letIndex(into, "end", toIndex(total));
      share = undefined;
      return;
    }
    if (isSymbolic(columns) || begin.kind !== "const") {
      const end = width === 1 ? toIndex(columns) : b.let(into, "end", plus(begin, binary("and", sub(toIndex(columns), begin), constant(-width, i32))));
      b.loop(into, "n", begin, end, width, columns, (n, inner) => body(inner, n, width, lanes, width));
      begin = end;
      return;
    }
    const from = Number(begin.value), count = Math.floor((columns - from) / width);
    if (count === 1) body(into, begin, width, lanes, width);
    else if (count > 1) b.loop(into, "n", begin, constant(from + count * width, i32), width, columns, (n, inner) => body(inner, n, width, lanes, width));
    begin = constant(from + count * width, i32);
  };
  for (const width of usable) cover(width, 4);
  if (begin.kind === "const" && !isSymbolic(columns)) {
    const from = Number(begin.value), rest = columns - from;
    if (rest === 0) return;
    if (operand.kind === "panels") { body(into, begin, operand.alone ? 8 : Math.ceil(rest / 4) * 4, 4, rest); return; }
    cover(4, 4);
    if (rest % 4 > 0) body(into, begin, rest % 4, 1, rest % 4);
    return;
  }
  if (operand.kind === "panels") {
    const left = b.let(into, "left", sub(toIndex(columns), begin));
    const then: Stmt[] = [];
    body(then, begin, operand.width, 4, left);
    into.push({ kind: "if", condition: gt(left, 0), then: { kind: "block", body: then } });
    return;
  }
  cover(4, 4);
  cover(1, 1);
}

function emitTile(b: KernelBuilder, into: Stmt[], gemm: BlockGemm, a: DirectRows, columns: PanelColumns | RowColumns, firstRow: Expr, m: Expr, rows: number, column: Expr, width: number, lanes: 1 | 4, valid: number | Expr, wide?: BColumns): void {
  const start = plus(a.pointer, times(m, toIndex(a.rowBytes)));
  const rowBytes = a.rowBytes;
  const operand = isSymbolic(rowBytes) || rows === 1
    ? { pointers: Array.from({ length: rows }, (_, i) => plus(start, times(constant(i, i32), toIndex(rowBytes)))), stepBytes: a.stepBytes }
    : { pointers: [start], rowBytes, stepBytes: a.stepBytes };
  const steps = b.letIndex(into, "steps", toIndex(gemm.steps));
  // The other products' tiles lie in memory, which costs less than registers that are not there.
  const others = (gemm.others ?? []).map((other, i) => {
    const sums = declareAccumulators(b, into, gemm.kind, { rows, columns: width, lanes });
    accumulate(b, into, gemm.kind, sums, lanes, operand, columnsAt(other, column, width, lanes), steps);
    if (gemm.strip) { gemm.strip.keep(into, m, column, sums, i); return constant(0, i32); }
    const to = b.let(into, "other", addressOf(present(gemm.otherTiles[i], "tile of another product")));
    sums.forEach((row, r) => row.forEach((sum, v) => into.push(storeAt(to, (r * row.length + v) * sum.type.lanes * 4, "float32", sum))));
    return to;
  });
  const accumulators = declareAccumulators(b, into, gemm.kind, { rows, columns: width, lanes });
  const at = wide ?? columnsAt(columns, column, width, lanes), kind: TileKind = wide ? { kind: "float" } : gemm.kind;
  if (kind.kind === "blocks") accumulateBlocks(b, into, kind, accumulators, operand, column, at.pointer);
  else if (at.quads && a.sumAt !== undefined) {
    const { quads } = at, sums = plus(start, a.sumAt);
    eitherEngine(into, (body) => {
      startSums(b, body, accumulators, quads, (row) => plus(sums, times(constant(row, i32), toIndex(rowBytes))));
      accumulate(b, body, { kind: "quads" }, accumulators, lanes, operand, quadColumns(at), quadSteps(steps));
    }, (body) => accumulate(b, body, kind, accumulators, lanes, operand, at, steps));
  } else accumulate(b, into, kind, accumulators, lanes, operand, at, steps);
  if (gemm.strip) gemm.strip.keep(into, m, column, accumulators);
  else gemm.epilogue.store(into, { row: plus(firstRow, m), column, columns: valid, accumulators, others });
}

/** One row against all columns: 4 dot products at a time, lanes along k. */
function emitDots(b: KernelBuilder, into: Stmt[], gemm: Gemm, a: DirectRows, operand: DotColumns, firstRow: Expr, m: Expr): void {
  const row = b.let(into, "rowA", plus(a.pointer, times(m, toIndex(a.rowBytes))));
  const columns = b.letIndex(into, "columns", toIndex(gemm.columns)), steps = b.letIndex(into, "steps", toIndex(gemm.steps));
  const whole = b.letIndex(into, "whole", columns.kind === "const" ? constant(Number(columns.value) & -4, i32) : binary("and", columns, constant(-4, i32)));
  const some = (body: Stmt[], n: Expr, count: 1 | 4): void => {
    const start = b.let(body, "column", plus(operand.pointer, times(n, toIndex(operand.columnBytes))));
    const acc = dotProducts(b, body, row, Array.from({ length: count }, (_, j) => plus(start, times(constant(j, i32), toIndex(operand.columnBytes)))), steps, b.relaxed);
    gemm.epilogue.store(body, { row: plus(firstRow, m), column: n, columns: count, accumulators: [[acc]] });
  };
  b.loop(into, "n", 0, whole, 4, gemm.columns, (n, body) => some(body, n, 4));
  if (columns.kind !== "const" || Number(columns.value) % 4 !== 0) b.loop(into, "n", whole, columns, 1, gemm.columns, (n, body) => some(body, n, 1));
}

/** The columns from `column` on: where B is read, and how its vectors follow. */
export function columnsAt(operand: PanelColumns | RowColumns, column: Expr, width: number, lanes: 1 | 4): BColumns {
  if (operand.kind === "rows") return { pointer: plus(operand.pointer, times(column, 4)), offsets: Array.from({ length: width / lanes }, (_, v) => v * lanes * 4), stepBytes: operand.stepBytes };
  const perPanel = operand.width / 4, vectorBytes = operand.stepBytes / perPanel;
  const panel = binary("shr", column, constant(Math.log2(operand.width), i32));
  const index = column.kind === "const" ? constant(Math.floor(Number(column.value) / operand.width), i32) : panel;
  const bytes = isSymbolic(operand.panelBytes) ? 0 : operand.panelBytes;
  return {
    pointer: plus(operand.pointer, times(index, toIndex(operand.panelBytes))),
    offsets: Array.from({ length: width / 4 }, (_, v) => Math.floor(v / perPanel) * bytes + (v % perPanel) * vectorBytes),
    stepBytes: operand.stepBytes, ...(operand.quads ? { quads: quadsFrom(operand.quads, index) } : {}),
  };
}
