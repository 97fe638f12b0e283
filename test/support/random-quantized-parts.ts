/**
 * Quantised stretches of random models: an input is quantised, goes through operators between DequantizeLinear and
 * QuantizeLinear (and through QLinear ones), and comes back as float32. All scales are powers of two and sums are short, so
 * that float32, float64 and integers give the same bits and rounding never meets a difference.
 */
import { fromNumbers, sizeOf } from "../../src/core/tensor.ts";
import type { AttributeSpec } from "./model-spec.ts";
import { dimOf, ModelParts } from "./random-model-parts.ts";

type Narrow = "int8" | "uint8";
interface Quantized { readonly name: string; readonly dims: readonly number[]; readonly scale: number; readonly zero: number; readonly dtype: Narrow }

const scales = [1, 1 / 4, 1 / 16, 1 / 64];

export class QuantizedParts extends ModelParts {
  /** Adds a stretch of a few operators, from an input of the model. */
  protected quantizedStretch(): void {
    const inputs = this.values.filter((v) => v.name in this.inputs && sizeOf(v.dims) < 3000);
    if (inputs.length === 0) return;
    const { name, dims } = this.random.pick(inputs);
    let q = this.#quantize(name, dims);
    for (let steps = 1 + this.random.int(5); steps > 0; steps--) q = this.#quantizedStep(q);
    const last = this.#quantize(this.#dequantize(q), q.dims, 1 / 64);
    this.values.push({ name: this.#dequantize(last), dims: last.dims });
  }

  #node(type: string, inputs: readonly string[], attributes: Record<string, AttributeSpec> = {}, domain = ""): string {
    const out = `t${this.count++}`;
    this.nodes.push({ type, inputs, outputs: [out], attributes, name: `${type}_${this.nodes.length}`, ...(domain ? { domain } : {}) });
    return out;
  }
  #numbers(dtype: "float32" | "int32" | Narrow, dims: readonly number[], of: () => number): string {
    const name = `w${this.count++}`;
    this.initializers[name] = fromNumbers(dtype, dims, Array.from({ length: sizeOf(dims) }, of));
    return name;
  }
  #quantize(x: string, dims: readonly number[], scale = this.random.pick(scales)): Quantized {
    const dtype = this.random.pick(["int8", "uint8"] as const), zero = dtype === "int8" ? this.random.pick([-128, 0, 5]) : this.random.pick([0, 128, 100]);
    const y = this.#node("QuantizeLinear", [x, ...this.#parameters(scale, zero, dtype)]);
    return { name: y, dims, scale, zero, dtype };
  }
  #parameters(scale: number, zero: number, dtype: Narrow): readonly [string, string] {
    return [this.#numbers("float32", [], () => scale), this.#numbers(dtype, [], () => zero)];
  }
  #ofValue = (q: Quantized): readonly [string, string, string] => [q.name, ...this.#parameters(q.scale, q.zero, q.dtype)];
  #dequantize(q: Quantized): string { return this.#node("DequantizeLinear", this.#ofValue(q)); }

  /** Dequantised weights; with a scale for each index of `axis` perhaps. */
  #weights(dims: readonly number[], axis: number): { readonly name: string; readonly scales: readonly number[] } {
    const random = this.random, dtype = random.pick(["int8", "int8", "uint8"] as const), count = random() < 0.5 ? (dims[axis] ?? 1) : 1;
    const own = Array.from({ length: count }, () => random.pick([1 / 64, 1 / 32])), shape = count === 1 ? [] : [count];
    let i = 0;
    const scale = this.#numbers("float32", shape, () => own[i++] ?? 1), zero = this.#numbers(dtype, shape, () => (dtype === "uint8" ? 7 : random.int(3) - 1));
    const w = this.#numbers(dtype, dims, () => (dtype === "uint8" ? random.int(16) : random.int(31) - 15));
    return { name: this.#node("DequantizeLinear", [w, scale, zero], { axis }), scales: own };
  }
  /** A bias in units of both scales, a float one, or none. */
  #bias(count: number, unit: number, own: readonly number[]): readonly string[] {
    const random = this.random, kind = random.int(3);
    if (kind === 0) return [];
    if (kind === 1) return [this.#numbers("float32", [count], () => (random.int(64) - 32) / 16)];
    let i = 0;
    const scale = this.#numbers("float32", own.length === 1 ? [] : [count], () => unit * (own[i++] ?? 1));
    return [this.#node("DequantizeLinear", [this.#numbers("int32", [count], () => random.int(2000) - 1000), scale], { axis: 0 })];
  }

  #quantizedStep(q: Quantized): Quantized {
    const random = this.random, rank = q.dims.length, [n = 1, c = 1, h = 1, w = 1] = q.dims;
    const same = (name: string, dims: readonly number[]): Quantized => ({ ...q, name, dims });
    switch (random.int(10)) {
      case 0: case 1: {
        if (rank !== 4) return q;
        const k = Math.min(random.pick([1, 3]), h, w), group = random() < 0.3 ? c : 1, m = group * random.pick([1, 4, 5]), pad = random.int(2) === 0 ? 0 : (k - 1) >> 1;
        const weights = this.#weights([m, c / group, k, k], 0), inputs = [this.#dequantize(q), weights.name, ...this.#bias(m, q.scale, weights.scales)];
        const y = this.#node("Conv", inputs, { group, kernel_shape: [k, k], pads: [pad, pad, pad, pad] });
        return this.#quantize(random() < 0.5 ? this.#node("Relu", [y]) : y, [n, m, h + 2 * pad - k + 1, w + 2 * pad - k + 1]);
      }
      case 2: {
        const k = q.dims[rank - 1] ?? 1, m = random.pick([1, 4, 9]), weights = this.#weights([k, m], 1);
        return this.#quantize(this.#node("MatMul", [this.#dequantize(q), weights.name]), [...q.dims.slice(0, -1), m]);
      }
      case 3: {
        if (rank !== 2) return q;
        const m = random.pick([1, 3, 8]), weights = this.#weights([m, c], 0);
        return this.#quantize(this.#node("Gemm", [this.#dequantize(q), weights.name, ...this.#bias(m, q.scale, weights.scales)], { transB: 1 }), [n, m]);
      }
      case 4: return this.#quantize(this.#node(random.pick(["Add", "Sub"]), [this.#dequantize(q), random() < 0.5 ? this.#dequantize(q) : this.#numbers("float32", q.dims.slice(-1), () => random.int(9) / 8)]), q.dims);
      case 5: {
        if (rank !== 4 || h < 2 || w < 2) return q;
        const dims = [n, c, h >> 1, w >> 1], attributes = { kernel_shape: [2, 2], strides: [2, 2] }, type = random.pick(["MaxPool", "AveragePool"]);
        const y = this.#node(type, [this.#dequantize(q)], attributes);
        return random() < 0.5 ? this.#quantize(y, dims) : this.#again(y, dims, q);
      }
      case 6: {
        const perm = rank === 2 ? [1, 0] : [0, ...Array.from({ length: rank - 1 }, (_, d) => rank - 1 - d)], dims = perm.map((p) => dimOf(q, p));
        return this.#again(this.#node("Transpose", [this.#dequantize(q)], { perm }), dims, q);
      }
      case 7: {
        const part = this.#quantize(this.#dequantize(q), q.dims), dims = q.dims.map((d, i) => (i === 1 ? 2 * d : d));
        return this.#again(this.#node("Concat", [this.#dequantize(q), this.#dequantize(part)], { axis: 1 }), dims, q);
      }
      case 8: {
        const [scale, zero] = this.#parameters(q.scale, q.zero, q.dtype), to = this.random.pick(scales), result = this.#parameters(to, q.zero, q.dtype);
        return { ...same(this.#node("QLinearAdd", [...this.#ofValue(q), q.name, scale, zero, ...result], {}, "com.microsoft"), q.dims), scale: to };
      }
      default: {
        const result = this.#parameters(q.scale, q.zero, q.dtype), dims = q.dims.map((d, i) => (i === 1 ? 2 * d : d));
        return same(this.#node("QLinearConcat", [...result, ...this.#ofValue(q), ...this.#ofValue(q)], { axis: 1 }, "com.microsoft"), dims);
      }
    }
  }
  /** Quantised as `like` is. */
  #again(x: string, dims: readonly number[], like: Quantized): Quantized {
    const [scale, zero] = this.#parameters(like.scale, like.zero, like.dtype);
    return { ...like, name: this.#node("QuantizeLinear", [x, scale, zero]), dims };
  }
}
