import { describe, expect, it } from "vitest";
import { dimMul, symbol } from "../../core/dim.ts";
import { add, axisOf, cast, constant, dimExpr, eq, f32, i32, load, lt, mul, select, sub, sum, type Axis, type Buffer, type Expr } from "../../kernel/expr.ts";
import { rowMajor, type Kernel } from "../../kernel/kernel.ts";
import { loop, type Stmt } from "../../kernel/stmt.ts";
import { legalize } from "../../schedule/legal/legalize.ts";
import { dimsOf, layOut, runCompiled, runInterpreted } from "../../../test/support/run-kernel.ts";

const dense = (b: Buffer) => rowMajor(b.shape, dimMul);
const over = (axes: readonly Axis[], body: Stmt): Stmt => [...axes].reverse().reduce((s, a) => loop(a, constant(0, i32), dimExpr(a.extent), 1, s), body);
const kernel = (inputs: Buffer[], output: Buffer, axes: Axis[], value: Expr): Kernel => ({
  name: "k", inputs, outputs: [output], scratch: [], body: over(axes, { kind: "store", buffer: output, indices: axes.map(axisOf), value }),
});

function check(k: Kernel, fill: (memory: ArrayBuffer, address: (b: Buffer) => number) => void, binding: (s: string) => number = () => 0): void {
  const first = layOut(k, dense, binding);
  const legal = legalize(k, first.placements);
  const run = layOut(k, dense, binding, dimsOf(legal, first.placements));
  const memory = new ArrayBuffer(run.bytes);
  fill(memory, (b) => run.places.get(b)?.address ?? -1);
  const before = new Uint8Array(memory);
  const naive = runInterpreted(k, run, before);
  expect(runInterpreted(legal, run, before)).toEqual(naive);
  const compiled = runCompiled(legal, run, before).memory;
  compiled.set(naive.subarray(0, 128), 0);
  expect(compiled).toEqual(naive);
}

describe("emitModule", () => {
  it("runs kernels with symbolic sizes, selects and reductions", () => {
    const n = symbol("n");
    const x: Buffer = { name: "x", dtype: "float32", shape: [n, 5] }, y: Buffer = { name: "y", dtype: "float32", shape: [n, 5] };
    const i: Axis = { name: "i", extent: n }, j: Axis = { name: "j", extent: 5 };
    const at = sub(axisOf(i), 1);
    const value = add(select(lt(at, 0), constant(0.5, f32), load(x, [at, axisOf(j)])), sum([5], (k) => mul(load(x, [axisOf(i), k]), cast(k, "f32"))));
    for (const size of [0, 1, 7]) check(kernel([x], y, [i, j], value), (memory, address) => { for (let k = 0; k < 5 * size; k++) new Float32Array(memory)[address(x) / 4 + k] = Math.fround(Math.sin(k)); }, () => size);
  });
  it("agrees with the interpreter on integers of every width", () => {
    for (const dtype of ["int8", "uint8", "int16", "uint16", "int32", "uint32"] as const) {
      const x: Buffer = { name: "x", dtype, shape: [9] }, y: Buffer = { name: "y", dtype, shape: [9] };
      const i: Axis = { name: "i", extent: 9 };
      const v = load(x, [axisOf(i)]);
      const k = kernel([x], y, [i], add(mul(v, v), select(eq(v, 0), 7, v)));
      check(k, (memory) => new Uint8Array(memory).forEach((_, b, bytes) => { bytes[b] = (b * 37 + 11) & 255; }));
    }
  });
});
