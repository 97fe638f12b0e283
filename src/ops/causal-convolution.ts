/**
 * CausalConvWithState, of the standard and of com.microsoft: a convolution of each channel over its last tokens. It is
 * compiled as a padded convolution, or one behind the tokens that an earlier call has left.
 */
import { formatShape } from "../core/dim.ts";
import { CausalConvWithState as evaluate } from "../evaluate/causal-convolution.ts";
import { defineOp, int, string, type AttributeSpec, type ExpandContext, type ExpansionNode, type InferContext, type TypeInfo } from "../graph/op.ts";
import { Swish } from "./activation.ts";
import { Concat } from "./concat.ts";
import { Conv } from "./conv.ts";
import { checkType } from "./element-wise.ts";
import { Expansion, listOf } from "./expansion.ts";
import { Pad } from "./pad.ts";
import { Slice } from "./slice.ts";

const inputs = { input: "required", weight: "required", bias: "optional", past_state: "optional" } as const;
const activations = ["none", "silu", "swish"];

interface Given { readonly input: TypeInfo; readonly weight: TypeInfo; readonly past_state: TypeInfo | undefined }
function infer({ input, weight, past_state }: Given, activation: string, context: InferContext): readonly TypeInfo[] {
  checkType(context, input, "input", "float");
  if (input.shape.length !== 3 || weight.shape.length !== 3) context.fail("OF3010", `needs an input and a weight of rank 3, got ${formatShape(input.shape)} and ${formatShape(weight.shape)}`);
  if (!activations.includes(activation)) context.fail("OF3012", `unknown activation '${activation}'`, `it is one of ${activations.join(", ")}`);
  const [batch = 1, channels = 1] = input.shape, [own, one, kernel] = weight.shape;
  if (typeof channels !== "number" || typeof kernel !== "number") return context.fail("OF3014", "the channels and the weight must have known sizes", "fix the sizes with --input_shape");
  if ((typeof own === "number" && own !== channels) || one !== 1) context.fail("OF3011", `the weight ${formatShape(weight.shape)} does not hold one row for each of ${channels} channels`);
  if (past_state && (past_state.shape.length !== 3 || (typeof past_state.shape[2] === "number" && past_state.shape[2] !== kernel - 1)))
    context.fail("OF3011", `a state of ${formatShape(past_state.shape)} does not hold ${kernel - 1} tokens`);
  return [{ dtype: input.dtype, shape: input.shape }, { dtype: input.dtype, shape: [batch, channels, kernel - 1] }];
}

function expand({ inputs: [input, weight, bias, past], inputTypes: [x, w], outputs }: ExpandContext, activation: string): readonly ExpansionNode[] | undefined {
  const channels = x?.shape[1], kernel = w?.shape[2];
  if (typeof channels !== "number" || typeof kernel !== "number") return undefined;
  const to = new Expansion(), before = kernel - 1, activates = activation !== "none";
  const padded = (): string => to.add(Pad, [input, listOf(0, 0, before, 0, 0, 0)], { mode: "constant" });
  const tokens = past === undefined ? undefined : to.add(Concat, [past, input], { axis: 2 });
  const sum = to.add(Conv, bias === undefined ? [tokens ?? input, weight] : [tokens ?? input, weight, bias], { group: channels, pads: tokens === undefined ? [before, 0] : [0, 0] }, activates ? undefined : outputs[0]);
  if (activates) to.add(Swish, [sum], {}, outputs[0]);
  const last = 2 ** 31 - 1;
  if (outputs[1] !== undefined) to.add(Slice, [tokens ?? padded(), listOf(before === 0 ? last : -before), listOf(last), listOf(2)], {}, outputs[1]);
  return to.nodes;
}

const common = { type: "CausalConvWithState", inputs, evaluate, fusionKind: "opaque" } as const;
const activation: AttributeSpec<"string", true> = string("none");

export const CausalConvWithState = defineOp({
  ...common, domain: "", since: 27, attributes: { activation },
  infer: (given, options, context) => infer(given, options.activation, context),
  expand: (context, options) => expand(context, options.activation),
});

export const MicrosoftCausalConvWithState = defineOp({
  ...common, domain: "com.microsoft", since: 1, attributes: { activation, ndim: int(1) },
  infer: (given, options, context) => {
    if (options.ndim !== 1) context.fail("OF3012", `ndim ${options.ndim} is not supported`, "only tokens along one axis are");
    return infer(given, options.activation, context);
  },
  expand: (context, options) => expand(context, options.activation),
});
