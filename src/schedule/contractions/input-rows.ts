/**
 * The input of a convolution as rows of positions with channels: in place where nothing lies outside and channels are
 * together, else copied into scratch with its padding.
 */
import { dimEqual, dimMax, dimMin, dimMul, dimRange, dimSub, isSymbolic, type Dim } from "../../core/dim.ts";
import type { DType } from "../../core/dtype.ts";
import { add, and, constant, f32, ge, i32, lt, sub, type Axis, type Expr } from "../../kernel/expr.ts";
import type { Stmt } from "../../kernel/stmt.ts";
import type { ConvStructure } from "../../kernel/structure.ts";
import { affineAccess, bytesAlong, plus, times, toIndex, type AffineAccess } from "../loops/affine.ts";
import { addressOf, loadAt, storeAt, type KernelBuilder } from "../builder.ts";
import { eitherEngine } from "./byte-dots.ts";
import { byteCopier, bytePadding, byteRowSums, type ByteRows, type Copier } from "./byte-rows.ts";
import { span, type ConvProblem, type SpatialDim } from "./conv-problem.ts";
import { emitWiden, splatZero } from "./integer.ts";
import type { TileKind } from "./tile.ts";
import { emitCopy, emitInterleave, emitZero, isDistance } from "../loops/runs.ts";


export interface InputRows {
  /** Address of the first row's first position, its first channel. */
  readonly pointer: Expr;
  readonly rowBytes: Dim;
  readonly positionBytes: number;
  readonly channelBytes: Dim;
  /** How they lie where the engine multiplies bytes. */
  readonly bytes?: ByteRows;
}

/** Reads positions (outer, inner) and channel of the input at the bound batch and group. */
interface InputAccess { readonly access: AffineAccess; readonly outer: Axis; readonly inner: Axis }

function inputAccess(b: KernelBuilder, s: ConvStructure, p: ConvProblem, positions: ReadonlyMap<Axis, Expr>): InputAccess | undefined {
  const outer: Axis = { name: "outer", extent: p.outer.input }, inner: Axis = { name: "inner", extent: p.inner.input };
  const zero = constant(0, i32), at = (a: Axis): Expr => ({ kind: "axis", axis: a, type: i32 });
  const indices = [positions.get(s.batch) ?? zero, plus(times(positions.get(s.group) ?? zero, toIndex(s.inputChannel.extent)), at(s.inputChannel)), ...s.output.map((): Expr => zero)];
  if (p.outer.at !== undefined) indices[p.outer.at] = at(outer);
  if (p.inner.at !== undefined) indices[p.inner.at] = at(inner);
  const access = affineAccess(s.input, indices, new Set([s.inputChannel, outer, inner]), b.layout(s.input));
  return access && { access, outer, inner };
}

/** Nothing outside the input is ever read. */
function staysInside(d: SpatialDim): boolean {
  return d.pad === 0 && (d.stride === 1 && d.taps === 1 ? dimEqual(d.count, d.input) : dimRange(dimSub(d.input, span(d, d.count))).lower >= 0);
}

/** The input in place; undefined where it must be copied. */
export function directRows(b: KernelBuilder, into: Stmt[], s: ConvStructure, p: ConvProblem, positions: ReadonlyMap<Axis, Expr>): InputRows | undefined {
  if (s.input.dtype !== "float32" || !staysInside(p.outer) || !staysInside(p.inner)) return undefined;
  const found = inputAccess(b, s, p, positions);
  if (!found) return undefined;
  const positionBytes = bytesAlong(found.access, found.inner), channelBytes = bytesAlong(found.access, s.inputChannel);
  const together = s.inputChannel.extent === 1 || isDistance(channelBytes, 4);
  if (isSymbolic(positionBytes) || (!together && p.outer.taps * p.inner.taps > 1)) return undefined;
  return { pointer: b.let(into, "input", found.access.base), rowBytes: bytesAlong(found.access, found.outer), positionBytes, channelBytes: s.inputChannel.extent === 1 ? 4 : channelBytes };
}

/** Bytes of an input element in scratch: float32, or int16 for pairs. */
export const elementBytes = (kind: TileKind): number => (kind.kind === "float" ? 4 : 2);
/** Channels of a position in scratch; integers come in multiples of `group`. */
export const scratchChannels = (s: ConvStructure, kind: TileKind, group = 2): number =>
  (kind.kind === "float" ? Number(s.inputChannel.extent) : Math.ceil(Number(s.inputChannel.extent) / group) * group);

/** Scratch for the input of `rows` rows of output; with `shift`, as bytes where the engine multiplies those. The result copies what `count` rows from `first` on read. */
export function rowScratch(b: KernelBuilder, s: ConvStructure, p: ConvProblem, rows: number, kind: TileKind, group = 2, shift?: Expr): (into: Stmt[], first: Expr, count: Expr, positions: ReadonlyMap<Axis, Expr>) => InputRows {
  const channels = scratchChannels(s, kind, group), size = elementBytes(kind);
  const width = dimMax(0, span(p.inner, p.inner.count)), height = span(p.outer, rows);
  const buffer = b.temporary("input", kind.kind === "float" ? "float32" : "int16", [dimMax(0, height), width, channels]);
  const rowBytes = dimMul(width, channels * size), sums = shift && byteRowSums(b, p, { rows, height: dimMax(0, height), width, channels });
  return (into, first, count, positions) => {
    const start = b.let(into, "input", addressOf(buffer));
    const begin = b.let(into, "begin", plus(times(first, p.outer.stride), times(toIndex(p.outer.pad), -1)));
    const needed = b.letIndex(into, "needed", plus(times(plus(count, -1), p.outer.stride), (p.outer.taps - 1) * p.outer.dilation + 1));
    const source = inputAccess(b, s, p, positions);
    const base = source && b.let(into, "source", source.access.base);
    const fill = (target: Stmt[], { positionBytes, copy, pad }: RowForm): void => b.loop(target, "i", 0, needed, 1, isSymbolic(height) ? 2 ** 16 : Math.max(0, height), (i, body) => {
      const at = b.let(body, "at", add(begin, i)), to = b.let(body, "to", plus(start, times(i, toIndex(dimMul(width, positionBytes)))));
      const inside: Stmt[] = [], outside: Stmt[] = [];
      if (source && base) copyRow(b, inside, s, p.inner, source, b.let(inside, "row", plus(base, times(at, toIndex(bytesAlong(source.access, source.outer))))), to, width, { positionBytes, copy, pad });
      pad(outside, to, dimMul(width, positionBytes / 4));
      body.push({ kind: "if", condition: and(ge(at, 0), lt(at, toIndex(p.outer.input))), then: { kind: "block", body: inside }, else: { kind: "block", body: outside } });
    });
    const plain = (target: Stmt[]): void => fill(target, { positionBytes: channels * size, copy: copierOf(b, target, s, kind, channels), pad: (body, to, words) => emitZero(b, body, to, words) });
    if (!shift || !sums) plain(into);
    else eitherEngine(into, (target) => {
      fill(target, { positionBytes: channels, copy: byteCopier(b, s.input.dtype, channels), pad: bytePadding(b, target, shift) });
      sums.fill(target, start, needed, count);
    }, plain);
    return { pointer: start, rowBytes, positionBytes: channels * size, channelBytes: size, ...(sums ? { bytes: sums.bytes } : {}) };
  };
}
/** How a row is written: bytes of a position, what copies positions, and what writes so many words of padding. */
interface RowForm { readonly positionBytes: number; readonly copy: Copier; readonly pad: (into: Stmt[], to: Expr, words: Dim) => void }

/** One row: padding, input, padding. */
function copyRow(b: KernelBuilder, into: Stmt[], s: ConvStructure, d: SpatialDim, source: InputAccess, row: Expr, to: Expr, width: Dim, { positionBytes: scratchBytes, copy, pad }: RowForm): void {
  const left = dimMax(0, dimMin(d.pad, width)), skipped = dimMax(0, dimMul(d.pad, -1));
  const middle = dimMax(0, dimMin(dimSub(d.input, skipped), dimSub(width, left))), right = dimSub(dimSub(width, left), middle);
  const positionBytes = bytesAlong(source.access, source.inner);
  const from = b.letIndex(into, "from", plus(row, times(toIndex(skipped), toIndex(positionBytes))));
  const target = b.letIndex(into, "target", plus(to, times(toIndex(left), scratchBytes)));
  if (left !== 0) pad(into, to, dimMul(left, scratchBytes / 4));
  copy(into, from, target, middle, positionBytes, bytesAlong(source.access, s.inputChannel));
  if (right !== 0) pad(into, b.let(into, "end", plus(target, times(toIndex(middle), scratchBytes))), dimMul(right, scratchBytes / 4));
}

function copierOf(b: KernelBuilder, into: Stmt[], s: ConvStructure, kind: TileKind, padded: number): Copier {
  const channels = Number(s.inputChannel.extent);
  if (kind.kind === "float" && s.input.dtype === "float32") return (body, from, to, count, positionBytes, channelBytes) => copyFloats(b, body, from, to, count, positionBytes, channelBytes, channels);
  if (kind.kind === "float") return (body, from, to, count, positionBytes, channelBytes) => eachElement(b, body, from, to, count, positionBytes, channelBytes, channels, channels, 4, (p) => loadAt(p, 0, s.input.dtype, f32), "float32");
  const zero = b.letIndex(into, "zero", s.zeroPoints?.input ?? constant(0, i32)), zeros = splatZero(b, into, zero);
  return (body, from, to, count, positionBytes, channelBytes) => {
    if (isDistance(positionBytes, channels) && channels === padded && isDistance(channelBytes, 1)) { emitWiden(b, body, from, s.input.dtype, to, toIndex(dimMul(count, channels)), zero, zeros); return; }
    if (isDistance(channelBytes, 1)) {
      b.loop(body, "x", 0, toIndex(count), 1, count, (x, inner) => {
        const target = b.let(inner, "to", plus(to, times(x, padded * 2)));
        emitWiden(b, inner, b.let(inner, "from", plus(from, times(x, toIndex(positionBytes)))), s.input.dtype, target, constant(channels, i32), zero, zeros);
        for (let c = channels; c < padded; c++) inner.push(storeAt(target, c * 2, "int16", constant(0, i32)));
      });
      return;
    }
    eachElement(b, body, from, to, count, positionBytes, channelBytes, channels, padded, 2, (p) => sub(loadAt(p, 0, s.input.dtype, i32), zero), "int16");
  };
}

/** Element by element, planes outermost; channels past the last are 0. */
function eachElement(b: KernelBuilder, into: Stmt[], from: Expr, to: Expr, count: Dim, positionBytes: Dim, channelBytes: Dim, channels: number, padded: number, size: number, read: (p: Expr) => Expr, dtype: DType): void {
  b.loop(into, "c", 0, constant(channels, i32), 1, channels, (c, body) => {
    const plane = b.let(body, "plane", plus(from, times(c, toIndex(channelBytes)))), column = b.let(body, "to", plus(to, times(c, size)));
    b.loop(body, "x", 0, toIndex(count), 1, count, (x, inner) => inner.push(storeAt(plus(column, times(x, padded * size)), 0, dtype, read(plus(plane, times(x, toIndex(positionBytes)))))));
  });
  for (let c = channels; c < padded; c++) b.loop(into, "x", 0, toIndex(count), 1, count, (x, inner) => inner.push(storeAt(plus(to, times(x, padded * size)), c * size, dtype, constant(0, i32))));
}

function copyFloats(b: KernelBuilder, into: Stmt[], from: Expr, to: Expr, count: Dim, positionBytes: Dim, channelBytes: Dim, channels: number): void {
  if (isDistance(positionBytes, channels * 4) && (channels === 1 || isDistance(channelBytes, 4))) emitCopy(b, into, from, to, dimMul(count, channels));
  else if (isDistance(channelBytes, 4)) {
    b.loop(into, "x", 0, toIndex(count), 1, count, (x, body) =>
      emitCopy(b, body, b.let(body, "from", plus(from, times(x, toIndex(positionBytes)))), b.let(body, "to", plus(to, times(x, channels * 4))), channels));
  } else if (isDistance(positionBytes, 4)) emitInterleave(b, into, from, to, count, channels, channelBytes);
  else eachElement(b, into, from, to, count, positionBytes, channelBytes, channels, channels, 4, (p) => loadAt(p, 0, "float32", f32), "float32");
}

/** Bytes of padded input rows that are to stay in the second-level cache. */
const rowsBytes = 192 * 1024;

/** Rows that one block of output takes: as many as keep its padded input in the cache. */
export function blockOf(s: ConvStructure, p: ConvProblem, kind: TileKind, group = 2): number {
  const width = span(p.inner, p.inner.count), positionBytes = scratchChannels(s, kind, group) * elementBytes(kind);
  if (isSymbolic(width)) return 4;
  const fits = Math.floor((rowsBytes / (width * positionBytes) - (p.outer.taps - 1) * p.outer.dilation - 1) / p.outer.stride) + 1;
  return Math.max(1, Math.min(fits, isSymbolic(p.outer.count) ? 64 : p.outer.count));
}
