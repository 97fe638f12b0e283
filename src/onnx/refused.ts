/** Operators of the standard that are refused by name, with what to do instead: they are not inference over tensors. */

export interface Refusal { readonly reason: string; readonly hint: string }

/** By `domain:type`. */
export const refusedOperators: Readonly<Record<string, Refusal>> = {
  ":ImageDecoder": { reason: "image files are decoded by the platform", hint: "decode the image first (createImageBitmap in browsers, sharp in Node) and feed its pixels" },
  "ai.onnx.preview.training:Gradient": { reason: "graphs are not differentiated here", hint: "export the training graph with its gradients as operators" },
};
