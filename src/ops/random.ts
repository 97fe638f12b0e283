/** Random tensors: never folded, merged, copied or moved across; they run on the host. */
import { dtypeFromOnnx, type DType, isFloat } from "../core/dtype.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { defineOp, float, int, optional, required, type AttributeSpec, type InferContext, type OpDef } from "../graph/op.ts";
import * as evaluate from "../evaluate/random.ts";

/** The type an attribute names; `missing` where it is left out. */
function typeOf(code: number | undefined, missing: DType, context: InferContext): DType {
  if (code === undefined || code === 0) return missing;
  return dtypeFromOnnx(code) ?? context.fail("OF3012", `type ${code} is not supported`);
}

const normal = { mean: float(0), scale: float(1), seed: optional("float") } as const satisfies Record<string, AttributeSpec>;
const uniform = { low: float(0), high: float(1), seed: optional("float") } as const satisfies Record<string, AttributeSpec>;

const shaped = (type: string, own: typeof normal | typeof uniform, of: Evaluate): OpDef => defineOp({
  type, domain: "", since: 1, inputs: {},
  attributes: { ...own, dtype: int(1), shape: required("ints") },
  fusionKind: "opaque", deterministic: false,
  infer: (_, { dtype, shape }, context) => [{ dtype: typeOf(dtype, "float32", context), shape }],
  evaluate: of,
});
const like = (type: string, own: typeof normal | typeof uniform, of: Evaluate): OpDef => defineOp({
  type, domain: "", since: 1, inputs: { input: "required" },
  attributes: { ...own, dtype: optional("int") },
  fusionKind: "opaque", deterministic: false,
  infer: ({ input }, { dtype }, context) => {
    const type = typeOf(dtype, input.dtype, context);
    if (!isFloat(type)) context.fail("OF3013", `random numbers are float, not ${type}`, "set the attribute dtype");
    return [{ dtype: type, shape: input.shape }];
  },
  evaluate: of,
});

export const RandomNormal: OpDef = shaped("RandomNormal", normal, evaluate.RandomNormal);
export const RandomUniform: OpDef = shaped("RandomUniform", uniform, evaluate.RandomUniform);
export const RandomNormalLike: OpDef = like("RandomNormalLike", normal, evaluate.RandomNormalLike);
export const RandomUniformLike: OpDef = like("RandomUniformLike", uniform, evaluate.RandomUniformLike);

export const Bernoulli = defineOp({
  type: "Bernoulli", domain: "", since: 15, inputs: { input: "required" },
  attributes: { dtype: optional("int"), seed: optional("float") },
  fusionKind: "opaque", deterministic: false,
  infer: ({ input }, { dtype }, context) => [{ dtype: typeOf(dtype, input.dtype, context), shape: input.shape }],
  evaluate: evaluate.Bernoulli,
});

export const Multinomial = defineOp({
  type: "Multinomial", domain: "", since: 7, inputs: { input: "required" },
  attributes: { dtype: int(6), sample_size: int(1), seed: optional("float") },
  fusionKind: "opaque", deterministic: false,
  infer({ input }, { dtype, sample_size }, context) {
    if (input.shape.length !== 2) context.fail("OF3010", `needs rank 2, got ${input.shape.length}`);
    return [{ dtype: typeOf(dtype, "int32", context), shape: [input.shape[0] ?? 1, sample_size] }];
  },
  evaluate: evaluate.Multinomial,
});
