/**
 * Looks at values that kernels rely on: the ranges of indices and divisors, which kernels have left in cells of their
 * own. Where an engine stops because of such a value, the cells that are filled tell which it was. Loaded by programs
 * that have such checks.
 */
import type { StepJson } from "../artifact/manifest.ts";
import { numericData } from "../core/tensor.ts";
import { checkValues, noElements } from "../core/value-check.ts";
import type { Machine } from "./values.ts";
import type { Run } from "./watch.ts";

export type CheckJson = Extract<StepJson, { readonly check: unknown }>;

export function check({ check: [low, high], sizes, node, value }: CheckJson, { buffers, arena }: Machine): Run {
  const cells = (index: number): BigInt64Array => numericData(buffers.read(index)) as BigInt64Array;
  return () => checkValues({ low: cells(low), high: cells(high), sizes: arena.sizes(sizes), node, value });
}

/** Runs steps with the cells of all their checks empty at the start, and tells a trap's cause where the cells know it. */
export function guarded(all: readonly CheckJson[], run: Run, machine: Machine): Run {
  const { buffers } = machine;
  const empty = (index: number, value: bigint): void => {
    const dims = buffers.dims(index);
    buffers.write(index, { dtype: "int64", dims, data: new BigInt64Array(dims[0] ?? 1).fill(value) });
  };
  const checks = all.map((c) => check(c, machine));
  return (watch) => {
    for (const { check: [low, high] } of all) { empty(low, noElements.low); empty(high, noElements.high); }
    try {
      run(watch);
    } catch (e) {
      if (e instanceof WebAssembly.RuntimeError) for (const c of checks) c(watch);
      throw e;
    }
  };
}
