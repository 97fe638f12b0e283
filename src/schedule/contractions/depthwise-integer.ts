/**
 * Depthwise convolution of 8-bit integers: input rows are widened into scratch with their padding (channels in eights),
 * taps are taken two at a time, interleaved by channel, so that one instruction multiplies and sums both for 4 channels.
 */
import { dimFloorDiv, dimMul, dimProduct, isSymbolic } from "../../core/dim.ts";
import { byteSize, type DType } from "../../core/dtype.ts";
import { add, constant, i16x8, i32, i32x4, min, sub, type Axis, type Expr } from "../../kernel/expr.ts";
import { assign, type Stmt } from "../../kernel/stmt.ts";
import type { ConvStructure } from "../../kernel/structure.ts";
import { packedLength } from "../../memory/pack.ts";
import { plus, times, toIndex } from "../loops/affine.ts";
import { addressOf, loadAt, type KernelBuilder } from "../builder.ts";
import type { Operands } from "./conv-operands.ts";
import { outputPositions, tapAxes, type ConvProblem } from "./conv-problem.ts";
import { Epilogue } from "./epilogue.ts";
import { blockOf, rowScratch, type InputRows } from "./input-rows.ts";

/** Taps that are unrolled at most. */
const mostTaps = 49;

/** Channels of all groups as the input channels of one. */
function together(s: ConvStructure): ConvStructure {
  return { ...s, inputChannel: s.group, group: { name: "all", extent: 1 } };
}

export function scheduleDepthwiseInteger(b: KernelBuilder, s: ConvStructure, problems: readonly ConvProblem[], operands: Operands): Stmt | undefined {
  const { kind } = operands;
  if (kind.kind !== "pairs" || problems.some((p) => p.outer.taps * p.inner.taps > mostTaps)) return undefined;
  const body: Stmt[] = [];
  for (const p of problems) if (!emitProblem(b, body, s, p, operands, kind.b)) return undefined;
  return { kind: "block", body };
}

function emitProblem(b: KernelBuilder, into: Stmt[], s: ConvStructure, p: ConvProblem, operands: Operands, dtype: DType): boolean {
  const weight = b.context.weight(s.weight), layout = b.layout(s.weight);
  const strides = layout.strides.filter((d): d is number => !isSymbolic(d));
  if (!weight || strides.length !== layout.strides.length || isSymbolic(layout.offset)) return false;
  const channels = Number(s.group.extent), taps = p.outer.taps * p.inner.taps, pairs = Math.ceil(taps / 2);
  const { axes, offset } = tapAxes(s, p, strides, 1);
  const { subtract } = operands;
  const spec = { kind: "panels" as const, groups: 1, k: taps, n: channels, nr: 8, kStep: 2, strideG: 0, strideK: axes.slice(0, 2), strideN: strides[0] ?? 0, as: dtype, offset: layout.offset + offset, ...(subtract === 0 ? {} : { subtract }) } as const;
  const weights = addressOf(b.packed(weight, spec, dtype, packedLength([], spec)));
  const all = together(s), rows = blockOf(all, p, operands.kind, 8);
  const scratch = rowScratch(b, all, p, rows, operands.kind, 8);
  const positions = new Map<Axis, Expr>();
  // Instructions of a row, roughly, with widening it and what is done with the sums.
  const work = dimFloorDiv(dimProduct([p.inner.count, channels, taps + 8]), 4);
  b.parallel(into, "n", s.batch.extent, 1, dimMul(work, p.outer.count), (n, perImage) => {
    positions.set(s.batch, n);
    const total = b.letIndex(perImage, "rows", toIndex(p.outer.count));
    b.parallel(perImage, "block", p.outer.count, rows, dimMul(work, rows), (first, body) => {
      const count = b.let(body, "count", min(constant(rows, i32), sub(total, first)));
      const source = scratch(body, first, count, positions);
      b.loop(body, "y", 0, count, 1, p.outer.count, (y, perRow) => {
        const x: Axis = { name: b.name("x"), extent: p.inner.count };
        const epilogue = new Epilogue(b, { stores: s.stores, accumulator: s.accumulator.name, rows: [x], column: s.group, positions: outputPositions(p, positions, plus(first, y), x) });
        epilogue.begin(perRow);
        const row = b.let(perRow, "row", plus(source.pointer, times(times(y, p.outer.stride), toIndex(source.rowBytes))));
        b.loop(perRow, "x", 0, toIndex(p.inner.count), 1, p.inner.count, (at, perPosition) =>
          emitPosition(b, perPosition, { p, source, row, weights, pairs, taps, dtype, channels }, at, epilogue));
      });
    });
  });
  return true;
}

interface Plane { readonly p: ConvProblem; readonly source: InputRows; readonly row: Expr; readonly weights: Expr; readonly pairs: number; readonly taps: number; readonly dtype: DType; readonly channels: number }

/** One output position, 8 channels at a time. */
function emitPosition(b: KernelBuilder, into: Stmt[], plane: Plane, x: Expr, epilogue: Epilogue): void {
  const { p, source, channels, pairs, taps, dtype } = plane;
  const panelBytes = pairs * 16 * byteSize(dtype);
  const from = b.let(into, "from", plus(plane.row, times(times(x, p.inner.stride), source.positionBytes)));
  const tapRows = Array.from({ length: p.outer.taps }, (_, t) => b.let(into, "tapRow", plus(from, times(constant(t * p.outer.dilation, i32), toIndex(source.rowBytes)))));
  const some = (body: Stmt[], c: Expr, count: number): void => {
    const panel = b.let(body, "w", plus(plane.weights, times(c, panelBytes / 8)));
    const at = tapRows.map((r) => b.let(body, "p", plus(r, times(c, 2))));
    const tap = (t: number): Expr => {
      const pointer = at[Math.floor(t / p.inner.taps)];
      if (t >= taps || !pointer) return constant(0, i16x8);
      return b.let(body, "v", loadAt(pointer, (t % p.inner.taps) * p.inner.dilation * source.positionBytes, "int16", i16x8));
    };
    const low = b.let(body, "acc", constant(0, i32x4)), high = b.let(body, "acc", constant(0, i32x4));
    for (let i = 0; i < pairs; i++) {
      const u = tap(2 * i), v = tap(2 * i + 1);
      [low, high].forEach((acc, half) => {
        const both: Expr = { kind: "shuffle", a: u, b: v, bytes: interleaved(half), type: i16x8 };
        const w = loadAt(panel, (i * 16 + half * 8) * byteSize(dtype), dtype, i16x8);
        if (acc.kind === "local") body.push(assign(acc.name, add(acc, { kind: "dot", a: both, b: w, type: i32x4 })));
      });
    }
    epilogue.store(body, { row: x, column: c, columns: count, accumulators: [[low, high]] });
  };
  const whole = channels - (channels % 8);
  if (whole > 0) b.loop(into, "c", 0, constant(whole, i32), 8, channels, (c, body) => some(body, c, 8));
  if (channels > whole) some(into, constant(whole, i32), channels - whole);
}

/** Bytes of two int16 vectors, lane by lane in turn: of their first four lanes, or their last. */
const interleaved = (half: number): readonly number[] => [0, 1, 2, 3].flatMap((l) => { const at = (half * 4 + l) * 2; return [at, at + 1, at + 16, at + 17]; });
