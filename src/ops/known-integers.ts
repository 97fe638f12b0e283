/** Small integer tensors (axes, sizes, zero points) whose elements inference knows. */
import { isSymbolic } from "../core/dim.ts";
import { toNumbers } from "../core/tensor.ts";
import type { TypeInfo } from "../graph/op.ts";

/** The elements as plain numbers, or undefined where one is not known. */
export function knownIntegers(type: TypeInfo): readonly number[] | undefined {
  if (type.constant) return Array.from(toNumbers(type.constant));
  if (type.elements?.every((e): e is number => !isSymbolic(e))) return type.elements as readonly number[];
  return undefined;
}
