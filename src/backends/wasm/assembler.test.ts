import { setFlagsFromString } from "node:v8";
import { describe, expect, it } from "vitest";
import { encodeModule, FunctionBuilder, type ModuleSpec, type ValueType } from "./assembler.ts";
import { instructionSet, signed, unsigned } from "./opcodes.ts";
import { printModule } from "./print.ts";

// Node 20 knows the relaxed instructions only when asked; newer versions ignore the flag.
setFlagsFromString("--experimental-wasm-relaxed-simd");
const set = instructionSet();
const moduleOf = (build: (f: FunctionBuilder) => void, params: ValueType[] = [], results: ValueType[] = []): ModuleSpec => {
  const f = new FunctionBuilder("f", { params, results }, set);
  build(f);
  return { functions: [f], memoryPages: 1, exports: [{ name: "f", function: 0 }] };
};
const run = (spec: ModuleSpec, ...args: (number | bigint)[]): unknown => {
  const f = new WebAssembly.Instance(new WebAssembly.Module(encodeModule(spec))).exports["f"];
  return typeof f === "function" ? f(...args) : undefined;
};

describe("LEB128", () => {
  it("encodes what the specification's examples say", () => {
    expect(unsigned(624485)).toEqual([0xe5, 0x8e, 0x26]);
    expect(unsigned(0)).toEqual([0]);
    expect(unsigned(2 ** 32 - 1)).toEqual([0xff, 0xff, 0xff, 0xff, 0x0f]);
    expect(signed(-123456n)).toEqual([0xc0, 0xbb, 0x78]);
    expect(signed(64n)).toEqual([0xc0, 0x00]);
    expect(signed(-64n)).toEqual([0x40]);
    expect(signed(-(2n ** 63n)).length).toBe(10);
  });
});

describe("instructions", () => {
  it("are all known to the engine under their opcodes", () => {
    // After `unreachable` the stack gives whatever an instruction wants.
    for (const op of set.values()) {
      const spec = moduleOf((f) => {
        f.op("unreachable");
        if (op.immediates === "none") f.op(op.name);
        else if (op.immediates === "lane") f.lane(op.name, 0);
        else f.memory(op.name, 16, op.immediates === "memoryLane" ? 0 : undefined);
        f.op("unreachable");
      });
      expect(WebAssembly.validate(encodeModule(spec)), op.name).toBe(true);
    }
  });
  it("an opcode that is none is refused", () => {
    const spec = moduleOf((f) => { f.op("unreachable"); f.instructions.push({ kind: "plain", op: { name: "none", bytes: [0xfd, 0x9a, 0x01], immediates: "none", align: 0 } }); f.op("unreachable"); });
    expect(WebAssembly.validate(encodeModule(spec))).toBe(false);
  });
  it("compute what they are called after", () => {
    const sum = moduleOf((f) => { f.get(0); f.get(1); f.op("i32.add"); }, ["i32", "i32"], ["i32"]);
    expect(run(sum, 40, 2)).toBe(42);
    const dot = moduleOf((f) => {
      f.vector([1, 0, 2, 0, 3, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
      f.vector([5, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
      f.op("i32x4.dot_i16x8_s");
      f.lane("i32x4.extract_lane", 0);
    }, [], ["i32"]);
    expect(run(dot)).toBe(17);
    const shuffled = moduleOf((f) => {
      f.vector(Array.from({ length: 16 }, (_, i) => i));
      f.vector(Array.from({ length: 16 }, (_, i) => 100 + i));
      f.shuffle([16, 0, 1, 17, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
      f.lane("i8x16.extract_lane_u", 3);
    }, [], ["i32"]);
    expect(run(shuffled)).toBe(101);
    expect(run(moduleOf((f) => { f.constant("i64", -(2n ** 40n)); }, [], ["i64"]))).toBe(-(2n ** 40n));
    expect(run(moduleOf((f) => { f.constant("f32", -0); f.op("f64.promote_f32"); }, [], ["f64"]))).toBe(-0);
  });
  it("count in loops, branch and store", () => {
    // The sum of 0 … n - 1, kept in memory.
    const spec = moduleOf((f) => {
      const i = f.local("i32");
      f.begin("block");
      f.begin("loop");
      f.get(i); f.get(0); f.op("i32.ge_s"); f.branch("br_if", 1);
      f.constant("i32", 8); f.constant("i32", 8); f.memory("i32.load", 4); f.get(i); f.op("i32.add"); f.memory("i32.store", 4);
      f.get(i); f.constant("i32", 1); f.op("i32.add"); f.setLocal(i);
      f.branch("br", 0);
      f.end();
      f.end();
      f.constant("i32", 12); f.memory("i32.load", 0);
    }, ["i32"], ["i32"]);
    expect(run(spec, 10)).toBe(45);
  });
});

describe("text", () => {
  it("shows the same function", () => {
    const spec = moduleOf((f) => {
      const t = f.local("v128");
      f.get(0);
      f.op("f32x4.splat");
      f.setLocal(t);
      f.get(t);
      f.begin("if");
      f.constant("f32", Infinity);
      f.op("drop");
      f.end();
    }, ["f32"]);
    expect(printModule(spec)).toBe(`(module
  (memory (export "memory") 1)
  (func $f_0 (export "f") (param f32)
    (local v128)
    local.get 0
    f32x4.splat
    local.tee 1
    if
      f32.const inf
      drop
    end
  )
)
`);
  });
});
