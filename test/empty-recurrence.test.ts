/** LSTM, GRU and RNN over no steps, and over no sequences: there is nothing to give, and states stay what they were. */
import { expect, test } from "vitest";
import { fromNumbers, type Tensor } from "../src/core/tensor.ts";
import { runWay, specOf } from "./support/operator-oracle.ts";
import { modelBytes } from "./support/model-spec.ts";

const hidden = 3;
const waves = (...dims: readonly number[]): Tensor => fromNumbers("float32", dims, Array.from({ length: dims.reduce((a, b) => a * b, 1) }, (_, i) => Math.sin(i + 1)));
const kinds = [["LSTM", 4], ["GRU", 3], ["RNN", 1]] as const;
const sizes = [[0, 2], [3, 0], [0, 0], [2, 2]] as const;

test.each(kinds.flatMap(([type, gates]) => sizes.flatMap(([length, batch]) => [0, 1].map((layout) => [type, length, batch, layout, gates] as const))))("%s of %i steps of %i sequences, layout %i", async (type, length, batch, layout, gates) => {
  const initial = layout ? waves(batch, 1, hidden) : waves(1, batch, hidden);
  const { spec, feeds } = specOf({ type, opset: 21, inputs: [layout ? waves(batch, length, 4) : waves(length, batch, 4), waves(1, gates * hidden, 4), waves(1, gates * hidden, hidden), undefined, undefined, initial], attributes: { hidden_size: hidden, layout }, outputs: 2 });
  const bytes = modelBytes(spec);
  for (const way of ["reference", "unfused", "fused"] as const) {
    const { y0, y1 } = await runWay(bytes, feeds, way);
    expect(y0?.dims, way).toEqual(layout ? [batch, length, 1, hidden] : [length, 1, batch, hidden]);
    expect(y1?.dims, way).toEqual(initial.dims);
    if (length === 0) expect(y1?.data, way).toEqual(initial.data);
    else if (batch > 0) expect(y1?.data, way).not.toEqual(initial.data);
  }
});
