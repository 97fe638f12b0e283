/** Results of one operator held against each other. */
import { isFloat, type DType } from "../../src/core/dtype.ts";
import { stringsOf, toBigInts, toNumbers, type Tensor } from "../../src/core/tensor.ts";

/** A few roundings, as a share of the largest element. */
const unit = (dtype: DType): number => (dtype === "float16" ? 2 ** -10 : dtype === "bfloat16" ? 2 ** -7 : dtype === "float64" ? 1e-13 : 2e-6);
/** Why two tensors differ by more than a few roundings of their dtype; undefined where they do not. NaN and infinities stand in the same places. */
export function deviation(actual: Tensor | undefined, expected: Tensor): string | undefined {
  if (actual?.dtype !== expected.dtype || actual.dims.join() !== expected.dims.join()) return `${actual?.dtype}[${actual?.dims}] instead of ${expected.dtype}[${expected.dims}]`;
  if (expected.dtype === "string") { const at = stringsOf(expected).findIndex((v, i) => v !== actual.data[i]); return at < 0 ? undefined : `element ${at} is '${actual.data[at]}', not '${expected.data[at]}'`; }
  if (!isFloat(expected.dtype)) { const a = toBigInts(actual), b = toBigInts(expected), at = b.findIndex((v, i) => v !== a[i]); return at < 0 ? undefined : `element ${at} is ${a[at]}, not ${b[at]}`; }
  const a = toNumbers(actual), b = toNumbers(expected), largest = Array.from(b).reduce((m, v) => (Number.isFinite(v) ? Math.max(m, Math.abs(v)) : m), 0);
  const at = Array.from(b).findIndex((v, i) => !(Object.is(v, a[i]) || v === a[i] || Math.abs(v - (a[i] ?? NaN)) <= unit(expected.dtype) * largest));
  return at < 0 ? undefined : `element ${at} is ${a[at]}, not ${b[at]}`;
}
