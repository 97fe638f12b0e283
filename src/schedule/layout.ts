/**
 * Chooses where channels lie. Activations around convolutions move to channels-last (N, spatial…, C): then lanes are
 * channels everywhere, a 1x1 convolution is a plain matrix product and a window's taps are contiguous runs.
 *
 * A storage moves when some convolution reads or writes it, or when an unstructured kernel joins it to one that moves,
 * provided every buffer that lies in it (views, parts of a concatenation) can be said with the new strides. What the
 * runtime and host operators see stays row-major.
 */
import { present } from "../core/assert.ts";
import { dimAdd, dimEqual, dimExactDiv, dimMul, dimProduct, dimRange, dimSub, isSymbolic, type Dim } from "../core/dim.ts";
import { byteSize } from "../core/dtype.ts";
import type { Buffer } from "../kernel/expr.ts";
import type { Kernel, Layout } from "../kernel/kernel.ts";
import type { Placement, Program, Step, Storage } from "../kernel/program.ts";
import { touchedBy } from "../kernel/accesses.ts";
import { allSteps } from "../kernel/segments.ts";
import { denseLayout } from "./builder.ts";

/** The program with channels-last placements where they pay. */
export function chooseLayouts(program: Program): Program {
  const steps = [...allSteps(program.steps)];
  const storages = movableStorages(program, steps);
  const kernels = steps.flatMap((s) => (s.kind === "call" ? [s.kernel] : []));
  const moved = chooseStorages(program, kernels, storages);
  if (moved.size === 0) return program;
  const placements = new Map([...program.placements].map(([buffer, p]): [Buffer, Placement] => {
    const layout = moved.get(p.storage)?.get(buffer);
    return [buffer, layout ? { ...p, layout } : p];
  }));
  return { ...program, placements };
}

/** Buffers by arena storage, without storages whose bytes are given a meaning elsewhere. */
function movableStorages(program: Program, steps: readonly Step[]): ReadonlyMap<Storage, readonly Buffer[]> {
  const fixed = new Set<Storage>();
  const fix = (buffer: Buffer | undefined): void => {
    const storage = buffer && program.placements.get(buffer)?.storage;
    if (storage) fixed.add(storage);
  };
  for (const s of steps) {
    if (s.kind !== "call") touchedBy(s).forEach(fix);
  }
  [...program.inputs, ...program.outputs].forEach((p) => fix(p.buffer));
  const out = new Map<Storage, Buffer[]>();
  for (const [buffer, { storage }] of program.placements) {
    if (storage.kind === "arena" && !fixed.has(storage)) out.set(storage, [...(out.get(storage) ?? []), buffer]);
  }
  return out;
}

type Layouts = ReadonlyMap<Buffer, Layout>;

/** The storages that move, with the new layout of every buffer in them. */
function chooseStorages(program: Program, kernels: readonly Kernel[], storages: ReadonlyMap<Storage, readonly Buffer[]>): ReadonlyMap<Storage, Layouts> {
  const chosen = new Map<Storage, Layouts>(), refused = new Set<Storage>();
  const storageOf = (buffer: Buffer): Storage => placementOf(program, buffer).storage;
  /** Tries to move the storage of a buffer seen as [N, C, spatial…]; true when that is new. */
  const move = (buffer: Buffer): boolean => {
    const storage = storageOf(buffer), buffers = storages.get(storage);
    if (!buffers || chosen.has(storage) || refused.has(storage)) return false;
    if (liesByChannel(buffer, placementOf(program, buffer).layout)) { refused.add(storage); return false; }
    const layouts = channelsLast(program, buffers, buffer.shape.length);
    if (!layouts) { refused.add(storage); return false; }
    chosen.set(storage, layouts);
    return true;
  };
  const spatialRank = (k: Kernel): number | undefined => (k.structure?.kind === "conv" ? k.structure.output.length + 2 : undefined);
  for (let changed = true; changed;) {
    changed = false;
    for (const k of kernels) {
      const rank = spatialRank(k) ?? (k.structure ? undefined : joinedRank(k, (b) => chosen.get(storageOf(b))?.get(b)));
      if (rank === undefined) continue;
      for (const buffer of [...k.inputs, ...k.outputs]) if (buffer.shape.length === rank && move(buffer)) changed = true;
    }
  }
  return chosen;
}

const placementOf = (program: Program, buffer: Buffer): Placement => present(program.placements.get(buffer), `place of ${buffer.name}`);

/** Whether neighbours along axis 1, the channels, lie beside each other. */
const liesByChannel = (b: Buffer, { strides }: Layout): boolean => b.shape[1] !== 1 && strides[1] === 1 && b.shape.slice(2).some((size) => size !== 1);

/** The rank at which a kernel touches a storage that moves, seeing channels as axis 1; one that sees them as its last axis has its rows in place. */
function joinedRank(k: Kernel, moved: (b: Buffer) => Layout | undefined): number | undefined {
  const seen = (b: Buffer): boolean => { const layout = b.shape.length >= 3 ? moved(b) : undefined; return layout !== undefined && (b.shape[1] === 1 || layout.strides[1] === 1 || layout.strides.at(-1) !== 1); };
  return [...k.inputs, ...k.outputs].find(seen)?.shape.length;
}

/** New layouts of all buffers of a storage whose whole is [N, C, spatial…] of this rank; undefined where one cannot be said. */
function channelsLast(program: Program, buffers: readonly Buffer[], rank: number): Layouts | undefined {
  const layoutOf = (b: Buffer): Layout => placementOf(program, b).layout;
  const whole = wholeShape(program, buffers, rank);
  if (!whole) return undefined;
  const digits = digitsOf(whole);
  const out = new Map<Buffer, Layout>();
  for (const b of buffers) {
    // One of the same elements in another shape, such as [N, H, W, 1], is a view like any other.
    const layout = b.shape.length === rank && b.shape.every((d, i) => dimEqual(d, whole[i] ?? 0)) && isWhole(program, b) ? { strides: movedStrides(b.shape), offset: 0 } : remapped(layoutOf(b), b.shape, digits);
    if (!layout) return undefined;
    out.set(b, layout);
  }
  return out;
}

/** The storage's shape as [N, C, spatial…]: that of a buffer that is all of it, or follows from one that is some of its channels, as where a concatenation is read in another shape only. */
function wholeShape(program: Program, buffers: readonly Buffer[], rank: number): readonly Dim[] | undefined {
  const same = buffers.filter((b) => b.shape.length === rank), whole = same.find((b) => isWhole(program, b));
  if (whole) return whole.shape;
  for (const b of same) {
    const { layout, storage } = placementOf(program, b);
    const [n = 1, , ...spatial] = b.shape, [strideN = 0, strideC = 0] = layout.strides, plane = dimProduct(spatial), dense = denseLayout(b.shape).strides;
    const image = n === 1 ? dimExactDiv(storage.bytes, byteSize(b.dtype)) : strideN;
    const channels = image === undefined ? undefined : dimExactDiv(image, plane);
    const together = dimEqual(strideC, plane) && spatial.every((size, d) => size === 1 || dimEqual(layout.strides[d + 2] ?? 0, dense[d + 2] ?? 0));
    if (channels !== undefined && together && dimEqual(storage.bytes, dimMul(dimMul(n, dimMul(channels, plane)), byteSize(b.dtype)))) return [n, channels, ...spatial];
  }
  return undefined;
}

function isWhole(program: Program, b: Buffer): boolean {
  const { layout, storage } = placementOf(program, b);
  const dense = denseLayout(b.shape);
  return layout.offset === 0 && layout.strides.every((s, d) => dimEqual(s, dense.strides[d] ?? 0)) && dimEqual(storage.bytes, dimMul(dimProduct(b.shape), byteSize(b.dtype)));
}

/** Dimensions of the whole that still follow each other after moving: one digit of the row-major element number. */
interface Digit { readonly size: Dim; readonly stride: Dim; readonly moved: Dim }

/** Strides of [N, C, spatial…] with channels last. */
function movedStrides(shape: readonly Dim[]): readonly Dim[] {
  const [n = 1, c = 1, ...spatial] = shape;
  const last = denseLayout([n, ...spatial, c]).strides;
  return [last[0] ?? 1, 1, ...last.slice(1, -1)];
}

function digitsOf(shape: readonly Dim[]): readonly Digit[] {
  const old = denseLayout(shape).strides, moved = movedStrides(shape);
  const digits: Digit[] = [];
  for (const [d, size] of shape.entries()) {
    if (size === 1) continue;
    const digit: Digit = { size, stride: old[d] ?? 1, moved: moved[d] ?? 1 };
    const before = digits[digits.length - 1];
    if (before && dimEqual(before.moved, dimMul(digit.moved, size))) digits[digits.length - 1] = { ...digit, size: dimMul(before.size, size) };
    else digits.push(digit);
  }
  return digits;
}

/** The constant factor f with a = f·b. */
function constantRatio(a: Dim, b: Dim): number | undefined {
  const exact = dimExactDiv(a, b);
  if (exact !== undefined) return isSymbolic(exact) ? undefined : exact;
  const x = isSymbolic(a) ? a.terms[0]?.coefficient : a, y = isSymbolic(b) ? b.terms[0]?.coefficient : b;
  if (!x || !y || x % y !== 0) return undefined;
  return dimEqual(a, dimMul(b, x / y)) ? x / y : undefined;
}

/** The layout of a buffer in the whole after it has moved; undefined where an axis does not count within one digit. */
function remapped(layout: Layout, shape: readonly Dim[], digits: readonly Digit[]): Layout | undefined {
  const start = offsetDigits(layout.offset, digits);
  if (!start) return undefined;
  const reach = [...start];
  const strides: Dim[] = [];
  for (const [axis, stride] of layout.strides.entries()) {
    const extent = shape[axis] ?? 1;
    const at = extent === 1 || stride === 0 ? undefined : digitOf(stride, extent, digits);
    if (at === undefined) {
      if (extent !== 1 && stride !== 0) return undefined;
      strides.push(0);
      continue;
    }
    strides.push(dimMul(present(digits[at.index], "digit").moved, at.factor));
    reach[at.index] = dimAdd(reach[at.index] ?? 0, dimMul(dimSub(extent, 1), at.factor));
  }
  const inside = digits.every((d, i) => dimRange(dimSub(dimSub(d.size, 1), reach[i] ?? 0)).lower >= 0);
  return inside ? { strides, offset: digits.reduce<Dim>((sum, d, i) => dimAdd(sum, dimMul(d.moved, start[i] ?? 0)), 0) } : undefined;
}

/** The digit an axis counts in, and its steps. A stride is a multiple of the strides of all smaller digits: the largest wins. */
function digitOf(stride: Dim, extent: Dim, digits: readonly Digit[]): { readonly index: number; readonly factor: Dim } | undefined {
  for (const [index, digit] of digits.entries()) {
    const factor = constantRatio(stride, digit.stride) ?? dimExactDiv(stride, digit.stride);
    if (factor === undefined) continue;
    const last = dimMul(dimSub(extent, 1), factor);
    // With sizes of 0 the last element may be before the first: then whole steps must fit.
    if (dimRange(dimSub(dimSub(digit.size, 1), last)).lower >= 0 || dimRange(dimSub(digit.size, dimMul(extent, factor))).lower >= 0) return { index, factor };
  }
  return undefined;
}

/** An offset by digits: all of it in one digit, or a number when all strides are. */
function offsetDigits(offset: Dim, digits: readonly Digit[]): Dim[] | undefined {
  const none = digits.map((): Dim => 0);
  if (offset === 0) return none;
  const single = digits.findIndex((d) => constantRatio(offset, d.stride) !== undefined);
  if (single >= 0) return none.map((_, i) => (i === single ? constantRatio(offset, present(digits[i], "digit").stride) ?? 0 : 0));
  let rest = offset;
  const out: Dim[] = [];
  for (const digit of digits) {
    if (isSymbolic(rest) || isSymbolic(digit.stride)) return undefined;
    const at = Math.floor(rest / digit.stride);
    out.push(at);
    rest -= at * digit.stride;
  }
  return rest === 0 ? out : undefined;
}
