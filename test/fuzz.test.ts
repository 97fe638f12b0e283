/** A share of `npm run fuzz`: the same mutants every time, from models that the repository holds. */
import { describe, expect, it } from "vitest";
import { supervise, type Result } from "../fuzz/bad-input/supervisor.ts";
import type { Order, Settings } from "../fuzz/bad-input/worker.ts";

const settings: Settings = { seed: 1, own: true, kind: "all" };
async function resultsOf(orders: readonly Order[]): Promise<Result[]> {
  const results: Result[] = [];
  await supervise(orders, 1, settings, (r) => results.push(r));
  return results;
}

describe("damaged models and artifacts", () => {
  it("work or are refused, 300 of them, in time and memory", async () => {
    const results = await resultsOf(Array.from({ length: 300 }, (_, index) => ({ index })));
    expect(results.filter((r) => r.failure !== undefined).map((r) => `${JSON.stringify(r.order)} ${r.answer?.story ?? ""}: ${r.failure ?? ""}`)).toEqual([]);
    const count = (outcome: string): number => results.filter((r) => r.answer?.outcome === outcome).length;
    expect(count("ran")).toBeGreaterThan(40);
    expect(count("refused")).toBeGreaterThan(100);
  }, 900_000);
  it("a process that ends is a failure", async () => {
    const [gone, next] = await resultsOf([{ file: "there-is-no-such-file.onnx", seed: 1 }, { index: 0 }]);
    expect(gone?.failure).toMatch(/^the process ended: .*ENOENT/s);
    expect(next?.failure).toBeUndefined();
  }, 300_000);
});
