/**
 * Stops a run unless a condition holds (or, with `holds` 0, does not). It stands where a model was read for one answer
 * only, because under the other one its types do not fit. No ONNX operator; written files leave it out.
 */
import { Require as evaluate } from "../evaluate/onnxfuse-require.ts";
import { defineOp, int, string } from "../graph/op.ts";

export const Require = defineOp({
  type: "Require", domain: "onnxfuse", since: 1,
  inputs: { condition: "required" },
  attributes: { holds: int(1), node: string(""), reason: string("") },
  fusionKind: "opaque",
  sideEffects: true,
  infer: ({ condition }, _, context) => {
    if (condition.dtype !== "bool") context.fail("OF3101", `the condition must be bool, got ${condition.dtype}`);
    return [];
  },
  evaluate,
  expand: () => [],
});
