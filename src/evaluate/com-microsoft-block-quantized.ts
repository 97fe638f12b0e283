/** MatMulNBits and GatherBlockQuantized (com.microsoft), by their definitions in float64. */
import { present } from "../core/assert.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, rowMajorStrides, sizeOf, toNumbers } from "../core/tensor.ts";
import { normalAxis } from "./map-elements.ts";
import { multiply, planMatMul } from "./matmul.ts";
import { packedAt, zeroPoints } from "./packed-integers.ts";
import { numberOf } from "./read-attribute.ts";
import { at } from "./window.ts";

/** A · Wᵀ + bias; W[n, k] is 2, 4 or 8 bits, in blocks of k that share scale and zero point; g_idx tells the block of each k. */
export const MatMulNBits: Evaluate = ([A, B, Scales, Zeros, G, Bias], attributes) => {
  const a = present(A, "A"), k = numberOf(attributes, "K"), n = numberOf(attributes, "N"), bits = numberOf(attributes, "bits"), block = numberOf(attributes, "block_size");
  const blocks = Math.ceil(k / block), bytes = toNumbers(present(B, "B")), scales = toNumbers(present(Scales, "scales")), groups = G && toNumbers(G), bias = Bias && toNumbers(Bias);
  const zeroOf = zeroPoints(Zeros, bits, blocks, Zeros?.dtype === "uint8", 2 ** (bits - 1));
  const w = Float64Array.from({ length: k * n }, (_, i) => {
    const row = Math.floor(i / n), column = i % n, own = groups?.[row] ?? Math.floor(row / block);
    const q = packedAt(bytes, bits, (blocks * block * bits) / 8, column, row);
    return (q - zeroOf(column, own)) * (scales[column * blocks + own] ?? 0);
  });
  const plan = planMatMul(a.dims, [k, n]), y = multiply(toNumbers(a), w, plan);
  return [fromNumbers(a.dtype, plan.dims, bias ? y.map((v, i) => v + (bias[i % n] ?? 0)) : y)];
};

/** Rows of a table of integers in blocks, dequantised. */
export const GatherBlockQuantized: Evaluate = ([Data, Indices, Scales, Zeros], attributes) => {
  const data = present(Data, "data"), indices = present(Indices, "indices"), scales = present(Scales, "scales"), block = numberOf(attributes, "block_size");
  const packed = data.dtype === "uint8", bits = packed ? numberOf(attributes, "bits") : 8, rank = data.dims.length;
  const gather = normalAxis(numberOf(attributes, "gather_axis"), rank), along = normalAxis(numberOf(attributes, "quantize_axis"), rank);
  const whole = data.dims.map((d, i) => (packed && i === rank - 1 ? (d * 8) / bits : d)), width = at(whole, rank - 1);
  const from = toNumbers(indices), values = toNumbers(data), s = toNumbers(scales), last = at(scales.dims, rank - 1);
  const zeroOf = zeroPoints(Zeros, bits, last, packed, packed ? 2 ** (bits - 1) : 0);
  const dims = [...whole.slice(0, gather), ...indices.dims, ...whole.slice(gather + 1)], strides = rowMajorStrides(dims), scaleStrides = rowMajorStrides(scales.dims);
  const inner = sizeOf(whole.slice(gather + 1)), count = sizeOf(indices.dims);
  const out = Float64Array.from({ length: sizeOf(dims) }, (_, i) => {
    const chosen = from[Math.floor(i / inner) % count] ?? 0;
    const place = whole.map((d, axis) => (axis === gather ? (chosen < 0 ? chosen + d : chosen) : Math.floor(i / at(strides, axis < gather ? axis : axis + indices.dims.length - 1)) % d));
    const row = place.slice(0, -1).reduce((r, p, axis) => r * at(whole, axis) + p, 0), column = at(place, rank - 1);
    const q = packed ? packedAt(values, bits, (width * bits) / 8, row, column) : (values[row * width + column] ?? 0);
    const scaleAt = place.reduce((sum, p, axis) => sum + (axis === along ? Math.floor(p / block) : p) * at(scaleStrides, axis), 0);
    return (q - zeroOf(Math.floor(scaleAt / last), scaleAt % last)) * (s[scaleAt] ?? 0);
  });
  return [fromNumbers(scales.dtype, dims, out)];
};
