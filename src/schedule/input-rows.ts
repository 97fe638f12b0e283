/**
 * The input of a convolution as rows of positions with channels: in place where nothing lies outside and channels are
 * together, else copied into scratch with its padding.
 */
import { dimEqual, dimMax, dimMin, dimMul, dimRange, dimSub, isSymbolic, type Dim } from "../core/dim.ts";
import { add, and, constant, f32, ge, i32, lt, mul, type Axis, type Expr } from "../kernel/expr.ts";
import type { Stmt } from "../kernel/stmt.ts";
import type { ConvStructure } from "../kernel/structure.ts";
import { affineAccess, bytesAlong, plus, times, toIndex, type AffineAccess } from "./affine.ts";
import { addressOf, loadAt, storeAt, type KernelBuilder } from "./builder.ts";
import { span, type ConvProblem, type SpatialDim } from "./conv-problem.ts";
import { emitCopy, emitInterleave, emitZero, isDistance } from "./runs.ts";


export interface InputRows {
  /** Address of the first row's first position, its first channel. */
  readonly pointer: Expr;
  readonly rowBytes: Dim;
  readonly positionBytes: number;
  readonly channelBytes: Dim;
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

/** Scratch for the input of `rows` rows of output. The result copies what `count` rows from `first` on read. */
export function rowScratch(b: KernelBuilder, s: ConvStructure, p: ConvProblem, rows: number): (into: Stmt[], first: Expr, count: Expr, positions: ReadonlyMap<Axis, Expr>) => InputRows {
  const channels = Number(s.inputChannel.extent);
  const width = dimMax(0, span(p.inner, p.inner.count)), height = span(p.outer, rows);
  const buffer = b.temporary("input", "float32", [dimMax(0, height), width, channels]);
  const rowBytes = dimMul(width, channels * 4);
  return (into, first, count, positions) => {
    const start = b.let(into, "input", addressOf(buffer));
    const begin = b.let(into, "begin", plus(times(first, p.outer.stride), times(toIndex(p.outer.pad), -1)));
    const needed = b.letIndex(into, "needed", plus(times(plus(count, -1), p.outer.stride), (p.outer.taps - 1) * p.outer.dilation + 1));
    const source = inputAccess(b, s, p, positions);
    const base = source && b.let(into, "source", source.access.base);
    b.loop(into, "i", 0, needed, 1, isSymbolic(height) ? 2 ** 16 : Math.max(0, height), (i, body) => {
      const at = b.let(body, "at", add(begin, i)), to = b.let(body, "to", plus(start, times(i, toIndex(rowBytes))));
      const inside: Stmt[] = [], outside: Stmt[] = [];
      if (source && base) copyRow(b, inside, s, p.inner, source, b.let(inside, "row", plus(base, times(at, toIndex(bytesAlong(source.access, source.outer))))), to, width, channels);
      emitZero(b, outside, to, dimMul(width, channels));
      body.push({ kind: "if", condition: and(ge(at, 0), lt(at, toIndex(p.outer.input))), then: { kind: "block", body: inside }, else: { kind: "block", body: outside } });
    });
    return { pointer: start, rowBytes, positionBytes: channels * 4, channelBytes: 4 };
  };
}

/** One row: zeros, input, zeros. */
function copyRow(b: KernelBuilder, into: Stmt[], s: ConvStructure, d: SpatialDim, source: InputAccess, row: Expr, to: Expr, width: Dim, channels: number): void {
  const left = dimMax(0, dimMin(d.pad, width)), skipped = dimMax(0, dimMul(d.pad, -1));
  const middle = dimMax(0, dimMin(dimSub(d.input, skipped), dimSub(width, left))), right = dimSub(dimSub(width, left), middle);
  const positionBytes = bytesAlong(source.access, source.inner), channelBytes = bytesAlong(source.access, s.inputChannel);
  const from = b.letIndex(into, "from", plus(row, times(toIndex(skipped), toIndex(positionBytes))));
  const target = b.letIndex(into, "target", plus(to, times(toIndex(left), channels * 4)));
  if (left !== 0) emitZero(b, into, to, dimMul(left, channels));
  if (isDistance(positionBytes, channels * 4) && (channels === 1 || isDistance(channelBytes, 4))) emitCopy(b, into, from, target, dimMul(middle, channels));
  else if (isDistance(channelBytes, 4)) {
    b.loop(into, "x", 0, toIndex(middle), 1, middle, (x, body) =>
      emitCopy(b, body, b.let(body, "from", plus(from, mul(x, toIndex(positionBytes)))), b.let(body, "to", plus(target, times(x, channels * 4))), channels));
  } else if (isDistance(positionBytes, 4)) emitInterleave(b, into, from, target, middle, channels, channelBytes);
  else b.loop(into, "c", 0, constant(channels, i32), 1, channels, (c, body) => {
    const plane = b.let(body, "plane", plus(from, mul(c, toIndex(channelBytes)))), column = b.let(body, "to", plus(target, times(c, 4)));
    b.loop(body, "x", 0, toIndex(middle), 1, middle, (x, inner) =>
      inner.push(storeAt(plus(column, times(x, channels * 4)), 0, "float32", loadAt(plus(plane, times(x, toIndex(positionBytes))), 0, "float32", f32))));
  });
  if (right !== 0) emitZero(b, into, b.let(into, "end", plus(target, times(toIndex(middle), channels * 4))), dimMul(right, channels));
}
