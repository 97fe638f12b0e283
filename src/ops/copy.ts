/** A copy of a value, which lies where it is wanted when the value itself cannot. No ONNX operator; written files have none. */
import { Identity as evaluateData } from "../evaluate/identity.ts";
import { defineOp } from "../graph/op.ts";

export const Copy = defineOp({
  type: "Copy", domain: "onnxfuse", since: 1, evaluateData,
  inputs: { x: "required" },
  attributes: {},
  fusionKind: "opaque",
  infer: ({ x }) => [{ dtype: x.dtype, shape: x.shape }],
  lower: ({ x }) => [(...indices) => x.at(...indices)],
});
