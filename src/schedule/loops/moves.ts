/**
 * Copies of elements as they are, 16 bytes at a time: runs that are contiguous on both sides, and pairs of runs that
 * are interleaved (a channel shuffle of two groups with channels last). What is left of a run of known length is a
 * vector that overlaps the one before.
 */
import { dimFloorDiv, dimMul, isSymbolic, type Dim } from "../../core/dim.ts";
import { byteSize, type DType } from "../../core/dtype.ts";
import { add, axisOf, binary, constant, dimExpr, i16x8, i32, i32x4, i8x16, type Axis, type Buffer, type Expr, type Type } from "../../kernel/expr.ts";
import { block, loop, type LoopMode, type Stmt } from "../../kernel/stmt.ts";
import { mapExpr } from "../../kernel/traverse.ts";
import { statementsOf, wholeNest } from "./nest.ts";
import type { Strides } from "./strides.ts";
import { scalarCopy } from "./vectorize.ts";
import type { Fresh } from "../fresh.ts";

type Store = Extract<Stmt, { kind: "store" }>;
type Load = Extract<Expr, { kind: "load" }>;
interface Move { readonly store: Store; readonly load: Load; readonly dtype: DType; readonly type: Type }

/** The types whose loads and stores change no bit, and vectors of as many bytes. */
const bytes = ["int8", i8x16] as const, halves = ["int16", i16x8] as const, words = ["int32", i32x4] as const;
const vectors: Partial<Readonly<Record<DType, readonly [DType, Type]>>> = { int8: bytes, uint8: bytes, bool: bytes, int16: halves, uint16: halves, int32: words, uint32: words, float32: words };

/** A body that is one copy of an element; undefined for others, and where both lie in the same memory. */
function moveOf(body: Stmt, aliased: ReadonlySet<Buffer>): Move | undefined {
  const [store, more] = statementsOf(body);
  if (store?.kind !== "store" || more || store.along !== undefined || store.value.kind !== "load" || store.value.along !== undefined) return undefined;
  const load = store.value;
  const vector = load.buffer.dtype === store.buffer.dtype ? vectors[store.buffer.dtype] : undefined;
  if (!vector || load.buffer === store.buffer || aliased.has(load.buffer)) return undefined;
  return { store, load, dtype: vector[0], type: vector[1] };
}

/** The nest in moves of 16 bytes, its loops in `mode`; undefined where it is no copy, or its runs are too short. */
export function moveLoops(axes: readonly Axis[], body: Stmt, { strides, fresh, aliased }: { readonly strides: Strides; readonly fresh: Fresh; readonly aliased: ReadonlySet<Buffer> }, mode: LoopMode): Stmt | undefined {
  const move = moveOf(body, aliased);
  if (!move) return undefined;
  const to = strides.access(move.store.buffer, move.store.indices, true), from = strides.access(move.load.buffer, move.load.indices, false);
  const lanes = move.type.lanes, long = (a: Axis): boolean => isSymbolic(a.extent) || a.extent >= lanes;
  const pair = axes.find((a) => a.extent === 2 && strides.along(to, a) === 1 && strides.along(from, a) !== undefined);
  const run = axes.find((a) => a !== pair && long(a) && strides.along(from, a) === 1 && strides.along(to, a) === (pair ? 2 : 1));
  if (!run || (!pair && lanes === 4)) return undefined;
  const around = axes.filter((a) => a !== run && a !== pair);
  return wholeNest(around, pair ? runs(run, lanes, (at) => interleaved(move, run, at, pair), (at) => wholeNest([pair], scalarCopy(body, new Map([[run, at]]), fresh)), mode)
    : runs(run, lanes, (at) => moved(move, run, at), (at) => scalarCopy(body, new Map([[run, at]]), fresh), mode), mode);
}

/** Covers a run by vectors, in `mode`; the rest of one of unknown length element by element. */
function runs(run: Axis, lanes: number, vector: (at: Expr) => Stmt, element: (at: Expr) => Stmt, mode: LoopMode): Stmt {
  const { extent } = run, vectors = (length: Dim): Axis => ({ name: `${run.name}_v`, extent: length });
  if (isSymbolic(extent)) {
    const v = vectors(dimMul(dimFloorDiv(extent, lanes), lanes)), t: Axis = { name: `${run.name}_t`, extent };
    const whole = binary("and", dimExpr(extent), constant(-lanes, i32));
    return block(loop(v, constant(0, i32), whole, lanes, vector(axisOf(v)), mode), loop(t, whole, dimExpr(extent), 1, element(axisOf(t))));
  }
  const whole = extent - (extent % lanes), v = vectors(whole);
  return block(
    whole === lanes ? vector(constant(0, i32)) : loop(v, constant(0, i32), constant(whole, i32), lanes, vector(axisOf(v)), mode),
    ...(extent > whole ? [vector(constant(extent - lanes, i32))] : []),
  );
}

const address = (buffer: Buffer, indices: readonly Expr[], at: ReadonlyMap<Axis, Expr>): Expr =>
  ({ kind: "address", buffer, indices: indices.map((e) => mapExpr(e, (x) => (x.kind === "axis" ? at.get(x.axis) ?? x : x))), type: i32 });
const read = ({ load, dtype, type }: Move, at: ReadonlyMap<Axis, Expr>): Expr => ({ kind: "loadAt", pointer: address(load.buffer, load.indices, at), offset: 0, dtype, splat: false, type });

const moved = (m: Move, run: Axis, at: Expr): Stmt =>
  ({ kind: "storeAt", pointer: address(m.store.buffer, m.store.indices, new Map([[run, at]])), offset: 0, dtype: m.dtype, value: read(m, new Map([[run, at]])) });

/** Two vectors, an element of each in turn. */
function interleaved(m: Move, run: Axis, at: Expr, pair: Axis): Stmt {
  const [a, b] = [0, 1].map((i) => read(m, new Map([[run, at], [pair, constant(i, i32)]])));
  const size = byteSize(m.dtype), half = m.type.lanes / 2;
  const bytes = (first: number): number[] => Array.from({ length: half }, (_, i) => [0, 16].flatMap((of) => Array.from({ length: size }, (__, byte) => of + (first + i) * size + byte))).flat();
  return block(...[0, half].map((first): Stmt => ({
    kind: "storeAt", pointer: address(m.store.buffer, m.store.indices, new Map([[run, first === 0 ? at : add(at, first)], [pair, constant(0, i32)]])), offset: 0, dtype: m.dtype,
    value: { kind: "shuffle", a: a ?? constant(0, m.type), b: b ?? constant(0, m.type), bytes: bytes(first), type: m.type },
  })));
}
