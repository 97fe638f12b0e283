/**
 * A share of the fuzzing of operators against onnxruntime (`npm run fuzz:operators` runs as many as one likes): fast-check
 * makes a failing case smaller and prints its seed. ONNXFUSE_FUZZ_SEED starts elsewhere, ONNXFUSE_FUZZ_CASES runs more.
 */
import fc from "fast-check";
import { expect, it } from "vitest";
import { judge } from "../fuzz/compare.ts";
import { drawFromGenerator } from "../fuzz/draw.ts";
import { generators } from "../fuzz/generators.ts";
import { isKnown } from "../fuzz/known-differences.ts";

const seed = Number(process.env["ONNXFUSE_FUZZ_SEED"] ?? 1), numRuns = Number(process.env["ONNXFUSE_FUZZ_CASES"] ?? 300);

it(`${numRuns} operators, from seed ${seed}, are as onnxruntime computes them`, { timeout: 600_000 }, async () => {
  let judged = 0;
  await fc.assert(fc.asyncProperty(fc.constantFrom(...Object.entries(generators)), fc.gen(), async ([name, generator], g) => {
    const c = generator(drawFromGenerator(g)), { kind, message = "" } = await judge(c);
    if (kind === "agrees") judged++;
    if (kind === "differs" && !isKnown(c, message)) expect.fail(`${name} of ${c.inputs.map((t) => (t ? `${t.dtype}[${t.dims}]` : "nothing")).join(", ")} ${JSON.stringify(c.attributes ?? {}, (_, v: unknown) => (typeof v === "bigint" ? Number(v) : v))}: ${message}`);
  }), { seed, numRuns });
  expect(judged).toBeGreaterThan(numRuns / 2);
});
