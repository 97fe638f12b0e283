/** Gemm and its activation as onnxruntime's FusedGemm. */
import { GraphBuilder } from "../graph/build.ts";
import type { Graph, Value } from "../graph/graph.ts";
import { FusedGemm, Gemm, LeakyRelu, Neg, Relu } from "../ops/index.ts";
import { op, optionalInput, value } from "../rewrite/pattern.ts";
import { defineRule, exact, isRefusal, type Rule } from "../rewrite/rule.ts";
import { activationParameters, activations } from "./activations.ts";
import { kernelFor, type Provider } from "./kernels.ts";

const build = (after: (b: GraphBuilder, y: Value) => readonly Value[], dtype: "float32" | "float64" = "float32") => (): Graph => {
  const b = new GraphBuilder();
  return b.build(...after(b, b.add(Gemm, [b.input("x", [4, 3], dtype), b.random([5, 3], { dtype }), b.random([5], { dtype })], { transB: 1 })));
};

export const fuseGemmActivation = (provider: Provider): Rule => defineRule({
  name: "fuse-gemm-activation",
  doc: "Gemm followed by an activation becomes com.microsoft.FusedGemm.",
  match: op(activations, [op(Gemm, [value("a"), value("b"), optionalInput(value("c"))], { as: "gemm" })], { as: "activation" }),
  where: [({ a }) => kernelFor(provider, FusedGemm, a)],
  numerics: exact,
  rewrite({ a, b, c, gemm, activation }, edit) {
    const parameters = activationParameters(activation);
    if (isRefusal(parameters)) return parameters;
    const [alpha, beta] = parameters;
    return edit.insert(FusedGemm, c ? [a, b, c] : [a, b], { ...gemm.attributes, activation: activation.op.type, ...(alpha === undefined ? {} : { activation_alpha: alpha }), ...(beta === undefined ? {} : { activation_beta: beta }) });
  },
  example: build((b, y) => [b.add(Relu, [y])]),
  examples: [build((b, y) => [b.add(LeakyRelu, [y], { alpha: 0.1 })])],
  refuses: {
    "interior-value-used": build((b, y) => [b.add(Relu, [y]), b.add(Neg, [y])]),
    "no-kernel": build((b, y) => [b.add(Relu, [y])], "float64"),
  },
});
