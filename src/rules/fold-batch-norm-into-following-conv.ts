/** BatchNormalization before a convolution goes into its weights and bias, where no border would see the difference. */
import { toNumbers } from "../core/tensor.ts";
import { GraphBuilder } from "../graph/build.ts";
import { BatchNormalization, Conv, Relu } from "../ops/index.ts";
import { constant, op, optionalInput, value } from "../rewrite/pattern.ts";
import { defineRule, isRefusal, reassociates, refuse } from "../rewrite/rule.ts";
import { affineOfBatchNorm } from "./affine.ts";
import { oneChannel } from "./channel-map.ts";
import { roundOnce } from "./folded-tensor.ts";
import { scaleInputs } from "./input-channels.ts";

const build = (attributes: Readonly<Record<string, number | string | readonly number[]>>, centred = false, used = false) => () => {
  const b = new GraphBuilder();
  const zeros = (): ReturnType<GraphBuilder["numbers"]> => b.numbers([0, 0, 0, 0]);
  const norm = b.add(BatchNormalization, [b.input("x", ["n", 4, 5, 5]), b.random([4]), centred ? zeros() : b.random([4]), centred ? zeros() : b.random([4]), b.random([4], { low: 0.5, high: 2 })]);
  const y = b.add(Conv, [norm, b.random([6, 2, 3, 3]), b.random([6])], { group: 2, ...attributes });
  return b.build(y, ...(used ? [b.add(Relu, [norm])] : []));
};

export const foldBatchNormIntoFollowingConv = defineRule({
  name: "fold-batch-norm-into-following-conv",
  doc: "BatchNormalization (inference) then Conv: the normalisation goes into weights and bias, unless the convolution pads with zeros that it would have to shift.",
  match: op(Conv, [
    op(BatchNormalization, [value("x"), constant("gamma"), constant("beta"), constant("mean"), constant("variance")], {
      as: "norm", attributes: { wants: "inference mode (training_mode 0)", code: "batch-norm-training", holds: (a) => a["training_mode"] === 0 && a["spatial"] !== 0 },
    }),
    constant("weight"), optionalInput(constant("bias")),
  ], { as: "conv" }),
  numerics: reassociates(),
  rewrite(m, edit) {
    const affine = affineOfBatchNorm(m.norm, m);
    if (isRefusal(affine)) return affine;
    const { attributes, name } = m.conv, { pads, auto_pad: autoPad } = attributes;
    const padsZeros = (Array.isArray(pads) && pads.some((p) => p !== 0)) || autoPad === "SAME_UPPER" || autoPad === "SAME_LOWER";
    const shifted = affine.shift.findIndex((t) => t !== 0);
    if (padsZeros && shifted >= 0)
      return refuse("padded-shift", `'${name}' pads with zeros, but channel ${shifted} is shifted by ${affine.shift[shifted]?.toPrecision(4)} before it`, "none: along the border the shift would be missing");
    const weight = scaleInputs(m.weight, m.conv, affine.scale);
    if (isRefusal(weight)) return weight;
    const bias = roundOnce(`the bias of '${name}'`, m.weight.constant.dtype, [weight.count], weight.sums(affine.shift, m.bias && toNumbers(m.bias.constant)), oneChannel);
    if (isRefusal(bias)) return bias;
    return edit.insert(Conv, [m.x, edit.constant(weight.tensor, `${m.weight.name}_folded`), edit.constant(bias, `${name}_bias`)], attributes, { name });
  },
  example: build({}),
  examples: [build({ pads: [1, 1, 1, 1] }, true), build({ strides: [2, 2], auto_pad: "VALID" })],
  refuses: {
    "padded-shift": build({ pads: [1, 1, 1, 1] }),
    "interior-value-used": build({}, false, true),
  },
});
