/** Gelu and Swish as onnxruntime's own operators, with a bias where one is added before. */
import { dimEqual } from "../core/dim.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { Graph, Value } from "../graph/graph.ts";
import { Add, BiasGelu, FastGelu, Gelu, MicrosoftGelu, Neg, QuickGelu, Swish } from "../ops/index.ts";
import { anyOf, commuted, constant, op, value } from "../rewrite/pattern.ts";
import { defineRule, reassociates, refuse, type Rule } from "../rewrite/rule.ts";
import { kernelFor, type Provider } from "./kernels.ts";

const build = (make: (b: GraphBuilder, x: Value) => Value, dtype: "float32" | "float64" = "float32") => (): Graph => {
  const b = new GraphBuilder();
  return b.build(make(b, b.input("x", ["n", 3, 4], dtype)));
};

export const fuseGelu = (provider: Provider): Rule => defineRule({
  name: "fuse-gelu",
  doc: "Gelu becomes com.microsoft.Gelu, or FastGelu where it is approximated by tanh.",
  match: op(Gelu, [value("x")], { as: "gelu" }),
  where: [({ x, gelu }) => kernelFor(provider, gelu.attributes["approximate"] === "tanh" ? FastGelu : MicrosoftGelu, x)],
  numerics: reassociates(),
  rewrite: ({ x, gelu }, edit) => edit.insert(gelu.attributes["approximate"] === "tanh" ? FastGelu : MicrosoftGelu, [x]),
  example: build((b, x) => b.add(Gelu, [x])),
  examples: [build((b, x) => b.add(Gelu, [x], { approximate: "tanh" }))],
  refuses: { "no-kernel": build((b, x) => b.add(Gelu, [x]), "float64") },
});

export const fuseBiasGelu = (provider: Provider): Rule => defineRule({
  name: "fuse-bias-gelu",
  doc: "A bias of one value a column and the Gelu after it become com.microsoft.BiasGelu, or FastGelu with its bias.",
  match: anyOf(op(MicrosoftGelu, [commuted(Add, [value("x"), constant("bias")])]), op(FastGelu, [commuted(Add, [value("x"), constant("bias")])])),
  where: [
    ({ x, bias }) => (bias.constant.dims.length === 1 && x.type.shape.length > 1 && dimEqual(bias.constant.dims[0] ?? 0, x.type.shape.at(-1) ?? 0)) || refuse("shape", `'${bias.name}' is not one value for each column of '${x.name}'`, "give it one value a column"),
    ({ x }, root) => kernelFor(provider, root.op === FastGelu ? FastGelu : BiasGelu, x),
  ],
  numerics: reassociates(),
  rewrite: ({ x, bias }, edit) => edit.insert(edit.root.op === FastGelu ? FastGelu : BiasGelu, [x, bias]),
  example: build((b, x) => b.add(MicrosoftGelu, [b.add(Add, [x, b.random([4])])])),
  examples: [build((b, x) => b.add(FastGelu, [b.add(Add, [x, b.random([4])])]))],
  refuses: {
    "shape": build((b, x) => b.add(MicrosoftGelu, [b.add(Add, [x, b.random([3, 4])])])),
    "not-constant": build((b, x) => b.add(MicrosoftGelu, [b.add(Add, [b.add(Neg, [x]), b.input("bias", [4])])])),
  },
});

export const fuseQuickGelu = (provider: Provider): Rule => defineRule({
  name: "fuse-quick-gelu",
  doc: "Swish, x times the sigmoid of alpha x, becomes com.microsoft.QuickGelu.",
  match: op(Swish, [value("x")], { as: "swish" }),
  where: [({ x }) => kernelFor(provider, QuickGelu, x)],
  numerics: reassociates(),
  rewrite: ({ x, swish }, edit) => edit.insert(QuickGelu, [x], { alpha: Number(swish.attributes["alpha"]) }),
  example: build((b, x) => b.add(Swish, [x])),
  examples: [build((b, x) => b.add(Swish, [x], { alpha: 1.702 }))],
  refuses: { "no-kernel": build((b, x) => b.add(Swish, [x]), "float64") },
});
