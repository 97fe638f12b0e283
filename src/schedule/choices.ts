/**
 * Choices between schedules that compute the same: which of them is quicker hangs on the machine, so they may be measured
 * (`onnxfuse tune`) and given by kernel. A kernel is known by what it computes, not by its name, so that equal kernels
 * share a choice and a model that is compiled again finds its own.
 */
import { isSymbolic, type Dim } from "../core/dim.ts";
import type { Kernel } from "../kernel/kernel.ts";
import type { ConvStructure, MatMulStructure } from "../kernel/structure.ts";
import { isCostly } from "./contractions/epilogue.ts";

export interface KernelChoice {
  /** False: a 3x3 convolution is computed directly. */
  readonly winograd?: boolean;
  /** Rows and columns of the register tile; 4x8 by default. */
  readonly tile?: "4x8" | "2x16";
  /** False: costly epilogues are applied tile by tile. */
  readonly strips?: boolean;
  /** `outer`: threads share the outermost loop alone; by default the loops within it too, so that there are more pieces. */
  readonly split?: "outer";
}
/** By signature. */
export type Choices = Readonly<Record<string, KernelChoice>>;

const size = (d: Dim): string => (isSymbolic(d) ? d.key : String(d));
const sizes = (dims: readonly Dim[]): string => dims.map(size).join("x");

/** What a matrix product or convolution is known by; undefined for kernels that leave nothing to choose. */
export function signatureOf({ structure: s, outputs }: Kernel): string | undefined {
  return s?.kind !== "matmul" && s?.kind !== "conv" ? undefined : signature(s, outputs.length);
}

function signature(s: MatMulStructure | ConvStructure, outputs: number): string {
  const how = `${s.accumulator.type.scalar} ${isCostly(s.stores) ? "costly" : "plain"} ${outputs}`;
  if (s.kind === "matmul") return `matmul ${sizes(s.batch.map((a) => a.extent))}[${sizes([s.m.extent, s.k.extent, s.n.extent])}]${s.quantized ? ` q${s.quantized.block}` : ""}${s.others ? ` and ${s.others.length}` : ""} ${how}`;
  return `conv${s.transposed ? " transposed" : ""} ${sizes([s.batch.extent, s.group.extent])}[${size(s.inputChannel.extent)}->${size(s.channel.extent)}] ${sizes(s.output.map((a) => a.extent))} k${sizes(s.kernel.map((a) => a.extent))} s${sizes(s.strides)} d${sizes(s.dilations)} ${how}${s.inputFrom ? ` of ${signature(s.inputFrom, 1)}` : ""}${s.pooled ? ` pooled ${s.pooled.windows.map((w) => `${w.taps}/${w.stride}`).join("x")}` : ""}`;
}

const allowed: Readonly<Record<keyof KernelChoice, (value: unknown) => boolean>> = {
  winograd: (v) => typeof v === "boolean", tile: (v) => v === "4x8" || v === "2x16", strips: (v) => typeof v === "boolean", split: (v) => v === "outer",
};
const isRecord = (v: unknown): v is Readonly<Record<string, unknown>> => typeof v === "object" && v !== null && !Array.isArray(v);

/** Whether a value is what `choices` may be. */
export const isChoices = (v: unknown): v is Choices =>
  isRecord(v) && Object.values(v).every((c) => isRecord(c) && Object.entries(c).every(([name, value]) => Object.entries(allowed).some(([known, is]) => known === name && is(value))));
