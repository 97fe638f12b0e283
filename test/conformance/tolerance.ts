/** How the standard's own runner compares results. */
import { isMap, isSequence, type Datum } from "../../src/core/datum.ts";
import { isFloat } from "../../src/core/dtype.ts";
import { toNumbers, type Tensor } from "../../src/core/tensor.ts";

/** The tolerance of the standard's own runner, wider for the half types. */
const tolerance = { absolute: 1e-7, relative: (t: Tensor): number => (t.dtype === "bfloat16" ? 2 ** -7 : 1e-3) };

/** What differs; undefined where nothing does. */
export function nodeCaseMismatch(actual: Datum | undefined, expected: Datum, relative?: number): string | undefined {
  if (actual === undefined) return "no such result";
  if (actual === null || expected === null) return actual === expected ? undefined : `${actual === null ? "nothing" : "something"} is held`;
  if (isMap(actual) || isMap(expected)) return "maps are not compared";
  if (!isSequence(actual) && !isSequence(expected)) return tensorMismatch(actual, expected, relative ?? tolerance.relative(expected));
  if (!isSequence(actual) || !isSequence(expected)) return "one is a sequence, the other a tensor";
  if (actual.length !== expected.length) return `a sequence of ${actual.length}, expected ${expected.length}`;
  for (const [i, item] of expected.entries()) {
    const wrong = nodeCaseMismatch(actual[i], item, relative);
    if (wrong !== undefined) return `item ${i}: ${wrong}`;
  }
  return undefined;
}

function tensorMismatch(actual: Tensor, expected: Tensor, relative: number): string | undefined {
  if (actual.dtype !== expected.dtype || actual.dims.join() !== expected.dims.join()) return `${actual.dtype}[${actual.dims}], expected ${expected.dtype}[${expected.dims}]`;
  const exact = !isFloat(expected.dtype);
  const a: ArrayLike<unknown> = exact ? actual.data : toNumbers(actual), b: ArrayLike<unknown> = exact ? expected.data : toNumbers(expected);
  for (let i = 0; i < b.length; i++) {
    const x = a[i], y = b[i];
    if (Object.is(x, y) || x === y) continue;
    if (exact || !(Math.abs(Number(x) - Number(y)) <= tolerance.absolute + relative * Math.abs(Number(y)))) return `element ${i} is ${String(x)}, expected ${String(y)}`;
  }
  return undefined;
}
