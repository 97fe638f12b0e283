/** Winograd's transform of 3x3 kernels, F(4x4,3x3), as WebAssembly: two kernels at a time, the same operations in the same order as memory/winograd-kernels.ts has them. */
import { encodeModule, FunctionBuilder } from "../../src/backends/wasm/assembler.ts";
import { instructionSet } from "../../src/backends/wasm/opcodes.ts";

/** Pushes a value. */
type Value = () => void;

/**
 * Exports `memory`, four pages of which the first 288 bytes are its own, and `transform(from, next, count, to, step,
 * cell)`: `count` pairs of kernels, the first ones at `from` and at `from + next`, 36 bytes after each the next; their
 * cells as pairs of float32, `cell` bytes apart, those of each pair `step` bytes after those of the one before.
 */
export function winogradModule(): Uint8Array {
  const f = new FunctionBuilder("transform", { params: ["i32", "i32", "i32", "i32", "i32", "i32"], results: [] }, instructionSet());
  const [from, next, count, to, step, cell] = [0, 1, 2, 3, 4, 5] as const, at = f.local("i32"), half = f.local("i32"), pair = f.local("v128");
  const splat = (x: number): Value => () => { f.constant("f64", x); f.op("f64x2.splat"); };
  const of = (op: "add" | "sub" | "mul" | "div", a: Value, b: Value): Value => () => { a(); b(); f.op(`f64x2.${op}`); };
  const kept = (local: number, value: Value): Value => { value(); f.setLocal(local); return () => f.get(local); };
  const add = (local: number, by: Value): void => { f.get(local); by(); f.op("i32.add"); f.setLocal(local); };
  const constant = (x: number): Value => () => f.constant("i32", x);
  const locals = Array.from({ length: 7 }, () => f.local("v128")) as [number, number, number, number, number, number, number];

  /** G times a column of three. */
  const transformed = (values: readonly [Value, Value, Value]): readonly Value[] => {
    const a = kept(locals[0], values[0]), b = kept(locals[1], values[1]), d = kept(locals[2], values[2]);
    const outer = kept(locals[3], of("div", of("add", a, d), splat(-6))), middle = kept(locals[4], of("div", b, splat(6)));
    const near = kept(locals[5], of("add", of("div", a, splat(24)), of("div", d, splat(6)))), far = kept(locals[6], of("div", b, splat(12)));
    return [of("div", a, splat(4)), of("sub", outer, middle), of("add", outer, middle), of("add", near, far), of("sub", near, far), d];
  };
  /** A loop while `local`, which goes up by `by`, is less than `end`. */
  const loop = (local: number, by: number, end: number, body: () => void): void => {
    f.constant("i32", 0);
    f.setLocal(local);
    f.begin("loop");
    body();
    add(local, constant(by));
    f.get(local);
    f.constant("i32", end);
    f.op("i32.lt_u");
    f.branch("br_if", 0);
    f.end();
  };
  /** An element of both kernels, in the column that `half` stands at. */
  const loaded = (offset: number): Value => () => {
    f.get(at);
    f.memory("v128.load32_zero", offset);
    f.setLocal(pair);
    f.get(at);
    f.get(next);
    f.op("i32.add");
    f.get(pair);
    f.memory("v128.load32_lane", offset, 1);
    f.op("f64x2.promote_low_f32x4");
  };

  f.begin("loop");
  f.get(from);
  f.setLocal(at);
  loop(half, 16, 48, () => {
    transformed([loaded(0), loaded(12), loaded(24)]).forEach((value, row) => {
      f.get(half);
      value();
      f.memory("v128.store", 48 * row);
    });
    add(at, constant(4));
  });
  f.get(to);
  f.setLocal(at);
  const column = (x: number): Value => () => { f.get(half); f.memory("v128.load", 16 * x); };
  loop(half, 48, 288, () => {
    for (const value of transformed([column(0), column(1), column(2)])) {
      f.get(at);
      value();
      f.op("f32x4.demote_f64x2_zero");
      f.memory("v128.store64_lane", 0, 0);
      add(at, () => f.get(cell));
    }
  });
  add(from, constant(36));
  add(to, () => f.get(step));
  f.get(count);
  f.constant("i32", -1);
  f.op("i32.add");
  f.tee(count);
  f.branch("br_if", 0);
  f.end();
  return encodeModule({ functions: [f], memoryPages: 4, exports: [{ name: f.name, function: 0 }] });
}
