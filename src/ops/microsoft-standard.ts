/**
 * Operators of com.microsoft that came before the standard's own: Trilu, Pad, Range, GatherND, ExpandDims, GridSample,
 * TransposeMatMul, ConvTransposeWithDynamicPads. They are read as those.
 */
import { fromNumbers } from "../core/tensor.ts";
import type { OpDef, Spelling } from "../graph/op.ts";
import { ConvTranspose } from "./conv-transpose.ts";
import { GridSample } from "./grid.ts";
import { Pad } from "./pad.ts";
import { Range, Trilu } from "./fill.ts";
import { GatherND } from "./gather.ts";
import { FusedMatMul } from "./microsoft-fused.ts";
import { Unsqueeze } from "./reshape.ts";
import { numbersOfInput, listInput, constantOf, typeOfInput } from "./spelling.ts";

/** `op` under another name: nodes of that name become nodes of `op` when they are read. */
const readAs = (op: OpDef, type: string, respell: (node: Spelling) => Spelling = (node) => node): OpDef =>
  ({ ...op, type, domain: "com.microsoft", since: 1, read: (node) => ({ ...respell(node), type: op.type, domain: op.domain }), write: () => undefined });

export const MicrosoftTrilu: OpDef = readAs(Trilu, "Trilu");
export const MicrosoftGatherND: OpDef = readAs(GatherND, "GatherND");
export const TransposeMatMul: OpDef = readAs(FusedMatMul, "TransposeMatMul");
/** A step that is left out is 1, of the type of the start. */
export const MicrosoftRange: OpDef = readAs(Range, "Range", (node) => {
  const start = typeOfInput(node.inputs[0]);
  return node.inputs[2] ? node : { ...node, inputs: [...node.inputs.slice(0, 2), ...(start ? [{ literal: fromNumbers(start.dtype, [], [1]) }] : [])] };
});
/** Amounts may be a matrix of one row. */
export const MicrosoftPad: OpDef = readAs(Pad, "Pad", (node) => {
  const amounts = constantOf(node.inputs[1]), values = numbersOfInput(node.inputs[1]);
  return amounts && values && amounts.dims.length === 2 ? { ...node, inputs: [node.inputs[0], listInput(values), ...node.inputs.slice(2)] } : node;
});
export const ExpandDims: OpDef = readAs(Unsqueeze, "ExpandDims", (node) => {
  const axes = numbersOfInput(node.inputs[1]);
  return axes ? { ...node, inputs: [node.inputs[0], listInput(axes)] } : node;
});
export const MicrosoftGridSample: OpDef = readAs(GridSample, "GridSample", (node) => {
  const { mode, ...rest } = node.attributes;
  return { ...node, attributes: { ...rest, mode: mode === "nearest" ? mode : mode === "bicubic" ? "cubic" : "linear" } };
});
/** Pads are the third input, the bias the fourth. */
export const ConvTransposeWithDynamicPads: OpDef = readAs(ConvTranspose, "ConvTransposeWithDynamicPads", (node) => {
  const [x, w, given, bias] = node.inputs, pads = numbersOfInput(given);
  return pads || !given ? { ...node, inputs: [x, w, ...(bias ? [bias] : [])], attributes: { ...node.attributes, ...(pads ? { pads } : {}) } } : node;
});
