/** The constant weights of a convolution as panels of output channels, taps outside and input channels inside. */
import { isSymbolic } from "../../core/dim.ts";
import { byteSize } from "../../core/dtype.ts";
import { constant, i32, type Expr } from "../../kernel/expr.ts";
import type { ConvStructure } from "../../kernel/structure.ts";
import { packedLength } from "../../memory/pack.ts";
import { plus, times } from "../loops/affine.ts";
import { addressOf, type KernelBuilder } from "../builder.ts";
import { byteShift, quadPanels, termsAt } from "./byte-dots.ts";
import type { Operands } from "./conv-operands.ts";
import { tapAxes, type ConvProblem } from "./conv-problem.ts";
import type { PanelColumns } from "./gemm.ts";

/** Packs the taps of a problem: panels for every group. Undefined where weights are not constant. */
export function packTaps(b: KernelBuilder, s: ConvStructure, p: ConvProblem, { kind, subtract }: Operands): { readonly at: (group: Expr) => PanelColumns } | undefined {
  const weight = b.context.weight(s.weight);
  const layout = b.layout(s.weight);
  const strides = layout.strides.filter((d): d is number => !isSymbolic(d));
  const groups = s.group.extent, n = s.channel.extent, inputs = s.inputChannel.extent;
  if (!weight || strides.length !== layout.strides.length || isSymbolic(layout.offset) || isSymbolic(groups) || isSymbolic(n) || isSymbolic(inputs)) return undefined;
  const group = kind.kind === "pairs" ? 2 : 1, dtype = kind.kind === "pairs" ? kind.b : "float32";
  const { axes, offset } = tapAxes(s, p, strides, group);
  const width = n <= 4 ? 4 : 8;
  const k = axes.reduce((c, a) => c * (a.padded ?? a.size), 1);
  const strideN = strides[s.transposed ? 1 : 0] ?? 0, strideG = s.transposed ? inputs * (strides[0] ?? 0) : n * (strides[0] ?? 0);
  const spec = { kind: "panels" as const, groups, k, n, nr: width, kStep: group, strideG, strideK: axes, strideN, as: dtype, offset: layout.offset + offset, ...(subtract === 0 ? {} : { subtract }) };
  const shift = inputs % 4 === 0 ? byteShift(s.input.dtype, s.zeroPoints?.input ?? constant(0, i32), [s.batch, s.group, s.channel, s.inputChannel, ...s.output, ...s.kernel]) : undefined;
  const quads = shift && quadPanels(b, weight, spec), chosen = quads?.spec ?? spec, packed = b.packed(weight, chosen, dtype, packedLength([], chosen));
  const stepBytes = width * group * byteSize(dtype), panelBytes = (k / group) * stepBytes, groupBytes = Math.ceil(n / width) * panelBytes;
  return { at: (g) => ({ kind: "panels", pointer: plus(addressOf(packed), times(g, groupBytes)), width, panelBytes, stepBytes, ...(quads ? { quads: { terms: termsAt(quads.terms, g, n), shift } } : {}) }) };
}
