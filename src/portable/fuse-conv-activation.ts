/** Conv and its activation as onnxruntime's FusedConv. */
import { GraphBuilder } from "../graph/build.ts";
import type { Graph, Value } from "../graph/graph.ts";
import { Clip, Conv, FusedConv, LeakyRelu, Neg, Relu } from "../ops/index.ts";
import { anyOf, op, optionalInput, value } from "../rewrite/pattern.ts";
import { defineRule, exact, isRefusal, type Rule } from "../rewrite/rule.ts";
import { activationParameters, activations } from "./activations.ts";
import { kernelFor, type Provider } from "./kernels.ts";

const conv = op(Conv, [value("x"), value("w"), optionalInput(value("b"))], { as: "conv" });
const build = (after: (b: GraphBuilder, y: Value) => readonly Value[]) => (): Graph => {
  const b = new GraphBuilder();
  return b.build(...after(b, b.add(Conv, [b.input("x", ["n", 2, 5, 5]), b.random([3, 2, 3, 3]), b.random([3])], { pads: [1, 1, 1, 1] })));
};

export const fuseConvActivation = (provider: Provider): Rule => defineRule({
  name: "fuse-conv-activation",
  doc: "Conv followed by an activation becomes com.microsoft.FusedConv.",
  match: anyOf(op(activations, [conv], { as: "activation" }), op(Clip, [conv, optionalInput(value("low")), optionalInput(value("high"))], { as: "activation" })),
  where: [({ x }) => kernelFor(provider, FusedConv, x), ({ activation }) => { const found = activationParameters(activation); return isRefusal(found) ? found : true; }],
  numerics: exact,
  rewrite({ x, w, b, conv: node, activation }, edit) {
    const parameters = activationParameters(activation);
    if (isRefusal(parameters)) return parameters;
    return edit.insert(FusedConv, b ? [x, w, b] : [x, w], { ...node.attributes, activation: activation.op.type, ...(parameters.length ? { activation_params: parameters } : {}) });
  },
  example: build((b, y) => [b.add(Relu, [y])]),
  examples: [build((b, y) => [b.add(LeakyRelu, [y], { alpha: 0.1 })]), build((b, y) => [b.add(Clip, [y, 0, 6])])],
  refuses: {
    "interior-value-used": build((b, y) => [b.add(Relu, [y]), b.add(Neg, [y])]),
    "not-constant": build((b, y) => [b.add(Clip, [y, b.input("low", [])])]),
    "no-kernel"() {
      const b = new GraphBuilder();
      return b.build(b.add(Relu, [b.add(Conv, [b.input("x", [1, 2, 5, 5], "float64"), b.random([3, 2, 3, 3], { dtype: "float64" })])]));
    },
  },
});
