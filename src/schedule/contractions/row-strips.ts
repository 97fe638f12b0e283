/**
 * A 1x1 convolution that reads what a depthwise convolution computes. A strip of rows of the depthwise result goes to
 * scratch with its channels together and is read by the product while it is still in the second-level cache, so that what lies
 * between the two is never a tensor in memory. A window of one position needs no rows of its neighbours: nothing is
 * computed twice, and every element is computed by the loops that each convolution has for itself: the same bits.
 */
import { dimAdd, dimMul, isSymbolic, type Dim } from "../../core/dim.ts";
import { axisOf, constant, i32, min, sub, type Axis, type Expr } from "../../kernel/expr.ts";
import type { Stmt } from "../../kernel/stmt.ts";
import type { ConvStructure, EpilogueStore } from "../../kernel/structure.ts";
import { plus, times, toIndex } from "../loops/affine.ts";
import { addressOf, type KernelBuilder } from "../builder.ts";
import { rowProblem } from "./conv-problem.ts";
import { depthwiseRows } from "./depthwise.ts";
import { collapsibleAxes, Epilogue } from "./epilogue.ts";
import { emitRows } from "./gemm.ts";
import { packTaps } from "./pack-taps.ts";

/** Bytes of a strip that leave room for the weights and the rows of input in a second-level cache. */
const stripBytes = 128 * 1024;
/** Rows of a strip whose width only running tells: whole register tiles, whatever the width. */
const unknownRows = 4;

/** Loops for both; undefined where this part has none for them. */
export function scheduleRowStrips(b: KernelBuilder, s: ConvStructure, first: ConvStructure): Stmt | undefined {
  const source = rowProblem(first), product = rowProblem(s), [store] = first.stores;
  const [y, x] = s.output, [firstY, firstX] = first.output;
  if (!source || !product || !store || first.stores.length !== 1 || !y || !x || !firstY || !firstX) return undefined;
  const into: Stmt[] = [], width = x.extent, channels = Number(s.inputChannel.extent), rows = rowsOf(y.extent, width, channels);
  const packed = packTaps(b, s, product, { kind: { kind: "float" }, subtract: 0 }), above = depthwiseRows(b, into, first, source, rows);
  if (!packed || !above) return undefined;
  const columns = packed.at(constant(0, i32)), panels = { ...columns, pointer: b.let(into, "panels", columns.pointer) };
  const strip = b.temporary("rows", "float32", [rows, width, channels]), rowBytes = dimMul(width, channels * 4);
  const together = collapsibleAxes([y, x], s.channel, s.stores, (buffer) => b.layout(buffer), []) === 2;
  const work = dimMul(rows, workOfRow(s, above.work, width));

  const productRows = (body: Stmt[], positions: ReadonlyMap<Axis, Expr>, axes: readonly Axis[], from: Expr, pointer: Expr, count: Expr): void => {
    const epilogue = new Epilogue(b, { stores: s.stores, accumulator: s.accumulator.name, rows: axes, column: s.channel, positions });
    const most = dimMul(width, axes.length === 2 ? rows : 1);
    emitRows(b, body, { kind: { kind: "float" }, rows: most, columns: s.channel.extent, steps: channels, b: panels, epilogue },
      { kind: "direct", pointer, rowBytes: channels * 4, stepBytes: 4 }, from, count, most);
  };

  b.parallel(into, "n", s.batch.extent, 1, dimMul(work, y.extent), (n, image) => {
    const write = above.of(image, n), total = b.letIndex(image, "rows", toIndex(y.extent)), positions = new Map([[s.batch, n], [s.group, constant(0, i32)]]);
    b.parallel(image, "strip", y.extent, rows, work, (from, body) => {
      const count = isSymbolic(y.extent) || y.extent % rows !== 0 ? b.let(body, "count", min(constant(rows, i32), sub(total, from))) : constant(rows, i32);
      const start = b.let(body, "between", addressOf(strip));
      const kept: readonly EpilogueStore[] = [{ ...store, buffer: strip, indices: [sub(axisOf(firstY), from), axisOf(firstX), axisOf(first.group)] }];
      b.loop(body, "block", 0, count, above.block, rows, (at, part) => {
        const row = b.let(part, "first", plus(from, at));
        if (above.block === 1) { write(part, row, constant(1, i32))(part, constant(0, i32), kept); return; }
        const here = b.let(part, "count", min(constant(above.block, i32), sub(count, at))), one = write(part, row, here);
        b.loop(part, "y", 0, here, 1, above.block, (i, perRow) => one(perRow, i, kept));
      });
      if (together) productRows(body, positions, [y, x], times(from, toIndex(width)), start, b.letIndex(body, "positions", times(count, toIndex(width))));
      else b.loop(body, "y", 0, count, 1, rows, (at, perRow) =>
        productRows(perRow, new Map([...positions, [y, plus(from, at)]]), [x], constant(0, i32), b.let(perRow, "row", plus(start, times(at, toIndex(rowBytes)))), toIndex(width)));
    });
  });
  return { kind: "block", body: into };
}

/** Instructions of a row of both, roughly: half of one a multiplication. */
const workOfRow = (s: ConvStructure, above: Dim, width: Dim): Dim => dimAdd(above, dimMul(width, Math.ceil((Number(s.inputChannel.extent) * Number(s.channel.extent)) / 2)));

/** Rows of a strip: parts of equal size of the image where that is known, and whole register tiles. */
function rowsOf(height: Dim, width: Dim, channels: number): number {
  if (isSymbolic(width) || width === 0) return unknownRows;
  const fits = Math.max(1, Math.floor(stripBytes / (width * channels * 4)));
  const most = isSymbolic(height) ? fits : Math.min(fits, Math.max(1, height));
  const even = isSymbolic(height) ? most : Math.ceil(height / Math.ceil(Math.max(1, height) / most));
  const multiple = [1, 2, 4].find((n) => (n * width) % 4 === 0) ?? 4;
  return even <= multiple ? even : even - (even % multiple);
}
