/** Each 8-bit integer replaced by what a table of 256 elements says; the least integer's comes first. */
import { present } from "../core/assert.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { fromNumbers, toNumbers } from "../core/tensor.ts";

export const TableLookup: Evaluate = ([X, Table]) => {
  const x = present(X, "x"), table = present(Table, "table"), to = toNumbers(table), least = x.dtype === "int8" ? -128 : 0;
  return [fromNumbers(table.dtype, x.dims, Array.from(toNumbers(x), (v) => to[v - least] ?? 0))];
};
