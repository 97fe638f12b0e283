/**
 * A convolution whose result is pooled. The rows that some rows of the pool read go to scratch with their channels
 * together and are pooled while they are in the second-level cache, so that the convolution's result is never a tensor in
 * memory. Every element is computed by the loops that the convolution has for itself, and windows are reduced in the order
 * of the pool's own loops: the same bits. Rows that windows of two strips share are computed twice.
 */
import { dimAdd, dimFloorDiv, dimMax, dimMul, dimProduct, dimRange, dimSub, isSymbolic, type Dim } from "../../core/dim.ts";
import { and, axisOf, constant, div, f32, f32x4, i32, max, min, sub, type Expr } from "../../kernel/expr.ts";
import { block, type Stmt } from "../../kernel/stmt.ts";
import type { ConvStructure, EpilogueStore, PooledOutput } from "../../kernel/structure.ts";
import { plus, times, toIndex } from "../loops/affine.ts";
import { foldMaxima } from "../loops/maxima.ts";
import { statementsOf } from "../loops/nest.ts";
import { addressOf, loadAt, storeAt, type KernelBuilder } from "../builder.ts";
import { rowProblem } from "./conv-problem.ts";
import { convolutionRows } from "./convolution.ts";
import { Epilogue } from "./epilogue.ts";

/** Bytes of a strip that leave room for the weights and the rows of input in a second-level cache. */
const stripBytes = 192 * 1024;
/** Rows of the pool in a strip whose width only running tells. */
const unknownRows = 4;

/** Taps of a row, and rows of a window, that are written out. */
const unrolledTaps = 8, unrolledRows = 4;

/** The convolution's rows in scratch: positions of `width`, of which `before` lie before the row's first, with their channels. */
interface Strip {
  readonly start: Expr; readonly width: Dim; readonly before: number; readonly positions: Dim; readonly channels: number;
  /** The row that lies first, and the result's rows. */
  readonly first: Expr; readonly height: Expr;
  /** Whether every window has all of its rows. */
  readonly whole: boolean;
}

/** Loops for both; undefined where this part has none for them. */
export function schedulePoolStrips(b: KernelBuilder, s: ConvStructure, pool: PooledOutput): Stmt | undefined {
  const p = rowProblem(s), [store] = s.stores, [y, x] = s.output, [down, across] = pool.windows, [poolY, poolX] = pool.output;
  const channels = s.channel.extent, into: Stmt[] = [];
  if (!p || !store || s.stores.length !== 1 || !y || !x || s.group.extent !== 1 || isSymbolic(channels)) return undefined;
  const rows = convolutionRows(b, into, s, p);
  if (!rows) return undefined;
  const before = across.pad, width = dimMax(dimAdd(x.extent, before), dimAdd(dimMul(dimSub(poolX.extent, 1), across.stride), across.taps));
  const whole = down.pad === 0 && dimRange(dimSub(y.extent, dimAdd(dimMul(dimSub(poolY.extent, 1), down.stride), down.taps))).lower >= 0;
  const work = dimFloorDiv(dimProduct([y.extent, x.extent, channels, s.inputChannel.extent, ...s.kernel.map((k) => k.extent)]), 2);
  b.parallel(into, "n", s.batch.extent, 1, work, (image, perImage) => {
    const blocks = rows.at(perImage, image), { multiple } = blocks;
    const pooled = rowsOf(poolY.extent, width, channels, pool, blocks.rows), reach = (pooled - 1) * down.stride + down.taps + multiple - 1;
    const buffer = b.temporary("rows", "float32", [Math.ceil(reach / multiple) * multiple, width, channels]);
    const total = b.letIndex(perImage, "pooled", toIndex(poolY.extent)), height = b.letIndex(perImage, "height", toIndex(y.extent));
    b.parallel(perImage, "strip", poolY.extent, pooled, dimMul(blocks.work, Math.ceil(reach / blocks.rows)), (from, body) => b.serially(() => {
      const count = b.let(body, "count", min(constant(pooled, i32), sub(total, from))), top = b.let(body, "top", plus(times(from, down.stride), -down.pad));
      const inside = down.pad > 0 ? max(constant(0, i32), top) : top, first = multiple > 1 || down.pad > 0 ? b.let(body, "first", multiple > 1 ? and(inside, constant(-multiple, i32)) : inside) : top;
      const needed = b.let(body, "needed", sub(min(height, plus(top, plus(times(plus(count, -1), down.stride), down.taps))), first));
      const kept: readonly EpilogueStore[] = [{ ...store, buffer, indices: [sub(axisOf(y), first), plus(axisOf(x), before), axisOf(s.channel)] }];
      b.loop(body, "block", 0, needed, blocks.rows, reach, (at, part) => {
        const left = sub(needed, at);
        blocks.write(part, b.let(part, "row", plus(first, at)), b.let(part, "count", min(constant(blocks.rows, i32), multiple === 1 ? left : and(plus(left, multiple - 1), constant(-multiple, i32)))), kept);
      });
      const strip: Strip = { start: b.let(body, "between", addressOf(buffer)), width, before, positions: x.extent, channels, first, height, whole };
      if (pool.reduce === "max") fillSides(b, body, strip, needed, reach);
      b.loop(body, "y", 0, count, 1, pooled, (at, perRow) => poolRow(b, perRow, pool, strip, image, b.let(perRow, "row", plus(from, at))));
    }));
  });
  return { kind: "block", body: into };
}

/** Rows of the pool in a strip: parts of equal size of the image where that is known, and whole blocks of the convolution. */
function rowsOf(height: Dim, width: Dim, channels: number, { windows: [down] }: PooledOutput, block: number): number {
  if (isSymbolic(width) || width === 0) return unknownRows;
  const rows = Math.floor(stripBytes / (width * channels * 4));
  const fits = Math.max(1, Math.floor((rows - down.taps) / down.stride) + 1), most = isSymbolic(height) ? fits : Math.min(fits, Math.max(1, height));
  const even = isSymbolic(height) ? most : Math.ceil(height / Math.ceil(Math.max(1, height) / most));
  const multiple = Math.max(1, Math.floor(block / down.stride));
  return even <= multiple ? (isSymbolic(height) ? multiple : Math.min(multiple, Math.max(1, height))) : even - (even % multiple);
}

/** What lies beside the rows is less than anything. */
function fillSides(b: KernelBuilder, into: Stmt[], { start, width, before, positions, channels }: Strip, rows: Expr, most: number): void {
  const after = dimSub(dimSub(width, positions), before), least = constant(-Infinity, f32);
  const fill = (body: Stmt[], from: Expr, count: Dim): void => {
    if (count !== 0) b.loop(body, "i", 0, toIndex(dimMul(count, channels)), 1, dimMul(count, channels), (i, each) => each.push(storeAt(plus(from, times(i, 4)), 0, "float32", least)));
  };
  if (before === 0 && after === 0) return;
  b.loop(into, "y", 0, rows, 1, most, (y, body) => {
    const row = b.let(body, "row", plus(start, times(y, toIndex(dimMul(width, channels * 4)))));
    fill(body, row, before);
    fill(body, plus(row, toIndex(dimMul(dimAdd(positions, before), channels * 4))), after);
  });
}

/** Vectors that are reduced side by side. */
const turnVectors = 2;

/** A row of the pool, from those of the strip. */
function poolRow(b: KernelBuilder, into: Stmt[], pool: PooledOutput, strip: Strip, image: Expr, row: Expr): void {
  const [down, across] = pool.windows, [poolY, poolX] = pool.output, { channels, width } = strip;
  const epilogue = new Epilogue(b, { stores: pool.stores, accumulator: pool.accumulator.name, rows: [poolX], column: pool.channel, positions: new Map([[pool.batch, image], [poolY, row]]) });
  epilogue.begin(into);
  const positionBytes = channels * 4, rowBytes = toIndex(dimMul(width, positionBytes));
  const top = b.let(into, "top", plus(times(row, down.stride), -down.pad));
  const from = strip.whole ? top : b.let(into, "from", max(constant(0, i32), top));
  const rows = strip.whole ? constant(down.taps, i32) : b.let(into, "rows", sub(min(strip.height, plus(top, down.taps)), from));
  const start = b.let(into, "start", plus(strip.start, times(sub(from, strip.first), rowBytes)));
  b.loop(into, "x", 0, toIndex(poolX.extent), 1, poolX.extent, (x, body) => {
    const at = b.let(body, "at", plus(start, times(x, across.stride * positionBytes)));
    let done = 0;
    for (const [lanes, vectors] of [[4, turnVectors], [4, 1], [1, 1]] as const) {
      const width = lanes * vectors, end = channels - ((channels - done) % width), type = lanes === 4 ? f32x4 : f32;
      if (end > done) b.loop(body, "c", done, constant(end, i32), width, channels, (c, each) => {
        const window = b.let(each, "p", plus(at, times(c, 4)));
        const values = Array.from({ length: vectors }, (_, v) => {
          const acc = b.let(each, "acc", constant(pool.reduce === "max" ? -Infinity : 0, type)), turn: Stmt[] = [];
          overWindow(b, turn, { rows, taps: across.taps, most: down.taps, rowBytes, positionBytes }, window, (inner, pointer, offset) => {
            if (acc.kind === "local") inner.push({ kind: "accumulate", name: acc.name, op: pool.reduce, value: loadAt(pointer, offset + v * 16, "float32", type) });
          });
          const declared = each.pop(), folded = declared && foldMaxima(block(declared, ...turn), (hint) => b.name(hint));
          if (folded) each.push(...statementsOf(folded));
          return pool.divisor === undefined ? acc : b.let(each, "mean", div(acc, constant(pool.divisor, type)));
        });
        epilogue.store(each, { row: x, column: c, columns: width, accumulators: [values] });
      });
      done = end;
    }
  });
}

interface WindowOfStrip { readonly rows: Expr; readonly taps: number; readonly most: number; readonly rowBytes: Expr; readonly positionBytes: number }

/** Every tap of a window, in the order of its rows. */
function overWindow(b: KernelBuilder, into: Stmt[], { rows, taps, most, rowBytes, positionBytes }: WindowOfStrip, start: Expr, tap: (into: Stmt[], pointer: Expr, offset: number) => void): void {
  const row = (body: Stmt[], pointer: Expr): void => {
    if (taps > unrolledTaps) b.loop(body, "tap", 0, constant(taps, i32), 1, taps, (t, inner) => tap(inner, plus(pointer, times(t, positionBytes)), 0));
    else for (let t = 0; t < taps; t++) tap(body, pointer, t * positionBytes);
  };
  if (rows.kind !== "const" || most > unrolledRows) {
    b.loop(into, "line", 0, rows, 1, most, (line, body) => row(body, b.let(body, "q", plus(start, times(line, rowBytes)))));
    return;
  }
  for (let line = 0; line < most; line++) row(into, line === 0 ? start : b.let(into, "q", plus(start, times(constant(line, i32), rowBytes))));
}
