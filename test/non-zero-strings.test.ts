/** NonZero takes strings as the standard's reference does: the empty one is zero. */
import { expect, it } from "vitest";
import type { Tensor } from "../src/core/tensor.ts";
import { modelBytes } from "./support/model-spec.ts";
import { runWay } from "./support/operator-oracle.ts";

it.each(["reference", "unfused", "fused"] as const)("%s", async (way) => {
  const x: Tensor = { dtype: "string", dims: [2, 2], data: ["", "a", "0", ""] };
  const bytes = modelBytes({ opset: 17, inputs: { x: { dtype: "string", dims: [2, 2] } }, initializers: {}, outputs: { y: undefined }, nodes: [{ type: "NonZero", inputs: ["x"], outputs: ["y"] }] });
  expect((await runWay(bytes, { x }, way))["y"]).toMatchObject({ dims: [2, 2], data: BigInt64Array.of(0n, 1n, 1n, 0n) });
});
