/**
 * 3x3 convolutions of stride 1 by F(4x4,3x3) (Lavin & Gray, "Fast algorithms for convolutional neural networks"): tiles of
 * 6x6 inputs become 36 small matrix products instead of 144 multiplications an output channel. A block of tiles is
 * transformed once; each panel of 8 output channels is multiplied and transformed back while its sums are in the cache.
 *
 * Rounding errors grow by about one decimal digit; `winogradError` measures that for a layer's own weights.
 */
import { dimCeilDiv, dimMul, isSymbolic, type Dim } from "../../core/dim.ts";
import { add, constant, div, f32x4, i32, le, lt, min, mul, rem, sub, type Axis, type Expr } from "../../kernel/expr.ts";
import { block, type Stmt } from "../../kernel/stmt.ts";
import type { ConvStructure } from "../../kernel/structure.ts";
import { packedLength } from "../../memory/pack.ts";
import { plus, times, toIndex } from "../loops/affine.ts";
import { addressOf, loadAt, storeAt, type KernelBuilder } from "../builder.ts";
import { outputPositions, type ConvProblem } from "./conv-problem.ts";
import { Epilogue, isCostly } from "./epilogue.ts";
import { rowScratch, type InputRows } from "./input-rows.ts";
import type { RowBlocks } from "./row-blocks.ts";
import { flatten, suitsStrips } from "./strip.ts";
import { accumulate, declareAccumulators } from "./tile.ts";
import { winogradError } from "./winograd-error.ts";

/** Fewer channels than this leave too little to multiply between the transforms. */
const leastChannels = 8;
/** Input channels for each output channel beyond which transforming the input costs more than it saves. */
const mostInputs = 8;
/** Part of the tiles' positions that must be positions of the output. */
const leastFilled = 0.6;
/** Fewer output positions than this read the larger weights too often. */
const leastPositions = 25;
/** Errors above this part of the largest output are left to the direct convolution. */
const largestError = 3e-5;
const mostTiles = 32;
/** Bytes of transformed input that are to stay in the second-level cache. */
const tileBytes = 640 * 1024;

/** Whether a problem may be, and is worth being, done this way. */
export function suitsWinograd(b: KernelBuilder, s: ConvStructure, p: ConvProblem): boolean {
  const weight = b.context.weight(s.weight), c = s.inputChannel.extent, m = s.channel.extent;
  const { outer, inner } = p;
  const shape = [outer, inner].every((d) => d.taps === 3 && d.stride === 1 && d.dilation === 1 && d.scale === 1 && d.tapStep === 1) && outer.at === 2 && inner.at === 3;
  const rowMajor = b.layout(s.weight).strides.every((stride, d) => stride === [9 * Number(c), 9, 3, 1][d]) && b.layout(s.weight).offset === 0;
  if (!shape || !rowMajor || !b.winograd || s.transposed || s.group.extent !== 1 || isSymbolic(c) || isSymbolic(m) || c % 4 !== 0 || m % 4 !== 0 || c < leastChannels || m < leastChannels || c > m * mostInputs) return false;
  if (!isSymbolic(outer.count) && !isSymbolic(inner.count) && outer.count * inner.count < leastPositions) return false;
  if (filled(outer.count) * filled(inner.count) < leastFilled) return false;
  return weight !== undefined && b.context.contents(weight, (t) => t.dtype === "float32" && winogradError(t) <= largestError) === true;
}

/** Part of the positions of whole tiles that exist; unknown sizes are taken for large ones. */
const filled = (count: Dim): number => (isSymbolic(count) ? 1 : count / (4 * Math.ceil(count / 4)));

/** How a block is made of tiles: `rows` rows of `width` tiles. */
interface Blocks { readonly rows: number; readonly width: number; readonly most: number }

function blocksOf(p: ConvProblem, channels: number): Blocks {
  const fits = Math.max(4, Math.min(mostTiles, Math.floor(tileBytes / (144 * channels) / 4) * 4));
  const across = dimCeilDiv(p.inner.count, 4), down = dimCeilDiv(p.outer.count, 4);
  if (isSymbolic(across) || across > fits) {
    const parts = isSymbolic(across) ? undefined : Math.ceil(across / fits);
    const width = isSymbolic(across) || parts === undefined ? fits : Math.ceil(across / parts);
    return { rows: 1, width, most: Math.ceil(width / 4) * 4 };
  }
  let best: Blocks = { rows: 1, width: across, most: Math.ceil(across / 4) * 4 };
  for (let rows = 2; rows * across <= fits && (isSymbolic(down) || rows <= down); rows++) {
    const most = Math.ceil((rows * across) / 4) * 4;
    if ((rows * across) / most >= (best.rows * across) / best.most) best = { rows, width: across, most };
  }
  return best;
}

/** What the loops over blocks, panels and tiles share. */
interface Plane {
  readonly s: ConvStructure; readonly p: ConvProblem; readonly c: number; readonly m: number; readonly blocks: Blocks;
  readonly positions: ReadonlyMap<Axis, Expr>;
  /** Addresses: weights, transformed inputs [36][tile][c], products [36][tile][8], a tile between its two passes. */
  readonly u: Expr; readonly v: Expr; readonly products: Expr; readonly between: Expr;
  /** Address of a block's sums [row][position][m], where the epilogue is costly: it runs along their rows. */
  readonly sums: Expr | undefined;
}

export function emitWinograd(b: KernelBuilder, into: Stmt[], s: ConvStructure, p: ConvProblem): void {
  const blocks = winogradBlocks(b, into, s, p);
  if (!blocks) return;
  const { most, work, padded } = blocks;
  b.parallel(into, "n", s.batch.extent, 1, dimMul(work, dimCeilDiv(padded, most)), (n, perImage) => {
    const total = b.letIndex(perImage, "rows", toIndex(padded)), write = blocks.at(perImage, n);
    b.parallel(perImage, "block", padded, most, work, (first, body) =>
      write(body, first, b.let(body, "count", min(constant(most, i32), sub(total, first))), s.stores));
  });
}

/** Rows as they are asked for, whole tiles of them. */
export function winogradRows(b: KernelBuilder, into: Stmt[], s: ConvStructure, p: ConvProblem): { readonly at: (into: Stmt[], image: Expr) => RowBlocks } | undefined {
  const blocks = winogradBlocks(b, into, s, p);
  return blocks && { at: (perImage, image) => ({ rows: blocks.most, multiple: 4, work: blocks.work, write: blocks.at(perImage, image) }) };
}

interface WinogradBlocks {
  /** Rows of a block, the work of one, and rows of whole tiles. */
  readonly most: number; readonly work: Dim; readonly padded: Dim;
  at(into: Stmt[], image: Expr): RowBlocks["write"];
}

function winogradBlocks(b: KernelBuilder, into: Stmt[], s: ConvStructure, p: ConvProblem): WinogradBlocks | undefined {
  const weight = b.context.weight(s.weight), c = Number(s.inputChannel.extent), m = Number(s.channel.extent);
  if (!weight) return undefined;
  const spec = { kind: "winograd" as const, tile: 4 as const, m, c, nr: 8 };
  const blocks = blocksOf(p, c);
  const buffers = [["transformed", 36 * blocks.most * c], ["products", 36 * blocks.most * 8], ["between", 36 * 8]] as const;
  const [v, products, between] = buffers.map(([name, size]) => b.let(into, name, addressOf(b.temporary(name, "float32", [size]))));
  const u = b.let(into, "u", addressOf(b.packed(weight, spec, "float32", packedLength([], spec))));
  if (!v || !products || !between) return undefined;
  // Whole tiles: rows and positions past the output are computed from padding and dropped.
  const whole = (n: Dim): Dim => dimMul(dimCeilDiv(n, 4), 4);
  const padded: ConvProblem = { outer: { ...p.outer, count: whole(p.outer.count) }, inner: { ...p.inner, count: whole(p.inner.count) } };
  const scratch = rowScratch(b, s, padded, blocks.rows * 4, { kind: "float" });
  const strips = isCostly(s.stores) && suitsStrips(m);
  const sums = strips ? b.let(into, "sums", addressOf(b.temporary("sums", "float32", [blocks.rows * 4, blocks.width * 4, m]))) : undefined;
  const panelWork = 36 * blocks.most * c * 4 + 36 * blocks.most * 32, partWork = Math.ceil(m / 8) * panelWork, parts = dimCeilDiv(dimCeilDiv(p.inner.count, 4), blocks.width);
  return {
    most: blocks.rows * 4, work: dimMul(parts, partWork), padded: padded.outer.count,
    at(perImage, image) {
      const positions = new Map<Axis, Expr>([[s.group, constant(0, i32)], [s.batch, image]]);
      const across = b.letIndex(perImage, "across", toIndex(dimCeilDiv(p.inner.count, 4)));
      return (body, first, count, stores) => {
        const plane: Plane = { s: { ...s, stores }, p, c, m, blocks, positions, u, v, products, between, sums };
        const source = scratch(body, first, count, positions);
        b.parallel(body, "part", dimCeilDiv(p.inner.count, 4), blocks.width, partWork, (part, inner) => {
          const width = b.let(inner, "width", min(constant(blocks.width, i32), sub(across, part)));
          const tiles = b.let(inner, "tiles", mul(width, div(count, 4)));
          inputTransforms(b, inner, plane, source, part, width, tiles);
          b.parallel(inner, "panel", m, 8, sums ? undefined : panelWork, (column, perPanel) => {
            multiply(b, perPanel, plane, column, tiles);
            outputTransforms(b, perPanel, plane, first, part, width, tiles, column);
          });
          if (sums) finishRows(b, inner, plane, sums, first, count, part, width);
        });
      };
    },
  };
}

const vector = (p: Expr, offset: number): Expr => loadAt(p, offset, "float32", f32x4);
const scaled = (x: Expr, by: number): Expr => (by === 1 ? x : mul(x, constant(by, f32x4)));

/** Bᵀ of six vectors. */
function inputTransform(b: KernelBuilder, into: Stmt[], d: readonly Expr[]): readonly Expr[] {
  const [d0, d1, d2, d3, d4, d5] = d;
  if (!d0 || !d1 || !d2 || !d3 || !d4 || !d5) return [];
  const named = (e: Expr): Expr => b.let(into, "t", e);
  const e = named(sub(d4, scaled(d2, 4))), o = named(sub(d3, scaled(d1, 4)));
  const f = named(sub(d4, d2)), g = named(scaled(sub(d3, d1), 2));
  return [add(sub(scaled(d0, 4), scaled(d2, 5)), d4), add(e, o), sub(e, o), add(f, g), sub(f, g), add(sub(scaled(d1, 4), scaled(d3, 5)), d5)];
}

/** Aᵀ of six vectors. */
function outputTransform(b: KernelBuilder, into: Stmt[], m: readonly Expr[]): readonly Expr[] {
  const [m0, m1, m2, m3, m4, m5] = m;
  if (!m0 || !m1 || !m2 || !m3 || !m4 || !m5) return [];
  const named = (e: Expr): Expr => b.let(into, "t", e);
  const plus12 = named(add(m1, m2)), minus12 = named(sub(m1, m2)), plus34 = named(add(m3, m4)), minus34 = named(sub(m3, m4));
  return [add(add(m0, plus12), plus34), add(minus12, scaled(minus34, 2)), add(plus12, scaled(plus34, 4)), add(add(minus12, scaled(minus34, 8)), m5)];
}

/** v[36][tile][c] from the padded rows: along rows into `between`, then along columns. */
function inputTransforms(b: KernelBuilder, into: Stmt[], plane: Plane, source: InputRows, part: Expr, width: Expr, tiles: Expr): void {
  const { c, blocks: { most } } = plane;
  const plane36 = most * c * 4, rowStep = toIndex(source.rowBytes);
  b.loop(into, "tile", 0, tiles, 1, most, (t, body) => {
    const down = b.let(body, "down", div(t, width)), across = b.let(body, "across", add(part, rem(t, width)));
    const from = b.let(body, "from", plus(plus(source.pointer, times(down, toIndex(dimMul(source.rowBytes, 4)))), times(across, 4 * source.positionBytes)));
    const to = b.let(body, "to", plus(plane.v, times(t, c * 4)));
    b.loop(body, "c", 0, constant(c * 4, i32), 16, c * 4, (channel, perVector) => {
      const start = b.let(perVector, "start", plus(from, channel)), target = b.let(perVector, "target", plus(to, channel));
      b.loop(perVector, "i", 0, constant(6, i32), 1, 6, (i, row) => {
        const at = b.let(row, "at", plus(start, mul(i, rowStep)));
        const d = [0, 1, 2, 3, 4, 5].map((j) => b.let(row, "d", vector(at, j * source.positionBytes)));
        const keep = b.let(row, "keep", plus(plane.between, times(i, 96)));
        inputTransform(b, row, d).forEach((x, j) => row.push(storeAt(keep, j * 16, "float32", x)));
      });
      b.loop(perVector, "j", 0, constant(6, i32), 1, 6, (j, column) => {
        const keep = b.let(column, "keep", plus(plane.between, times(j, 16)));
        const d = [0, 1, 2, 3, 4, 5].map((i) => b.let(column, "d", vector(keep, i * 96)));
        const at = b.let(column, "at", plus(target, times(j, plane36)));
        inputTransform(b, column, d).forEach((x, i) => column.push(storeAt(at, i * 6 * plane36, "float32", x)));
      });
    });
  });
}

/** products[36][tile][8] of one panel. */
function multiply(b: KernelBuilder, into: Stmt[], plane: Plane, column: Expr, tiles: Expr): void {
  const { c, blocks: { most } } = plane;
  const panel = b.let(into, "panel", plus(plane.u, times(column, (36 * c * 32) / 8)));
  b.loop(into, "xi", 0, constant(36, i32), 1, 36, (xi, body) => {
    const weights = b.let(body, "w", plus(panel, times(xi, c * 32)));
    const rows = b.let(body, "rows", plus(plane.v, times(xi, most * c * 4))), out = b.let(body, "out", plus(plane.products, times(xi, most * 32)));
    b.loop(body, "t", 0, tiles, 4, most, (t, tile) => {
      const accumulators = declareAccumulators(b, tile, { kind: "float" }, { rows: 4, columns: 8, lanes: 4 });
      accumulate(b, tile, { kind: "float" }, accumulators, 4, { pointers: [plus(rows, times(t, c * 4))], rowBytes: c * 4, stepBytes: 4 }, { pointer: weights, offsets: [0, 16], stepBytes: 32 }, constant(c, i32));
      const at = b.let(tile, "at", plus(out, times(t, 32)));
      accumulators.forEach((row, i) => row.forEach((acc, j) => tile.push(storeAt(at, i * 32 + j * 16, "float32", acc))));
    });
  });
}

/** The outputs of a panel: along columns into `between`, then row by row through the epilogue. */
function outputTransforms(b: KernelBuilder, into: Stmt[], plane: Plane, first: Expr, part: Expr, width: Expr, tiles: Expr, column: Expr): void {
  const { p, m, blocks } = plane, { most } = blocks;
  const step = most * 32;
  b.loop(into, "tile", 0, tiles, 1, most, (t, body) => {
    const down = b.let(body, "down", div(t, width)), across = b.let(body, "across", add(part, rem(t, width)));
    const from = b.let(body, "from", plus(plane.products, times(t, 32)));
    b.loop(body, "half", 0, constant(32, i32), 16, 32, (half, perHalf) =>
      b.loop(perHalf, "j", 0, constant(6, i32), 1, 6, (j, inner) => {
        const at = b.let(inner, "at", plus(plus(from, half), times(j, step))), keep = b.let(inner, "keep", plus(plus(plane.between, half), times(j, 32)));
        const products = [0, 1, 2, 3, 4, 5].map((i) => b.let(inner, "m", vector(at, i * 6 * step)));
        outputTransform(b, inner, products).forEach((x, i) => inner.push(storeAt(keep, i * 192, "float32", x)));
      }));
    const x = b.let(body, "x", times(across, 4)), y = b.let(body, "y", plus(first, times(down, 4)));
    const rows = b.let(body, "rows", min(constant(4, i32), sub(toIndex(p.outer.count), y)));
    b.loop(body, "i", 0, rows, 1, 4, (i, perRow) => {
      const epilogue = rowEpilogue(b, perRow, plane, plus(y, i));
      const terms = plane.sums && flatten(b, perRow, epilogue, "float32", m);
      const keep = b.let(perRow, "keep", plus(plane.between, times(i, 192)));
      const half = (inner: Stmt[], h: number): void => {
        const values = [0, 1, 2, 3, 4, 5].map((j) => b.let(inner, "m", vector(keep, j * 32 + h * 16)));
        const outputs = outputTransform(b, inner, values).map((e) => b.let(inner, "y", e));
        if (plane.sums) {
          const position = plus(times(plus(times(down, 4), i), blocks.width * 4), times(sub(across, part), 4));
          const at = b.let(inner, "sums", plus(plane.sums, plus(times(position, m * 4), times(plus(column, h * 4), 4))));
          const [term] = terms?.terms(inner, plus(column, h * 4), outputs.slice(0, 1)) ?? [];
          outputs.forEach((e, r) => inner.push(storeAt(at, r * m * 4, "float32", term ? add(e, term) : e)));
          return;
        }
        const full: Stmt[] = [], edge: Stmt[] = [];
        const at = plus(column, h * 4);
        epilogue.store(full, { row: x, column: at, columns: 4, accumulators: outputs.map((e) => [e]) });
        outputs.forEach((e, r) => {
          const one: Stmt[] = [];
          epilogue.store(one, { row: plus(x, r), column: at, columns: 4, accumulators: [[e]] });
          if (r < 3) edge.push({ kind: "if", condition: lt(plus(x, r), toIndex(p.inner.count)), then: block(...one) });
        });
        const exact = !isSymbolic(p.inner.count) && p.inner.count % 4 === 0;
        if (exact) inner.push(...full);
        else inner.push({ kind: "if", condition: le(plus(x, 4), toIndex(p.inner.count)), then: block(...full), else: block(...edge) });
      };
      half(perRow, 0);
      const second: Stmt[] = [];
      half(second, 1);
      if (m % 8 === 0) perRow.push(...second);
      else perRow.push({ kind: "if", condition: lt(plus(column, 4), constant(m, i32)), then: block(...second) });
    });
  });
}

function rowEpilogue(b: KernelBuilder, into: Stmt[], { s, p, positions }: Plane, row: Expr): Epilogue {
  const axis: Axis = { name: b.name("x"), extent: p.inner.count };
  const epilogue = new Epilogue(b, { stores: s.stores, accumulator: s.accumulator.name, rows: [axis], column: s.channel, positions: outputPositions(p, positions, row, axis) });
  epilogue.begin(into);
  return epilogue;
}

/** The epilogue of a block's sums, along its rows. */
function finishRows(b: KernelBuilder, into: Stmt[], plane: Plane, sums: Expr, first: Expr, count: Expr, part: Expr, width: Expr): void {
  const { p, m, blocks } = plane, most = blocks.width * 4;
  const rows = b.let(into, "rows", min(count, sub(toIndex(p.outer.count), first)));
  const begin = b.let(into, "begin", times(part, 4)), positions = b.let(into, "positions", min(times(width, 4), sub(toIndex(p.inner.count), begin)));
  b.loop(into, "y", 0, rows, 1, blocks.rows * 4, (y, body) => {
    const epilogue = rowEpilogue(b, body, plane, plus(first, y)), flat = flatten(b, body, epilogue, "float32", m);
    const from = b.let(body, "from", plus(sums, times(y, most * m * 4)));
    if (flat) { flat.epilogue.storeRun(body, begin, from, "float32", b.let(body, "run", times(positions, m)), most * m); return; }
    b.loop(body, "x", 0, positions, 1, most, (x, inner) =>
      epilogue.storeRow(inner, b.let(inner, "at", plus(begin, x)), b.let(inner, "row", plus(from, times(x, m * 4))), "float32", m));
  });
}
