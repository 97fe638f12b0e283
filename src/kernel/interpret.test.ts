import { describe, expect, it } from "vitest";
import { add, axisOf, binary, cast, constant, dimExpr, eq, exp, f32, f32x4, i32, load, local, lt, mul, reduce, select, sub, sum, unary, type Axis, type Buffer, type Expr, type Scalar } from "./expr.ts";
import { symbol } from "../core/dim.ts";
import { interpret, type BufferPlace } from "./interpret.ts";
import type { Kernel } from "./kernel.ts";
import { castNumber, castToWide, castFromWide, erf, nearestEven, numberBinary, wideBinary } from "./scalar-ops.ts";
import { assign, block, letLocal, loop, type Stmt } from "./stmt.ts";

const kernelOf = (inputs: Buffer[], outputs: Buffer[], body: Stmt): Kernel => ({ name: "k", inputs, outputs, scratch: [], body });
const places = (...entries: [Buffer, number, number[]][]): Map<Buffer, BufferPlace> => new Map(entries.map(([b, address, strides]) => [b, { address, strides }]));

describe("interpret", () => {
  const n = symbol("n");
  const x: Buffer = { name: "x", dtype: "float32", shape: [n, 3] };
  const y: Buffer = { name: "y", dtype: "float32", shape: [n] };
  const i: Axis = { name: "i", extent: n };
  const rowSum = kernelOf([x], [y], loop(i, constant(0, i32), dimExpr(n), 1, { kind: "store", buffer: y, indices: [axisOf(i)], value: sum([3], (k) => load(x, [axisOf(i), k])) }));

  it("folds reductions with symbolic sizes and any strides, rounding to f32", () => {
    const memory = new ArrayBuffer(256);
    const data = new Float32Array(memory);
    data.set([1, 2, 3, 1e8, 1, -1e8], 0);
    interpret(rowSum, memory, places([x, 0, [3, 1]], [y, 64, [1]]), () => 2);
    expect([...data.subarray(16, 18)]).toEqual([6, 0]);
    interpret(rowSum, memory, places([x, 0, [1, 2]], [y, 64, [1]]), () => 2);
    expect([...data.subarray(16, 18)]).toEqual([1 + 3 + 1, Math.fround(Math.fround(2 + 1e8) - 1e8)]);
  });

  it("refuses accesses outside a buffer's shape, but only on the side of a select that is taken", () => {
    const shifted = (guarded: boolean): Kernel => {
      const at = sub(axisOf(i), 1);
      const value = load(x, [at, constant(0, i32)]);
      return kernelOf([x], [y], loop(i, constant(0, i32), dimExpr(n), 1, { kind: "store", buffer: y, indices: [axisOf(i)], value: guarded ? select(lt(at, 0), 0, value) : value }));
    };
    const memory = new ArrayBuffer(256), at = places([x, 0, [3, 1]], [y, 64, [1]]);
    expect(() => interpret(shifted(true), memory, at, () => 4)).not.toThrow();
    expect(() => interpret(shifted(false), memory, at, () => 4)).toThrow(/x\[-1,0\] is outside \[4,3\]/);
  });

  it("runs vectors, locals and loops with steps", () => {
    const a: Buffer = { name: "a", dtype: "float32", shape: [8] };
    const out: Buffer = { name: "out", dtype: "float32", shape: [8] };
    const j: Axis = { name: "j", extent: 8 };
    const vector: Expr = { kind: "load", buffer: a, indices: [axisOf(j)], along: 0, type: f32x4 };
    const body = loop(j, constant(0, i32), constant(8, i32), 4, block(
      letLocal("t", mul(vector, 2)),
      assign("t", add(local("t", f32x4), vector)),
      { kind: "store", buffer: out, indices: [axisOf(j)], along: 0, value: select(binary("gt", local("t", f32x4), constant(9, f32x4)), local("t", f32x4), constant(0, f32x4)) },
    ));
    const memory = new ArrayBuffer(64), data = new Float32Array(memory);
    data.set([1, 2, 3, 4, 5, 6, 7, 8]);
    interpret(kernelOf([a], [out], body), memory, places([a, 0, [1]], [out, 32, [1]]));
    expect([...data.subarray(8)]).toEqual([0, 0, 0, 12, 15, 18, 21, 24]);
  });

  it("loops over reductions inside reductions", () => {
    const body = loop(i, constant(0, i32), dimExpr(n), 1, {
      kind: "store", buffer: y, indices: [axisOf(i)],
      value: sum([3], (k) => exp(sub(load(x, [axisOf(i), k]), reduce("max", [3], (l) => load(x, [axisOf(i), l]))))),
    });
    const memory = new ArrayBuffer(128), data = new Float32Array(memory);
    data.set([1, 2, 3]);
    interpret(kernelOf([x], [y], body), memory, places([x, 0, [3, 1]], [y, 64, [1]]), () => 1);
    expect(data[16]).toBeCloseTo(1 + Math.exp(-1) + Math.exp(-2), 6);
  });
});

describe("scalar operations", () => {
  it("never trap and wrap", () => {
    expect(numberBinary("div", "i32")(5, 0)).toBe(0);
    expect(numberBinary("rem", "i32")(-7, 3)).toBe(-1);
    expect(numberBinary("div", "i32")(-(2 ** 31), -1)).toBe(-(2 ** 31));
    expect(numberBinary("mul", "i32")(0x12345678, 0x12345678)).toBe(Math.imul(0x12345678, 0x12345678));
    expect(wideBinary("div", "i64")(-(2n ** 63n), -1n)).toBe(-(2n ** 63n));
    expect(wideBinary("div", "u64")(1n, 0n)).toBe(0n);
    expect(wideBinary("pow", "i64")(-3n, 3n)).toBe(-27n);
    expect(numberBinary("pow", "i32")(2, -1)).toBe(0);
  });
  it("saturate casts from floats, wrap casts between integers", () => {
    const casts: [Scalar, number, number][] = [["i32", 3e9, 2 ** 31 - 1], ["i8", -200, -128], ["u8", 255.9, 255], ["u32", -1, 0], ["i32", NaN, 0]];
    for (const [to, value, expected] of casts) if (to !== "i64" && to !== "u64") expect(castNumber("f32", to)(value)).toBe(expected);
    expect(castNumber("i32", "i8")(200)).toBe(-56);
    expect(castToWide("f64", "i64")(1e300)).toBe(2n ** 63n - 1n);
    expect(castFromWide("f32")(2n ** 60n + 2n ** 36n + 1n)).toBe(Math.fround(2 ** 60 + 2 ** 37));
    expect(castFromWide("f32")(2n ** 60n + 2n ** 36n)).toBe(2 ** 60);
  });
  it("min and max propagate NaN and order zeros; pmin and pmax pick the first", () => {
    expect(numberBinary("max", "f32")(NaN, 1)).toBeNaN();
    expect(numberBinary("min", "f32")(0, -0)).toBe(-0);
    expect(numberBinary("pmax", "f32")(0, NaN)).toBe(0);
    expect(numberBinary("pmax", "f32")(NaN, 0)).toBeNaN();
  });
  it("erf and nearest", () => {
    expect(erf(0.5)).toBeCloseTo(0.5204998778130465, 15);
    expect(erf(3)).toBeCloseTo(0.9999779095030014, 15);
    expect(erf(-0)).toBe(-0);
    expect([0.5, 1.5, -0.5, 2.5, -2.5].map(nearestEven)).toEqual([0, 2, -0, 2, -2]);
  });
  it("know their bits", () => {
    const out: Buffer = { name: "o", dtype: "int32", shape: [1] };
    const memory = new ArrayBuffer(16);
    const bits: Expr = { kind: "bitcast", a: constant(1, f32), type: i32 };
    interpret(kernelOf([], [out], { kind: "store", buffer: out, indices: [constant(0, i32)], value: add(bits, cast(eq(unary("neg", constant(0, f32)), 0), "i32")) }), memory, places([out, 0, [1]]));
    expect(new Int32Array(memory)[0]).toBe(0x3f800001);
  });
});
