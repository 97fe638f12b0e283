/**
 * A random model in the making: its values, nodes and constants, from which the steps of random-graph.ts choose and to
 * which they add.
 */
import { sizeOf, type Tensor } from "../../src/core/tensor.ts";
import type { AttributeSpec, ModelSpec, NodeSpec, ValueSpec } from "./model-spec.ts";
import { randomTensor, type Random } from "./random.ts";

export interface RandomModel {
  readonly spec: ModelSpec;
  readonly feeds: Readonly<Record<string, Tensor>>;
}

export interface Known { readonly name: string; readonly dims: readonly number[] }

const sizes = [1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17];

export class ModelParts {
  protected readonly random: Random;
  protected readonly values: Known[] = [];
  protected readonly nodes: NodeSpec[] = [];
  protected readonly initializers: Record<string, Tensor> = {};
  protected readonly inputs: Record<string, ValueSpec> = {};
  protected readonly feeds: Record<string, Tensor> = {};
  protected count = 0;

  constructor(random: Random) {
    this.random = random;
  }

  protected input(zero: boolean): void {
    const random = this.random;
    const rank = random.pick([2, 3, 4, 4, 4]);
    const batch = zero ? 0 : random.pick([1, 1, 2, 3]);
    const dims = [batch, ...Array.from({ length: rank - 1 }, (_, d) => (rank === 4 && d > 0 ? random.pick([1, 3, 5, 7, 8, 9]) : random.pick(sizes)))];
    const name = `x${Object.keys(this.inputs).length}`;
    const symbolic = random() < 0.4;
    this.inputs[name] = { dtype: "float32", dims: dims.map((d, i) => (symbolic && (i === 0 || random() < 0.3) ? `${name}_d${i}` : d)) };
    this.feeds[name] = randomTensor(dims, random);
    this.values.push({ name, dims });
  }

  /** A recent value more often than an old one. */
  protected value(accept: (v: Known) => boolean = () => true): Known | undefined {
    const able = this.values.filter(accept);
    if (!able.length) return undefined;
    return this.random() < 0.6 ? able[able.length - 1] : this.random.pick(able);
  }
  protected emit(type: string, inputs: readonly string[], dims: readonly number[], attributes: Record<string, AttributeSpec> = {}): Known {
    const out = { name: `t${this.count++}`, dims };
    this.nodes.push({ type, inputs, outputs: [out.name], attributes, name: `${type}_${this.nodes.length}` });
    this.values.push(out);
    return out;
  }
  protected constant(dims: readonly number[], scale = 0.5, fill?: (i: number) => number): string {
    const name = `w${this.count++}`;
    this.initializers[name] = fill
      ? { dtype: "float32", dims, data: Float32Array.from({ length: sizeOf(dims) }, (_, i) => fill(i)) }
      : randomTensor(dims, this.random, scale);
    return name;
  }
  protected ints(values: readonly number[]): string {
    const name = `i${this.count++}`;
    this.initializers[name] = { dtype: "int64", dims: [values.length], data: BigInt64Array.from(values, BigInt) };
    return name;
  }
  protected scalar(value: number): string {
    return this.constant([], 1, () => value);
  }
  protected finish(): RandomModel {
    const random = this.random;
    const used = new Set(this.nodes.flatMap((n) => n.inputs));
    const computed = this.values.filter((v) => !(v.name in this.inputs));
    const ends = computed.filter((v) => !used.has(v.name) || random() < 0.05);
    const outputs = Object.fromEntries(ends.map((v) => [v.name, { dtype: "float32" as const, dims: v.dims.map((_, i) => `${v.name}_${i}`) }]));
    return { spec: { opset: 17, inputs: this.inputs, outputs, initializers: this.initializers, nodes: this.nodes }, feeds: this.feeds };
  }
}

export const dimOf = (v: Known, d: number): number => v.dims[d] ?? 1;

export function broadcast(a: readonly number[], b: readonly number[]): number[] | undefined {
  const rank = Math.max(a.length, b.length);
  const out: number[] = [];
  for (let d = 0; d < rank; d++) {
    const x = a[d - rank + a.length] ?? 1, y = b[d - rank + b.length] ?? 1;
    if (x !== y && x !== 1 && y !== 1) return undefined;
    out.push(x === 1 ? y : x);
  }
  return out;
}
