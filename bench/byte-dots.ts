/**
 * Products of 8-bit integers whose weights have 7 bits: dot products of bytes by relaxed SIMD against pairs of int16, the
 * same artifact in turns in one process, copies in and out included. Prints the quickest samples, which is what a loaded
 * machine leaves comparable. Needs an engine with relaxed SIMD (Node 22 or newer).
 * Usage: node --import tsx bench/byte-dots.ts [--rounds N] [NAME_PART]
 */
import { parseArgs } from "node:util";
import { compileModel } from "../src/compiler/compile.ts";
import { load } from "../src/runtime/load.ts";
import { Tensor } from "../src/runtime/tensor.ts";
import { modelBytes } from "../test/support/model-spec.ts";
import { sevenBitConv, sevenBitMatMul } from "../test/support/seven-bit-models.ts";

const cases = [sevenBitMatMul(1, 1024, 1024), sevenBitMatMul(16, 256, 256), sevenBitMatMul(64, 512, 512), sevenBitMatMul(128, 768, 3072), sevenBitConv(256, 14, 1), sevenBitConv(64, 56, 1), sevenBitConv(64, 28, 3), sevenBitConv(32, 56, 3), sevenBitConv(16, 56, 3)];
const { values, positionals: [part = ""] } = parseArgs({ options: { rounds: { type: "string", default: "150" } }, allowPositionals: true });

console.log("| product | pairs of int16, GOP/s | bytes, GOP/s | of the time |\n| --- | --- | --- | --- |");
for (const { name, spec, x, products } of cases.filter((c) => c.name.includes(part))) {
  const { artifact } = compileModel(modelBytes(spec)), feed = { x: Tensor.of(x) };
  const ways = await Promise.all((["simd", "relaxed-simd"] as const).map(async (engine) => ({ session: await load(artifact, { engine }), best: Infinity })));
  for (let round = -30; round < Number(values.rounds); round++) {
    for (const way of ways) {
      const start = performance.now();
      for (let i = 0; i < 3; i++) await way.session.run(feed);
      if (round >= 0) way.best = Math.min(way.best, (performance.now() - start) / 3);
    }
  }
  const [pairs = NaN, bytes = NaN] = ways.map((w) => w.best), rate = (ms: number): string => (2 * products / 1e6 / ms).toFixed(1);
  console.log(`| ${name} | ${rate(pairs)} | ${rate(bytes)} | ${(bytes / pairs).toFixed(2)} |`);
}
