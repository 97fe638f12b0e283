/** BatchNormalization that nothing took in becomes a product and a sum of constants, which join their neighbours' kernels. */
import { GraphBuilder } from "../graph/build.ts";
import { Add, BatchNormalization, Mul, Sigmoid } from "../ops/index.ts";
import { constant, op, value } from "../rewrite/pattern.ts";
import { defineRule, isRefusal, reassociates, refuse } from "../rewrite/rule.ts";
import { affineOfBatchNorm } from "./affine.ts";
import { oneChannel } from "./channel-map.ts";
import { roundOnce, whyNotAdded } from "./folded-tensor.ts";

const build = (attributes: Readonly<Record<string, number>>, variance = 1, mean = 1) => () => {
  const b = new GraphBuilder();
  const x = b.add(Sigmoid, [b.input("x", ["n", 3, 4, 4])]);
  return b.build(b.add(BatchNormalization, [x, b.random([3]), b.random([3]), b.numbers([mean, -mean, 0]), b.numbers([variance, variance, variance])], attributes));
};

export const decomposeBatchNorm = defineRule({
  name: "decompose-batch-norm",
  gePass: "BatchNormBnInferFusionPass",
  doc: "BatchNormalization (inference) becomes Mul and Add with constants of one value a channel.",
  stage: "decompose",
  match: op(BatchNormalization, [value("x"), constant("gamma"), constant("beta"), constant("mean"), constant("variance")], { as: "norm" }),
  where: [({ norm }) => {
    if (norm.attributes["training_mode"] !== 0 || norm.outputs.length > 1) return refuse("batch-norm-training", `'${norm.name}' is in training mode`, "export the model for inference");
    return norm.attributes["spatial"] === 0 ? refuse("not-per-channel", `'${norm.name}' normalises every element by itself`, "use a spatial BatchNormalization") : true;
  }],
  numerics: reassociates(),
  rewrite(m, edit) {
    const affine = affineOfBatchNorm(m.norm, m);
    if (isRefusal(affine)) return affine;
    const { dtype, shape } = m.x.type;
    const dims = [affine.scale.length, ...shape.slice(2).map(() => 1)];
    const scale = roundOnce(`the scale of '${m.norm.name}'`, dtype, dims, affine.scale, oneChannel);
    const shift = whyNotAdded(`the shift of '${m.norm.name}'`, dtype, affine.shift) ?? roundOnce(`the shift of '${m.norm.name}'`, dtype, dims, affine.shift, oneChannel);
    if (isRefusal(scale)) return scale;
    if (isRefusal(shift)) return shift;
    const product = edit.insert(Mul, [m.x, edit.constant(scale, `${m.norm.name}_scale`)]);
    return edit.insert(Add, [product, edit.constant(shift, `${m.norm.name}_shift`)]);
  },
  example: build({}),
  refuses: { "batch-norm-training": build({ training_mode: 1 }), "not-finite": build({}, -1), "scale-range": build({}, 1, 1e35) },
});
