/** The least and largest element of indices, or whether divisors hold a 0. */
import type { Evaluate } from "../core/evaluate.ts";
import { noElements } from "../core/value-check.ts";
import { toBigInts } from "../core/tensor.ts";
import { input } from "./map-elements.ts";

export const ValueRange: Evaluate = (inputs, { each, divisor }) => {
  const x = input(inputs, 0);
  const places = each ? x.dims[x.dims.length - 1] ?? 1 : 1;
  const low = new BigInt64Array(places).fill(noElements.low), high = new BigInt64Array(places).fill(noElements.high);
  toBigInts(x).forEach((element, i) => {
    const k = i % places, e = divisor ? (element === 0n ? 0n : 1n) : element;
    if (e < (low[k] ?? e)) low[k] = e;
    if (e > (high[k] ?? e)) high[k] = e;
  });
  const dims = each ? [places] : [];
  return [{ dtype: "int64", dims, data: low }, { dtype: "int64", dims, data: high }];
};
