/** Cases of LSTM, GRU and RNN: directions, activations with their parameters, clipping, peepholes, lengths, states, both layouts, sizes of 1. (Of no sequences, and of no steps, onnxruntime ends the process.) */
import { fromNumbers, type Tensor } from "../src/core/tensor.ts";
import type { AttributeSpec } from "../test/support/model-spec.ts";
import type { Draw } from "./draw.ts";
import type { FuzzCase, Generator, Tolerance } from "./fuzz-case.ts";
import { tensor, within } from "./values.ts";

/** Functions of sums, gathered over a sequence. */
const gathered: Tolerance = { relative: 1e-4, absolute: 1e-4 };
/** Names with the parameters that they take. */
const activations: readonly (readonly [string, number?, number?])[] = [
  ["Sigmoid"], ["Tanh"], ["Relu"], ["HardSigmoid", 0.3, 0.4], ["Softsign"], ["Softplus"], ["LeakyRelu", 0.1], ["ThresholdedRelu", 0.5], ["Elu", 0.7], ["ScaledTanh", 0.8, 1.2], ["Affine", 0.5, 0.1],
];
const small = (draw: Draw, shape: readonly number[]): Tensor => { const t = tensor(draw, "float32", shape, "tame"); return fromNumbers("float32", shape, Array.from(t.data as Float32Array, (v) => v / 16)); };

interface Kind { readonly type: "LSTM" | "GRU" | "RNN"; readonly gates: number; readonly functions: number }
function recurrent({ type, gates, functions }: Kind): Generator {
  return (draw): FuzzCase => {
    const direction = draw.pick(["forward", "reverse", "bidirectional"]), d = direction === "bidirectional" ? 2 : 1, layout = draw.once(4) ? 1 : 0;
    const [length, batch, size, hidden] = [1 + draw.int(5), 1 + draw.int(3), 1 + draw.int(5), draw.pick([1, 2, 3, 4, 5, 8])], own = draw.once(2);
    const sequences = draw.once(3) ? within(draw, "int32", [batch], 0, length + 1) : undefined, state = (): Tensor | undefined => (draw.once(3) ? small(draw, layout ? [batch, d, hidden] : [d, batch, hidden]) : undefined);
    const chosen = Array.from({ length: d * functions }, () => draw.pick(activations)), parameters = (at: 1 | 2): number[] => chosen.flatMap((a) => a[at] ?? []);
    const named: Record<string, AttributeSpec> = own ? { activations: { strings: chosen.map(([name]) => name) }, activation_alpha: { floats: parameters(1) }, activation_beta: { floats: parameters(2) } } : {};
    const x = small(draw, layout ? [batch, length, size] : [length, batch, size]);
    const inputs = [x, small(draw, [d, gates * hidden, size]), small(draw, [d, gates * hidden, hidden]), draw.once(2) ? small(draw, [d, 2 * gates * hidden]) : undefined, sequences, state(), ...(type === "LSTM" ? [state(), draw.once(4) ? small(draw, [d, 3 * hidden]) : undefined] : [])];
    return {
      type, opset: 21, inputs, outputs: type === "LSTM" ? 3 : 2, tolerance: gathered, ...(draw.once(2) ? { constants: [1, 2, 3] } : {}),
      attributes: { direction, hidden_size: hidden, ...(layout ? { layout } : {}), ...(draw.once(4) ? { clip: { float: draw.pick([0.5, 2]) } } : {}), ...named, ...(type === "GRU" ? { linear_before_reset: draw.int(2) } : type === "LSTM" && draw.once(5) ? { input_forget: 1 } : {}) },
    };
  };
}

export const recurrence: Readonly<Record<string, Generator>> = {
  LSTM: recurrent({ type: "LSTM", gates: 4, functions: 3 }), GRU: recurrent({ type: "GRU", gates: 3, functions: 2 }), RNN: recurrent({ type: "RNN", gates: 1, functions: 1 }),
};
