/** Typed reading of attributes, whose schema has already filled in defaults and checked types. */
import { invariant } from "../core/assert.ts";
import type { EvaluateAttributes } from "../core/evaluate.ts";
import type { Tensor } from "../core/tensor.ts";
import { toNumbers } from "../core/tensor.ts";

/** A number attribute; `missing` where the node does not give it. */
export function numberOf(attributes: EvaluateAttributes, name: string, missing?: number): number {
  const value = attributes[name] ?? missing;
  invariant(typeof value === "number", `attribute ${name} is a number`);
  return value;
}

/** A string attribute; `missing` where the node does not give it. */
export function stringOf(attributes: EvaluateAttributes, name: string, missing?: string): string {
  const value = attributes[name] ?? missing;
  invariant(typeof value === "string", `attribute ${name} is a string`);
  return value;
}

/** A list of numbers, or undefined where the node does not give it. */
export function numbersOf(attributes: EvaluateAttributes, name: string): readonly number[] | undefined {
  const value = attributes[name];
  if (value === undefined) return undefined;
  invariant(Array.isArray(value) && value.every((v) => typeof v === "number"), `attribute ${name} is a list of numbers`);
  return value as readonly number[];
}

/** A list of strings, or undefined where the node does not give it. */
export function stringsOf(attributes: EvaluateAttributes, name: string): readonly string[] | undefined {
  const value = attributes[name];
  if (value === undefined) return undefined;
  invariant(Array.isArray(value) && value.every((v) => typeof v === "string"), `attribute ${name} is a list of strings`);
  return value as readonly string[];
}

/** The elements of a small integer tensor (axes, sizes) as numbers. */
export const integersOf = (t: Tensor): number[] => Array.from(toNumbers(t));
