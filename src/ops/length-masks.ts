/**
 * Masks of com.microsoft's attention: how many keys each of the batch has, or zeros where keys are hidden. They are
 * brought to what is added to the scores of [batch, heads, queries, keys].
 */
import { dimEqual, dimMul, formatShape, type Dim } from "../core/dim.ts";
import type { DType } from "../core/dtype.ts";
import type { InferContext, TypeInfo } from "../graph/op.ts";
import { Sub } from "./arithmetic.ts";
import { Cast } from "./cast.ts";
import { listOf, scalarOf, type Expansion } from "./expansion.ts";
import { indicesAlong, sizeAlong } from "./heads.ts";
import { And, Greater, GreaterOrEqual, Less } from "./logic.ts";
import { Unsqueeze } from "./reshape.ts";
import { Slice } from "./slice.ts";
import { Where } from "./where.ts";

const all = 2 ** 31 - 1;

/** Reports a mask of a form that says nothing: [batch], [2 · batch] (ends, then starts), [batch, keys], [batch, queries, keys] and [batch, 1, longest, longest] do. */
export function checkLengthMask(mask: TypeInfo | undefined, batch: Dim, context: InferContext): void {
  if (!mask) return;
  const [size = 1] = mask.shape;
  if (mask.shape.length > 4 || mask.shape.length === 0) context.fail("OF3010", `the mask needs rank 1 to 4, got ${formatShape(mask.shape)}`);
  if (mask.shape.length === 1 && typeof size === "number" && typeof batch === "number" && size !== batch && size !== 2 * batch)
    context.fail("OF3011", `a mask of ${size} lengths does not fit a batch of ${batch}`, "give the length, or the end and the start, of each");
}

/** 0 where a key is seen, `hidden` where not. `query` and `key` are [batch, heads, sequence, depth]. */
export function additiveMask(to: Expansion, mask: string, type: TypeInfo, { query, key, batch }: { readonly query: string; readonly key: string; readonly batch: Dim }, hidden: number, dtype: DType): string {
  return to.add(Where, [visible(to, mask, type, query, key, batch), scalarOf(dtype, 0), scalarOf(dtype, hidden)]);
}

function visible(to: Expansion, mask: string, type: TypeInfo, query: string, key: string, batch: Dim): string {
  const nonZero = (x: string): string => to.add(Greater, [x, scalarOf(type.dtype, 0)]), wide = (x: string, ...axes: number[]): string => to.add(Unsqueeze, [x, listOf(...axes)]);
  switch (type.shape.length) {
    case 1: {
      const keys = indicesAlong(to, key, 2), lengths = (part: string): string => wide(to.add(Cast, [part], { to: 7 }), 1, 2, 3);
      if (!dimEqual(type.shape[0] ?? 1, dimMul(2, batch))) return to.add(Less, [keys, lengths(mask)]);
      const count = sizeAlong(to, key, 0), part = (from: string | ReturnType<typeof listOf>, end: string | ReturnType<typeof listOf>): string => to.add(Slice, [mask, from, end, listOf(0)]);
      return to.add(And, [to.add(Less, [keys, lengths(part(listOf(0), count))]), to.add(GreaterOrEqual, [keys, lengths(part(count, listOf(all)))])]);
    }
    case 2: return nonZero(wide(mask, 1, 2));
    case 3: return nonZero(wide(mask, 1));
    default: {
      const keys = sizeAlong(to, key, 2), first = to.add(Sub, [keys, sizeAlong(to, query, 2)]);
      const rows = to.add(Slice, [mask, first, keys, listOf(2)]);
      return nonZero(to.add(Slice, [rows, listOf(0), keys, listOf(3)]));
    }
  }
}
