/** Attention on one projection of queries, keys and values as onnxruntime's Attention, which holds the projection too. */
import { GraphBuilder } from "../graph/build.ts";
import type { Graph, Value } from "../graph/graph.ts";
import { Add, MatMul, MicrosoftAttention, MultiHeadAttention, Neg, Split } from "../ops/index.ts";
import { absent, constant, op, optionalInput, value } from "../rewrite/pattern.ts";
import { defineRule, reassociates, refuse, type Rule } from "../rewrite/rule.ts";
import { kernelFor, type Provider } from "./kernels.ts";

const projection = op(Add, [op(MatMul, [value("x"), constant("weight")]), constant("bias")]);
const part = (output: number) => op(Split, [projection], { output, as: "split", rest: true });

const build = (sizes: readonly number[] = [8, 8, 8], after: (b: GraphBuilder, parts: readonly Value[]) => readonly Value[] = () => []) => (): Graph => {
  const b = new GraphBuilder(), total = sizes.reduce((a, n) => a + n, 0);
  const packed = b.add(Add, [b.add(MatMul, [b.input("x", [2, 5, 6]), b.random([6, total])]), b.random([total])]);
  const parts = b.addAll(Split, [packed, b.int64(...sizes)], { axis: 2 }, 3);
  return b.build(b.add(MultiHeadAttention, [...parts, undefined, undefined, b.input("scores", [2, 1, 5, 5])], { num_heads: 2, scale: 0.5 }), ...after(b, parts));
};

export const fusePackedAttention = (provider: Provider): Rule => defineRule({
  name: "fuse-packed-attention",
  doc: "MultiHeadAttention on the three parts of one projection with its bias becomes com.microsoft.Attention, which computes the projection.",
  match: op(MultiHeadAttention, [part(0), part(1), part(2), absent(), absent(), optionalInput(value("scores"))], { as: "attention" }),
  where: [
    ({ x }) => kernelFor(provider, MicrosoftAttention, x),
    ({ split, weight, bias }) => {
      const widths = split.outputs.map((v) => v.type.shape.at(-1)), third = (weight.constant.dims[1] ?? 0) / 3;
      return (widths.length === 3 && widths.every((w) => w === third) && weight.constant.dims.length === 2 && bias.constant.dims.length === 1) || refuse("shape", `'${split.name}' does not part the projection into three of one width`, "give queries, keys and values one width");
    },
    ({ x }) => x.type.shape.length === 3 || refuse("rank", `'${x.name}' does not have three axes`, "make it [batch, sequence, width]"),
  ],
  numerics: reassociates(3e-5),
  rewrite({ x, weight, bias, attention, ...rest }, edit) {
    const { scores } = rest as { readonly scores?: Value }, { num_heads, scale, unidirectional } = attention.attributes;
    return edit.insert(MicrosoftAttention, [x, weight, bias, ...(scores ? [undefined, undefined, scores] : [])], { num_heads, unidirectional, ...(scale === undefined ? {} : { scale }) });
  },
  example: build(),
  refuses: {
    "shape": build([8, 8, 16]),
    "interior-value-used": build([8, 8, 8], (b, parts) => [b.add(Neg, [parts[1]])]),
  },
});
