/** com.microsoft's maximum pools: of 8 bits with channels last, compiled as the standard's between two transpositions, and with a mask. */
import { formatShape, type Dim } from "../core/dim.ts";
import * as evaluate from "../evaluate/com-microsoft-pool.ts";
import { defineOp, int, named, type TypeInfo } from "../graph/op.ts";
import { Expansion } from "./expansion.ts";
import { MaxPool, poolAttributes } from "./pool.ts";
import { checkQuantized } from "./quantization.ts";
import { Transpose } from "./transpose.ts";

const common = { domain: "com.microsoft", since: 1, fusionKind: "opaque" } as const;
const { dilations: _, ceil_mode: __, ...undilated } = poolAttributes;

export const NhwcMaxPool = defineOp({
  ...common, type: "NhwcMaxPool", inputs: { x: "required" }, attributes: poolAttributes, evaluate: evaluate.NhwcMaxPool,
  infer({ x }, options, context) {
    checkQuantized(x.dtype, context);
    if (x.shape.length < 3) context.fail("OF3010", `needs rank 3 or more, got ${formatShape(x.shape)}`);
    const channels = x.shape.at(-1) ?? 1, [y] = MaxPool.infer(named<TypeInfo>(MaxPool, [{ dtype: x.dtype, shape: [x.shape[0] ?? 1, channels, ...x.shape.slice(1, -1)] }]), { ...options, storage_order: 0 }, context);
    return [{ dtype: x.dtype, shape: [x.shape[0] ?? 1, ...(y?.shape.slice(2) ?? []), channels] }];
  },
  expand({ inputs: [x], inputTypes: [type], outputs }, options) {
    const rank = type?.shape.length ?? 0, to = new Expansion(), inner = Array.from({ length: rank - 2 }, (_, d) => d + 1);
    const pooled = to.add(MaxPool, [to.add(Transpose, [x], { perm: [0, rank - 1, ...inner] })], options);
    to.add(Transpose, [pooled], { perm: [0, ...inner.map((d) => d + 1), 1] }, outputs[0]);
    return to.nodes;
  },
});

export const MaxpoolWithMask = defineOp({
  ...common, type: "MaxpoolWithMask", inputs: { X: "required", M: "required" }, attributes: { ...undilated, storage_order: int(0) }, evaluate: evaluate.MaxpoolWithMask,
  infer({ X, M }, options, context) {
    if (X.dtype !== "float32" || M.dtype !== "int32") context.fail("OF3013", `needs X of float32 and M of int32, got ${X.dtype} and ${M.dtype}`);
    const differs = (a: Dim | undefined, b: Dim): boolean => typeof a === "number" && typeof b === "number" && a !== b;
    if (M.shape.length !== X.shape.length || X.shape.slice(2).some((d, i) => differs(M.shape[i + 2], d))) context.fail("OF3011", `the mask of ${formatShape(M.shape)} does not fit ${formatShape(X.shape)}`);
    X.shape.slice(2).forEach((d, i) => context.agree?.(d, M.shape[i + 2] ?? d, "equal"));
    const [y] = MaxPool.infer(named<TypeInfo>(MaxPool, [X]), { ...options, ceil_mode: 0 }, context);
    return y ? [y] : [];
  },
});
