/**
 * Windows of convolutions and pools over symbolic sizes: explicit pads from `auto_pad`, output sizes, and which taps may
 * fall outside the input. Formulas are ONNX's.
 */
import { invariant } from "../core/assert.ts";
import { dimAdd, dimCeilDiv, dimFloorDiv, dimMax, dimMin, dimMul, dimRange, dimSub, type Dim } from "../core/dim.ts";
import type { AttributeSpec, InferContext, TypeInfo } from "../graph/op.ts";
import { optional, string } from "../graph/op.ts";
import { add, and, constant, dimExpr, ge, lt, mul, select, sub, type Expr } from "../kernel/expr.ts";

/** The attributes that place windows, as every such operator spells them. */
export const windowAttributes = {
  auto_pad: string("NOTSET"),
  dilations: optional("ints"),
  pads: optional("ints"),
  strides: optional("ints"),
} as const satisfies Record<string, AttributeSpec>;

export interface WindowOptions {
  readonly auto_pad: string;
  readonly dilations: readonly number[] | undefined;
  readonly pads: readonly number[] | undefined;
  readonly strides: readonly number[] | undefined;
  readonly ceil_mode?: number;
}

/** One spatial axis. Tap k of output o reads position o·stride − padBegin + k·dilation. */
export interface Window {
  readonly input: Dim;
  readonly output: Dim;
  readonly kernel: number;
  readonly stride: number;
  readonly dilation: number;
  readonly padBegin: Dim;
  readonly padEnd: Dim;
  /** Some tap may read before the input's start. */
  readonly mayUnderrun: boolean;
  /** Some tap may read past the input's end. */
  readonly mayOverrun: boolean;
}

/** The windows of each spatial axis. Lists must have been checked by `checkWindows`. */
export function windowsOf(spatial: readonly Dim[], kernel: readonly number[], options: WindowOptions): readonly Window[] {
  const rank = spatial.length;
  return spatial.map((input, d): Window => {
    const size = kernel[d] ?? 1, stride = options.strides?.[d] ?? 1, dilation = options.dilations?.[d] ?? 1;
    const reach = (size - 1) * dilation + 1;
    const shape = { input, kernel: size, stride, dilation };
    if (options.auto_pad === "SAME_UPPER" || options.auto_pad === "SAME_LOWER") {
      const output = dimCeilDiv(input, stride);
      const total = dimMax(0, dimSub(dimAdd(dimMul(dimSub(output, 1), stride), reach), input));
      const small = dimFloorDiv(total, 2), large = dimSub(total, small);
      const [padBegin, padEnd] = options.auto_pad === "SAME_UPPER" ? [small, large] : [large, small];
      return { ...shape, output, padBegin, padEnd, mayUnderrun: mayBePositive(padBegin), mayOverrun: mayBePositive(padEnd) };
    }
    const explicit = options.auto_pad === "VALID" ? undefined : options.pads;
    const padBegin = explicit?.[d] ?? 0, padEnd = explicit?.[d + rank] ?? 0;
    const room = dimSub(dimAdd(input, padBegin + padEnd), reach);
    const steps = options.ceil_mode ? dimMin(dimCeilDiv(room, stride), dimSub(dimCeilDiv(dimAdd(input, padBegin), stride), 1)) : dimFloorDiv(room, stride);
    const output = dimAdd(steps, 1);
    const last = dimAdd(dimMul(steps, stride), reach - padBegin);
    const mayOverrun = typeof last === "number" && typeof input === "number" ? last > input : padEnd > 0 || options.ceil_mode === 1;
    return { ...shape, output: typeof output === "number" ? Math.max(0, output) : output, padBegin, padEnd, mayUnderrun: padBegin > 0, mayOverrun };
  });
}

const mayBePositive = (d: Dim): boolean => dimRange(d).upper > 0;

/** Reports attribute lists whose lengths or values do not fit `rank` spatial axes. */
export function checkWindows(rank: number, options: WindowOptions, context: InferContext): void {
  if (rank < 1 || rank > 3) context.fail("OF3010", `needs 1 to 3 spatial axes, got ${rank}`);
  const lists: readonly [string, readonly number[] | undefined, number, number][] = [
    ["strides", options.strides, rank, 1], ["dilations", options.dilations, rank, 1], ["pads", options.pads, 2 * rank, 0],
  ];
  for (const [name, list, length, least] of lists) {
    if (!list) continue;
    if (list.length !== length) context.fail("OF3012", `attribute '${name}' needs ${length} values, got ${list.length}`);
    if (list.some((v) => v < least)) context.fail("OF3012", `attribute '${name}' has a value below ${least}: [${list.join(", ")}]`);
    if (list.some((v) => v >= 2 ** 31)) context.fail("OF3012", `attribute '${name}' has a value of more than 31 bits, which positions in an image have: [${list.join(", ")}]`);
  }
  if (!["NOTSET", "", "VALID", "SAME_UPPER", "SAME_LOWER"].includes(options.auto_pad)) context.fail("OF3012", `unknown auto_pad '${options.auto_pad}'`);
}

/** Spatial sizes of a weight, which must be known. */
export function staticSizes(type: TypeInfo, from: number, what: string, context: InferContext): readonly number[] {
  return type.shape.slice(from).map((d) => (typeof d === "number" ? d : context.fail("OF3014", `${what} needs known sizes`, "fix the size with --input_shape or --dim")));
}

const scaled = (e: Expr, by: number): Expr => (by === 1 ? e : mul(e, by));
const isZero = (e: Expr): boolean => e.kind === "const" && e.value === 0;
const plus = (a: Expr, b: Expr): Expr => (isZero(a) ? b : isZero(b) ? a : add(a, b));

/** The input position of tap `k` of output `o`. */
export function positionOf(w: Window, o: Expr, k: Expr): Expr {
  const start = scaled(o, w.stride);
  const shifted = w.padBegin === 0 ? start : sub(start, dimExpr(w.padBegin));
  return w.kernel === 1 ? shifted : plus(shifted, scaled(k, w.dilation));
}

/** Conditions under which a position lies inside the input; none where it always does. */
export function insideOf(w: Window, position: Expr): readonly Expr[] {
  const conditions: Expr[] = [];
  if (w.mayUnderrun) conditions.push(ge(position, 0));
  if (w.mayOverrun) conditions.push(lt(position, dimExpr(w.input)));
  return conditions;
}

/** `value` where all conditions hold, else `otherwise`. */
export function guarded(conditions: readonly Expr[], value: Expr, otherwise: Expr): Expr {
  if (conditions.length === 0) return value;
  return select(conditions.reduce((a, b) => and(a, b)), value, otherwise);
}

/** Reads one element of a window: `read` at the positions of taps `k`, `outside` where a tap is out of the input. */
export function readWindow(windows: readonly Window[], output: readonly Expr[], taps: readonly Expr[], read: (positions: readonly Expr[]) => Expr, outside: number | bigint): Expr {
  const positions = windows.map((w, d) => positionOf(w, operand(output, d), operand(taps, d)));
  const conditions = windows.flatMap((w, d) => insideOf(w, operand(positions, d)));
  const value = read(positions);
  return guarded(conditions, value, constant(outside, value.type));
}

/** Element `d` of a list as long as the windows. */
export function operand<T>(list: readonly T[], d: number): T {
  const item = list[d];
  invariant(item !== undefined, "one entry per spatial axis");
  return item;
}
