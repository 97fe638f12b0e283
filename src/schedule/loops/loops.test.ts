import { describe, expect, it } from "vitest";
import { symbol, type Dim } from "../../core/dim.ts";
import { dtypes, isFloat, isStorageOnly, type DType } from "../../core/dtype.ts";
import { add, and, axisOf, binary, cast, computeScalar, constant, dimExpr, div, exp, ge, i32, load, lt, mul, rem, scalarType, select, sub, reduce, unary, type Axis, type Buffer, type Expr } from "../../kernel/expr.ts";
import type { Kernel, Layout } from "../../kernel/kernel.ts";
import { printKernel } from "../../kernel/print.ts";
import { buffer, check, dense, mapKernel, memoryFor, outputsOf, over } from "../../../test/support/check-kernel.ts";
import { layOut, runInterpreted } from "../../../test/support/run-kernel.ts";

const sizes = [0, 1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 33];

describe("element-wise kernels", () => {
  it("run in vectors over joined axes, static and symbolic", () => {
    const n = symbol("n");
    for (const size of sizes) {
      const shape = (d: Dim): Dim[] => [2, d, 3];
      for (const d of [size, n] as Dim[]) {
        const x = buffer("x", "float32", shape(d)), y = buffer("y", "float32", shape(d)), out = buffer("out", "float32", shape(d));
        const kernel = mapKernel([x, y], out, (...at) => binary("pmax", add(load(x, at), load(y, at)), constant(0, scalarType("f32"))));
        const outcome = check(kernel, { sizes: { n: size } });
        if (size > 1) expect(outcome.vectors).toBe(true);
      }
    }
  });
  it("broadcast, transpose and convert layouts", () => {
    const shapes: [number, number, number][] = [[2, 3, 5], [4, 4, 4], [3, 8, 9], [1, 16, 7], [5, 1, 6], [8, 12, 16]];
    for (const [a, b, c] of shapes) {
      const x = buffer("x", "float32", [a, b, c]), bias = buffer("bias", "float32", [b, 1]), row = buffer("row", "float32", [c]);
      const out = buffer("out", "float32", [c, a, b]);
      check(mapKernel([x, bias, row], out, (k, i, j) => add(mul(load(x, [i ?? k, j ?? k, k].map((e) => e ?? constant(0, i32)) as Expr[]), load(bias, [j ?? k, constant(0, i32)] as Expr[])), load(row, [k ?? constant(0, i32)]))));
      const nhwc = (buf: Buffer): Layout => (buf.name === "x" ? { strides: [b * c, 1, b], offset: 0 } : dense(buf));
      const same = buffer("same", "float32", [a, b, c]);
      check(mapKernel([x], same, (...at) => unary("neg", load(x, at))), { layoutOf: nhwc });
    }
  });
  it("transposes in blocks", () => {
    const x = buffer("x", "float32", [32, 40]), out = buffer("out", "float32", [40, 32]);
    const { scheduled } = check(mapKernel([x], out, (i, j) => load(x, [j, i].map((e) => e ?? constant(0, i32)))));
    expect(printKernel(scheduled)).toContain("shuffle");
  });
  it("concatenate, pad and reverse", () => {
    for (const [p, q] of [[3, 5], [8, 8], [1, 16], [13, 4]] as const) for (const axis of [0, 1]) {
      const shape = (n: number): number[] => (axis === 0 ? [n, 9] : [3, n]);
      const x = buffer("x", "float32", shape(p)), y = buffer("y", "float32", shape(q)), out = buffer("out", "float32", shape(p + q));
      check(mapKernel([x, y], out, (i, j) => {
        const at = [i, j].map((e) => e ?? constant(0, i32));
        const shifted = at.map((e, d) => (d === axis ? sub(e, p) : e));
        return select(lt(at[axis] ?? 0, p), load(x, at), load(y, shifted));
      }));
    }
    const n = symbol("n");
    const x = buffer("x", "float32", [2, n]), out = buffer("out", "float32", [2, n]);
    for (const size of [1, 4, 9]) {
      check(mapKernel([x], out, (i, j) => select(and(ge(sub(j ?? 0, 1), 0), lt(sub(j ?? 0, 1), dimExpr(n))), load(x, [i ?? constant(0, i32), sub(j ?? 0, 1)]), 0.25)), { sizes: { n: size } });
      check(mapKernel([x], out, (i, j) => load(x, [i ?? constant(0, i32), sub(sub(dimExpr(n), 1), j ?? 0)])), { sizes: { n: size } });
    }
  });
  it("reshape across other layouts", () => {
    const x = buffer("x", "float32", [2, 6, 4, 5]), out = buffer("out", "float32", [2, 24, 5]);
    const strided = (b: Buffer): Layout => (b.name === "x" ? { strides: [120, 1, 30, 6], offset: 0 } : dense(b));
    for (const layoutOf of [dense, strided]) check(mapKernel([x], out, (n, c, w) => load(x, [n, div(c ?? 0, 4), rem(c ?? 0, 4), w].map((e) => e ?? constant(0, i32)))), { layoutOf });
  });
  it("every dtype", () => {
    const computed: DType[] = ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "bool"];
    for (const dtype of computed) {
      const x = buffer("x", dtype, [3, 11]), out = buffer("out", dtype, [3, 11]);
      check(mapKernel([x], out, (...at) => { const v = load(x, at); return dtype === "bool" ? unary("not", v) : add(v, mul(v, v)); }));
      for (const to of computed) {
        const other = buffer("other", to, [3, 11]);
        check(mapKernel([x], other, (...at) => cast(load(x, at), computeScalar(to))), dtype === "float64" || dtype.endsWith("t16") || dtype === "float32" ? { fill: (_, i) => (i * 37) % 120 - (to.startsWith("u") ? 0 : 60) } : {});
      }
    }
  });
  it("dtypes that are only stored", () => {
    const special = [0, -0, NaN, Infinity, -Infinity, 448, 464, 465, -240, 248, 57344, 61440, 1e30, 2 ** -10, 3 * 2 ** -17, 1e-40, 2 ** -127, -5.1, 0.25, 0.75];
    const fill = (_: Buffer, i: number): number => (i < special.length ? special[i] ?? 0 : Math.sin(i) * 2 ** ((i % 40) - 20));
    for (const dtype of (Object.keys(dtypes) as DType[]).filter(isStorageOnly)) {
      const x = buffer("x", isFloat(dtype) ? "float32" : "int32", [3, 67]), small = buffer("small", dtype, [3, 67]), out = buffer("out", dtype, [3, 67]), wide = buffer("wide", x.dtype, [3, 67]);
      const options = isFloat(dtype) ? { fill } : { fill: (_: Buffer, i: number): number => i - 90 };
      check(mapKernel([x], small, (...at) => load(x, at)), options);
      check(mapKernel([small], wide, (...at) => load(small, at)), options);
      expect(check(mapKernel([small], out, (...at) => load(small, at)), options).vectors).toBe(true);
    }
  });
  it("quantize and dequantize", () => {
    const x = buffer("x", "float32", [2, 5, 9]), scale = buffer("scale", "float32", [1]), zero = buffer("zero", "uint8", [1]), out = buffer("out", "uint8", [2, 5, 9]);
    const z = constant(0, i32);
    const outcome = check(mapKernel([x, scale, zero], out, (...at) => cast(binary("pmin", constant(255, scalarType("f32")), binary("pmax", constant(0, scalarType("f32")), add(unary("nearest", div(load(x, at), load(scale, [z]))), cast(load(zero, [z]), "f32")))), "i32")), { fill: (b, i) => (b.name === "scale" ? 0.01 : b.name === "zero" ? 114 : Math.sin(i) * 3) });
    expect(outcome.vectors).toBe(true);
    check(mapKernel([out, scale, zero], x, (...at) => mul(cast(sub(load(out, at), load(zero, [z])), "f32"), load(scale, [z]))));
  });
  it("gathers rows and elements", () => {
    const ids = buffer("ids", "int64", [7]), weight = buffer("weight", "float32", [11, 6]), rows = buffer("rows", "float32", [7, 6]), picked = buffer("picked", "float32", [11, 7]);
    const fill = (b: Buffer, i: number): number => (b.name === "ids" ? (i * 5) % 6 : i);
    check(mapKernel([ids, weight], rows, (i, j) => load(weight, [cast(load(ids, [i ?? constant(0, i32)]), "i32"), j ?? constant(0, i32)])), { fill });
    check(mapKernel([ids, weight], picked, (i, j) => load(weight, [i ?? constant(0, i32), cast(load(ids, [j ?? constant(0, i32)]), "i32")])), { fill });
  });
});

describe("reductions", () => {
  const rowKernel = (x: Buffer, out: Buffer): Kernel => {
    const [rows = 1, columns = 1] = x.shape;
    const i: Axis = { name: "i", extent: rows };
    const row = (k: Expr): Expr => load(x, [axisOf(i), k]);
    const largest = reduce("max", [columns], (k) => row(k));
    const total = reduce("add", [columns], (k) => exp(sub(row(k ?? 0), largest)));
    const j: Axis = { name: "j", extent: columns };
    return { name: "softmax", inputs: [x], outputs: [out], scratch: [], body: over([i, j], { kind: "store", buffer: out, indices: [axisOf(i), axisOf(j)], value: div(exp(sub(row(axisOf(j)), largest)), total) }) };
  };
  it("of rows, along contiguous and strided memory", () => {
    const n = symbol("n");
    for (const size of sizes) for (const columns of [size, n] as Dim[]) {
      const x = buffer("x", "float32", [3, columns]), out = buffer("out", "float32", [3, columns]);
      const fill = (_: Buffer, i: number): number => Math.sin(i) * 5;
      check(rowKernel(x, out), { sizes: { n: size }, fill }, 1e-6);
      const turned = (): Layout => ({ strides: [1, 3], offset: 0 });
      check(rowKernel(x, out), { sizes: { n: size }, fill, layoutOf: turned }, 1e-6);
    }
  });
  it("propagate NaN and infinities", () => {
    const x = buffer("x", "float32", [6, 21]), out = buffer("out", "float32", [6]);
    for (const op of ["max", "min"] as const) check(mapKernel([x], out, (i) => reduce(op, [21], (k) => load(x, [i ?? constant(0, i32), k ?? constant(0, i32)]))));
    const whole = buffer("whole", "int32", []);
    const ints = buffer("ints", "int32", [6, 21]);
    for (const op of ["add", "mul", "max", "min"] as const) check(mapKernel([ints], whole, () => reduce(op, [6, 21], (i, k) => load(ints, [i, k].map((e) => e ?? constant(0, i32))))));
  });
  it("over windows with borders, in both layouts", () => {
    for (const [channels, size] of [[8, 7], [3, 6], [5, 12]] as const) for (const layout of ["nchw", "nhwc"]) for (const dtype of ["float32", "uint8"] as const) {
      const x = buffer("x", dtype, [1, channels, size, size]), half = Math.floor((size + 1) / 2), out = buffer("out", dtype, [1, channels, half, half]);
      const scalar = scalarType(computeScalar(dtype));
      const lowest = constant(dtype === "uint8" ? 0 : -Infinity, scalar);
      const kernel = mapKernel([x], out, (n, c, h, w) => reduce("max", [3, 3], (p, q) => {
        const y = sub(add(mul(h ?? 0, 2), p ?? 0), 1), z = sub(add(mul(w ?? 0, 2), q ?? 0), 1);
        const inside = and(and(ge(y, 0), lt(y, size)), and(ge(z, 0), lt(z, size)));
        return select(inside, load(x, [n ?? y, c ?? y, y, z]), lowest);
      }, lowest.kind === "const" ? lowest.value : 0));
      const nhwc = (b: Buffer): Layout => { const [, c = 1, h = 1, w = 1] = b.shape.map(Number); return { strides: [c * h * w, 1, w * c, c], offset: 0 }; };
      check(kernel, layout === "nhwc" ? { layoutOf: nhwc } : {});
    }
  });
  it("a wrong schedule is found out", () => {
    const x = buffer("x", "float32", [9]), out = buffer("out", "float32", [9]);
    const kernel = mapKernel([x], out, (i) => load(x, [i ?? constant(0, i32)]));
    const run = layOut(kernel, dense, () => 0);
    const wrong = { ...kernel, body: mapKernel([x], out, (i) => add(load(x, [i ?? constant(0, i32)]), 1)).body };
    const memory = memoryFor(kernel, run, {});
    expect(outputsOf(kernel, run, runInterpreted(wrong, run, memory))).not.toEqual(outputsOf(kernel, run, runInterpreted(kernel, run, memory)));
  });
});
