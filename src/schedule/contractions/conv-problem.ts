/**
 * A convolution as this part schedules it: two spatial dimensions (one may be a single point), each output counted by
 * q = 0 … count−1, with output index scale·q + offset and taps at input position stride·q − pad + tap·dilation.
 *
 * A transposed convolution is one such problem for every residue of the output index modulo its stride (phase
 * decomposition): the taps that reach a residue are an arithmetic progression, read backwards.
 */
import { present } from "../../core/assert.ts";
import { dimAdd, dimCeilDiv, dimMul, dimSub, isSymbolic, type Dim } from "../../core/dim.ts";
import { axisOf, type Axis, type Expr } from "../../kernel/expr.ts";
import type { PackAxis } from "../../kernel/program.ts";
import type { ConvStructure } from "../../kernel/structure.ts";
import { plus, times } from "../loops/affine.ts";

export interface SpatialDim {
  /** The structure's output axis; absent for a dimension that is only there to make two. */
  readonly output: Axis | undefined;
  /** Index of this dimension in the input buffer. */
  readonly at: number | undefined;
  readonly count: Dim;
  readonly scale: number;
  readonly offset: number;
  readonly input: Dim;
  readonly stride: number;
  readonly dilation: number;
  readonly taps: number;
  /** Input positions before the input's first that tap 0 of output 0 reads; negative when it starts inside. */
  readonly pad: Dim;
  /** The kernel index of tap 0, and of each further tap. */
  readonly firstTap: number;
  readonly tapStep: number;
}

export interface ConvProblem {
  readonly outer: SpatialDim;
  readonly inner: SpatialDim;
}

const single: SpatialDim = { output: undefined, at: undefined, count: 1, scale: 1, offset: 0, input: 1, stride: 1, dilation: 1, taps: 1, pad: 0, firstTap: 0, tapStep: 1 };

/** Each has code of its own; a convolution of more is computed by loops over its elements. */
const mostProblems = 1024;

/** The problems that together make the convolution; undefined when it has three spatial dimensions, or sizes that must be known are not. */
export function convProblems(s: ConvStructure): readonly ConvProblem[] | undefined {
  const rank = s.output.length;
  if (rank > 2) return undefined;
  const dims = s.output.map((_, d) => (s.transposed ? phases(s, d) : [plain(s, d)]));
  const choices = dims.map((d) => d?.filter((x) => x.count !== 0));
  const last = choices[rank - 1], first = rank === 2 ? choices[0] : [single];
  if (!last || !first || last.length * first.length > mostProblems) return undefined;
  return first.flatMap((outer) => last.map((inner) => oriented(outer, inner)));
}

/** A convolution of two spatial dimensions that is not transposed, its rows of output as they are. */
export const rowProblem = (s: ConvStructure): ConvProblem | undefined => (s.output.length === 2 && !s.transposed ? { outer: plain(s, 0), inner: plain(s, 1) } : undefined);

/** The longer dimension becomes the inner one where the other is too short for a tile. */
function oriented(outer: SpatialDim, inner: SpatialDim): ConvProblem {
  const short = !isSymbolic(inner.count) && inner.count < 4;
  const longer = isSymbolic(outer.count) || (!isSymbolic(inner.count) && outer.count > inner.count);
  return short && longer ? { outer: inner, inner: outer } : { outer, inner };
}

function plain(s: ConvStructure, d: number): SpatialDim {
  const output = present(s.output[d], "output axis"), kernel = present(s.kernel[d], "kernel axis");
  return {
    output, at: d + 2, count: output.extent, scale: 1, offset: 0, input: present(s.input.shape[d + 2], "input size"),
    stride: present(s.strides[d], "stride"), dilation: present(s.dilations[d], "dilation"), taps: Number(kernel.extent), pad: present(s.padsBegin[d], "pad"),
    firstTap: 0, tapStep: 1,
  };
}

/** Transposed: output index stride·q + r takes kernel indices t with (r + pad − t·dilation) divisible by the stride. */
function phases(s: ConvStructure, d: number): readonly SpatialDim[] | undefined {
  const output = present(s.output[d], "output axis"), taps = Number(present(s.kernel[d], "kernel axis").extent);
  const stride = present(s.strides[d], "stride"), dilation = present(s.dilations[d], "dilation"), pad = s.padsBegin[d] ?? 0;
  if (isSymbolic(pad) || stride > mostProblems) return undefined;
  return Array.from({ length: stride }, (_, r): SpatialDim => {
    const reaching = Array.from({ length: taps }, (_, t) => t).filter((t) => mod(r + pad - t * dilation, stride) === 0).reverse();
    const [first = 0, second] = reaching;
    const step = second === undefined ? 0 : first - second;
    const start = Math.trunc((r + pad - first * dilation) / stride);
    return {
      output, at: d + 2, count: dimCeilDiv(dimSub(output.extent, r), stride), scale: stride, offset: r, input: present(s.input.shape[d + 2], "input size"),
      stride: 1, dilation: step === 0 ? 1 : (step * dilation) / stride, taps: reaching.length, pad: -start, firstTap: first, tapStep: -step,
    };
  });
}
const mod = (a: number, b: number): number => ((a % b) + b) % b;

/**
 * How the contracted axis runs over a weight: taps of both dimensions outside, input channels
 * (a multiple of `group` of them) inside; and its start.
 */
export function tapAxes(s: ConvStructure, p: ConvProblem, strides: readonly number[], group: 1 | 2): { readonly axes: readonly PackAxis[]; readonly offset: number } {
  const axis = (d: SpatialDim): { axis: PackAxis; offset: number } => {
    const stride = d.at === undefined ? 0 : strides[d.at] ?? 0;
    return { axis: { size: d.taps, stride: d.tapStep * stride }, offset: d.firstTap * stride };
  };
  const outer = axis(p.outer), inner = axis(p.inner);
  const channel = strides[s.transposed ? 0 : 1] ?? 0;
  const size = Number(s.inputChannel.extent), padded = Math.ceil(size / group) * group;
  return { axes: [outer.axis, inner.axis, { size, stride: channel, ...(padded === size ? {} : { padded }) }], offset: outer.offset + inner.offset };
}

/** Input positions that `count` outputs read, first to last. */
export const span = (d: SpatialDim, count: Dim): Dim => dimAdd(dimMul(dimSub(count, 1), d.stride), (d.taps - 1) * d.dilation + 1);

/** What the structure's axes stand for at a row of a problem, whose positions `inner` counts. */
export function outputPositions(p: ConvProblem, positions: ReadonlyMap<Axis, Expr>, row: Expr, inner: Axis): ReadonlyMap<Axis, Expr> {
  const out = new Map(positions);
  const place = (d: SpatialDim, q: Expr): void => { if (d.output) out.set(d.output, plus(times(q, d.scale), d.offset)); };
  place(p.outer, row);
  place(p.inner, axisOf(inner));
  return out;
}
