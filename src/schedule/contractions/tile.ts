/**
 * The register tile every contraction is made of: `rows` × `columns` accumulators, and an inner loop that adds one
 * (float) or two (int16 pairs) steps of the contracted axis at a time. Engines sink vector operations below all loads of a
 * block, so a tile that is unrolled over that axis spills (4x8 and 2x16 fit in 16 registers) unless a branch keeps its
 * steps apart: with one between them two steps share a loop's tests, which is worth 5 %; three and more are slower.
 */
import { dimMul, isSymbolic, type Dim } from "../../core/dim.ts";
import { invariant, present } from "../../core/assert.ts";
import { add, bitcast, byteDot, constant, f32, f32x4, i16x8, i32, i32x4, i8x16, lt, madd, type Expr, type Type } from "../../kernel/expr.ts";
import { assign, loop, type Stmt } from "../../kernel/stmt.ts";
import type { DType } from "../../core/dtype.ts";
import { loadAt, splatAt, type KernelBuilder } from "../builder.ts";
import { plus, times, toIndex } from "../loops/affine.ts";
import type { BlockWeights } from "./block-weights.ts";

/** How operands are multiplied. `pairs`: int16 pairs by i32x4.dot_i16x8_s. */
export type TileKind =
  | { readonly kind: "float" }
  /** B's stored dtype: int16, or int8 widened by the load. */
  | { readonly kind: "pairs"; readonly b: DType }
  /** Quads of bytes, of which B's have 7 bits (byte-dots.ts). */
  | { readonly kind: "quads" }
  /** float32 times integers that are widened and scaled on the way. */
  | BlockWeights;

export interface TileShape {
  readonly rows: number;
  /** A multiple of 4; or any number with `lanes` 1. */
  readonly columns: number;
  readonly lanes: 1 | 4;
}

/** The accumulators of a tile: locals, one vector (or scalar) of columns after another in each row. */
export type Accumulators = readonly (readonly Expr[])[];

const isInteger = (kind: TileKind): boolean => kind.kind === "pairs" || kind.kind === "quads";
const accumulatorType = (kind: TileKind, lanes: 1 | 4): Type => (isInteger(kind) ? (lanes === 4 ? i32x4 : i32) : (lanes === 4 ? f32x4 : f32));

/** Loops of fewer steps than this are not worth a second step in their body. */
const pairedSteps = 48;

/** Pointer loops count addresses: nothing tighter is known of them. */
const anyAddress = 2 ** 31 - 1;

/** Declares zeroed accumulators. */
export function declareAccumulators(b: KernelBuilder, into: Stmt[], kind: TileKind, shape: TileShape): Accumulators {
  const type = accumulatorType(kind, shape.lanes);
  return Array.from({ length: shape.rows }, () =>
    Array.from({ length: shape.columns / shape.lanes }, () => b.let(into, "acc", constant(0, type))));
}

export interface ARows {
  /** Address of each row's first element; or of row 0 only, with `rowBytes` to the next. */
  readonly pointers: readonly Expr[];
  readonly rowBytes?: number;
  /** Bytes from one step of the contracted axis to the next. */
  readonly stepBytes: Dim;
}
export interface BColumns {
  readonly pointer: Expr;
  /** Byte offset of each vector of columns. */
  readonly offsets: readonly number[];
  readonly stepBytes: Dim;
  /** Where the engine holds them as quads. */
  readonly quads?: QuadColumns;
}
/** What quads are less than the columns they stand for (memory/quads.ts), and what A's bytes are less than its elements. */
export interface QuadColumns {
  /** Address of the first panel's terms. */
  readonly terms: Expr;
  /** Element of A = its byte + this; an i32 that is the same for all rows. */
  readonly shift: Expr;
}

/**
 * Adds `steps` steps of the contracted axis to the accumulators. Operands of `float` are float32; of `pairs`, A is int16
 * and a step is a pair; of `quads` both are int8 and a step is four.
 */
export function accumulate(b: KernelBuilder, into: Stmt[], kind: TileKind, accumulators: Accumulators, lanes: 1 | 4, a: ARows, columns: BColumns, steps: Expr): void {
  invariant(a.pointers.length === accumulators.length || a.rowBytes !== undefined, "a tile needs a pointer for every row, or their distance");
  const moving = a.pointers.map((p) => b.let(into, "pa", p));
  const step = (body: Stmt[], pb: Expr, offsetA: number, offsetB: number): void => {
    const vectors = columns.offsets.map((offset) => b.let(body, "b", loadB(kind, lanes, pb, offset + offsetB)));
    accumulators.forEach((row, i) => {
      const [pointer, offset] = a.rowBytes === undefined ? [present(moving[i], "row pointer"), 0] : [present(moving[0], "row pointer"), i * a.rowBytes];
      const x = b.let(body, "a", loadA(kind, lanes, pointer, offset + offsetA));
      row.forEach((acc, j) => body.push(multiplyAdd(b, kind, acc, x, present(vectors[j], "column vector"))));
    });
  };
  const advance = (body: Stmt[], steps: number): void => {
    for (const p of moving) if (p.kind === "local") body.push(assign(p.name, add(p, toIndex(dimMul(a.stepBytes, steps)))));
  };
  if (!isSymbolic(columns.stepBytes) && columns.stepBytes > 0) {
    const { stepBytes } = columns, begin = b.letIndex(into, "pb", columns.pointer), end = b.letIndex(into, "end", plus(begin, times(steps, stepBytes)));
    const axis = { name: b.name("pb"), extent: anyAddress }, pb: Expr = { kind: "axis", axis, type: i32 }, body: Stmt[] = [];
    step(body, pb, 0, 0);
    // A step is a constant offset, which cannot be negative.
    if (isSymbolic(a.stepBytes) || a.stepBytes < 0 || (steps.kind === "const" && Number(steps.value) < pairedSteps)) {
      advance(body, 1);
      into.push(loop(axis, begin, end, stepBytes, { kind: "block", body }));
      return;
    }
    const last = b.let(into, "last", plus(end, -stepBytes)), second: Stmt[] = [];
    step(second, pb, a.stepBytes, stepBytes);
    body.push({ kind: "if", condition: lt(pb, last), then: { kind: "block", body: second } });
    advance(body, 2);
    into.push(loop(axis, begin, end, 2 * stepBytes, { kind: "block", body }));
    return;
  }
  const body: Stmt[] = [], pb = b.let(into, "pb", columns.pointer);
  step(body, pb, 0, 0);
  advance(body, 1);
  if (pb.kind === "local") body.push(assign(pb.name, add(pb, toIndex(columns.stepBytes))));
  into.push(loop({ name: b.name("k"), extent: anyAddress }, constant(0, i32), steps, 1, { kind: "block", body }));
}

function loadB(kind: TileKind, lanes: 1 | 4, pointer: Expr, offset: number): Expr {
  if (kind.kind !== "pairs" && kind.kind !== "quads") return loadAt(pointer, offset, "float32", lanes === 4 ? f32x4 : f32);
  invariant(lanes === 4, "integers come in vectors");
  return kind.kind === "quads" ? loadAt(pointer, offset, "int8", i8x16) : loadAt(pointer, offset, kind.b, i16x8);
}

function loadA(kind: TileKind, lanes: 1 | 4, pointer: Expr, offset: number): Expr {
  if (!isInteger(kind)) return splatAt(pointer, offset, "float32", lanes === 4 ? f32x4 : f32);
  return bitcast(splatAt(pointer, offset, "int32", i32x4), kind.kind === "quads" ? i8x16 : i16x8);
}

function multiplyAdd(b: KernelBuilder, kind: TileKind, acc: Expr, x: Expr, y: Expr): Stmt {
  invariant(acc.kind === "local", "accumulators are locals");
  if (kind.kind === "quads") return assign(acc.name, byteDot(x, y, acc));
  if (kind.kind !== "pairs") return assign(acc.name, madd(x, y, acc, b.relaxed));
  return assign(acc.name, add(acc, { kind: "dot", a: x, b: y, type: i32x4 }));
}

/** One lane of an accumulator as a scalar. */
export const laneOf = (acc: Expr, lane: number): Expr =>
  acc.type.lanes === 1 ? acc : { kind: "extract", a: acc, lane, type: { scalar: acc.type.scalar, lanes: 1 } };
