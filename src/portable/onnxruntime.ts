/**
 * Rules that say a graph in onnxruntime's own operators, for `--emit_level=ort`. They run when everything else has been
 * done; what onnxruntime's optimiser finds by itself in the result is left to it.
 */
import type { Rule } from "../rewrite/rule.ts";
import { flattenReshape } from "./flatten-reshape.ts";
import { fuseAttention } from "./fuse-attention.ts";
import { fuseConvActivation } from "./fuse-conv-activation.ts";
import { fuseBiasGelu, fuseGelu, fuseQuickGelu } from "./fuse-gelu.ts";
import { fuseGemmActivation } from "./fuse-gemm-activation.ts";
import { fusePackedAttention } from "./fuse-packed-attention.ts";
import { fuseMatMulTranspose } from "./fuse-matmul-transpose.ts";
import { fuseSkipNormalization, simplifyRmsNormalization } from "./fuse-skip-normalization.ts";
import type { Provider } from "./kernels.ts";

/** In the order in which they are tried at a node. */
export const onnxruntimeRules = (provider: Provider): readonly Rule[] =>
  [fuseAttention, fusePackedAttention, fuseSkipNormalization, simplifyRmsNormalization, fuseGelu, fuseBiasGelu, fuseQuickGelu, fuseConvActivation, fuseGemmActivation, fuseMatMulTranspose, flattenReshape].map((rule) => rule(provider));
