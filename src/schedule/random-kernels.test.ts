import { describe, it } from "vitest";
import { dimEqual, dimMul, symbol, type Dim } from "../core/dim.ts";
import type { DType } from "../core/dtype.ts";
import {
  add, and, axisOf, binary, cast, computeScalar, constant, dimExpr, div, eq, ge, i32, load, lt, max, min, mul, rem, reduce, scalarType, select, sub, unary,
  type Axis, type Buffer, type Expr,
} from "../kernel/expr.ts";
import { buildLoops, type ElementStore } from "../kernel/hoist.ts";
import { rowMajor, type Kernel, type Layout } from "../kernel/kernel.ts";
import { ExprTable } from "../kernel/share.ts";
import { inPlacePairs } from "../lower/in-place.ts";
import { check } from "../../test/support/check-kernel.ts";
import { randomFrom, type Random } from "../../test/support/random.ts";

const extents = [0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 16, 17];
const size = (d: Dim): Expr => dimExpr(d);

/** A kernel over random shapes, layouts, index maps and operations, made as lowering makes them. */
class RandomKernel {
  readonly sizes: Record<string, number> = {};
  readonly layouts = new Map<Buffer, Layout>();
  readonly kernel: Kernel;
  readonly folds: boolean;
  private readonly random: Random;
  private readonly inputs: Buffer[] = [];
  private readonly float: boolean;
  private readonly dtypes: readonly DType[];
  private reduced = false;

  constructor(seed: number) {
    this.random = randomFrom(seed);
    const { random } = this;
    this.float = random() < 0.7;
    this.dtypes = this.float ? ["float32", "float32", "float32", "float16"] : ["int32", "int8", "uint8", "int16"];
    const rank = 1 + random.int(4);
    let elements = 1;
    const shape = Array.from({ length: rank }, (_, d): Dim => {
      const extent = random.pick(extents.filter((e) => e * elements <= 1500));
      elements *= Math.max(1, extent);
      if (random() < 0.75) return extent;
      this.sizes[`s${d}`] = extent;
      return symbol(`s${d}`);
    });
    const axes = shape.map((extent, d): Axis => ({ name: `i${d}`, extent }));
    const at = axes.map(axisOf);
    const count = random() < 0.25 ? 2 : 1;
    const stores = Array.from({ length: count }, (_, k): ElementStore => {
      const buffer: Buffer = { name: `out${k}`, dtype: random.pick(this.dtypes), shape };
      this.layouts.set(buffer, this.layout(shape));
      const value = this.value(at, shape, 3);
      return { axes, buffer, indices: at, value: this.float ? value : cast(value, computeScalar(buffer.dtype)) };
    });
    this.folds = this.reduced;
    const body = buildLoops(new ExprTable(), stores);
    const kernel = { name: `random_${seed}`, inputs: this.inputs, outputs: stores.map((s) => s.buffer), scratch: [], body };
    this.kernel = { ...kernel, inPlace: inPlacePairs(kernel) };
  }

  /** Axes in any order of memory, sometimes with room between rows. */
  private layout(shape: readonly Dim[]): Layout {
    const { random } = this;
    const common = [...this.layouts].find(([b]) => b.shape.length === shape.length && b.shape.every((d, i) => dimEqual(d, shape[i] ?? -1)))?.[1];
    if (common && random() < 0.5) return common;
    const order = shape.map((_, d) => d);
    if (random() < 0.4) order.sort(() => random() - 0.5);
    const strides: Dim[] = shape.map(() => 1);
    let step: Dim = random() < 0.15 ? 2 : 1;
    for (const d of [...order].reverse()) {
      strides[d] = step;
      const extent = shape[d] ?? 1;
      step = dimMul(step, random() < 0.1 && typeof extent === "number" ? extent + 3 : extent);
    }
    return order.every((d, i) => d === i) && step === 1 ? rowMajor(shape, dimMul) : { strides, offset: random.int(3) };
  }

  private type(): Expr["type"] { return scalarType(this.float ? "f32" : "i32"); }

  private value(at: readonly Expr[], shape: readonly Dim[], depth: number): Expr {
    const { random } = this;
    const choice = random();
    if (depth === 0 || choice < 0.25) return this.read(at, shape);
    const next = (): Expr => this.value(at, shape, depth - 1);
    if (choice < 0.5) return binary(random.pick(this.float ? ["add", "sub", "mul", "pmax", "pmin", "max", "min"] as const : ["add", "sub", "mul", "max", "min", "and", "xor"] as const), next(), next());
    if (choice < 0.65) return this.float ? unary(random.pick(["neg", "abs", "floor", "nearest", "tanh", "exp"] as const), binary("min", next(), constant(20, this.type()))) : unary("neg", next());
    if (choice < 0.75) return select(this.condition(at, shape), next(), next());
    if (choice < 0.82) { const x = next(); return binary("add", x, binary("mul", x, x)); }
    if (choice < 0.9 && depth >= 2) return this.fold(at, shape, depth);
    return this.guarded(at, shape);
  }

  private condition(at: readonly Expr[], shape: readonly Dim[]): Expr {
    const { random } = this;
    const d = random.int(at.length), i = at[d] ?? constant(0, i32), extent = shape[d] ?? 1;
    switch (random.int(4)) {
      case 0: return lt(i, random.int(9));
      case 1: return ge(i, sub(size(extent), random.int(4)));
      case 2: return eq(i, random.int(4));
      default: return binary("lt", this.read(at, shape), constant(this.float ? 0.5 : 3, this.type()));
    }
  }

  /** An input at the indices, or at a map of them. */
  private read(at: readonly Expr[], shape: readonly Dim[]): Expr {
    const { random } = this;
    const kind = random.int(8);
    let own = [...shape], indices = [...at];
    if (kind === 0) { own = own.map(() => 1); indices = indices.map(() => constant(0, i32)); }
    else if (kind <= 2) own.forEach((_, d) => { if (random() < 0.5) { own[d] = 1; indices[d] = constant(0, i32); } });
    else if (kind === 3) { const order = own.map((_, d) => d).sort(() => random() - 0.5); own = order.map((d) => own[d] ?? 1); indices = order.map((d) => indices[d] ?? constant(0, i32)); }
    else if (kind === 4) { const d = random.int(own.length); const extent = own[d] ?? 1, i = indices[d] ?? constant(0, i32); indices[d] = sub(sub(size(extent), 1), i); }
    else if (kind === 5) { const d = random.int(own.length); const i = indices[d] ?? constant(0, i32); own[d] = dimMul(own[d] ?? 1, 2); indices[d] = add(mul(i, 2), random.int(2)); }
    else if (kind === 6) {
      const d = own.findIndex((e) => typeof e === "number" && e % 4 === 0 && e > 0), extent = own[d];
      if (d >= 0 && typeof extent === "number") { const i = indices[d] ?? constant(0, i32); own.splice(d, 1, 4, extent / 4); indices.splice(d, 1, rem(i, 4), div(i, 4)); }
    }
    return this.loadFrom(own, indices);
  }
  private loadFrom(shape: readonly Dim[], indices: readonly Expr[]): Expr {
    const buffer: Buffer = { name: `x${this.inputs.length}`, dtype: this.random.pick(this.dtypes), shape };
    this.inputs.push(buffer);
    this.layouts.set(buffer, this.layout(shape));
    return load(buffer, indices);
  }

  /** A load that only a condition keeps inside, as in Pad and Concat. */
  private guarded(at: readonly Expr[], shape: readonly Dim[]): Expr {
    const { random } = this;
    const d = random.int(at.length), extent = shape[d] ?? 1;
    if (extent === 0) return this.read(at, shape);
    const shift = random.int(5) - 2, i = sub(at[d] ?? constant(0, i32), shift);
    const inside = and(ge(i, 0), lt(i, size(extent)));
    const clamp = random() < 0.3;
    const index = clamp ? max(constant(0, i32), min(i, sub(size(extent), 1))) : i;
    // A size known only at run time may be 0, but then nothing runs.
    const value = this.loadFrom(shape, at.map((e, k) => (k === d ? index : e)));
    return clamp ? value : select(inside, value, constant(this.float ? 0.25 : 7, this.type()));
  }

  private fold(at: readonly Expr[], shape: readonly Dim[], depth: number): Expr {
    const { random } = this;
    this.reduced = true;
    const d = random.int(at.length), extent = random() < 0.7 ? shape[d] ?? 1 : random.pick([1, 3, 8, 9]);
    const inner = shape.map((e, k) => (k === d ? extent : e));
    return reduce(random.pick(["add", "max", "min"] as const), [extent], (k) => this.value(at.map((e, j) => (j === d && k ? k : e)), inner, depth - 2));
  }
}

describe("random kernels", () => {
  const groups = 10, each = 40;
  for (let group = 0; group < groups; group++) {
    it(`naive loops, schedule, legal form and WebAssembly agree (seeds ${group * each} to ${(group + 1) * each - 1})`, () => {
      for (let seed = group * each; seed < (group + 1) * each; seed++) {
        const made = new RandomKernel(seed);
        const layoutOf = (b: Buffer): Layout => made.layouts.get(b) ?? rowMajor(b.shape, dimMul);
        try {
          check(made.kernel, { layoutOf, sizes: made.sizes, ...(made.folds ? { fill: (b: Buffer, i: number) => (b.dtype.startsWith("float") ? Math.sin(i * 7.1 + b.name.length) : (i * 37) % 11) } : {}) }, made.folds ? 2e-3 : 0);
        } catch (error) {
          throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : String(error)}`);
        }
      }
    });
  }
});
