/** What a graph's value holds when it runs: a tensor, or one of the containers that the standard has. */
import { invariant } from "./assert.ts";
import type { Tensor } from "./tensor.ts";

/** Keys are strings or integers (bigint), entries scalars of the map's element type. */
export type DatumMap = ReadonlyMap<string | bigint, string | number | bigint>;

/** A tensor; a sequence; `null`, an optional that holds nothing (one that holds something is just that); a map. */
export type Datum = Tensor | readonly Datum[] | null | DatumMap;

export const isSequence = (d: Datum): d is readonly Datum[] => Array.isArray(d);
export const isMap = (d: Datum): d is DatumMap => d instanceof Map;
export const isTensor = (d: Datum): d is Tensor => d !== null && !isSequence(d) && !isMap(d);

/** The tensor, where inference has said that there is one. */
export function asTensor(d: Datum, what = "a value"): Tensor {
  invariant(isTensor(d), `${what} is not a tensor`);
  return d;
}
/** The sequence, where inference has said that there is one. */
export function asSequence(d: Datum, what = "a value"): readonly Datum[] {
  invariant(isSequence(d), `${what} is not a sequence`);
  return d;
}

/** A tensor with that many sizes: ones before its own, or without as many in front. Without a rank, and for what is no tensor, the value itself. */
export function atRank(d: Datum, rank: number | undefined): Datum {
  if (rank === undefined || !isTensor(d) || d.dims.length === rank) return d;
  const more = rank - d.dims.length;
  return { ...d, dims: more > 0 ? [...Array<number>(more).fill(1), ...d.dims] : d.dims.slice(-more) };
}
