/** Moving parameters between attributes and inputs, as ONNX did from opset to opset. */
import { fromNumbers, tensor, toNumbers, type Tensor } from "../core/tensor.ts";
import type { AttributeValue, Attributes, Spelling, SpellingInput, TypeInfo } from "../graph/op.ts";

/** A list of int64 as an input; INT64_MAX, which rounds to 2^63 as a number, stays INT64_MAX. */
export const listInput = (values: readonly number[]): SpellingInput =>
  ({ literal: tensor("int64", [values.length], BigInt64Array.from(values, (v) => (v >= 2 ** 63 ? 2n ** 63n - 1n : BigInt(v)))) });
/** A float32 scalar as an input. */
export const scalarInput = (value: number): SpellingInput => ({ literal: fromNumbers("float32", [], [value]) });

/** An input's type, where the writer knows it. */
export const typeOfInput = (input: SpellingInput | undefined): Pick<TypeInfo, "dtype" | "shape"> | undefined =>
  (input === undefined ? undefined : "literal" in input ? { dtype: input.literal.dtype, shape: input.literal.dims } : input.type);

/** An input's elements, where the writer knows them. */
export const constantOf = (input: SpellingInput | undefined): Tensor | undefined => (input === undefined ? undefined : "literal" in input ? input.literal : input.constant);
/** An input's elements as numbers, where the writer knows them. */
export function numbersOfInput(input: SpellingInput | undefined): readonly number[] | undefined {
  const constant = constantOf(input);
  return constant && Array.from(toNumbers(constant));
}

export const numberIn = (value: AttributeValue | undefined): number | undefined => (typeof value === "number" ? value : undefined);
export const numbersIn = (value: AttributeValue | undefined): readonly number[] | undefined =>
  Array.isArray(value) && value.every((v) => typeof v === "number") ? value : undefined;

export function without(attributes: Attributes, ...names: readonly string[]): Attributes {
  return Object.fromEntries(Object.entries(attributes).filter(([name]) => !names.includes(name)));
}

/** The list attribute `name` as input `at`, for operators that made it an input. */
export function listAttributeToInput(node: Spelling, name: string, at: number): Spelling {
  const values = numbersIn(node.attributes[name]);
  const inputs = [...node.inputs];
  while (inputs.length < at) inputs.push(undefined);
  return { ...node, inputs: values ? [...inputs.slice(0, at), listInput(values)] : inputs, attributes: without(node.attributes, name) };
}
/** Input `at`, the last, as the list attribute `name`; undefined where it is not a constant. */
export function listInputToAttribute(node: Spelling, name: string, at: number): Spelling | undefined {
  const input = node.inputs[at], inputs = node.inputs.slice(0, at);
  if (!input) return { ...node, inputs };
  const values = numbersOfInput(input);
  return values && { ...node, inputs, attributes: { ...node.attributes, [name]: values } };
}
