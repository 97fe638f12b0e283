/** DynamicQuantizeLSTM, which onnxruntime's dynamic quantiser makes of LSTM. Its state is quantised anew at every step, so it runs on the host. */
import { formatShape } from "../core/dim.ts";
import { DynamicQuantizeLSTM as evaluate } from "../evaluate/com-microsoft-dynamic-quantize-lstm.ts";
import { defineOp, int, optional, string, type TypeInfo } from "../graph/op.ts";

export const DynamicQuantizeLSTM = defineOp({
  type: "DynamicQuantizeLSTM", domain: "com.microsoft", since: 1, fusionKind: "opaque", evaluate,
  inputs: {
    X: "required", W: "required", R: "required", B: "optional", sequence_lens: "optional", initial_h: "optional", initial_c: "optional", P: "optional",
    W_scale: "required", W_zero_point: "required", R_scale: "required", R_zero_point: "required",
  },
  attributes: {
    activation_alpha: optional("floats"), activation_beta: optional("floats"), activations: optional("strings"), clip: optional("float"), direction: string("forward"),
    hidden_size: optional("int"), input_forget: int(0),
  },
  infer({ X, W, R, W_scale, R_scale }, { direction, activations, activation_alpha, activation_beta }, context) {
    const directions = direction === "bidirectional" ? 2 : 1;
    if (!["forward", "reverse", "bidirectional"].includes(direction)) context.fail("OF3012", `unknown direction '${direction}'`, "it is forward, reverse or bidirectional");
    if (X.dtype !== "float32" || (W.dtype !== "int8" && W.dtype !== "uint8") || (R.dtype !== "int8" && R.dtype !== "uint8")) context.fail("OF3013", `needs an input of float32 and weights of 8 bits, got ${X.dtype}, ${W.dtype} and ${R.dtype}`);
    if (X.shape.length !== 3 || W.shape.length !== 3 || R.shape.length !== 3) context.fail("OF3010", `needs X, W and R of rank 3, got ${formatShape(X.shape)}, ${formatShape(W.shape)} and ${formatShape(R.shape)}`);
    if (activations && activations.length !== 3 * directions) context.fail("OF3012", `needs ${3 * directions} activations, got ${activations.length}`);
    if (directions === 2 && (activation_alpha?.length || activation_beta?.length)) context.fail("OF3012", "parameters of activations in two directions are not supported", "use activations without parameters");
    const [sequence = 1, batch = 1, width = 1] = X.shape, [count = 1, inputs = 1, columns = 1] = W.shape, [others = 1, hidden = 1, gates = 1] = R.shape;
    const fits = [[count, directions], [others, directions], [width, inputs], [columns, gates], ...(typeof hidden === "number" ? [[gates, 4 * hidden]] : [])].every(([a, b]) => typeof a !== "number" || typeof b !== "number" || a === b);
    if (!fits) context.fail("OF3011", `weights of ${formatShape(W.shape)} and ${formatShape(R.shape)} do not fit ${formatShape(X.shape)} in ${directions} directions`);
    for (const scale of [W_scale, R_scale]) if (scale.shape.length !== 1 && scale.shape.length !== 2) context.fail("OF3010", `scales have rank 1 or 2, got ${formatShape(scale.shape)}`);
    const state: TypeInfo = { dtype: X.dtype, shape: [directions, batch, hidden] };
    return [{ dtype: X.dtype, shape: [sequence, directions, batch, hidden] }, state, state];
  },
});
