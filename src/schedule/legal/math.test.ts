import { describe, expect, it } from "vitest";
import { axisOf, binary, constant, i32, load, unary, type Axis, type BinaryOp, type Buffer, type Expr, type UnaryOp } from "../../kernel/expr.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { erf } from "../../kernel/scalar-ops.ts";
import { loop } from "../../kernel/stmt.ts";
import { legalize } from "./legalize.ts";
import { expOfNegativeF32, largestPower, powerBelow, powerOf } from "./math-f32.ts";
import { layOut, runCompiled, runInterpreted } from "../../../test/support/run-kernel.ts";

const flat = () => ({ strides: [1], offset: 0 });

/** y[i] = f(x[i], …) as WebAssembly, scalar or in vectors of 4. */
function apply(dtype: "float32" | "float64", lanes: 1 | 4, inputs: readonly (Float32Array | Float64Array)[], f: (...x: Expr[]) => Expr, how: "compiled" | "interpreted" = "compiled"): Float32Array | Float64Array {
  const n = inputs[0]?.length ?? 0, Data = dtype === "float32" ? Float32Array : Float64Array;
  const buffers = inputs.map((_, k): Buffer => ({ name: `x${k}`, dtype, shape: [n] }));
  const y: Buffer = { name: "y", dtype, shape: [n] };
  const i: Axis = { name: "i", extent: n };
  const read = (b: Buffer): Expr => (lanes === 1 ? load(b, [axisOf(i)]) : { kind: "load", buffer: b, indices: [axisOf(i)], along: 0, type: { scalar: "f32", lanes } });
  const store = { kind: "store", buffer: y, indices: [axisOf(i)], value: f(...buffers.map(read)), ...(lanes === 1 ? {} : { along: 0 }) } as const;
  const kernel: Kernel = { name: "math", inputs: buffers, outputs: [y], scratch: [], body: loop(i, constant(0, i32), constant(n, i32), lanes, store) };
  const run = layOut(kernel, flat, () => 0);
  const memory = new Uint8Array(run.bytes);
  buffers.forEach((b, k) => new Data(memory.buffer, run.places.get(b)?.address ?? -1, n).set(inputs[k] ?? []));
  const legal = legalize(kernel, run.placements);
  const after = how === "compiled" ? runCompiled(legal, run, memory).memory : runInterpreted(legal, run, memory);
  return new Data(after.buffer, run.places.get(y)?.address ?? -1, n);
}

const special = [0, -0, 1, -1, Infinity, -Infinity, NaN, 1e-45, -1e-45, 1e-40, 2 ** -126, -(2 ** -126), 3.4e38, -3.4e38, 0.5, 2, 88.72, 88.73, -87.3, -87.4, -103.97, -104, 9, 9.1, 0.625, 0.9277];
/** All of float32, one in `every` bit patterns. */
function spread(every: number): Float32Array {
  const bits = new Uint32Array(Math.floor(2 ** 32 / every));
  for (let i = 0; i < bits.length; i++) bits[i] = i * every;
  const values = new Float32Array(bits.buffer);
  const out = new Float32Array(4 * Math.ceil((values.length + special.length) / 4));
  out.set(values);
  out.set(special, values.length);
  return out;
}

/** Distance in units of the last place of the exact result, infinite where NaN or infinity is in another place. */
function ulps(actual: number, exact: number): number {
  if (Number.isNaN(exact) || Number.isNaN(actual)) return Number.isNaN(exact) === Number.isNaN(actual) ? 0 : Infinity;
  const rounded = Math.fround(exact);
  if (actual === rounded) return Object.is(Math.sign(actual), Math.sign(exact)) || exact !== 0 ? 0 : Infinity;
  if (!Number.isFinite(rounded) || !Number.isFinite(actual)) return Math.abs(exact) > 3.4028e38 && Math.abs(actual) > 3.4028e38 ? 1 : Infinity;
  const unit = Math.max(2 ** (Math.floor(Math.log2(Math.abs(exact))) - 23), 2 ** -149);
  return Math.abs(actual - exact) / unit;
}
function largestError(actual: ArrayLike<number>, x: ArrayLike<number>, exact: (x: number) => number): { error: number; at: number } {
  let worst = { error: 0, at: NaN };
  for (let i = 0; i < x.length; i++) {
    const at = x[i] ?? NaN, error = ulps(actual[i] ?? NaN, exact(at));
    if (error > worst.error) worst = { error, at };
  }
  return worst;
}
const bitsOf = (x: Float32Array | Float64Array): Uint32Array => new Uint32Array(x.buffer.slice(x.byteOffset, x.byteOffset + x.byteLength));

const references: readonly [UnaryOp, (x: number) => number, number][] = [
  ["exp", Math.exp, 1.01], ["log", Math.log, 1.01], ["tanh", Math.tanh, 2.5], ["erf", erf, 2],
  ["asin", Math.asin, 0.51], ["acos", Math.acos, 0.51], ["atan", Math.atan, 0.51], ["sinh", Math.sinh, 0.51], ["cosh", Math.cosh, 0.51],
  ["asinh", Math.asinh, 0.51], ["acosh", Math.acosh, 0.51], ["atanh", Math.atanh, 0.51],
];

describe("float32 functions", () => {
  const x = spread(9973);
  for (const [op, exact, bound] of references) {
    it(`${op} is within ${bound} ulp, vectors as scalars`, () => {
      const y = apply("float32", 1, [x], (v) => unary(op, v));
      const { error, at } = largestError(y, x, exact);
      expect(error, `at ${at}`).toBeLessThanOrEqual(bound);
      expect(bitsOf(apply("float32", 4, [x], (v) => unary(op, v)))).toEqual(bitsOf(y));
    });
  }
  it("1 + exp(±x) is within 2.7 ulp, whichever side the 1 is on", () => {
    for (const sign of [1, -1]) {
      const power = (v: Expr): Expr => unary("exp", sign > 0 ? v : unary("neg", v));
      const y = apply("float32", 1, [x], (v) => binary("add", power(v), 1));
      const { error, at } = largestError(y, x, (v) => 1 + Math.exp(sign * v));
      expect(error, `at ${at}`).toBeLessThanOrEqual(2.7);
      expect(bitsOf(apply("float32", 4, [x], (v) => binary("add", constant(1, v.type), power(v))))).toEqual(bitsOf(y));
      const [low, high] = apply("float32", 4, [Float32Array.of(-Infinity, Infinity, NaN, 100)], (v) => binary("add", power(v), constant(1, v.type)));
      expect([low, high]).toEqual(sign > 0 ? [1, Infinity] : [Infinity, 1]);
    }
  });
  it("1 + erf(x) is within 2.2e-7, and keeps digits of small results", () => {
    const dense = Float32Array.from({ length: 40_000 }, (_, i) => (i - 20_000) / 2400);
    for (const at of [x, dense]) {
      const y = apply("float32", 1, [at], (v) => binary("add", unary("erf", v), 1));
      at.forEach((v, i) => {
        const got = y[i] ?? NaN, exact = 1 + erf(v);
        if (Number.isNaN(v)) expect(got).toBeNaN();
        else if (!(Math.abs(got - exact) <= 2.2e-7) || got < 0) expect(got, `1 + erf(${v})`).toBe(exact);
        // 1 + erf(x) of float64 has the digits to judge by down to here.
        else if (v > -4 && Math.abs(got - exact) > 0.02 * exact) expect(got, `1 + erf(${v})`).toBe(exact);
      });
      expect(bitsOf(apply("float32", 4, [at], (v) => binary("add", constant(1, v.type), unary("erf", v))))).toEqual(bitsOf(y));
    }
    expect([...apply("float32", 4, [Float32Array.of(-Infinity, Infinity, 0, -8)], (v) => binary("add", unary("erf", v), constant(1, v.type)))]).toEqual([0, 2, 1, 0]);
  });
  it("gelu is within 1.5e-7 of |x| or 1, and keeps digits of small results", () => {
    const few = spread(99_733), dense = Float32Array.from({ length: 20_000 }, (_, i) => (i - 10_000) / 800);
    for (const at of [few, dense]) {
      const y = apply("float32", 1, [at], (v) => unary("gelu", v));
      at.forEach((v, i) => {
        const got = y[i] ?? NaN, exact = v === Infinity ? v : v * 0.5 * (1 + erf(v * Math.SQRT1_2));
        if (Number.isNaN(exact)) expect(got, `gelu(${v})`).toBeNaN();
        else if (got !== exact && !(Math.abs(got - exact) <= 1.5e-7 * Math.max(1, Math.abs(v)))) expect(got, `gelu(${v})`).toBe(exact);
        else if (v > -5.6 && Math.abs(got - exact) > 0.02 * Math.abs(exact) && Math.abs(exact) > 2 ** -126) expect(got, `gelu(${v})`).toBe(exact);
      });
      expect(bitsOf(apply("float32", 4, [at], (v) => unary("gelu", v)))).toEqual(bitsOf(y));
    }
    const [low, ...rest] = apply("float32", 4, [Float32Array.of(-Infinity, Infinity, 0, -0, -3e38, 3e38, -12, 1)], (v) => unary("gelu", v));
    expect(low).toBeNaN();
    expect(rest.map((v) => v + 0).slice(0, -1)).toEqual([Infinity, 0, 0, 0, Math.fround(3e38), 0]);
    expect(rest.at(-1)).toBeCloseTo(0.8413447, 6);
  });
  it("silu is within 2e-7 of |x|, and keeps digits of small results", () => {
    const few = spread(99_733), dense = Float32Array.from({ length: 20_000 }, (_, i) => (i - 10_000) / 100);
    for (const at of [few, dense]) {
      const y = apply("float32", 1, [at], (v) => unary("silu", v));
      at.forEach((v, i) => {
        const got = y[i] ?? NaN, exact = v / (1 + Math.exp(-v));
        if (Number.isNaN(exact)) expect(got, `silu(${v})`).toBeNaN();
        else if (got !== exact && !(Math.abs(got - exact) <= Math.max(2 ** -149, 2e-7 * Math.abs(v)))) expect(got, `silu(${v})`).toBe(exact);
        else if (v > -88.7 && Math.abs(v) > 2 ** -126 && !(Math.abs(got - exact) <= (2 + Math.abs(Math.min(v, 0))) * 2 ** -23 * Math.abs(exact))) expect(got, `silu(${v})`).toBe(exact);
      });
      expect(bitsOf(apply("float32", 4, [at], (v) => unary("silu", v)))).toEqual(bitsOf(y));
    }
    const [low, none, ...rest] = apply("float32", 4, [Float32Array.of(-Infinity, NaN, Infinity, 0, -0, -3e38, 3e38, -89)], (v) => unary("silu", v));
    expect([low, none]).toEqual([NaN, NaN]);
    expect(rest).toEqual([Infinity, 0, -0, -0, Math.fround(3e38), -0]);
  });
  it("weights of a softmax are within 2 ulp of 1, and of themselves in proportion to their exponent", () => {
    const negative = x.map((v) => (v > 0 ? -v : v));
    const y = apply("float32", 1, [negative], expOfNegativeF32);
    negative.forEach((v, i) => {
      const exact = Math.exp(v), got = y[i] ?? NaN;
      if (Number.isNaN(v)) expect(got).toBeNaN();
      else if (exact < 2 ** -126) expect(got).toBeLessThanOrEqual(2 ** -126);
      else if (Math.abs(got - exact) > exact * (2 - v) * 2 ** -23) expect(got, `exp(${v})`).toBe(exact);
    });
    expect([...apply("float32", 4, [Float32Array.of(-Infinity, 0, -0, -89)], expOfNegativeF32)]).toEqual([0, 1, 1, 0]);
    expect(bitsOf(apply("float32", 4, [negative], expOfNegativeF32))).toEqual(bitsOf(y));
  });
  it("powers of two below an integer are within 2 ulp", () => {
    const below = Float32Array.from({ length: 40000 }, (_, i) => -i / 311);
    for (const top of [0, 1, -77, 1000, -largestPower, largestPower]) {
      const input = below.map((v) => v + top), y = apply("float32", 4, [input], (v) => powerOf(v ?? constant(0, i32), powerBelow(constant(top, { scalar: "f32", lanes: 4 }))));
      input.forEach((v, i) => {
        const exact = 2 ** (v - top), got = y[i] ?? NaN;
        if (exact < 2 ** -126) expect(got).toBeLessThanOrEqual(2 ** -126);
        else expect(Math.abs(got - exact), `2^(${v} - ${top})`).toBeLessThanOrEqual(exact * 2 ** -22);
      });
    }
    const zero = (v: Expr): Expr => powerOf(v, powerBelow(constant(0, v.type)));
    expect([...apply("float32", 4, [Float32Array.of(-Infinity, 0, -1, -127)], (v) => zero(v ?? constant(0, i32)))]).toEqual([0, 1, 0.5, 0]);
    expect(apply("float32", 4, [Float32Array.of(NaN, 0, 0, 0)], (v) => zero(v ?? constant(0, i32)))[0]).toBeNaN();
  });
  it("sin, cos and tan are within 0.51 ulp everywhere", () => {
    for (const [op, exact] of [["sin", Math.sin], ["cos", Math.cos], ["tan", Math.tan]] as const) {
      const y = apply("float32", 1, [x], (v) => unary(op, v));
      const { error, at } = largestError(y, x, exact);
      expect(error, `${op} at ${at}`).toBeLessThanOrEqual(0.51);
      expect(bitsOf(apply("float32", 4, [x], (v) => unary(op, v)))).toEqual(bitsOf(y));
    }
  });
  it("pow follows C", () => {
    const values = [0, -0, 1, -1, 2, -2, 3, 0.5, -0.5, -3, Infinity, -Infinity, NaN, 1e-40, 3e38, 127, -149, 2.5, 1e10];
    const a = values.flatMap((v) => values.map(() => v)), b = values.flatMap(() => values);
    while (a.length % 4) { a.push(1); b.push(1); }
    const cPow = (p: number, q: number): number => (p === 1 || q === 0 ? 1 : p === -1 && Math.abs(q) === Infinity ? 1 : p ** q);
    const inputs = [Float32Array.from(a), Float32Array.from(b)];
    const y = apply("float32", 1, inputs, (p, q) => binary("pow", p ?? constant(0, i32), q ?? 0));
    a.forEach((p, i) => { const exact = cPow(Math.fround(p), Math.fround(b[i] ?? 0)); expect(ulps(y[i] ?? NaN, exact), `${p} ** ${b[i]} = ${y[i]}, not ${exact}`).toBeLessThanOrEqual(0.51); });
    expect(bitsOf(apply("float32", 4, inputs, (p, q) => binary("pow", p ?? constant(0, i32), q ?? 0)))).toEqual(bitsOf(y));
  });
  it("pow of constant exponents", () => {
    for (const exponent of [1, 2, 3, -1, 0.5]) {
      const y = apply("float32", 4, [x], (v) => binary("pow", v, exponent));
      const { error, at } = largestError(y, x, (v) => v ** exponent);
      expect(error, `${exponent} at ${at}`).toBeLessThanOrEqual(exponent === 3 ? 1.5 : 0.51);
    }
  });
  it("rem is exact", () => {
    const a: number[] = [], b: number[] = [];
    for (const p of [0, -0, 1, 5.5, -5.5, 1e30, -3e38, 7, 1e-45, Infinity, NaN]) for (const q of [1, 3, -3, 0.1, 1e-30, 1e-45, 3e38, Infinity, 0, NaN]) { a.push(p); b.push(q); }
    while (a.length % 4) { a.push(1); b.push(1); }
    const inputs = [Float32Array.from(a), Float32Array.from(b)];
    const y = apply("float32", 1, inputs, (p, q) => binary("rem", p ?? constant(0, i32), q ?? 0));
    expect([...y]).toEqual(a.map((p, i) => Math.fround(p) % Math.fround(b[i] ?? 0)));
  });
  it("the interpreter computes the same bits as WebAssembly", () => {
    const few = spread(2 ** 22 - 3);
    for (const op of ["exp", "log", "tanh", "erf", "gelu", "silu"] as const) expect([...apply("float32", 4, [few], (v) => unary(op, v), "interpreted")]).toEqual([...apply("float32", 4, [few], (v) => unary(op, v))]);
  });
  it("a polynomial cut short is found out", () => {
    const cut: BinaryOp = "add";
    const y = apply("float32", 1, [x], (v) => binary(cut, unary("exp", v), constant(1e-6, v.type)));
    expect(largestError(y, x, Math.exp).error).toBeGreaterThan(1.01);
  });
});

describe("float64 functions", () => {
  const x = new Float64Array(40_000);
  for (let i = 0; i < x.length; i++) x[i] = (i % 2 ? 1 : -1) * 2 ** ((i / x.length) * 40 - 30) * (1 + ((i * 7919) % 1000) / 1000);
  x.set([0, -0, 1, -1, Infinity, -Infinity, NaN, 709.7, -745, 710, 5e-324, 1e308]);
  const all: readonly [UnaryOp, (x: number) => number][] = [
    ["exp", Math.exp], ["log", Math.log], ["tanh", Math.tanh], ["erf", erf], ["asin", Math.asin], ["acos", Math.acos], ["atan", Math.atan],
    ["sinh", Math.sinh], ["cosh", Math.cosh], ["asinh", Math.asinh], ["acosh", Math.acosh], ["atanh", Math.atanh],
  ];
  for (const [op, exact] of all) {
    it(`${op} is within 2e-15`, () => {
      const y = apply("float64", 1, [x], (v) => unary(op, v));
      for (let i = 0; i < x.length; i++) {
        const want = exact(x[i] ?? NaN), got = y[i] ?? NaN;
        const fine = Object.is(want, got) || Math.abs(got - want) <= 2e-15 * Math.abs(want) + 5e-324 || (Number.isNaN(want) && Number.isNaN(got));
        if (!fine) expect(got, `${op}(${x[i]})`).toBe(want);
      }
    });
  }
  it("sin and cos", () => {
    for (const [op, exact] of [["sin", Math.sin], ["cos", Math.cos]] as const) {
      const small = x.filter((v) => Math.abs(v) <= 2 ** 20);
      const y = apply("float64", 1, [small], (v) => unary(op, v));
      small.forEach((v, i) => expect(Math.abs((y[i] ?? NaN) - exact(v))).toBeLessThanOrEqual(3e-16));
    }
  });
});
