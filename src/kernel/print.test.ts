import { expect, test } from "vitest";
import { add, axisOf, constant, f32, i32, load, local, mul, type Axis, type Buffer, type Expr } from "./expr.ts";
import { buildLoops } from "./hoist.ts";
import type { Kernel } from "./kernel.ts";
import { canonicalKernel, printKernel } from "./print.ts";
import { ExprTable } from "./share.ts";
import { block, letLocal, loop } from "./stmt.ts";
import { verifyKernel } from "./verify.ts";

function scale(names: { x: string; y: string; i: string }, by: number): Kernel {
  const x: Buffer = { name: names.x, dtype: "float32", shape: [4] }, y: Buffer = { name: names.y, dtype: "float32", shape: [4] };
  const i: Axis = { name: names.i, extent: 4 };
  const body = buildLoops(new ExprTable(), [{ axes: [i], buffer: y, indices: [axisOf(i)], value: mul(load(x, [axisOf(i)]), by) }]);
  return { name: "scale", inputs: [x], outputs: [y], scratch: [], body };
}

test("a kernel reads as loops", () => {
  expect(printKernel(scale({ x: "x", y: "y", i: "i" }, 2))).toBe(
    "kernel scale(x: float32[4]) -> (y: float32[4]) {\n  for (i = 0; i < 4; i++) {\n    y[i] = x[i] * 2.0\n  }\n}");
});
test("kernels that differ in names only have one canonical text, others do not", () => {
  const text = (k: Kernel): string => canonicalKernel(k).text;
  expect(text(scale({ x: "x", y: "y", i: "i" }, 2))).toBe(text(scale({ x: "a", y: "b", i: "j" }, 2)));
  expect(text(scale({ x: "x", y: "y", i: "i" }, 2))).not.toBe(text(scale({ x: "x", y: "y", i: "i" }, 3)));
});

test("the verifier finds what it is for", () => {
  const good = scale({ x: "x", y: "y", i: "i" }, 2);
  verifyKernel(good);
  const [x] = good.inputs, [y] = good.outputs;
  if (!x || !y) throw new Error("buffers");
  const i: Axis = { name: "i", extent: 4 };
  const store = (index: Expr, value: Expr): Kernel["body"] => loop(i, constant(0, i32), constant(4, i32), 1, { kind: "store", buffer: y, indices: [index], value });
  const one = constant(1, f32);
  expect(() => verifyKernel({ ...good, outputs: [x, y] })).toThrow("output x is not written");
  expect(() => verifyKernel({ ...good, body: store(add(axisOf(i), 4), one) })).toThrow("outside dimension 0");
  expect(() => verifyKernel({ ...good, body: store(axisOf(i), axisOf(i)) })).toThrow("stored i32");
  expect(() => verifyKernel({ ...good, body: store(axisOf(i), local("t", f32)) })).toThrow("t is not declared");
  expect(() => verifyKernel({ ...good, inputs: [], body: store(axisOf(i), load(x, [axisOf(i)])) })).toThrow("not listed");
  expect(() => verifyKernel({ ...good, body: block(letLocal("t", one), letLocal("t", one), good.body) })).toThrow("declared twice");
});
