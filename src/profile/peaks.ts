/**
 * What this machine reaches at best from WebAssembly on one thread: float32 operations and products of integers in registers, and bytes read from
 * the second-level cache and from memory. Small modules of our own, the best of several timings each.
 */
import { encodeModule, FunctionBuilder, type WasmFunction } from "../backends/wasm/assembler.ts";
import { supports } from "../backends/wasm/load.ts";
import { instructionSet } from "../backends/wasm/opcodes.ts";

export interface Peaks {
  /** 10⁹ float32 operations a second, a product and a sum being two. */
  readonly gflops: number;
  /** The same of narrow integers: dot products of int16, or of bytes where the engine has them. */
  readonly integerGops: number;
  /** 10⁹ bytes a second, read from a cache (256 KiB) and from memory (64 MiB). */
  readonly cacheGBs: number;
  readonly memoryGBs: number;
  /** Whether products and sums are one instruction here. */
  readonly relaxedSimd: boolean;
}

/** What a working set may have to be read from the cache. */
export const cacheBytes = 512 * 1024;
const small = 256 * 1024, large = 64 * 2 ** 20;
const chains = 12, unrolled = 8;

/** Measures for about a fifth of a second. */
export async function measurePeaks(): Promise<Peaks> {
  const relaxedSimd = supports("relaxed-simd");
  const module = encodeModule({ functions: [arithmetic(relaxedSimd), reading(), dots(relaxedSimd)], memoryPages: large / 65536, exports: [{ name: "arithmetic", function: 0 }, { name: "reading", function: 1 }, { name: "dots", function: 2 }] });
  const { instance } = await WebAssembly.instantiate(module, {});
  const { memory } = instance.exports;
  // Pages that were never written are one and the same.
  if (memory instanceof WebAssembly.Memory) new Uint8Array(memory.buffer).fill(1);
  const call = (name: string, ...args: readonly number[]): void => { const f = instance.exports[name]; if (typeof f === "function") f(...args); };
  const turns = 100_000;
  const flops = 2 * 4 * chains * turns, rounds = 32;
  return {
    gflops: flops / best(12, () => call("arithmetic", turns)) / 1e6,
    integerGops: (4 * (relaxedSimd ? 8 : 4) * chains * turns) / best(12, () => call("dots", turns)) / 1e6,
    cacheGBs: (small * rounds) / best(12, () => { for (let i = 0; i < rounds; i++) call("reading", small); }) / 1e6,
    memoryGBs: large / best(5, () => call("reading", large)) / 1e6,
    relaxedSimd,
  };
}

/** The least of several timings, in milliseconds. */
function best(times: number, work: () => void): number {
  let least = Infinity;
  for (let i = 0; i < times; i++) {
    const start = performance.now();
    work();
    least = Math.min(least, performance.now() - start);
  }
  return Math.max(least, 1e-6);
}

interface Chain {
  readonly type: "f32" | "i32";
  readonly operands: readonly [x: number, y: number];
  readonly shape: "f32x4" | "i32x4";
  /** Of a chain with x. */
  readonly product: string;
  /** Both in one, where the engine is to have it. */
  readonly fused: string | undefined;
}

/** As many independent chains of a product and a sum as registers hold. */
function chained(name: string, { type, operands, shape, product, fused }: Chain): WasmFunction {
  const f = new FunctionBuilder(name, { params: ["i32"], results: [type] }, instructionSet());
  const accumulators = Array.from({ length: chains }, () => f.local("v128")), both = operands.map((value) => {
    const local = f.local("v128");
    f.constant(type, value);
    f.op(`${shape}.splat`);
    f.setLocal(local);
    return local;
  }), [x = 0, y = 0] = both;
  f.begin("loop");
  for (const a of accumulators) {
    f.get(a);
    f.get(x);
    if (!fused) f.op(product);
    f.get(y);
    f.op(fused ?? `${shape}.add`);
    f.setLocal(a);
  }
  countDown(f);
  sumOf(f, accumulators, `${shape}.add`);
  f.lane(`${shape}.extract_lane`, 0);
  return f;
}
const arithmetic = (relaxed: boolean): WasmFunction =>
  chained("arithmetic", { type: "f32", operands: [0.999, 0.001], shape: "f32x4", product: "f32x4.mul", fused: relaxed ? "f32x4.relaxed_madd" : undefined });
/** The same of integers: every chain multiplies what it holds, taken as 8 int16 or as 16 bytes, and adds. */
const dots = (relaxed: boolean): WasmFunction =>
  chained("dots", { type: "i32", operands: [0x01020301, 3], shape: "i32x4", product: "i32x4.dot_i16x8_s", fused: relaxed ? "i32x4.relaxed_dot_i8x16_i7x16_add_s" : undefined });

/** Reads so many bytes from the memory's start, in vectors. */
function reading(): WasmFunction {
  const f = new FunctionBuilder("reading", { params: ["i32"], results: ["i32"] }, instructionSet());
  const accumulators = Array.from({ length: unrolled }, () => f.local("v128")), pointer = f.local("i32");
  f.begin("loop");
  accumulators.forEach((a, i) => {
    f.get(pointer);
    f.memory("v128.load", 16 * i);
    f.get(a);
    f.op("v128.or");
    f.setLocal(a);
  });
  f.get(pointer);
  f.constant("i32", 16 * unrolled);
  f.op("i32.add");
  f.tee(pointer);
  f.get(0);
  f.op("i32.lt_u");
  f.branch("br_if", 0);
  f.end();
  sumOf(f, accumulators, "v128.or");
  f.lane("i32x4.extract_lane", 0);
  return f;
}

function countDown(f: FunctionBuilder): void {
  f.get(0);
  f.constant("i32", 1);
  f.op("i32.sub");
  f.tee(0);
  f.branch("br_if", 0);
  f.end();
}

/** All of them in one, so that none can be left out. */
function sumOf(f: FunctionBuilder, vectors: readonly number[], add: string): void {
  vectors.forEach((a, i) => { f.get(a); if (i > 0) f.op(add); });
}
