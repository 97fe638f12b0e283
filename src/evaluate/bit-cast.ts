/** BitCast: the same bits as another type of equal width. */
import { invariant } from "../core/assert.ts";
import { bitsOf, dtypeFromOnnx, viewBytes } from "../core/dtype.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { isPacked, packElements, unpackElements } from "../core/packed.ts";
import { bytesOf, numericData } from "../core/tensor.ts";
import { input } from "./map-elements.ts";
import { numberOf } from "./read-attribute.ts";

/** A bool is true where any bit is set. */
export const BitCast: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0), to = dtypeFromOnnx(numberOf(attributes, "to"));
  invariant(to !== undefined && bitsOf(to) === bitsOf(x.dtype), "BitCast between types of one width");
  if (isPacked(to)) return [{ dtype: to, dims: x.dims, data: unpackElements(to, packElements(x.dtype, numericData(x)), x.data.length) }];
  const bytes = bytesOf(x).slice();
  return [{ dtype: to, dims: x.dims, data: to === "bool" ? bytes.map((b) => (b === 0 ? 0 : 1)) : viewBytes(to, bytes) }];
};
