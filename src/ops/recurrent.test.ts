import { describe, expect, it } from "vitest";
import { difference, GraphBuilder } from "../../test/support/graph-builder.ts";
import { operatorDifference, perturbed, randomIntegers, runOperator, type OperatorCase, type OperatorInput } from "../../test/support/operator-check.ts";
import { randomFrom, randomTensor } from "../../test/support/random.ts";
import { fromNumbers, toNumbers, type Tensor } from "../core/tensor.ts";
import { interpret } from "../reference/interpret.ts";
import { GRU, LSTM, RNN } from "./recurrent.ts";

const names = ["Sigmoid", "Tanh", "Relu", "Softsign", "Softplus", "Affine", "HardSigmoid", "ScaledTanh", "LeakyRelu", "ThresholdedRelu", "Elu"];

function recurrentCase(seed: number): OperatorCase {
  const random = randomFrom(seed), op = random.pick([LSTM, GRU, RNN]);
  const gates = op === LSTM ? 4 : op === GRU ? 3 : 1, functions = op === LSTM ? 3 : op === GRU ? 2 : 1;
  const direction = random.pick(["forward", "reverse", "bidirectional"]), directions = direction === "bidirectional" ? 2 : 1;
  const [sequence, batch, input, hidden] = [1 + random.int(4), 1 + random.int(3), 1 + random.int(4), 1 + random.int(4)];
  const of = (...dims: number[]): OperatorInput => ({ tensor: randomTensor(dims, random, 0.7) });
  const perhaps = (make: () => OperatorInput): OperatorInput | undefined => (random.int(2) ? make() : undefined);
  return {
    op, outputs: op === LSTM ? 3 : 2,
    attributes: {
      direction,
      ...(random.int(3) === 0 ? { clip: 0.6 } : {}),
      ...(random.int(2) ? { activations: Array.from({ length: functions * directions }, () => random.pick(names)), activation_alpha: [0.3, 0.7], activation_beta: [0.4] } : {}),
      ...(op === GRU ? { linear_before_reset: random.int(2) } : {}), ...(op === LSTM ? { input_forget: random.int(2) } : {}),
    },
    inputs: [
      { tensor: randomTensor([sequence, batch, input], random), shape: ["t", "n", input] }, of(directions, gates * hidden, input), of(directions, gates * hidden, hidden),
      perhaps(() => of(directions, 2 * gates * hidden)), perhaps(() => ({ tensor: randomIntegers("int32", [batch], 1, sequence, random) })), perhaps(() => of(directions, batch, hidden)),
      ...(op === LSTM ? [perhaps(() => of(directions, batch, hidden)), perhaps(() => of(directions, 3 * hidden))] : []),
    ],
  };
}

describe("recurrences", () => {
  it.each(Array.from({ length: 60 }, (_, i) => i))("equal their evaluation, seed %i", (seed) => {
    expect(operatorDifference(recurrentCase(seed))).toBeLessThan(1e-5);
  });

  it.each([LSTM, GRU, RNN].map((op) => [op.type, op] as const))("%s with the batch first is compiled between transposes", (_, op) => {
    const random = randomFrom(3), gates = op === LSTM ? 4 : op === GRU ? 3 : 1, [batch, sequence, input, hidden] = [2, 3, 4, 5];
    const of = (...dims: number[]): OperatorInput => ({ tensor: randomTensor(dims, random, 0.7) });
    const state = of(batch, 2, hidden);
    expect(operatorDifference({
      op, attributes: { layout: 1, direction: "bidirectional" }, outputs: op === LSTM ? 3 : 2,
      inputs: [
        { ...of(batch, sequence, input), shape: ["n", "t", input] }, of(2, gates * hidden, input), of(2, gates * hidden, hidden), of(2, 2 * gates * hidden), undefined, state,
        ...(op === LSTM ? [of(batch, 2, hidden)] : []),
      ],
    })).toBeLessThan(1e-5);
  });

  it("sees one wrong element", () => {
    const { expected, actual } = runOperator(recurrentCase(4));
    const [e] = expected, [a] = actual;
    expect(e && a && difference(perturbed(a, 1e-2), e)).toBeGreaterThan(1e-5);
  });

  it("an RNN of one unit is the recursion it stands for", () => {
    const b = new GraphBuilder();
    const scalar = (v: number, ...dims: number[]) => b.constant(fromNumbers("float32", dims, [v]));
    const graph = b.outputs(b.node(RNN, [b.input("x", [3, 1, 1]), scalar(2, 1, 1, 1), scalar(0.5, 1, 1, 1)], { activations: ["Affine"] }));
    const y = Object.values(interpret(graph, { x: fromNumbers("float32", [3, 1, 1], [1, 10, 100]) }))[0];
    expect([...(y?.data ?? [])]).toEqual([2, 21, 210.5]);
  });

  it("layout 1 is layout 0 with batch and time exchanged", () => {
    const random = randomFrom(8), [t, n, i, h] = [3, 2, 4, 5];
    const x = randomTensor([t, n, i], random), w = randomTensor([1, 4 * h, i], random), r = randomTensor([1, 4 * h, h], random);
    const run = (layout: number, input: Tensor): Tensor => {
      const b = new GraphBuilder();
      const graph = b.outputs(b.node(LSTM, [b.input("x", input.dims), b.constant(w), b.constant(r)], { layout }));
      return Object.values(interpret(graph, { x: input }))[0] ?? x;
    };
    const exchanged = (v: Tensor, outer: number, inner: number, last: number): Tensor => {
      const values = toNumbers(v);
      return fromNumbers("float32", [inner, outer, last], Array.from({ length: values.length }, (_, at) => {
        const e = at % last, o = Math.floor(at / last) % outer, k = Math.floor(at / (last * outer));
        return values[(o * inner + k) * last + e] ?? 0;
      }));
    };
    const batchFirst = toNumbers(run(1, exchanged(x, t, n, i)));
    const timeFirst = toNumbers(exchanged(run(0, x), t, n, h));
    expect(Array.from(batchFirst)).toEqual(Array.from(timeFirst));
  });
});
