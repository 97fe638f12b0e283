/** Operators of com.microsoft that onnxruntime (1.20 and newer) has kernels for, by execution provider and element type. */
import type { DType } from "../core/dtype.ts";
import type { OpDef } from "../graph/op.ts";
import { BiasGelu, FastGelu, FusedConv, FusedGemm, FusedMatMul, MicrosoftAttention, MicrosoftGelu, MultiHeadAttention, QuickGelu, SimplifiedLayerNormalization, SkipLayerNormalization, SkipSimplifiedLayerNormalization } from "../ops/index.ts";
import type { Value } from "../graph/graph.ts";
import { refuse, type Verdict } from "../rewrite/rule.ts";

/** Where onnxruntime runs a model. */
export type Provider = "cpu" | "webgpu";
export const providers: readonly Provider[] = ["cpu", "webgpu"];

const everywhere: readonly OpDef[] = [MicrosoftGelu, BiasGelu, FastGelu, QuickGelu, FusedConv, MicrosoftAttention, MultiHeadAttention, SimplifiedLayerNormalization, SkipLayerNormalization, SkipSimplifiedLayerNormalization];
const operatorsOf: Readonly<Record<Provider, readonly OpDef[]>> = { cpu: [...everywhere, FusedGemm, FusedMatMul], webgpu: everywhere };
const typesOf: Readonly<Record<Provider, readonly DType[]>> = { cpu: ["float32"], webgpu: ["float32", "float16"] };

/** Whether the provider has a kernel for the operator with this value as its first input. */
export function kernelFor(provider: Provider, op: OpDef, x: Value): Verdict {
  const { dtype } = x.type;
  if (!operatorsOf[provider].includes(op)) return refuse("no-kernel", `onnxruntime has no ${op.type} for ${provider}`, "emit for another execution provider");
  return typesOf[provider].includes(dtype) || refuse("no-kernel", `onnxruntime has no ${op.type} of ${dtype} for ${provider}`, `use a model of ${typesOf[provider].join(" or ")}`);
}
