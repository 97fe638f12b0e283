/** Models of 8-bit integers whose weights have 7 bits, so that engines with relaxed SIMD multiply bytes. */
import type { Tensor } from "../../src/core/tensor.ts";
import { randomFrom } from "./random.ts";
import type { ModelSpec } from "./model-spec.ts";

export interface SevenBitModel { readonly name: string; readonly spec: ModelSpec; readonly x: Tensor; readonly products: number }

const random = randomFrom(7), size = (dims: readonly number[]): number => dims.reduce((n, d) => n * d, 1);
function bytes(dims: readonly number[], from: number, count: number, dtype: "int8" | "uint8"): Tensor {
  const values = Array.from({ length: size(dims) }, () => from + Math.floor(random() * count));
  return dtype === "int8" ? { dtype, dims, data: Int8Array.from(values) } : { dtype, dims, data: Uint8Array.from(values) };
}
const weights = (dims: readonly number[]): Tensor => bytes(dims, -64, 128, "int8");
const number = (v: number): Tensor => ({ dtype: "float32", dims: [], data: Float32Array.of(v) });
const zero = (v: number): Tensor => ({ dtype: "uint8", dims: [], data: Uint8Array.of(v) });
const shared = { xs: number(0.02), xz: zero(131), ws: number(0.01), wz: { dtype: "int8", dims: [], data: Int8Array.of(0) }, ys: number(0.5), yz: zero(120) } as const;

/** A QLinearMatMul. */
export function sevenBitMatMul(m: number, k: number, n: number): SevenBitModel {
  return {
    name: `matmul ${m}x${k}x${n}`, x: bytes([m, k], 0, 256, "uint8"), products: m * k * n,
    spec: { opset: 20, inputs: { x: { dtype: "uint8", dims: [m, k] } }, outputs: { y: { dtype: "uint8", dims: [m, n] } }, initializers: { ...shared, w: weights([k, n]) }, nodes: [{ type: "QLinearMatMul", inputs: ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"], outputs: ["y"] }] },
  };
}

/** Two QLinearConv, the second of which reads what the first leaves. */
export function sevenBitConv(c: number, at: number, k: number): SevenBitModel {
  const dims = [1, c, at, at], pad = (k - 1) >> 1, attributes = { kernel_shape: [k, k], pads: [pad, pad, pad, pad] };
  const step = (x: string, w: string, y: string): ModelSpec["nodes"][number] => ({ type: "QLinearConv", inputs: [x, "xs", "xz", w, "ws", "wz", "ys", "yz"], outputs: [y], attributes });
  return {
    name: `conv ${k}x${k} ${c}->${c} @${at}`, x: bytes(dims, 0, 256, "uint8"), products: 2 * c * c * at * at * k * k,
    spec: { opset: 20, inputs: { x: { dtype: "uint8", dims } }, outputs: { y: { dtype: "uint8", dims } }, initializers: { ...shared, u: weights([c, c, k, k]), v: weights([c, c, k, k]) }, nodes: [step("x", "u", "t"), step("t", "v", "y")] },
  };
}
