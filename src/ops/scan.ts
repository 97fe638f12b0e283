/**
 * Scan: runs a subgraph once for each slice of its scanned inputs, carrying state and stacking results. (The form since
 * opset 9; that of opset 8 had a batch axis.)
 */
import { dimEqual, type Dim } from "../core/dim.ts";
import { defineOp, optional, required, type InferContext, type TypeInfo } from "../graph/op.ts";
import { joinTypes } from "./if.ts";
import { outsideType, symbolsAround } from "./loop.ts";

export const Scan = defineOp({
  type: "Scan", domain: "", since: 25,
  inputs: { initial_state_and_scan_inputs: "variadic" },
  attributes: {
    body: required("graph"), num_scan_inputs: required("int"),
    scan_input_axes: optional("ints"), scan_input_directions: optional("ints"),
    scan_output_axes: optional("ints"), scan_output_directions: optional("ints"),
  },
  fusionKind: "opaque",
  // Opset 8 had another form, with a batch axis.
  write: (node, opset) => (opset < 9 ? undefined : node),
  infer({ initial_state_and_scan_inputs: all }, { body, num_scan_inputs, scan_input_axes, scan_output_axes }, context) {
    const states = all.slice(0, all.length - num_scan_inputs);
    const scanned = all.slice(states.length);
    if (scanned.length === 0 || body.outputs.length < states.length) context.fail("OF3102", "the node and its body disagree in their inputs or results");
    const outer = symbolsAround(body, all);
    const length = scanned.map((type, i) => type.shape[atAxis(scan_input_axes?.[i] ?? 0, type.shape.length)] ?? 0).reduce((a, b) => joinLengths(a, b, context));
    return body.outputs.map((value, i) => {
      const type = outsideType(value.type, outer, context);
      const state = states[i];
      if (state) return joinTypes({ dtype: state.dtype, shape: state.shape }, type, `output_${i}`, context);
      const rank = type.shape.length + 1;
      return { dtype: type.dtype, shape: type.shape.toSpliced(atAxis(scan_output_axes?.[i - states.length] ?? 0, rank), 0, length) } satisfies TypeInfo;
    });
  },
});

/** An axis counted from the front. */
export const atAxis = (axis: number, rank: number): number => (axis < 0 ? axis + rank : axis);

function joinLengths(a: Dim, b: Dim, context: InferContext): Dim {
  if (typeof a === "number" && typeof b === "number" && !dimEqual(a, b)) context.fail("OF3105", `the scanned inputs have ${a} and ${b} slices`);
  if (!dimEqual(a, b)) context.agree?.(a, b, "equal");
  return typeof a === "number" ? a : b;
}
