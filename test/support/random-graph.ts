/**
 * Random models of supported operators, for differential tests: small shapes with 1, primes and zero sizes, broadcasting,
 * shared and output interior values, and the patterns that fuse. Values stay tame (bounded by Tanh, Clip and scaled
 * weights) so that a difference is a fault and not an overflow; nothing discontinuous reads a computed value.
 */
import { sizeOf } from "../../src/core/tensor.ts";
import { randomFrom, type Random } from "./random.ts";
import { broadcast, dimOf, type Known, type RandomModel } from "./random-model-parts.ts";
import { QuantizedParts } from "./random-quantized-parts.ts";

export type { RandomModel } from "./random-model-parts.ts";

/** Which kinds of step there are: 0 as at first, 1 with more operators, 2 with quantised stretches. */
export type Generation = 0 | 1 | 2;

/** A model of about `size` nodes, made from `seed` alone. */
export function randomModel(seed: number, size: number, generation: Generation = 2): RandomModel {
  return new Builder(randomFrom(seed), generation).build(size);
}

class Builder extends QuantizedParts {
  readonly #generation: Generation;
  /** Values whose rows sum to zero but for rounding: their mean is nothing but rounding, and cannot be compared. */
  readonly #centred = new Set<string>();
  constructor(random: Random, generation: Generation) {
    super(random);
    this.#generation = generation;
  }

  build(size: number): RandomModel {
    const random = this.random;
    const zero = random() < 0.04;
    const inputs = 1 + random.int(2);
    for (let i = 0; i < inputs; i++) this.input(zero && i === 0);
    while (this.nodes.length < size) this.#step();
    return this.finish();
  }

  #step(): void {
    const steps = [
      () => this.#unary(), () => this.#unary(), () => this.#binary(), () => this.#binaryConstant(), () => this.#binaryConstant(),
      () => this.#conv(), () => this.#conv(), () => this.#matMul(), () => this.#gemm(), () => this.#pool(), () => this.#batchNorm(),
      () => this.#softmax(), () => this.#reduce(), () => this.#transpose(), () => this.#reshape(), () => this.#concat(), () => this.#slice(),
      () => this.#pad(), () => this.#split(), () => this.#layerNorm(), () => this.#squeezeExcite(), () => this.#attention(), () => this.#gelu(),
      () => this.#where(), () => this.#resize(), () => this.#gather(), () => this.#convTranspose(),
    ];
    const later = [
      () => this.#rmsNorm(), () => this.#maskedAttention(), () => this.#conv1d(), () => this.#recurrence(), () => this.#spelledActivation(), () => this.#expand(),
    ];
    const quantized = [() => this.quantizedStretch(), () => this.quantizedStretch()];
    this.random.pick([...steps, ...(this.#generation > 0 ? later : []), ...(this.#generation > 1 ? quantized : [])])();
  }

  #unary(): void {
    const v = this.value();
    if (!v) return;
    const type = this.random.pick(["Relu", "Relu", "Sigmoid", "Tanh", "LeakyRelu", "HardSigmoid", "HardSwish", "Abs", "Neg", "Erf", "Softplus", "Elu", "Clip", "Identity"]);
    if (type === "Clip") this.emit("Clip", [v.name, this.scalar(this.random.pick([0, -1])), this.scalar(this.random.pick([1, 6]))], v.dims);
    else this.emit(type, [v.name], v.dims);
  }
  #binary(): void {
    const a = this.value();
    if (!a) return;
    const b = this.value((x) => broadcast(a.dims, x.dims) !== undefined);
    const dims = b && broadcast(a.dims, b.dims);
    if (!b || !dims || sizeOf(dims) > 20000) return;
    const type = this.random.pick(["Add", "Add", "Sub", "Mul", "Max", "Min"]);
    const out = this.emit(type, [a.name, b.name], dims);
    if (type === "Mul") this.emit("Tanh", [out.name], dims);
  }
  #binaryConstant(): void {
    const random = this.random;
    const v = this.value();
    if (!v) return;
    const dims = random.pick([[], v.dims.map((d, i) => (i === 1 ? d : 1)), v.dims.slice(-1), v.dims.map((d) => (random() < 0.5 ? d : 1))]);
    const type = random.pick(["Add", "Sub", "Mul", "Div"]);
    const c = type === "Div" ? this.constant(dims, 1, () => 1.5 + random()) : this.constant(dims, 0.7);
    this.emit(type, random() < 0.5 || type === "Div" ? [v.name, c] : [c, v.name], v.dims);
  }
  #conv(): void {
    const random = this.random;
    const v = this.value((x) => x.dims.length === 4 && dimOf(x, 1) <= 24);
    if (!v) return;
    const [n = 1, c = 1, h = 1, w = 1] = v.dims;
    const depthwise = random() < 0.3;
    const k = random.pick([1, 1, 3, 3, 5]);
    const stride = random.pick([1, 1, 2]), dilation = random() < 0.15 ? 2 : 1;
    const pad = random.pick([0, Math.floor(k / 2), Math.floor(k / 2)]);
    const out = (size: number): number => Math.floor((size + 2 * pad - dilation * (k - 1) - 1) / stride) + 1;
    if (out(h) < 1 || out(w) < 1) return;
    const group = depthwise ? c : c % 2 === 0 && random() < 0.15 ? 2 : 1;
    const m = depthwise ? c * random.pick([1, 1, 2]) : group * random.pick([1, 3, 4, 8, 9]);
    const weight = this.constant([m, c / group, k, k], 1 / Math.sqrt((c / group) * k * k));
    const inputs = [v.name, weight, ...(random() < 0.5 ? [this.constant([m])] : [])];
    const y = this.emit("Conv", inputs, [n, m, out(h), out(w)], { group, kernel_shape: [k, k], strides: [stride, stride], dilations: [dilation, dilation], pads: [pad, pad, pad, pad] });
    if (random() < 0.5) this.#normalise(y);
    if (random() < 0.6) this.#activate();
  }
  #convTranspose(): void {
    const random = this.random;
    const v = this.value((x) => x.dims.length === 4 && dimOf(x, 1) <= 16 && sizeOf(x.dims) < 3000);
    if (!v) return;
    const [n = 1, c = 1, h = 1, w = 1] = v.dims;
    if (n === 0) return;
    const k = random.pick([2, 3]), stride = random.pick([1, 2]), m = random.pick([1, 4, 5]);
    const y = this.emit("ConvTranspose", [v.name, this.constant([c, m, k, k], 1 / Math.sqrt(c * k))], [n, m, (h - 1) * stride + k, (w - 1) * stride + k], { kernel_shape: [k, k], strides: [stride, stride] });
    if (random() < 0.5) this.#normalise(y);
  }
  #batchNorm(): void {
    const v = this.value((x) => x.dims.length >= 2);
    if (v) this.#normalise(v);
  }
  #normalise(v: Known): void {
    const c = dimOf(v, 1);
    const positive = (): string => this.constant([c], 1, () => 0.5 + this.random());
    this.emit("BatchNormalization", [v.name, positive(), this.constant([c]), this.constant([c]), positive()], v.dims, { epsilon: { float: 1e-5 } });
  }
  #activate(): void {
    const v = this.values[this.values.length - 1];
    if (!v) return;
    const kind = this.random.int(4);
    if (kind === 0) this.emit("Relu", [v.name], v.dims);
    else if (kind === 1) this.emit("Mul", [v.name, this.emit("Sigmoid", [v.name], v.dims).name], v.dims);
    else if (kind === 2) this.emit("LeakyRelu", [v.name], v.dims, { alpha: { float: 0.1 } });
    else {
      const clipped = this.emit("Clip", [this.emit("Add", [v.name, this.scalar(3)], v.dims).name, this.scalar(0), this.scalar(6)], v.dims);
      this.emit("Div", [this.emit("Mul", [v.name, clipped.name], v.dims).name, this.scalar(6)], v.dims);
    }
  }
  #matMul(): void {
    const random = this.random;
    const v = this.value((x) => x.dims.length >= 2);
    if (!v) return;
    const k = dimOf(v, v.dims.length - 1), n = random.pick([1, 3, 8, 9, 16, 17]);
    const dims = [...v.dims.slice(0, -1), n];
    this.emit("MatMul", [v.name, this.constant([k, n], 1 / Math.sqrt(k || 1))], dims);
    const last = this.values[this.values.length - 1] as Known;
    if (random() < 0.6) this.emit("Add", random() < 0.5 ? [last.name, this.constant([n])] : [this.constant([n]), last.name], dims);
    if (random() < 0.5) this.#activate();
  }
  #gemm(): void {
    const random = this.random;
    const v = this.value((x) => x.dims.length === 2);
    if (!v) return;
    const [m = 1, k = 1] = v.dims;
    const n = random.pick([1, 4, 7, 16]), transB = random.int(2);
    this.emit("Gemm", [v.name, this.constant(transB ? [n, k] : [k, n], 1 / Math.sqrt(k || 1)), ...(random() < 0.7 ? [this.constant([n])] : [])], [m, n], { transB, alpha: { float: random.pick([1, 0.5]) } });
  }
  #pool(): void {
    const random = this.random;
    const v = this.value((x) => x.dims.length === 4 && dimOf(x, 2) >= 2 && dimOf(x, 3) >= 2);
    if (!v) return;
    const [n = 1, c = 1, h = 1, w = 1] = v.dims;
    const type = random.pick(["MaxPool", "AveragePool", "GlobalAveragePool"]);
    if (type === "GlobalAveragePool") { this.emit(type, [v.name], [n, c, 1, 1]); return; }
    const stride = random.pick([1, 2]), pad = random.int(2), k = 2 + pad;
    const ceil = random.int(2);
    const out = (size: number): number => {
      const raw = (size + 2 * pad - k) / stride;
      let o = (ceil ? Math.ceil(raw) : Math.floor(raw)) + 1;
      if (ceil && (o - 1) * stride >= size + pad) o--;
      return o;
    };
    if (out(h) < 1 || out(w) < 1) return;
    this.emit(type, [v.name], [n, c, out(h), out(w)], { kernel_shape: [k, k], strides: [stride, stride], pads: [pad, pad, pad, pad], ceil_mode: ceil, ...(type === "AveragePool" ? { count_include_pad: random.int(2) } : {}) });
  }
  #softmax(): void {
    const v = this.value((x) => x.dims.length >= 2);
    if (v) this.emit("Softmax", [v.name], v.dims, { axis: this.random() < 0.7 ? -1 : 1 });
  }
  #reduce(): void {
    const random = this.random;
    const v = this.value((x) => x.dims.length >= 2 && sizeOf(x.dims) > 0);
    if (!v) return;
    const axis = random.int(v.dims.length), keepdims = random() < 0.8 ? 1 : 0;
    const dims = keepdims ? v.dims.map((d, i) => (i === axis ? 1 : d)) : v.dims.filter((_, i) => i !== axis);
    const type = random.pick(["ReduceMean", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2"]);
    this.emit(type === "ReduceMean" && this.#centred.has(v.name) ? "ReduceMax" : type, [v.name], dims, { axes: [axis], keepdims });
  }
  #transpose(): void {
    const v = this.value((x) => x.dims.length >= 2);
    if (!v) return;
    const perm = v.dims.map((_, i) => i).sort(() => this.random() - 0.5);
    this.emit("Transpose", [v.name], perm.map((p) => dimOf(v, p)), { perm });
  }
  #reshape(): void {
    const random = this.random;
    const v = this.value((x) => sizeOf(x.dims) > 0 && x.dims.length >= 2);
    if (!v) return;
    const at = random.int(v.dims.length - 1);
    const merged = [...v.dims.slice(0, at), dimOf(v, at) * dimOf(v, at + 1), ...v.dims.slice(at + 2)];
    const d = dimOf(v, at);
    const factor = [2, 3].find((f) => d % f === 0);
    const dims = factor && v.dims.length < 4 && random() < 0.5 ? [...v.dims.slice(0, at), factor, d / factor, ...v.dims.slice(at + 1)] : merged;
    this.emit("Reshape", [v.name, this.ints(dims.map((x, i) => (i === 0 && random() < 0.5 ? -1 : x)))], dims);
  }
  #concat(): void {
    const random = this.random;
    const a = this.value((x) => x.dims.length >= 1);
    if (!a) return;
    const axis = random.int(a.dims.length);
    const b = this.value((x) => x.dims.length === a.dims.length && x.dims.every((d, i) => i === axis || d === a.dims[i]));
    if (!b || dimOf(a, axis) + dimOf(b, axis) > 40) return;
    this.emit("Concat", [a.name, b.name], a.dims.map((d, i) => (i === axis ? d + dimOf(b, axis) : d)), { axis });
  }
  #slice(): void {
    const random = this.random;
    const v = this.value((x) => x.dims.some((d) => d > 1));
    if (!v) return;
    const axis = v.dims.findIndex((d) => d > 1), d = dimOf(v, axis);
    const start = random.int(d), step = random.pick([1, 1, 2]), end = start + 1 + random.int(d - start);
    this.emit("Slice", [v.name, this.ints([start]), this.ints([end]), this.ints([axis]), this.ints([step])], v.dims.map((x, i) => (i === axis ? Math.ceil((end - start) / step) : x)));
  }
  #pad(): void {
    const random = this.random;
    const v = this.value((x) => x.dims.length === 4 && sizeOf(x.dims) < 4000);
    if (!v) return;
    const p = [random.int(2), random.int(2), random.int(2), random.int(2)] as const;
    const dims = v.dims.map((d, i) => (i === 2 ? d + p[0] + p[2] : i === 3 ? d + p[1] + p[3] : d));
    const y = this.emit("Pad", [v.name, this.ints([0, 0, p[0], p[1], 0, 0, p[2], p[3]])], dims);
    if (random() < 0.5 && dimOf(y, 1) <= 16 && dimOf(y, 2) >= 3 && dimOf(y, 3) >= 3) {
      const m = random.pick([4, 5]);
      this.emit("Conv", [y.name, this.constant([m, dimOf(y, 1), 3, 3], 0.2)], [dimOf(y, 0), m, dimOf(y, 2) - 2, dimOf(y, 3) - 2], { kernel_shape: [3, 3] });
    }
  }
  #split(): void {
    const v = this.value((x) => x.dims.some((d) => d >= 2));
    if (!v) return;
    const axis = v.dims.findIndex((d) => d >= 2), d = dimOf(v, axis), first = 1 + this.random.int(d - 1);
    const outs = [first, d - first].map((n) => ({ name: `t${this.count++}`, dims: v.dims.map((x, i) => (i === axis ? n : x)) }));
    this.nodes.push({ type: "Split", inputs: [v.name, this.ints([first, d - first])], outputs: outs.map((o) => o.name), attributes: { axis }, name: `Split_${this.nodes.length}` });
    this.values.push(...outs);
  }
  #layerNorm(): void {
    const random = this.random;
    const v = this.value((x) => x.dims.length >= 2 && dimOf(x, x.dims.length - 1) > 1);
    if (!v) return;
    const reduced = [...v.dims.slice(0, -1), 1], last = [dimOf(v, v.dims.length - 1)];
    const mean = this.emit("ReduceMean", [v.name], reduced, { axes: [-1], keepdims: 1 });
    const d = this.emit("Sub", [v.name, mean.name], v.dims);
    const square = random() < 0.5 ? this.emit("Mul", [d.name, d.name], v.dims) : this.emit("Pow", [d.name, this.scalar(2)], v.dims);
    const variance = this.emit("ReduceMean", [square.name], reduced, { axes: [-1], keepdims: 1 });
    const deviation = this.emit("Sqrt", [this.emit("Add", [variance.name, this.scalar(1e-5)], reduced).name], reduced);
    const y = this.emit("Div", [d.name, deviation.name], v.dims);
    for (const { name } of [d, y]) this.#centred.add(name);
    this.emit("Add", [this.emit("Mul", [y.name, this.constant(last)], v.dims).name, this.constant(last)], v.dims);
  }
  #squeezeExcite(): void {
    const v = this.value((x) => x.dims.length === 4 && dimOf(x, 1) <= 24 && sizeOf(x.dims) > 0);
    if (!v) return;
    const [n = 1, c = 1] = v.dims, m = this.random.pick([1, 2, 4]);
    const pooled = this.emit("GlobalAveragePool", [v.name], [n, c, 1, 1]);
    const squeezed = this.emit("Relu", [this.emit("Conv", [pooled.name, this.constant([m, c, 1, 1])], [n, m, 1, 1]).name], [n, m, 1, 1]);
    const gate = this.emit("HardSigmoid", [this.emit("Conv", [squeezed.name, this.constant([c, m, 1, 1]), this.constant([c])], [n, c, 1, 1]).name], [n, c, 1, 1]);
    this.emit("Mul", [v.name, gate.name], v.dims);
  }
  #attention(): void {
    const random = this.random;
    const v = this.value((x) => x.dims.length === 4 && sizeOf(x.dims) > 0 && sizeOf(x.dims) < 4000 && dimOf(x, 2) <= 32);
    if (!v) return;
    const [b = 1, h = 1, s = 1, d = 1] = v.dims;
    const kt = this.emit("Transpose", [v.name], [b, h, d, s], { perm: [0, 1, 3, 2] });
    let scores = this.emit("MatMul", [v.name, kt.name], [b, h, s, s]);
    if (random() < 0.7) scores = this.emit(random.pick(["Mul", "Mul"]), [scores.name, this.scalar(1 / Math.sqrt(d))], scores.dims);
    else scores = this.emit("Div", [scores.name, this.scalar(Math.sqrt(d))], scores.dims);
    if (random() < 0.4) scores = this.emit("Add", [scores.name, this.constant([1, 1, s, s])], scores.dims);
    const probabilities = this.emit("Softmax", [scores.name], scores.dims, { axis: -1 });
    this.emit("MatMul", [probabilities.name, v.name], v.dims);
  }
  /** Scores that give way to a number where a mask chooses, perhaps between two masks that are added. */
  #maskedAttention(): void {
    const random = this.random;
    const v = this.value((x) => x.dims.length === 4 && sizeOf(x.dims) > 0 && sizeOf(x.dims) < 4000 && dimOf(x, 2) <= 32);
    if (!v) return;
    const [b = 1, h = 1, s = 1, d = 1] = v.dims;
    const keys = this.emit("Mul", [v.name, this.scalar(1 / Math.sqrt(d))], v.dims);
    let scores = this.emit("MatMul", [v.name, this.emit("Transpose", [keys.name], [b, h, d, s], { perm: [0, 1, 3, 2] }).name], [b, h, s, s]);
    if (random() < 0.5) scores = this.emit("Add", [this.constant([s, s]), scores.name], scores.dims);
    const choice = `w${this.count++}`;
    this.initializers[choice] = { dtype: "bool", dims: [s, s], data: Uint8Array.from({ length: s * s }, (_, i) => Number(i % s > Math.floor(i / s))) };
    const fill = this.scalar(random.pick([-1e9, -10])), before = this.values.length;
    if (random() < 0.7) scores = this.emit("Where", random() < 0.7 ? [choice, fill, scores.name] : [choice, scores.name, fill], scores.dims);
    if (random() < 0.5) scores = this.emit("Add", [scores.name, this.constant([1, 1, 1, s])], scores.dims);
    // Products of masked scores would be all rounding: nothing but the softmax reads them.
    if (this.#generation > 1) this.values.length = before;
    this.emit("MatMul", [this.emit("Softmax", [scores.name], scores.dims, { axis: -1 }).name, v.name], v.dims);
  }
  #rmsNorm(): void {
    const random = this.random;
    const v = this.value((x) => x.dims.length >= 2 && dimOf(x, x.dims.length - 1) > 1);
    if (!v) return;
    const reduced = [...v.dims.slice(0, -1), 1];
    const square = random() < 0.5 ? this.emit("Mul", [v.name, v.name], v.dims) : this.emit("Pow", [v.name, this.scalar(2)], v.dims);
    const mean = this.emit("ReduceMean", [square.name], reduced, { axes: [-1], keepdims: 1 });
    const root = this.emit("Sqrt", [this.emit("Add", [mean.name, this.scalar(1e-2)], reduced).name], reduced);
    const y = random() < 0.5 ? this.emit("Div", [v.name, root.name], v.dims) : this.emit("Mul", [v.name, this.emit("Reciprocal", [root.name], reduced).name], v.dims);
    this.emit("Mul", [this.constant(v.dims.slice(-1)), y.name], v.dims);
  }
  #conv1d(): void {
    const random = this.random;
    const v = this.value((x) => x.dims.length === 3 && dimOf(x, 1) <= 24);
    if (!v) return;
    const [n = 1, c = 1, l = 1] = v.dims, k = random.pick([1, 3, 5]), pad = random.int(3), stride = random.pick([1, 2]);
    const length = Math.floor((l + 2 * pad - k) / stride) + 1;
    if (length < 1 || l + 2 * pad < k) return;
    const group = random() < 0.3 ? c : 1, m = group * random.pick([1, 2, 5]);
    const y = this.emit("Conv", [v.name, this.constant([m, c / group, k], 1 / Math.sqrt((c / group) * k))], [n, m, length], { group, kernel_shape: [k], strides: [stride], pads: [pad, pad] });
    if (random() < 0.5) this.#normalise(y);
    if (random() < 0.6) this.#activate();
  }
  #recurrence(): void {
    const random = this.random;
    const v = this.value((x) => x.dims.length === 3 && sizeOf(x.dims) > 0 && sizeOf(x.dims) < 1500);
    if (!v) return;
    const [s = 1, b = 1, i = 1] = v.dims, h = random.pick([1, 4, 5, 8]), both = random.int(2), directions = 1 + both;
    const type = random.pick(["LSTM", "GRU"]), gates = type === "LSTM" ? 4 : 3;
    const weights = [this.constant([directions, gates * h, i], 1 / Math.sqrt(i)), this.constant([directions, gates * h, h], 1 / Math.sqrt(h)), this.constant([directions, 2 * gates * h])];
    this.emit(type, [v.name, ...weights], [s, directions, b, h], { hidden_size: h, direction: both ? "bidirectional" : "forward", ...(type === "GRU" ? { linear_before_reset: random.int(2) } : {}) });
  }
  #spelledActivation(): void {
    const v = this.value();
    if (!v) return;
    const on = (type: string, ...inputs: readonly string[]): string => this.emit(type, inputs, v.dims).name;
    const kind = this.random.int(4);
    if (kind === 0) on("PRelu", v.name, this.constant(v.dims.slice(-1)));
    else if (kind === 1) on("Mul", v.name, on("Tanh", on("Softplus", v.name)));
    else if (kind === 2) on("Max", v.name, on("Mul", v.name, this.scalar(0.1)));
    else {
      const cube = on("Pow", on("Tanh", v.name), this.scalar(3));
      on("Mul", v.name, on("Mul", this.scalar(0.5), on("Add", on("Tanh", on("Mul", on("Add", v.name, on("Mul", cube, this.scalar(0.044715))), this.scalar(0.7978846))), this.scalar(1))));
    }
  }
  #expand(): void {
    const v = this.value((x) => x.dims.includes(1) && sizeOf(x.dims) < 1000);
    if (!v) return;
    const dims = v.dims.map((d) => (d === 1 ? this.random.pick([1, 3, 4]) : d));
    this.emit("Expand", [v.name, this.ints(dims.map((d, i) => (d === v.dims[i] ? 1 : d)))], dims);
  }
  #gelu(): void {
    const v = this.value();
    if (!v) return;
    const e = this.emit("Erf", [this.emit("Div", [v.name, this.scalar(Math.SQRT2)], v.dims).name], v.dims);
    const m = this.emit("Mul", [v.name, this.emit("Add", [e.name, this.scalar(1)], v.dims).name], v.dims);
    this.emit("Mul", [m.name, this.scalar(0.5)], v.dims);
  }
  #where(): void {
    const input = Object.keys(this.inputs)[0];
    const v = this.values.find((x) => x.name === input);
    const other = v && this.value((x) => broadcast(v.dims, x.dims) !== undefined);
    const dims = v && other && broadcast(v.dims, other.dims);
    if (!v || !other || !dims || sizeOf(dims) > 20000) return;
    const condition = `t${this.count++}`;
    this.nodes.push({ type: "Greater", inputs: [v.name, this.scalar(0)], outputs: [condition], name: `Greater_${this.nodes.length}` });
    this.emit("Where", [condition, v.name, other.name], dims);
  }
  #resize(): void {
    const v = this.value((x) => x.dims.length === 4 && sizeOf(x.dims) < 2000 && sizeOf(x.dims) > 0);
    if (!v) return;
    const scales = this.constant([4], 1, (i) => (i < 2 ? 1 : 2));
    const mode = this.random.pick(["nearest", "linear"]);
    this.emit("Resize", [v.name, "", scales], v.dims.map((d, i) => (i < 2 ? d : 2 * d)), { mode, coordinate_transformation_mode: mode === "nearest" ? "asymmetric" : "half_pixel", ...(mode === "nearest" ? { nearest_mode: "floor" } : {}) });
  }
  #gather(): void {
    const v = this.value((x) => x.dims.length >= 2 && sizeOf(x.dims) > 0);
    if (!v) return;
    const axis = this.random.int(v.dims.length), d = dimOf(v, axis);
    const at = [this.random.int(d), -1 - this.random.int(d)];
    this.emit("Gather", [v.name, this.ints(at)], v.dims.map((x, i) => (i === axis ? 2 : x)), { axis });
  }
}
