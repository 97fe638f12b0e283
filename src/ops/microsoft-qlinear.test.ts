/** Quantised operators of com.microsoft: compiled parts against their evaluation, and both against onnxruntime. */
import { describe, expect, it } from "vitest";
import { modelBytes, type ModelSpec } from "../../test/support/model-spec.ts";
import { runOnnxruntime } from "../../test/support/onnxruntime.ts";
import { operatorDifference, randomIntegers, runOperator, type OperatorCase } from "../../test/support/operator-check.ts";
import { randomFrom, randomTensor, type Random } from "../../test/support/random.ts";
import type { DType } from "../core/dtype.ts";
import { fromNumbers, toNumbers, type Tensor } from "../core/tensor.ts";
import type { Attributes, OpDef } from "../graph/op.ts";
import { DynamicQuantizeMatMul, MatMulIntegerToFloat, QGemm } from "./microsoft-integer-products.ts";
import { QLinearAveragePool, QLinearConcat, QLinearGlobalAveragePool, QLinearLeakyRelu, QLinearSigmoid, QLinearSoftmax, QLinearWhere } from "./microsoft-qlinear.ts";
import { QLinearAdd, QLinearMul } from "./qlinear-arithmetic.ts";

interface Case { readonly op: OpDef; readonly inputs: readonly (Tensor | undefined)[]; readonly attributes?: Attributes; /** Steps by which onnxruntime may be off: it computes some of them by tables of integers. */ readonly steps?: number }

const whole = (dtype: DType): readonly [number, number] => (dtype === "int8" ? [-128, 127] : [0, 255]);
const integers = (dtype: DType, dims: readonly number[], random: Random): Tensor => randomIntegers(dtype, dims, ...whole(dtype), random);
const scale = (random: Random, dims: readonly number[] = []): Tensor => fromNumbers("float32", dims, Array.from({ length: dims[0] ?? 1 }, () => 0.005 + 0.05 * random()));

/** One random case of every operator. */
function casesOf(seed: number): readonly (readonly [string, Case])[] {
  const random = randomFrom(seed), dtype = random.pick(["uint8", "int8"] as const), x = integers(dtype, [2, 3, 7, 6], random);
  const zero = (): Tensor => integers(dtype, [], random), middle = (): Tensor => randomIntegers(dtype, [], dtype === "int8" ? -20 : 100, dtype === "int8" ? 20 : 150, random);
  const one = [x, scale(random), zero(), scale(random), zero()];
  const pool = { kernel_shape: [3, 2], strides: [2, 1], pads: [1, 0, 1, 1], count_include_pad: random.int(2) };
  const m = 1 + random.int(5), k = 1 + random.int(20), n = 1 + random.int(9), per = random.int(2) === 0 ? [] : [n];
  const a = integers("uint8", [m, k], random), b = integers("int8", [k, n], random), bZero = fromNumbers("int8", per, Array.from({ length: per[0] ?? 1 }, () => random.int(9) - 4));
  const [flagA, flagB] = [random.int(2), random.int(2)];
  const turned = (t: Tensor, flag: number): Tensor => (flag ? integers(t.dtype, [...t.dims].reverse(), random) : t);
  return [
    ["QLinearSigmoid", { op: QLinearSigmoid, inputs: one }],
    ["QLinearLeakyRelu", { op: QLinearLeakyRelu, inputs: one, attributes: { alpha: 0.2 } }],
    ["QLinearSoftmax", { op: QLinearSoftmax, inputs: [x, scale(random), zero(), fromNumbers("float32", [], [1 / 256]), fromNumbers(dtype, [], [dtype === "int8" ? -128 : 0])], attributes: { axis: random.int(4) - 4, opset: 13 }, steps: 1 }],
    ["QLinearSoftmax of opset 12", { op: QLinearSoftmax, inputs: [x, scale(random), zero(), fromNumbers("float32", [], [1 / 256]), fromNumbers(dtype, [], [dtype === "int8" ? -128 : 0])], attributes: { axis: 1, opset: 12 }, steps: 1 }],
    ["QLinearAveragePool", { op: QLinearAveragePool, inputs: one, attributes: pool, steps: 1 }],
    ["QLinearAveragePool, channels last", { op: QLinearAveragePool, inputs: one, attributes: { ...pool, channels_last: 1 }, steps: 1 }],
    ["QLinearGlobalAveragePool", { op: QLinearGlobalAveragePool, inputs: one, steps: 1 }],
    ["QLinearGlobalAveragePool, channels last", { op: QLinearGlobalAveragePool, inputs: one, attributes: { channels_last: 1 }, steps: 1 }],
    ["QLinearConcat", { op: QLinearConcat, inputs: [scale(random), zero(), x, scale(random), zero(), integers(dtype, [2, 1, 7, 6], random), scale(random), zero()], attributes: { axis: 1 } }],
    ["QLinearWhere", { op: QLinearWhere, inputs: [fromNumbers("bool", [7, 1], Array.from({ length: 7 }, () => random.int(2))), x, scale(random), zero(), integers(dtype, [6], random), scale(random), zero(), scale(random), zero()] }],
    ["QLinearAdd", { op: QLinearAdd, inputs: [x, scale(random), zero(), integers(dtype, [3, 1, 6], random), scale(random), zero(), scale(random), zero()], steps: 1 }],
    ["QLinearMul", { op: QLinearMul, inputs: [x, scale(random), zero(), integers(dtype, [6], random), scale(random), zero(), scale(random), zero()], steps: 1 }],
    ["MatMulIntegerToFloat", { op: MatMulIntegerToFloat, inputs: [a, b, scale(random), scale(random, per), middleOf(a), bZero, random.int(2) ? randomTensor([n], random) : undefined] }],
    ["DynamicQuantizeMatMul", { op: DynamicQuantizeMatMul, inputs: [randomTensor([2, m, k], random), b, scale(random, per), bZero, random.int(2) ? randomTensor([n], random) : undefined] }],
    ["QGemm", { op: QGemm, inputs: [turned(a, flagA), scale(random), middleOf(a), turned(b, flagB), scale(random, per), bZero, randomIntegers("int32", [n], -900, 900, random), scale(random), fromNumbers("uint8", [], [128])], attributes: { alpha: 0.5, transA: flagA, transB: flagB }, steps: 1 }],
    ["QGemm to float", { op: QGemm, inputs: [a, scale(random), middleOf(a), b, scale(random, per), bZero] }],
    ["QLinearSigmoid of a middle zero point", { op: QLinearSigmoid, inputs: [x, scale(random), middle(), scale(random), middle()] }],
  ];
}
const middleOf = (t: Tensor): Tensor => fromNumbers(t.dtype, [], [120]);

const operatorCase = ({ op, inputs, attributes = {} }: Case): OperatorCase => ({ op, attributes, inputs: inputs.map((tensor) => tensor && { tensor }) });

/** The operator as a model of its own. */
function modelOf({ op, inputs, attributes = {} }: Case, expected: Tensor): { readonly model: Uint8Array; readonly feeds: Record<string, Tensor> } {
  const names = inputs.map((t, i) => (t ? `x${i}` : "")), feeds: Record<string, Tensor> = {};
  inputs.forEach((t, i) => { if (t) feeds[`x${i}`] = t; });
  const given = Object.entries(attributes).map(([key, v]) => [key, op.attributes[key]?.type === "float" ? { float: Number(v) } : v]);
  const spec: ModelSpec = {
    opset: 13, inputs: {}, initializers: feeds, outputs: { y: expected },
    nodes: [{ type: op.type, domain: op.domain, inputs: names, outputs: ["y"], attributes: Object.fromEntries(given) as Record<string, number> }],
  };
  return { model: modelBytes(spec), feeds: {} };
}

const seeds = [1, 2, 3, 4, 5, 6];
describe.each(seeds)("seed %i", (seed) => {
  it.each(casesOf(seed))("%s: its parts give what its evaluation gives", (_, c) => {
    const { expected: [e], actual: [a] } = runOperator(operatorCase(c));
    if (e?.dtype === "float32") return expect(operatorDifference(operatorCase(c))).toBeLessThan(1e-5);
    return expect(stepsBetween(a, e)).toBe(0);
  });
  it.each(casesOf(seed))("%s: onnxruntime agrees", async (_, c) => {
    const { expected: [e] } = runOperator(operatorCase(c));
    if (!e) throw new Error("no result");
    const { model, feeds } = modelOf(c, e);
    const { y } = await runOnnxruntime(model, feeds);
    expect(y?.dims).toEqual(e.dims);
    expect(stepsBetween(y, e)).toBeLessThanOrEqual(e.dtype === "float32" ? 1e-4 : (c.steps ?? 0));
  });
});

/** The largest difference. */
function stepsBetween(a: Tensor | undefined, b: Tensor | undefined): number {
  if (!a || !b || a.dtype !== b.dtype || a.dims.join() !== b.dims.join()) return Infinity;
  const x = toNumbers(a), y = toNumbers(b);
  return Array.from(x).reduce((worst, v, i) => Math.max(worst, Math.abs(v - (y[i] ?? NaN))), 0);
}

it("the comparison sees one step", () => {
  const t = (v: number): Tensor => fromNumbers("uint8", [2], [5, v]);
  expect(stepsBetween(t(6), t(7))).toBe(1);
});
