/** The stripes of XXH32 as WebAssembly: its four lanes are those of a vector, so that code no engine has optimised yet is quick too. */
import { encodeModule, FunctionBuilder } from "../../src/backends/wasm/assembler.ts";
import { instructionSet } from "../../src/backends/wasm/opcodes.ts";

const p1 = 0x9e3779b1, p2 = 0x85ebca77;

/** Exports `memory`, one page, and `stripes(from, to)`, which adds the bytes there, whole stripes and at least one, to the lanes at 0. */
export function checksumModule(): Uint8Array {
  const f = new FunctionBuilder("stripes", { params: ["i32", "i32"], results: [] }, instructionSet()), lanes = f.local("v128");
  const splat = (word: number): void => { f.constant("i32", word | 0); f.op("i32x4.splat"); };
  const shifted = (op: string, by: number): void => { f.get(lanes); f.constant("i32", by); f.op(op); };
  f.constant("i32", 0);
  f.memory("v128.load", 0);
  f.setLocal(lanes);
  f.begin("loop");
  f.get(0);
  f.memory("v128.load", 0);
  splat(p2);
  f.op("i32x4.mul");
  f.get(lanes);
  f.op("i32x4.add");
  f.setLocal(lanes);
  shifted("i32x4.shl", 13);
  shifted("i32x4.shr_u", 19);
  f.op("v128.or");
  splat(p1);
  f.op("i32x4.mul");
  f.setLocal(lanes);
  f.get(0);
  f.constant("i32", 16);
  f.op("i32.add");
  f.tee(0);
  f.get(1);
  f.op("i32.lt_u");
  f.branch("br_if", 0);
  f.end();
  f.constant("i32", 0);
  f.get(lanes);
  f.memory("v128.store", 0);
  return encodeModule({ functions: [f], memoryPages: 1, exports: [{ name: f.name, function: 0 }] });
}
