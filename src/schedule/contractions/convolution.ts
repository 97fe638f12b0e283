/**
 * Convolutions as register-tiled loops: 4 output positions along one dimension by 8 output channels, taps and input
 * channels contracted. The input rows that a block of output rows needs are copied once into scratch with their padding,
 * channels innermost, so that the inner loop runs over contiguous memory without conditions, whatever the input's
 * layout; inputs that need no padding and have their channels together are read in place.
 */
import { present } from "../../core/assert.ts";
import { dimEqual, dimFloorDiv, dimMul, dimProduct, isSymbolic, type Dim } from "../../core/dim.ts";
import { add, axisOf, binary, constant, i32, load, min, sub, type Axis, type Expr } from "../../kernel/expr.ts";
import { assign, type Stmt } from "../../kernel/stmt.ts";
import type { ConvStructure, MatMulStructure } from "../../kernel/structure.ts";
import { plus, times, toIndex } from "../loops/affine.ts";
import { addressOf, storeAt, type KernelBuilder } from "../builder.ts";
import { eitherEngine, quadColumns, startSums } from "./byte-dots.ts";
import { operandsOf, weightsAreFinite, type Operands } from "./conv-operands.ts";
import { convProblems, outputPositions, type ConvProblem, type SpatialDim } from "./conv-problem.ts";
import { scheduleDepthwise } from "./depthwise.ts";
import { scheduleDepthwiseInteger } from "./depthwise-integer.ts";
import { Epilogue, isCostly } from "./epilogue.ts";
import { columnsAt, forColumns, widthsOfOneRow, type PanelColumns } from "./gemm.ts";
import { scheduleMatMul } from "./matmul.ts";
import { blockOf, directRows, elementBytes, rowScratch, scratchChannels, type InputRows } from "./input-rows.ts";
import type { RowBlocks } from "./row-blocks.ts";
import { packTaps } from "./pack-taps.ts";
import { scheduleRowStrips } from "./row-strips.ts";
import { emitWinograd, suitsWinograd, winogradRows } from "./winograd.ts";
import { stripFor, suitsStrips } from "./strip.ts";
import { accumulate, declareAccumulators, laneOf, type Accumulators, type BColumns, type TileKind } from "./tile.ts";

/** Loops for a convolution of float32, or of 8-bit integers into int32; undefined where this part has none for it. */
export function scheduleConvolution(b: KernelBuilder, s: ConvStructure): Stmt | undefined {
  const operands = operandsOf(b, s);
  if (!operands) return undefined;
  if (s.inputFrom) return isPointwise(s) && weightsAreFinite(b, s.inputFrom.weight) ? scheduleRowStrips(b, s, s.inputFrom) : undefined;
  if (isPointwise(s)) return scheduleMatMul(b, pointwise(s));
  if (!weightsAreFinite(b, s.weight)) return undefined;
  const problems = convProblems(s);
  if (!problems) return undefined;
  if (s.channel.extent === 1 && s.inputChannel.extent === 1 && s.group.extent !== 1) {
    const body = operands.kind.kind === "float" ? scheduleDepthwise(b, s, problems) : scheduleDepthwiseInteger(b, s, problems, operands);
    if (body) return body;
  }
  const body: Stmt[] = [];
  const [only] = problems;
  if (only && problems.length === 1 && operands.kind.kind === "float" && suitsWinograd(b, s, only)) {
    emitWinograd(b, body, s, only);
    return { kind: "block", body };
  }
  for (const p of problems) if (!emitProblem(b, body, s, p, operands)) return undefined;
  return { kind: "block", body };
}

/** Every tap in place: a matrix product over positions. */
function isPointwise(s: ConvStructure): boolean {
  return !s.transposed && s.output.every((o, d) => s.kernel[d]?.extent === 1 && s.strides[d] === 1 && s.padsBegin[d] === 0 && dimEqual(o.extent, s.input.shape[d + 2] ?? -1));
}

function pointwise(s: ConvStructure): MatMulStructure {
  const zero = constant(0, i32);
  const position = (a: Axis): Expr => (a.extent === 1 ? zero : axisOf(a));
  const m = present(s.output[s.output.length - 1], "output axis");
  const channels = Number(s.channel.extent), inputs = Number(s.inputChannel.extent);
  const filter = plus(times(position(s.group), channels), position(s.channel)), source = plus(times(position(s.group), inputs), axisOf(s.inputChannel));
  return {
    kind: "matmul", batch: [s.group, s.batch, ...s.output.slice(0, -1)].filter((a) => a.extent !== 1), m, n: s.channel, k: s.inputChannel,
    a: less(load(s.input, [position(s.batch), source, ...s.output.map(position)]), s.zeroPoints?.input),
    b: less(load(s.weight, [filter, axisOf(s.inputChannel), ...s.kernel.map(() => zero)]), s.zeroPoints?.weight),
    accumulator: s.accumulator, stores: s.stores,
  };
}

const less = (e: Expr, zero: Expr | undefined): Expr => (zero ? sub(e, zero) : e);

function emitProblem(b: KernelBuilder, into: Stmt[], s: ConvStructure, p: ConvProblem, operands: Operands): boolean {
  const packed = packTaps(b, s, p, operands);
  if (!packed) return false;
  const positions = new Map<Axis, Expr>();
  const work = dimProduct([workOfRow(s, p), p.outer.count, s.channel.extent]);
  b.parallel(into, "n", s.batch.extent, 1, dimMul(work, s.group.extent), (batch, perBatch) => {
    positions.set(s.batch, batch);
    b.parallel(perBatch, "g", s.group.extent, 1, work, (group, body) => {
      positions.set(s.group, group);
      const columns = packed.at(group);
      emitPositions(b, body, s, p, operands.kind, positions, { ...columns, pointer: b.let(body, "panels", columns.pointer) });
    });
  });
  return true;
}

/** Instructions for one channel of a row of output, roughly: half of one a multiplication. */
const workOfRow = (s: ConvStructure, p: ConvProblem): Dim => dimFloorDiv(dimProduct([p.inner.count, s.inputChannel.extent, p.outer.taps * p.inner.taps]), 2);

/** All positions of one image and group. */
function emitPositions(b: KernelBuilder, into: Stmt[], s: ConvStructure, p: ConvProblem, kind: TileKind, positions: Map<Axis, Expr>, columns: PanelColumns): void {
  const { outer } = p, blocks = rowBlocks(b, into, s, p, kind, positions, columns), { rows } = blocks;
  const total = b.letIndex(into, "rows", toIndex(outer.count));
  b.parallel(into, "block", outer.count, rows, blocks.work, (first, body) => {
    const count = !isSymbolic(outer.count) && outer.count % rows === 0 ? constant(rows, i32) : b.let(body, "count", min(constant(rows, i32), sub(total, first)));
    blocks.write(body, first, count, s.stores);
  });
}

/** The rows of a convolution of float32 in one group, at the batch that `positions` says; undefined where weights are not constant, or no finite numbers. */
export function convolutionRows(b: KernelBuilder, into: Stmt[], s: ConvStructure, p: ConvProblem): { readonly at: (into: Stmt[], image: Expr) => RowBlocks } | undefined {
  const operands = operandsOf(b, s);
  if (operands?.kind.kind !== "float" || !(isPointwise(s) || weightsAreFinite(b, s.weight))) return undefined;
  if (suitsWinograd(b, s, p)) return winogradRows(b, into, s, p);
  const packed = packTaps(b, s, p, operands);
  if (!packed) return undefined;
  const group = constant(0, i32), columns = packed.at(group), panels = { ...columns, pointer: b.let(into, "panels", columns.pointer) };
  return { at: (perImage, image) => rowBlocks(b, perImage, s, p, operands.kind, new Map([[s.batch, image], [s.group, group]]), panels) };
}

function rowBlocks(b: KernelBuilder, into: Stmt[], whole: ConvStructure, p: ConvProblem, kind: TileKind, positions: ReadonlyMap<Axis, Expr>, columns: PanelColumns): RowBlocks {
  const direct = directRows(b, into, whole, p, positions);
  const { outer } = p;
  const rows = sharedRows(whole, p, kind, columns);
  const scratch = direct ? undefined : rowScratch(b, whole, p, rows, kind, 2, columns.quads?.shift);
  const perBlock = (s: ConvStructure, first: Expr, count: Expr, source: InputRows, body: Stmt[]): void => {
    if (spansPay(s, p)) {
      b.loop(body, "y", 0, count, 1, outer.count, (y, rowBody) => emitSpans(b, rowBody, { s, p, kind, source, y }, positions, plus(first, y), columns));
      return;
    }
    if (stripsPay(b, s)) {
      b.loop(body, "y", 0, count, 1, outer.count, (y, rowBody) => emitStrips(b, rowBody, { s, p, kind, source, y }, rowEpilogue(b, rowBody, s, p, positions, plus(first, y)), columns));
      return;
    }
    forColumns(b, body, columns, s.channel.extent, tileWidths(b, p.inner.count), (inner, column, width, lanes, valid) => {
      const panel = columnsAt(columns, column, width, lanes);
      const pointer = b.letIndex(inner, "panel", panel.pointer);
      b.loop(inner, "y", 0, count, 1, outer.count, (y, rowBody) => {
        const epilogue = rowEpilogue(b, rowBody, s, p, positions, plus(first, y));
        emitRow(b, rowBody, { s, p, kind, source, y }, { panel: { ...panel, pointer }, column, width, lanes }, constant(0, i32), toIndex(p.inner.count), (at, x, accumulators) =>
          epilogue.store(at, { row: x, column, columns: valid, accumulators }));
      });
    }, dimMul(workOfRow(s, p), rows));
  };
  return { rows, multiple: 1, work: dimProduct([workOfRow(whole, p), whole.channel.extent, rows]), write(body, first, count, stores) {
    const source = scratch ? scratch(body, first, count, positions) : direct && rowsFrom(b, body, direct, times(first, outer.stride));
    if (source) perBlock({ ...whole, stores }, first, count, source, body);
  } };
}

/** Weights of fewer bytes stay in the second-level cache: reading them for every block of rows costs little. */
const fewWeights = 256 * 1024;

/** Rows of a block: fewer than the cache has room for where several blocks suit threads better. */
function sharedRows(s: ConvStructure, p: ConvProblem, kind: TileKind, columns: PanelColumns): number {
  const most = blockOf(s, p, kind);
  if (isSymbolic(p.outer.count) || Number(s.channel.extent) / columns.width * Number(columns.panelBytes) > fewWeights) return most;
  return Math.min(most, Math.max(8, Math.ceil(p.outer.count / 8)));
}

/** Input in place, from a row on. */
const rowsFrom = (b: KernelBuilder, into: Stmt[], rows: InputRows, first: Expr): InputRows => ({ ...rows, pointer: b.let(into, "input", plus(rows.pointer, times(first, toIndex(rows.rowBytes)))) });

/** A short row leaves registers for more columns. */
const tileWidths = (b: KernelBuilder, count: Dim): readonly number[] => (count === 1 ? widthsOfOneRow : count === 2 ? [16, 8] : b.tile.widths);

interface Row {
  readonly s: ConvStructure; readonly p: ConvProblem; readonly kind: TileKind;
  readonly source: InputRows;
  /** The row within the source. */
  readonly y: Expr;
}
/** The channels of a tile. */
interface TileColumns { readonly panel: BColumns; readonly column: Expr; readonly width: number; readonly lanes: 1 | 4 }
type Finish = (into: Stmt[], x: Expr, accumulators: Accumulators) => void;

function rowEpilogue(b: KernelBuilder, into: Stmt[], s: ConvStructure, p: ConvProblem, positions: ReadonlyMap<Axis, Expr>, row: Expr): Epilogue {
  const inner: Axis = { name: b.name("x"), extent: p.inner.count };
  const epilogue = new Epilogue(b, { stores: s.stores, accumulator: s.accumulator.name, rows: [inner], column: s.channel, positions: outputPositions(p, positions, row, inner) });
  epilogue.begin(into);
  return epilogue;
}

/** Whether rows are finished along strips: then all channels of some positions are computed before the next ones. */
const stripsPay = (b: KernelBuilder, s: ConvStructure): boolean => b.strips && isCostly(s.stores) && suitsStrips(s.channel.extent);
/** Positions a strip holds at least: every strip reads all weights. */
const stripPositions = 32;

/** A row of output positions, a strip of them after the other. */
function emitStrips(b: KernelBuilder, into: Stmt[], row: Row, epilogue: Epilogue, columns: PanelColumns): void {
  const { s, p: { inner } } = row;
  const strip = present(stripFor(b, into, epilogue, row.kind.kind === "float" ? "float32" : "int32", s.channel.extent, positionMultiple, stripPositions), "strip");
  b.loop(into, "part", 0, toIndex(inner.count), strip.rows, inner.count, (from, part) => {
    const count = isSymbolic(inner.count) || inner.count % strip.rows !== 0 ? b.let(part, "count", min(constant(strip.rows, i32), sub(toIndex(inner.count), from))) : constant(strip.rows, i32);
    const known = !isSymbolic(inner.count) && inner.count <= strip.rows ? constant(inner.count, i32) : count;
    forColumns(b, part, columns, s.channel.extent, tileWidths(b, inner.count), (body, column, width, lanes) => {
      const panel = columnsAt(columns, column, width, lanes);
      emitRow(b, body, row, { panel: { ...panel, pointer: b.letIndex(body, "panel", panel.pointer) }, column, width, lanes }, from, known, (at, x, accumulators) =>
        strip.keep(at, sub(x, from), column, accumulators));
    });
    strip.finish(part, from, known);
  });
}

/** Whether vectors of a costly epilogue hold positions: there are too few channels for them. */
const spansPay = (s: ConvStructure, p: ConvProblem): boolean => isCostly(s.stores) && Number(s.channel.extent) < 4 && (isSymbolic(p.inner.count) || p.inner.count >= 4);
/** Positions whose sums wait for their epilogue. */
const spanPositions = 1024;

/** A row of few channels: sums go to scratch channel by channel, and the epilogue runs along the positions. */
function emitSpans(b: KernelBuilder, into: Stmt[], r: Row, positions: ReadonlyMap<Axis, Expr>, row: Expr, columns: PanelColumns): void {
  const { s, p } = r, channels = Number(s.channel.extent), dtype = r.kind.kind === "float" ? "float32" : "int32";
  const inner: Axis = { name: b.name("x"), extent: p.inner.count };
  const epilogue = new Epilogue(b, { stores: s.stores, accumulator: s.accumulator.name, rows: [s.channel], column: inner, positions: outputPositions(p, positions, row, inner) });
  epilogue.begin(into);
  const sums = b.let(into, "sums", addressOf(b.temporary("span", dtype, [channels, spanPositions])));
  b.loop(into, "part", 0, toIndex(p.inner.count), spanPositions, p.inner.count, (from, part) => {
    const count = b.let(part, "count", min(constant(spanPositions, i32), sub(toIndex(p.inner.count), from)));
    forColumns(b, part, columns, channels, tileWidths(b, p.inner.count), (body, column, width, lanes) =>
      emitRow(b, body, r, { panel: columnsAt(columns, column, width, lanes), column, width, lanes }, from, count, (at, x, accumulators) => {
        const to = b.let(at, "to", plus(sums, times(sub(x, from), 4)));
        accumulators.forEach((vectors, i) => {
          const acc = present(vectors[0], "accumulator");
          for (let c = 0; c < channels; c++) at.push(storeAt(to, (c * spanPositions + i) * 4, dtype, laneOf(acc, c)));
        });
      }));
    for (let c = 0; c < channels; c++) epilogue.storeColumns(part, constant(c, i32), from, plus(sums, c * spanPositions * 4), dtype, count, p.inner.count);
  });
}

/** `count` positions of a row, from `begin` on, against one panel of channels: all that there are, or those of whole tiles up to the row's end. */
function emitRow(b: KernelBuilder, into: Stmt[], r: Row, columns: TileColumns, begin: Expr, count: Expr, finish: Finish): void {
  const start = b.let(into, "from", plus(r.source.pointer, times(times(r.y, r.p.outer.stride), toIndex(r.source.rowBytes))));
  const tile = (x: Expr, body: Stmt[], rows: number): void => emitTile(b, body, r, columns, start, plus(begin, x), rows, finish);
  const { count: extent } = r.p.inner, tileRows = b.tile.rows;
  if (count.kind !== "const") {
    const whole = b.let(into, "full", binary("and", count, constant(-tileRows, i32)));
    b.loop(into, "x", 0, whole, tileRows, extent, (x, body) => tile(x, body, tileRows));
    if (isSymbolic(extent) || extent % tileRows !== 0) b.loop(into, "x", whole, count, 1, extent, (x, body) => tile(x, body, 1));
    return;
  }
  const positions = Number(count.value), full = positions - (positions % tileRows);
  if (full === tileRows) tile(constant(0, i32), into, tileRows);
  else if (full > 0) b.loop(into, "x", 0, constant(full, i32), tileRows, extent, (x, body) => tile(x, body, tileRows));
  if (positions > full) tile(constant(full, i32), into, positions - full);
}
/** What strips hold a multiple of: the positions of the largest tile. */
const positionMultiple = 4;

function emitTile(b: KernelBuilder, into: Stmt[], r: Row, { panel, width, lanes }: TileColumns, start: Expr, x: Expr, rows: number, finish: Finish): void {
  const { p, source } = r;
  const accumulators = declareAccumulators(b, into, r.kind, { rows, columns: width, lanes });
  const plain = (body: Stmt[]): void => multiply(b, body, r, r.kind, accumulators, lanes, panel, start, x, source, elementBytes(r.kind));
  const { bytes } = source;
  if (bytes && panel.quads) {
    const { quads } = panel, sums = plus(plus(bytes.sums, times(r.y, toIndex(bytes.sumRowBytes))), times(x, 4));
    eitherEngine(into, (body) => {
      startSums(b, body, accumulators, quads, (i) => plus(sums, i * 4));
      const row = plus(source.pointer, times(times(r.y, p.outer.stride), toIndex(bytes.rowBytes)));
      multiply(b, body, r, { kind: "quads" }, accumulators, lanes, quadColumns(panel), row, x, { ...bytes, channelBytes: 1 }, 1);
    }, plain);
  } else plain(into);
  finish(into, x, accumulators);
}

/** Adds all taps' products, from position `x` of a row on: elements of `size` bytes as `kind` reads them. */
function multiply(b: KernelBuilder, into: Stmt[], r: Row, kind: TileKind, accumulators: Accumulators, lanes: 1 | 4, panel: BColumns, start: Expr, x: Expr, source: Omit<InputRows, "pointer">, size: number): void {
  const { p } = r, from = b.letIndex(into, "from", plus(start, times(times(x, p.inner.stride), source.positionBytes)));
  const pair = kind.kind === "float" ? 1 : kind.kind === "quads" ? 4 : 2, channels = kind.kind === "float" ? Number(r.s.inputChannel.extent) : scratchChannels(r.s, kind);
  const joined = p.inner.taps === 1 || (p.inner.dilation === 1 && dimEqual(source.channelBytes, size) && source.positionBytes === channels * size);
  const steps = constant((joined ? channels * p.inner.taps : channels) / pair, i32);
  const runs = p.outer.taps * (joined ? 1 : p.inner.taps);
  const weights = runs > 1 ? b.let(into, "w", panel.pointer) : panel.pointer;
  const run = (body: Stmt[], pointer: Expr): void => {
    accumulate(b, body, kind, accumulators, lanes, { pointers: [pointer], rowBytes: p.inner.stride * source.positionBytes, stepBytes: dimMul(source.channelBytes, pair) }, { ...panel, pointer: weights }, steps);
    if (weights.kind === "local" && runs > 1) body.push(assign(weights.name, add(weights, times(steps, toIndex(panel.stepBytes)))));
  };
  const taps = (body: Stmt[], d: SpatialDim, bytes: Dim, each: (body: Stmt[], pointer: Expr) => void, pointer: Expr): void => {
    if (d.taps === 1) return each(body, pointer);
    b.loop(body, "tap", 0, constant(d.taps, i32), 1, d.taps, (t, inner) => each(inner, plus(pointer, times(t, toIndex(dimMul(bytes, d.dilation))))));
  };
  if (runs > 0) taps(into, p.outer, source.rowBytes, (body, pointer) => (joined ? run(body, pointer) : taps(body, p.inner, source.positionBytes, run, pointer)), from);
}
