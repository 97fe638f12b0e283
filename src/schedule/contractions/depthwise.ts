/**
 * Depthwise convolution: lanes are channels, a tile is several output positions of one row. Kernel rows outside the input
 * are left out of the loop, positions whose taps leave it at the sides go one by one. Inside, the taps of a kernel row
 * are unrolled over several positions, so that every input vector is loaded once for all taps that read it.
 */
import { present } from "../../core/assert.ts";
import { dimAdd, dimCeilDiv, dimEqual, dimFloorDiv, dimMax, dimMin, dimMul, dimProduct, dimRange, dimSub, isSymbolic, type Dim } from "../../core/dim.ts";
import { add, axisOf, constant, div, f32, f32x4, gt, i32, lt, madd, max, min, mul, select, sub, type Axis, type Expr } from "../../kernel/expr.ts";
import { assign, type Stmt } from "../../kernel/stmt.ts";
import type { ConvStructure, EpilogueStore } from "../../kernel/structure.ts";
import { affineAccess, bytesAlong, plus, times, toIndex } from "../loops/affine.ts";
import { addressOf, loadAt, type KernelBuilder } from "../builder.ts";
import { outputPositions, span, type ConvProblem, type SpatialDim } from "./conv-problem.ts";
import { Epilogue } from "./epilogue.ts";
import { blockOf, rowScratch } from "./input-rows.ts";
import { isDistance } from "../loops/runs.ts";
import { stripFor, type Strip } from "./strip.ts";
import type { Accumulators, TileKind } from "./tile.ts";

/** Loops over channels as lanes; undefined where weights are not constant. */
export function scheduleDepthwise(b: KernelBuilder, s: ConvStructure, problems: readonly ConvProblem[]): Stmt | undefined {
  const body: Stmt[] = [];
  for (const p of problems) if (!emitProblem(b, body, s, p)) return undefined;
  return { kind: "block", body };
}

/** What the loops over rows, positions and channels share. */
interface Plane {
  readonly s: ConvStructure; readonly p: ConvProblem;
  readonly channels: number;
  readonly positionBytes: number;
  readonly rowBytes: Dim;
  readonly weights: Expr;
  readonly epilogue: Epilogue;
  readonly strip: Strip | undefined;
  /** Address of input position −pad of the row that kernel row 0 reads. */
  readonly row: Expr;
  /** Kernel rows inside the input, and their number. */
  readonly firstRow: Expr; readonly endRow: Expr; readonly rows: Expr;
}

/** Rows of output that are written as they are asked for. */
export interface DepthwiseRows {
  /** Rows that are asked for together at most: they share what is copied of the input. */
  readonly block: number;
  /** Instructions of a row, roughly. */
  readonly work: Dim;
  /** For the rows from `first` on, `count` of them, of an image: what writes the y-th, perhaps by other stores over the same axes. */
  of(into: Stmt[], image: Expr): (into: Stmt[], first: Expr, count: Expr) => (into: Stmt[], y: Expr, stores?: readonly EpilogueStore[]) => void;
}

function emitProblem(b: KernelBuilder, into: Stmt[], s: ConvStructure, p: ConvProblem): boolean {
  const rows = depthwiseRows(b, into, s, p);
  if (!rows) return false;
  const { block, work } = rows;
  b.parallel(into, "n", s.batch.extent, 1, dimMul(work, p.outer.count), (n, perImage) => {
    const write = rows.of(perImage, n), total = block === 1 ? undefined : b.letIndex(perImage, "rows", toIndex(p.outer.count));
    b.parallel(perImage, block === 1 ? "y" : "block", p.outer.count, block, dimMul(work, block), (first, body) => {
      if (!total) { write(body, first, constant(1, i32))(body, constant(0, i32)); return; }
      const count = b.let(body, "count", min(constant(block, i32), sub(total, first))), one = write(body, first, count);
      b.loop(body, "y", 0, count, 1, p.outer.count, (y, perRow) => one(perRow, y));
    });
  });
  return true;
}

/** The rows of a depthwise convolution of float32, `most` at a time where they have to share; undefined where weights are not constant. */
export function depthwiseRows(b: KernelBuilder, into: Stmt[], s: ConvStructure, p: ConvProblem, most?: number): DepthwiseRows | undefined {
  const channels = Number(s.group.extent);
  const weights = packWeights(b, s, p, channels);
  const outer: Axis = { name: "outer", extent: p.outer.input }, inner: Axis = { name: "inner", extent: p.inner.input };
  if (!weights || s.input.dtype !== "float32") return undefined;
  const indices: Expr[] = [axisOf(s.batch), axisOf(s.group), ...s.output.map((): Expr => constant(0, i32))];
  if (p.outer.at !== undefined) indices[p.outer.at] = axisOf(outer);
  if (p.inner.at !== undefined) indices[p.inner.at] = axisOf(inner);
  const access = affineAccess(s.input, indices, new Set([s.batch, s.group, outer, inner]), b.layout(s.input));
  const start = b.let(into, "weights", weights);
  const positionBytes = access && bytesAlong(access, inner);
  if (!access || !isDistance(bytesAlong(access, s.group), 4) || positionBytes === undefined || isSymbolic(positionBytes)) return copied(b, s, p, channels, start, most);
  const rowBytes = bytesAlong(access, outer);
  const base = b.let(into, "input", access.base);
  return {
    block: 1, work: workOfRow(p, channels),
    of(perImage, n) {
      const image = b.let(perImage, "image", plus(base, times(n, toIndex(bytesAlong(access, s.batch)))));
      return (_, from) => (body, at, stores = s.stores) => {
        const y = b.letIndex(body, "y", plus(from, at));
        const epilogue = rowEpilogue(b, body, { ...s, stores }, p, new Map([[s.batch, n]]), y);
        const top = b.let(body, "top", plus(times(y, p.outer.stride), times(toIndex(p.outer.pad), -1)));
        const row = b.let(body, "row", plus(plus(image, mul(top, toIndex(rowBytes))), times(times(toIndex(p.inner.pad), -1), positionBytes)));
        const [firstRow, endRow] = insideTaps(b, body, p.outer, top);
        emitRow(b, body, { s, p, channels, positionBytes, rowBytes, weights: start, epilogue, strip: stripFor(b, body, epilogue, "float32", channels, 4), row, firstRow, endRow, rows: b.let(body, "rows", sub(endRow, firstRow)) });
      };
    },
  };
}

/** Instructions of a row of output, roughly. */
const workOfRow = (p: ConvProblem, channels: number): Dim => dimFloorDiv(dimProduct([p.inner.count, channels, p.outer.taps * p.inner.taps]), 2);

/** An input whose channels are apart is copied with its padding, a block of rows at a time; nothing is outside then. */
function copied(b: KernelBuilder, s: ConvStructure, p: ConvProblem, channels: number, weights: Expr, most = Infinity): DepthwiseRows {
  const together: ConvStructure = { ...s, inputChannel: s.group, group: { name: "all", extent: 1 } };
  const kind: TileKind = { kind: "float" };
  const rows = Math.min(most, blockOf(together, p, kind)), scratch = rowScratch(b, together, p, rows, kind);
  const inside: ConvProblem = { outer: p.outer, inner: { ...p.inner, pad: 0, input: span(p.inner, p.inner.count) } };
  return {
    block: rows, work: workOfRow(p, channels),
    of: (_, n) => (body, first, count) => {
      const positions = new Map<Axis, Expr>([[s.batch, n]]), source = scratch(body, first, count, positions);
      return (perRow, y, stores = s.stores) => {
        const epilogue = rowEpilogue(b, perRow, { ...s, stores }, p, positions, plus(first, y));
        const row = b.let(perRow, "row", plus(source.pointer, times(times(y, p.outer.stride), toIndex(source.rowBytes))));
        emitRow(b, perRow, { s, p: inside, channels, positionBytes: source.positionBytes, rowBytes: source.rowBytes, weights, epilogue, strip: stripFor(b, perRow, epilogue, "float32", channels, 4), row, firstRow: constant(0, i32), endRow: constant(p.outer.taps, i32), rows: constant(p.outer.taps, i32) });
      };
    },
  };
}

function rowEpilogue(b: KernelBuilder, into: Stmt[], s: ConvStructure, p: ConvProblem, positions: ReadonlyMap<Axis, Expr>, row: Expr): Epilogue {
  const x: Axis = { name: b.name("x"), extent: p.inner.count };
  const epilogue = new Epilogue(b, { stores: s.stores, accumulator: s.accumulator.name, rows: [x], column: s.group, positions: outputPositions(p, positions, row, x) });
  epilogue.begin(into);
  return epilogue;
}

/** Weights as [tap of the outer dimension][tap of the inner][channel]. */
function packWeights(b: KernelBuilder, s: ConvStructure, p: ConvProblem, channels: number): Expr | undefined {
  const weight = b.context.weight(s.weight), layout = b.layout(s.weight);
  const strides = layout.strides.filter((d): d is number => !isSymbolic(d));
  if (!weight || strides.length !== layout.strides.length || isSymbolic(layout.offset)) return undefined;
  const stride = (d: SpatialDim): number => (d.at === undefined ? 0 : present(strides[d.at], "weight stride"));
  const offset = layout.offset + p.outer.firstTap * stride(p.outer) + p.inner.firstTap * stride(p.inner);
  const shape = [p.outer.taps, p.inner.taps, channels];
  const spec = { kind: "permute" as const, shape, strides: [p.outer.tapStep * stride(p.outer), p.inner.tapStep * stride(p.inner), present(strides[0], "weight stride")], as: "float32" as const, offset };
  return addressOf(b.packed(weight, spec, "float32", p.outer.taps * p.inner.taps * channels));
}

/** The taps that read inside the input, from tap 0 reading position `at`. */
function insideTaps(b: KernelBuilder, into: Stmt[], d: SpatialDim, at: Expr): readonly [Expr, Expr] {
  if (d.pad === 0 && d.taps === 1 && d.stride === 1 && dimEqual(d.count, d.input)) return [constant(0, i32), constant(1, i32)];
  const ceil = (e: Expr): Expr => (d.dilation === 1 ? e : div(plus(e, d.dilation - 1), d.dilation));
  const first = b.let(into, "first", ceil(max(constant(0, i32), sub(constant(0, i32), at))));
  const end = b.let(into, "end", min(constant(d.taps, i32), ceil(max(constant(0, i32), sub(toIndex(d.input), at)))));
  return [first, end];
}

/** Positions of one output row: those at the sides singly, those inside in tiles. */
function emitRow(b: KernelBuilder, into: Stmt[], plane: Plane): void {
  const { inner } = plane.p;
  const left = dimMin(inner.count, dimMax(0, dimCeilDiv(inner.pad, inner.stride)));
  const reach = dimAdd(dimSub(inner.input, 1 + (inner.taps - 1) * inner.dilation), inner.pad);
  const right = dimMax(left, dimMin(inner.count, dimAdd(dimFloorDiv(reach, inner.stride), 1)));
  const width = tilePositions(inner);
  const inside = dimSub(right, left);
  emitSides(b, into, plane, left, right);
  if (width === 0) b.loop(into, "x", toIndex(left), toIndex(right), 1, inner.count, (x, body) => emitChannels(b, body, plane, x, [constant(0, i32), constant(inner.taps, i32)]));
  else {
    const from = toIndex(left);
    const end = isSymbolic(inside) ? b.let(into, "tiles", plus(from, mul(div(toIndex(inside), width), width))) : plus(from, Math.floor(inside / width) * width);
    const rest = isSymbolic(inside) ? undefined : inside % width;
    emitTiles(b, into, plane, from, end, width, rest);
    if (rest === undefined) emitTiles(b, into, plane, end, toIndex(right), 1, 0);
  }
}

/** Tiles of `width` positions from `begin` to `end` and one of `rest` behind them, a strip of them after the other where there is one. */
function emitTiles(b: KernelBuilder, into: Stmt[], plane: Plane, begin: Expr, end: Expr, width: number, rest = 0): void {
  const { strip, p: { inner: { count } } } = plane;
  const tiles = (body: Stmt[], from: Expr, to: Expr): void =>
    b.loop(body, "x", from, to, width, count, (x, each) => emitTile(b, each, plane, x, width, sub(x, from)));
  const behind = (body: Stmt[], from: Expr): void => { if (rest > 0) emitTile(b, body, plane, end, rest, sub(end, from)); };
  if (!strip) { tiles(into, begin, end); behind(into, end); return; }
  const part = Math.floor(strip.rows / width) * width, all = plus(end, rest);
  b.loop(into, "part", begin, all, part, count, (from, body) => {
    const to = b.let(body, "to", min(plus(from, part), all)), then: Stmt[] = [];
    tiles(body, from, rest > 0 ? min(to, end) : to);
    behind(then, from);
    if (rest > 0) body.push({ kind: "if", condition: gt(to, end), then: { kind: "block", body: then } });
    strip.finish(body, from, b.let(body, "count", sub(to, from)));
  });
}

/** Positions a tile holds: inputs, weights and sums of a kernel row must fit in 14 registers. 0: kernel rows too long to unroll. */
function tilePositions(d: SpatialDim): number {
  for (const n of [4, 3, 2, 1]) {
    const inputs = new Set(Array.from({ length: n * d.taps }, (_, i) => Math.floor(i / d.taps) * d.stride + (i % d.taps) * d.dilation)).size;
    if (inputs + d.taps + n <= 14) return n;
  }
  return 0;
}

/** The positions before `left` and those from `right` on, in one loop: its code is what both take most of. */
function emitSides(b: KernelBuilder, into: Stmt[], plane: Plane, left: Dim, right: Dim): void {
  const { inner } = plane.p, sides = dimAdd(left, dimSub(inner.count, right));
  if (sides === 0) return;
  const position = (i: Expr): Expr => plus(i, left === 0 ? toIndex(right) : select(lt(i, toIndex(left)), constant(0, i32), toIndex(dimSub(right, left))));
  b.loop(into, "side", 0, toIndex(sides), 1, inner.count, (i, body) => {
    const x = b.let(body, "x", position(i));
    emitChannels(b, body, plane, x, insideTaps(b, body, inner, plus(times(x, inner.stride), times(toIndex(inner.pad), -1))));
  });
}

/** Covers the channels with vectors, then singly. */
function overChannels(b: KernelBuilder, into: Stmt[], channels: number, groups: readonly number[], body: (into: Stmt[], c: Expr, vectors: number, lanes: 1 | 4) => void): void {
  let done = 0;
  const cover = (step: number, vectors: number, lanes: 1 | 4): void => {
    const end = done + Math.floor((channels - done) / step) * step;
    if (end > done) b.loop(into, "c", done, constant(end, i32), step, channels, (c, inner) => body(inner, c, vectors, lanes));
    done = end;
  };
  for (const vectors of groups) cover(vectors * 4, vectors, 4);
  cover(1, 1, 1);
}

/** `width` positions with every tap of the inner dimension inside; the first is position `kept` of the strip. */
function emitTile(b: KernelBuilder, into: Stmt[], plane: Plane, x: Expr, width: number, kept: Expr): void {
  const { p: { inner, outer }, channels, positionBytes } = plane;
  const at = b.let(into, "at", plus(plus(plane.row, times(times(x, inner.stride), positionBytes)), mul(plane.firstRow, toIndex(dimMul(plane.rowBytes, outer.dilation)))));
  const w = b.let(into, "w", plus(plane.weights, times(plane.firstRow, inner.taps * channels * 4)));
  overChannels(b, into, channels, [1], (body, c, _, lanes) => {
    const type = lanes === 4 ? f32x4 : f32;
    const sums = Array.from({ length: width }, () => b.let(body, "acc", constant(0, type)));
    const pointer = b.let(body, "p", plus(at, times(c, 4))), weights = b.let(body, "q", plus(w, times(c, 4)));
    tapRows(b, body, plane, pointer, weights, (row, source, offset, kernel, kernelOffset, first) => {
      const taps = Array.from({ length: inner.taps }, (_t, t) => b.let(row, "w", loadAt(kernel, kernelOffset + t * channels * 4, "float32", type)));
      const inputs = new Map<number, Expr>();
      const input = (position: number): Expr => {
        const value = inputs.get(position) ?? b.let(row, "v", loadAt(source, offset + position * positionBytes, "float32", type));
        inputs.set(position, value);
        return value;
      };
      sums.forEach((acc, i) => {
        const products = taps.reduce<Expr | undefined>((sum, weight, t) => {
          const value = input(i * inner.stride + t * inner.dilation);
          return sum ? madd(value, weight, sum, b.relaxed) : mul(value, weight);
        }, undefined);
        if (acc.kind === "local" && products) row.push(assign(acc.name, first ? products : add(acc, products)));
      });
    });
    keep(body, plane, x, kept, c, lanes, sums.map((acc) => [acc]));
  });
}

/** Kernels of so many rows are written out, for outputs of so many elements an image: for fewer, fetching the code costs more. */
const unrolledRows = 5, elementsToUnroll = 8192;
/** A kernel row's part of the sums, read from `source` and `weights`; `first`: nothing has been summed before. */
type TapRow = (into: Stmt[], source: Expr, sourceOffset: number, weights: Expr, weightsOffset: number, first: boolean) => void;

/**
 * The kernel rows inside the input, the first at `source` and `weights`. A row's products are summed apart from the sums:
 * one chain of additions over all taps would take longer than what an engine's machine looks ahead.
 */
function tapRows(b: KernelBuilder, into: Stmt[], plane: Plane, source: Expr, weights: Expr, row: TapRow): void {
  const { p: { inner, outer }, channels } = plane;
  const sourceStep = dimMul(plane.rowBytes, outer.dilation), weightsStep = inner.taps * channels * 4;
  const small = dimRange(dimProduct([outer.count, inner.count, channels])).upper < elementsToUnroll;
  if (small || outer.taps > unrolledRows || isSymbolic(sourceStep) || plane.rows.kind === "const") {
    b.loop(into, "tap", plane.firstRow, plane.endRow, 1, outer.taps, (_tap, body) => {
      row(body, source, 0, weights, 0, false);
      advance(body, source, sourceStep);
      advance(body, weights, weightsStep);
    });
    return;
  }
  // Branches keep engines from moving the multiplications of one row behind the loads of the next.
  const from = (body: Stmt[], r: number, first: boolean): void => {
    row(body, source, r * sourceStep, weights, r * weightsStep, first);
    if (r + 1 === outer.taps) return;
    const then: Stmt[] = [];
    from(then, r + 1, false);
    body.push({ kind: "if", condition: gt(plane.rows, r + 1), then: { kind: "block", body: then } });
  };
  if (someInside(outer)) { from(into, 0, true); return; }
  const then: Stmt[] = [];
  from(then, 0, true);
  into.push({ kind: "if", condition: gt(plane.rows, 0), then: { kind: "block", body: then } });
}

/** Every output reads at least one position of the input. */
function someInside(d: SpatialDim): boolean {
  const atLeast = (a: Dim, b: Dim): boolean => dimRange(dimSub(a, b)).lower >= 0;
  return atLeast((d.taps - 1) * d.dilation, d.pad) && atLeast(dimAdd(d.input, dimSub(d.pad, 1)), dimMul(dimSub(d.count, 1), d.stride));
}

/** Finished sums of the positions from `x` on, the strip's from `kept` on, and the channels from `c` on. */
function keep(into: Stmt[], plane: Plane, x: Expr, kept: Expr, c: Expr, columns: number, accumulators: Accumulators): void {
  if (plane.strip) plane.strip.keep(into, kept, c, accumulators);
  else plane.epilogue.store(into, { row: x, column: c, columns, accumulators });
}

/** One position with the taps [first, end) of the inner dimension. */
function emitChannels(b: KernelBuilder, into: Stmt[], plane: Plane, x: Expr, [first, end]: readonly [Expr, Expr]): void {
  const { p: { inner, outer }, channels, positionBytes } = plane;
  const rowStep = dimMul(plane.rowBytes, outer.dilation);
  const at = b.let(into, "at", plus(plus(plane.row, times(plus(times(x, inner.stride), times(first, inner.dilation)), positionBytes)), mul(plane.firstRow, toIndex(rowStep))));
  const w = b.let(into, "w", plus(plane.weights, times(plus(times(plane.firstRow, inner.taps), first), channels * 4)));
  overChannels(b, into, channels, [4, 1], (body, c, vectors, lanes) => {
    const type = lanes === 4 ? f32x4 : f32;
    const sums = Array.from({ length: vectors }, () => b.let(body, "acc", constant(0, type)));
    const pointer = b.let(body, "p", plus(at, times(c, 4))), weights = b.let(body, "q", plus(w, times(c, 4)));
    b.loop(body, "tap", plane.firstRow, plane.endRow, 1, outer.taps, (_tap, row) => {
      const p = b.let(row, "r", pointer), q = b.let(row, "s", weights);
      b.loop(row, "tap", first, end, 1, inner.taps, (_t, inside) => {
        sums.forEach((acc, v) => {
          if (acc.kind === "local") inside.push(assign(acc.name, madd(loadAt(p, v * 16, "float32", type), loadAt(q, v * 16, "float32", type), acc, b.relaxed)));
        });
        advance(inside, p, inner.dilation * positionBytes);
        advance(inside, q, channels * 4);
      });
      advance(row, pointer, rowStep);
      advance(row, weights, inner.taps * channels * 4);
    });
    keep(body, plane, x, constant(0, i32), c, vectors * lanes, [sums]);
  });
  plane.strip?.finish(into, x, constant(1, i32));
}

function advance(into: Stmt[], pointer: Expr, by: Dim): void {
  if (pointer.kind === "local") into.push(assign(pointer.name, add(pointer, toIndex(by))));
}
