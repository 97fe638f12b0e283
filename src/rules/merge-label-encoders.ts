/** A LabelEncoder of what another one gives is one LabelEncoder: the first one's table, with what the second makes of it. */
import { present } from "../core/assert.ts";
import { asTensor } from "../core/datum.ts";
import { fromNumbers, stringsOf, tensor, toNumbers, type Tensor } from "../core/tensor.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { Node } from "../graph/graph.ts";
import { evaluationOf, type Attributes, type AttributeValue } from "../graph/op.ts";
import { Abs, LabelEncoder } from "../ops/index.ts";
import { op, value } from "../rewrite/pattern.ts";
import { defineRule, exact } from "../rewrite/rule.ts";

const listed = <T extends string | number>(a: AttributeValue | undefined, kind: "string" | "number"): readonly T[] | undefined =>
  Array.isArray(a) && a.every((x): x is T => typeof x === kind) ? a : undefined;
const isTensor = (a: AttributeValue | undefined): a is Tensor => typeof a === "object" && "dtype" in a;

/** The keys of an encoder's table. */
function keysOf({ keys_tensor: whole, keys_strings: strings, keys_int64s: integers, keys_floats: floats }: Attributes): Tensor {
  const names = listed<string>(strings, "string"), numbers = listed<number>(integers, "number");
  if (isTensor(whole)) return whole;
  if (names) return tensor("string", [names.length], [...names]);
  const values = numbers ?? listed<number>(floats, "number") ?? [];
  return fromNumbers(numbers ? "int64" : "float32", [values.length], values);
}
/** What an encoder makes of labels. */
function encoded(attributes: Attributes, labels: Tensor): Tensor {
  const evaluate = present(evaluationOf(LabelEncoder), "evaluation of LabelEncoder");
  const known = Object.fromEntries(Object.entries(attributes).flatMap(([name, a]) => (a === undefined || typeof a === "number" || typeof a === "string" || Array.isArray(a) || isTensor(a) ? [[name, a]] : [])));
  return asTensor(present(evaluate([labels], known, { outputCount: 1, outputDTypes: [] })[0], "labels"), "labels");
}
/** What it makes of a label that it has no key for. */
function otherwise(attributes: Attributes): Tensor {
  const names = ["keys_tensor", "keys_strings", "keys_int64s", "keys_floats"].map((name) => [name, undefined] as const);
  return encoded({ ...attributes, ...Object.fromEntries(names), keys_tensor: fromNumbers("int64", [0], []) }, fromNumbers("int64", [1], [0]));
}

/** One side of a table, spelled as a tensor or as lists, which is all that version 2 has. */
function spelled(values: Tensor, missing: Tensor, asTensors: boolean): Attributes {
  if (asTensors) return { values_tensor: values, default_tensor: missing };
  if (values.dtype === "string") return { values_strings: stringsOf(values), default_string: stringsOf(missing)[0] ?? "" };
  const [numbers, other] = [Array.from(toNumbers(values)), toNumbers(missing)[0] ?? 0];
  return values.dtype === "int64" ? { values_int64s: numbers, default_int64: other } : { values_floats: numbers, default_float: other };
}

const toNames: Attributes = { keys_int64s: [0, 1, 7], values_strings: ["cat", "dog", "eel"], default_string: "ant" };
const fromNames: Attributes = { keys_strings: ["dog", "ant", "dog"], values_int64s: [4, 5, 6], default_int64: 9 };
const build = (first: Attributes, second: Attributes, dtype: "int64" | "float32" = "int64", more = false) => () => {
  const b = new GraphBuilder(), labels = b.add(LabelEncoder, [b.input("x", ["n", 3], dtype)], first);
  return b.build(b.add(LabelEncoder, [labels], second), ...(more ? [labels] : []));
};
const readTwice = () => {
  const b = new GraphBuilder(), labels = b.add(LabelEncoder, [b.input("x", ["n", 3], "int64")], { keys_int64s: [0, 1], values_int64s: [-3, 2] });
  return b.build(b.add(LabelEncoder, [labels], { keys_int64s: [2], values_floats: [0.5] }), b.add(Abs, [labels]));
};

export const mergeLabelEncoders = defineRule({
  name: "merge-label-encoders",
  doc: "LabelEncoder after LabelEncoder becomes one: each value of the first table, and its default, are looked up in the second one when compiling.",
  stage: "merge",
  match: op(LabelEncoder, [op(LabelEncoder, [value("x")], { as: "first" })], { as: "second" }),
  numerics: exact,
  rewrite({ x, first, second }: { readonly x: Node["inputs"][number]; readonly first: Node; readonly second: Node }, edit) {
    const keys = keysOf(first.attributes), values = encoded(second.attributes, encoded(first.attributes, keys)), missing = encoded(second.attributes, otherwise(first.attributes));
    const own = Object.fromEntries(Object.entries(first.attributes).filter(([name]) => name.startsWith("keys_")));
    return edit.insert(LabelEncoder, [x], { ...own, ...spelled(values, missing, isTensor(second.attributes["values_tensor"])) });
  },
  example: build(toNames, fromNames),
  examples: [
    build({ keys_floats: [0.5, NaN, 0], values_int64s: [1, 0, -1] }, toNames, "float32"),
    build({ keys_int64s: [0], values_floats: [-0], default_float: 3.5 }, { keys_floats: [0, 3.5], values_tensor: fromNumbers("float64", [2], [1 / 3, NaN]), default_tensor: fromNumbers("float64", [1], [8]) }),
    build({ keys_tensor: fromNumbers("int64", [2], [1, 0]), values_tensor: fromNumbers("int16", [2], [3, 4]) }, { keys_tensor: fromNumbers("int16", [1], [-1]), values_tensor: tensor("string", [1], ["none"]), default_tensor: tensor("string", [1], ["some"]) }),
  ],
  refuses: { "graph-output": build(toNames, fromNames, "int64", true), "interior-value-used": readTwice },
});
