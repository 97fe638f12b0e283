/**
 * A convolution's input as rows of bytes (byte-dots.ts), in the room that the same rows have as int16: copied with padding
 * that stands for zero, and with the sum of the bytes that each output position reads.
 */
import { dimMul, isSymbolic, type Dim } from "../../core/dim.ts";
import type { DType } from "../../core/dtype.ts";
import { add, binary, constant, i32, i32x4, mul, splat, sub, type Expr } from "../../kernel/expr.ts";
import { assign, type Stmt } from "../../kernel/stmt.ts";
import { addressOf, loadAt, storeAt, type KernelBuilder } from "../builder.ts";
import { plus, times, toIndex } from "../loops/affine.ts";
import { isDistance, overRun } from "../loops/runs.ts";
import { asByte, emitBytes, sumOfBytes } from "./byte-dots.ts";
import type { ConvProblem } from "./conv-problem.ts";

/** Copies positions that are `positionBytes` apart, with channels `channelBytes` apart. */
export type Copier = (into: Stmt[], from: Expr, to: Expr, count: Dim, positionBytes: Dim, channelBytes: Dim) => void;

export interface ByteRows {
  readonly rowBytes: Dim;
  readonly positionBytes: number;
  /** Address of the sum of what output position 0 of row 0 reads; those of a row follow each other. */
  readonly sums: Expr;
  readonly sumRowBytes: Dim;
}

/** Writes words of the byte that stands for zero. */
export function bytePadding(b: KernelBuilder, into: Stmt[], shift: Expr): (into: Stmt[], to: Expr, words: Dim) => void {
  const zero = b.let(into, "zero", mul(binary("and", sub(constant(0, i32), shift), constant(255, i32)), constant(0x01010101, i32)));
  const zeros = b.let(into, "zeros", splat(zero, 4));
  return (body, to, words) => overRun(b, body, toIndex(words), (inner, i, lanes) => inner.push(storeAt(plus(to, times(i, 4)), 0, "int32", lanes === 4 ? zeros : zero)));
}

/** Copies positions as bytes, channels innermost. */
export const byteCopier = (b: KernelBuilder, dtype: DType, channels: number): Copier => (into, from, to, count, positionBytes, channelBytes) => {
  const together = isDistance(channelBytes, 1);
  if (together && isDistance(positionBytes, channels)) { emitBytes(b, into, from, dtype, to, toIndex(dimMul(count, channels))); return; }
  if (together) {
    b.loop(into, "x", 0, toIndex(count), 1, count, (x, body) =>
      emitBytes(b, body, b.let(body, "from", plus(from, times(x, toIndex(positionBytes)))), dtype, b.let(body, "to", plus(to, times(x, channels))), constant(channels, i32)));
    return;
  }
  b.loop(into, "c", 0, constant(channels, i32), 1, channels, (c, body) => {
    const plane = b.let(body, "plane", plus(from, times(c, toIndex(channelBytes)))), column = b.let(body, "to", plus(to, c));
    b.loop(body, "x", 0, toIndex(count), 1, count, (x, inner) => inner.push(storeAt(plus(column, times(x, channels)), 0, "int8", asByte(loadAt(plus(plane, times(x, toIndex(positionBytes))), 0, dtype, i32), dtype))));
  });
};

interface Extents {
  /** Rows of output at most, and of input that they read; positions of a row of input, and their channels. */
  readonly rows: number;
  readonly height: Dim;
  readonly width: Dim;
  readonly channels: number;
}

/** What holds the sums, and computes them for `needed` rows of input from `input` on, which `count` rows of output read. */
export function byteRowSums(b: KernelBuilder, p: ConvProblem, { rows, height, width, channels }: Extents): { readonly bytes: ByteRows; readonly fill: (into: Stmt[], input: Expr, needed: Expr, count: Expr) => void } {
  const { outer, inner } = p, sumRowBytes = dimMul(inner.count, 4), positionRow = dimMul(width, 4);
  const sums = addressOf(b.temporary("sums", "int32", [rows, inner.count])), positions = addressOf(b.temporary("positions", "int32", [height, width]));
  /** Of input positions: one for each lane, from `from` on. */
  const window = (into: Stmt[], from: Expr, lanes: 1 | 4): Expr => {
    const type = lanes === 4 ? i32x4 : i32, sum = b.let(into, "sum", constant(0, type));
    b.loop(into, "t", 0, constant(outer.taps, i32), 1, outer.taps, (t, body) => {
      const row = b.let(body, "row", plus(from, times(times(t, outer.dilation), toIndex(positionRow))));
      for (let u = 0; u < inner.taps; u++) if (sum.kind === "local") body.push(assign(sum.name, add(sum, loadAt(row, u * inner.dilation * 4, "int32", type))));
    });
    return sum;
  };
  return {
    bytes: { rowBytes: dimMul(width, channels), positionBytes: channels, sums, sumRowBytes },
    fill(into, input, needed, count) {
      b.loop(into, "i", 0, needed, 1, isSymbolic(height) ? 2 ** 16 : height, (i, body) => {
        const row = b.let(body, "row", plus(input, times(i, toIndex(dimMul(width, channels))))), to = b.let(body, "to", plus(positions, times(i, toIndex(positionRow))));
        b.loop(body, "x", 0, toIndex(width), 1, width, (x, each) => each.push(storeAt(plus(to, times(x, 4)), 0, "int32", sumOfBytes(b, each, b.let(each, "position", plus(row, times(x, channels))), channels))));
      });
      b.loop(into, "y", 0, count, 1, rows, (y, body) => {
        const from = b.let(body, "from", plus(positions, times(times(y, outer.stride), toIndex(positionRow)))), to = b.let(body, "to", plus(sums, times(y, toIndex(sumRowBytes))));
        const one = (x: Expr, each: Stmt[], lanes: 1 | 4): void => { each.push(storeAt(plus(to, times(x, 4)), 0, "int32", window(each, b.let(each, "window", plus(from, times(x, inner.stride * 4))), lanes))); };
        if (inner.stride === 1) overRun(b, body, toIndex(inner.count), (each, x, lanes) => one(x, each, lanes));
        else b.loop(body, "x", 0, toIndex(inner.count), 1, inner.count, (x, each) => one(x, each, 1));
      });
    },
  };
}
