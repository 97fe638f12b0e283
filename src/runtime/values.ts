/** Values that steps of a running program exchange: taking in results, whose sizes may only now be known. */
import type { Instance } from "../backends/wasm/load.ts";
import { invariant } from "../core/assert.ts";
import { asTensor, type Datum } from "../core/datum.ts";
import { fail } from "../core/diagnostic.ts";
import type { DimJson } from "../core/dim-json.ts";
import { numericData, type Tensor } from "../core/tensor.ts";
import type { Arena } from "./arena.ts";
import type { Buffers } from "./buffers.ts";
import type { Constants } from "./constants.ts";

/** What steps run on. */
export interface Machine {
  readonly arena: Arena;
  readonly buffers: Buffers;
  readonly instance: Instance;
  readonly constants: Constants;
}

export const readScalar = (buffers: Buffers, index: number): number => Number(numericData(buffers.read(index))[0] ?? 0);

/**
 * Writes values to buffers: binds the sizes that they tell and places what depends on them before. Fails with OF7013
 * where a size that was known is another.
 */
export function receive(targets: readonly (number | null)[], values: readonly Datum[], { arena, buffers }: Machine, label: string): void {
  const found = new Map<string, number>();
  targets.forEach((target, n) => { if (target !== null && !buffers.of(target).container) learn(buffers.of(target).dims, asTensor(valueAt(values, n, label)), arena, found, label); });
  arena.extend(found);
  targets.forEach((target, n) => { if (target !== null) buffers.writeDatum(target, valueAt(values, n, label)); });
}

function valueAt(values: readonly Datum[], n: number, label: string): Datum {
  const value = values[n];
  invariant(value !== undefined, `'${label}' has no result ${n}`);
  return value;
}

/** Takes the sizes that a value tells, and checks those that were known. */
function learn(declared: readonly DimJson[], value: Tensor, arena: Arena, found: Map<string, number>, label: string): void {
  const told = value.dims.length === declared.length && declared.every((d, axis) => {
    const actual = value.dims[axis] ?? 0;
    if (typeof d !== "string" || arena.symbols.has(d)) return arena.size(d) === actual || typeof d === "object";
    const before = found.get(d);
    found.set(d, actual);
    return before === undefined || before === actual;
  });
  if (!told) fail("OF7013", `'${label}' gave a result of [${value.dims.join(", ")}], which its inputs do not allow`, { hint: "check the shapes and values that are fed" });
}
