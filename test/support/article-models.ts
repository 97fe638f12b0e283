/** The models of the article on operator fusion, at its own shapes. */
import { sizeOf, type Tensor } from "../../src/core/tensor.ts";
import type { AttributeSpec, ModelSpec, NodeSpec } from "./model-spec.ts";
import { randomFrom, randomTensor, type Random } from "./random.ts";

export const float = (dims: readonly number[], data: readonly number[] | Float32Array): Tensor => ({ dtype: "float32", dims, data: Float32Array.from(data) });
export const scalar = (value: number): Tensor => float([], [value]);
export const int64 = (values: readonly number[]): Tensor => ({ dtype: "int64", dims: [values.length], data: BigInt64Array.from(values, BigInt) });

export interface BatchNorm { readonly gamma: Tensor; readonly beta: Tensor; readonly mean: Tensor; readonly variance: Tensor; readonly epsilon: number }

const positive = (n: number, random: Random): Tensor => float([n], Array.from({ length: n }, () => 0.25 + random()));

export function batchNorm(channels: number, random: Random): BatchNorm {
  return { gamma: positive(channels, random), beta: randomTensor([channels], random), mean: randomTensor([channels], random), variance: positive(channels, random), epsilon: 1e-5 };
}

export type ConvForm = "conv" | "grouped" | "depthwise" | "conv1d" | "transpose";

/** Conv + BatchNormalization + Relu, 64 → 128 channels, 3x3 at 56² (smaller for the other forms). */
export function convBnRelu(form: ConvForm, seed = 1, bias = true): { spec: ModelSpec; weight: Tensor; bias: Tensor; norm: BatchNorm } {
  const random = randomFrom(seed);
  const channels = form === "depthwise" ? 64 : 128, inputs = 64;
  const group = form === "grouped" ? 4 : form === "depthwise" ? 64 : 1;
  const spatial = form === "conv1d" ? [56] : form === "conv" ? [56, 56] : [14, 14];
  const kernel = spatial.map(() => 3);
  const weightDims = form === "transpose" ? [inputs, channels / group, ...kernel] : [channels, inputs / group, ...kernel];
  const weight = randomTensor(weightDims, random, 1 / Math.sqrt((inputs / group) * sizeOf(kernel)));
  const norm = batchNorm(channels, random), b = randomTensor([channels], random);
  const attributes: Record<string, AttributeSpec> = { kernel_shape: kernel, pads: [...kernel.map(() => 1), ...kernel.map(() => 1)], group };
  const spec: ModelSpec = {
    opset: 11,
    inputs: { x: { dtype: "float32", dims: [1, inputs, ...spatial] } },
    outputs: { y: { dtype: "float32", dims: [1, channels, ...spatial] } },
    initializers: { w: weight, ...(bias ? { b } : {}), gamma: norm.gamma, beta: norm.beta, mean: norm.mean, variance: norm.variance },
    nodes: [
      { type: form === "transpose" ? "ConvTranspose" : "Conv", name: "conv", inputs: bias ? ["x", "w", "b"] : ["x", "w"], outputs: ["c"], attributes },
      { type: "BatchNormalization", name: "bn", inputs: ["c", "gamma", "beta", "mean", "variance"], outputs: ["n"], attributes: { epsilon: { float: norm.epsilon } } },
      { type: "Relu", name: "relu", inputs: ["n"], outputs: ["y"] },
    ],
  };
  return { spec, weight, bias: bias ? b : float([channels], new Float32Array(channels)), norm };
}

/** MatMul + Add + Relu (or Gemm + Relu), 1024 → 512. */
export function linearRelu(form: "matmul" | "gemm", seed = 2): ModelSpec {
  const random = randomFrom(seed);
  const weight = randomTensor(form === "gemm" ? [512, 1024] : [1024, 512], random, 1 / 32), b = randomTensor([512], random);
  const product: NodeSpec[] = form === "gemm"
    ? [{ type: "Gemm", name: "gemm", inputs: ["x", "w", "b"], outputs: ["a"], attributes: { transB: 1 } }]
    : [{ type: "MatMul", name: "matmul", inputs: ["x", "w"], outputs: ["m"] }, { type: "Add", name: "add", inputs: ["m", "b"], outputs: ["a"] }];
  return {
    opset: 13,
    inputs: { x: { dtype: "float32", dims: [1, 1024] } },
    outputs: { y: { dtype: "float32", dims: [1, 512] } },
    initializers: { w: weight, b },
    nodes: [...product, { type: "Relu", name: "relu", inputs: ["a"], outputs: ["y"] }],
  };
}

/** softmax(q·kᵀ [· 1/√d] [+ mask])·v over [batch, heads, seq, dim], or over [batch, seq, heads, dim] with the transposes that layout needs. */
export function attention(layout: "BNSD" | "BSND", scale: boolean, mask: boolean, dims = { batch: 1, heads: 4, sequence: 48, dim: 32 }): ModelSpec {
  const { batch, heads, sequence, dim } = dims;
  const bnsd = layout === "BNSD";
  const shape = bnsd ? [batch, heads, sequence, dim] : [batch, sequence, heads, dim];
  const nodes: NodeSpec[] = [];
  const heading = (name: string): string => {
    if (bnsd) return name;
    nodes.push({ type: "Transpose", name: `${name}_heads`, inputs: [name], outputs: [`${name}h`], attributes: { perm: [0, 2, 1, 3] } });
    return `${name}h`;
  };
  const q = heading("q"), k = heading("k"), v = heading("v");
  nodes.push({ type: "Transpose", name: "transpose_k", inputs: [k], outputs: ["kt"], attributes: { perm: [0, 1, 3, 2] } });
  nodes.push({ type: "MatMul", name: "scores", inputs: [q, "kt"], outputs: ["s0"] });
  let last = "s0";
  if (scale) { nodes.push({ type: "Div", name: "scale", inputs: [last, "root"], outputs: ["s1"] }); last = "s1"; }
  if (mask) { nodes.push({ type: "Add", name: "mask", inputs: [last, "m"], outputs: ["s2"] }); last = "s2"; }
  nodes.push({ type: "Softmax", name: "softmax", inputs: [last], outputs: ["p"], attributes: { axis: -1 } });
  nodes.push({ type: "MatMul", name: "context", inputs: ["p", v], outputs: [bnsd ? "y" : "yh"] });
  if (!bnsd) nodes.push({ type: "Transpose", name: "merge", inputs: ["yh"], outputs: ["y"], attributes: { perm: [0, 2, 1, 3] } });
  const input = { dtype: "float32" as const, dims: shape };
  return {
    opset: 13,
    inputs: { q: input, k: input, v: input, ...(mask ? { m: { dtype: "float32" as const, dims: [batch, 1, sequence, sequence] } } : {}) },
    outputs: { y: { dtype: "float32", dims: shape } },
    initializers: scale ? { root: scalar(Math.sqrt(dim)) } : {},
    nodes,
  };
}

/** A chain of element-wise operators on 1x1024x1024. */
export function chain(form: "add-mul-relu" | "mul-add-relu" | "twelve"): ModelSpec {
  const steps: readonly (readonly [string, number?])[] = form === "add-mul-relu" ? [["Add", 1], ["Mul", 2], ["Relu"]]
    : form === "mul-add-relu" ? [["Mul", 2], ["Add", 1], ["Relu"]]
    : [["Add", 1], ["Mul", 2], ["Relu"], ["Sub", 0.5], ["Tanh"], ["Mul", 3], ["Sigmoid"], ["Add", 0.25], ["Sqrt"], ["Neg"], ["Exp"], ["Mul", 0.5]];
  const initializers: Record<string, Tensor> = {};
  const nodes = steps.map(([type, value], i): NodeSpec => {
    if (value !== undefined) initializers[`c${i}`] = scalar(value);
    return { type, name: `${type.toLowerCase()}_${i}`, inputs: [i === 0 ? "x" : `t${i - 1}`, ...(value === undefined ? [] : [`c${i}`])], outputs: [i === steps.length - 1 ? "y" : `t${i}`] };
  });
  const type = { dtype: "float32" as const, dims: [1, 1024, 1024] };
  return { opset: 13, inputs: { x: type }, outputs: { y: type }, initializers, nodes };
}
