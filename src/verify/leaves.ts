/** Values that are no tensors, as tensors that can be compared one by one, named by where they stand. */
import { isMap, isSequence, type Datum } from "../core/datum.ts";
import { fromNumbers, tensor, type Tensor } from "../core/tensor.ts";

/**
 * The tensors in a value. A sequence's length, a map's keys and entries, and that an optional holds nothing, are tensors
 * of their own, so that two values have equal leaves only where they are equal.
 */
export function leaves(name: string, d: Datum): readonly (readonly [name: string, leaf: Tensor])[] {
  if (d === null) return [[name, tensor("string", [], ["nothing"])]];
  if (isSequence(d)) return [[`${name}.length`, fromNumbers("int64", [], [d.length])], ...d.flatMap((x, i) => leaves(`${name}[${i}]`, x))];
  if (!isMap(d)) return [[name, d]];
  const keys = [...d.keys()], values = [...d.values()], numeric = values.some((v) => typeof v !== "string");
  return [
    [`${name}.keys`, tensor("string", [keys.length], keys.map(String))],
    [`${name}.values`, numeric ? fromNumbers("float64", [values.length], values.map(Number)) : tensor("string", [values.length], values.map(String))],
  ];
}

/** All leaves of named values. */
export const leavesOf = (data: Readonly<Record<string, Datum>>): Record<string, Tensor> => Object.fromEntries(Object.entries(data).flatMap(([name, d]) => leaves(name, d)));
