import { expect, it } from "vitest";
import { dimMul } from "../core/dim.ts";
import { AlikeKernels } from "./alike.ts";
import { add, axisOf, constant, dimExpr, i32, load, mul, type Axis, type Buffer, type Expr } from "./expr.ts";
import { rowMajor, type Kernel } from "./kernel.ts";
import { inPhases } from "./phases.ts";
import { printKernel } from "./print.ts";
import { loop } from "./stmt.ts";
import { visitExprsOf } from "./traverse.ts";

const buffer = (name: string, size = 8): Buffer => ({ name, dtype: "float32", shape: [size] });
/** y[i] = value(x[i]) */
function kernel(name: string, x: Buffer, y: Buffer, value: (x: Expr) => Expr): Kernel {
  const i: Axis = { name: "i", extent: 8 };
  return { name, inputs: [x], outputs: [y], scratch: [], body: loop(i, constant(0, i32), dimExpr(8), 1, { kind: "store", buffer: y, indices: [axisOf(i)], value: value(load(x, [axisOf(i)])) }) };
}
const counted = (change: (k: Kernel) => Kernel): { alike: AlikeKernels; calls: () => number } => {
  let calls = 0;
  return { alike: new AlikeKernels((b) => rowMajor(b.shape, dimMul), (k) => { calls++; return { kernel: change(k) }; }), calls: () => calls };
};
const [a, b, c, d] = ["a", "b", "c", "d"].map((n) => buffer(n)) as [Buffer, Buffer, Buffer, Buffer];

it("changes the loops of kernels that are alike once, each over its own buffers", () => {
  const { alike, calls } = counted((k) => inPhases(k));
  const first = alike.changed(kernel("k", a, b, (x) => mul(x, x))), second = alike.changed(kernel("l", c, d, (x) => mul(x, x)));
  expect(calls()).toBe(1);
  expect(printKernel(second)).toBe(printKernel(kernel("l", c, d, (x) => mul(x, x))));
  expect(second.phases?.[0]?.like).toBe(first.phases?.[0]);
  const read = new Set<Buffer>();
  visitExprsOf(second.body, (e) => { if (e.kind === "load") read.add(e.buffer); });
  expect([...read]).toEqual([c]);
});

it("gives each kernel working memory of its own, where the change adds some", () => {
  const { alike } = counted((k) => { const row = buffer("row"); return { ...k, scratch: [...k.scratch, row], body: { kind: "store", buffer: row, indices: [constant(0, i32)], value: load(row, [constant(1, i32)]) } }; });
  const all = [alike.changed(kernel("k", a, b, (x) => mul(x, x))), alike.changed(kernel("l", c, d, (x) => mul(x, x)))];
  expect(all.map((k) => k.scratch.length)).toEqual([1, 1]);
  expect(all[0]?.scratch[0]).not.toBe(all[1]?.scratch[0]);
  for (const k of all) {
    const used = new Set<Buffer | undefined>(k.body.kind === "store" ? [k.body.buffer] : []);
    visitExprsOf(k.body, (e) => { if (e.kind === "load") used.add(e.buffer); });
    expect([...used]).toEqual([k.scratch[0]]);
  }
});

it("keeps apart what differs: an operation, what is shared, a size, which buffer stands where, or that it works in place", () => {
  const { alike, calls } = counted((k) => k), square = (x: Expr): Expr => mul(x, x);
  const other = (k: Kernel): void => { const before = calls(); alike.changed(k); expect(calls()).toBe(before + 1); };
  other(kernel("k", a, b, square));
  other(kernel("k", c, d, (x) => add(x, x)));
  other(kernel("k", c, d, (x) => mul(x, { ...x })));
  other(kernel("k", buffer("e", 9), d, square));
  other({ ...kernel("k", a, b, square), inputs: [a, c] });
  other({ ...kernel("k", a, c, square), inputs: [c, a] });
  other({ ...kernel("k", c, d, square), inPlace: [{ input: c, output: d }] });
});
