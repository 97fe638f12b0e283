/**
 * Conditions of custom rules: what attributes, element types, shapes and constants have to be for a rule to fire. This
 * part reads and checks their JSON; `rule-guards.ts` asks them of a site, `verify/rule-graphs.ts` draws graphs that meet
 * them.
 */
import { dtypes, type DType } from "../../core/dtype.ts";
import { nearestName } from "../../core/diagnostic.ts";

/** What a whole number may be. */
export interface NumberTest {
  readonly equals?: number;
  readonly in?: readonly number[];
  readonly min?: number;
  readonly max?: number;
  readonly multipleOf?: number;
}
export type Scalar = number | string;
/** What an attribute may be: one value, one of several, or a number within bounds. */
export interface AttributeTest {
  readonly equals?: Scalar | readonly Scalar[];
  readonly in?: readonly (Scalar | readonly Scalar[])[];
  readonly min?: number;
  readonly max?: number;
}
/** A node's slot; outer inputs and outputs have slot 0. */
export interface Port { readonly node: string; readonly slot: number }

export interface AttributeCondition { readonly kind: "attribute"; readonly node: string; readonly attribute: string; readonly test: AttributeTest }
export interface ValueCondition {
  readonly kind: "value";
  readonly value: Port;
  readonly dtypes?: readonly DType[];
  readonly rank?: NumberTest;
  /** Axes from the front, or from the end where negative. */
  readonly dims: readonly { readonly axis: number; readonly test: NumberTest }[];
  readonly constant?: boolean;
}
export type Condition = AttributeCondition | ValueCondition;

type Json = Readonly<Record<string, unknown>>;
const isObject = (x: unknown): x is Json => typeof x === "object" && x !== null && !Array.isArray(x);
const isScalar = (x: unknown): x is Scalar => typeof x === "string" || (typeof x === "number" && Number.isFinite(x));
const isScalars = (x: unknown): x is readonly Scalar[] => Array.isArray(x) && x.every((s) => isScalar(s) && typeof s === typeof x[0]);

/** Told of what is wrong: a field that is not what it should be (OF4021), or a name that nothing has (OF4022). */
export type Complain = (code: "OF4021" | "OF4022", field: string, message: string, hint: string) => void;

const attributeFields = ["attr", "equals", "in", "min", "max"];
const valueFields = ["value", "dtype", "rank", "dims", "constant"];
const testFields = ["equals", "in", "min", "max", "multipleOf"];

/** The conditions in a list; `names` are the nodes and ports that they may speak of, `nodes` those that have attributes. */
export function readConditions(list: unknown, field: string, names: readonly string[], nodes: readonly string[], complain: Complain): readonly Condition[] {
  if (!Array.isArray(list)) {
    complain("OF4021", field, "the conditions are not a list", `write "${field.split(".").at(-1) ?? field}": [{"attr": "Conv0.group", "equals": 1}]`);
    return [];
  }
  return list.flatMap((entry: unknown, i): readonly Condition[] => new Reader(`${field}[${i}]`, names, nodes, complain).condition(entry));
}

class Reader {
  readonly #at: string;
  readonly #names: readonly string[];
  readonly #nodes: readonly string[];
  readonly #complain: Complain;
  #good = true;

  constructor(at: string, names: readonly string[], nodes: readonly string[], complain: Complain) {
    this.#at = at;
    this.#names = names;
    this.#nodes = nodes;
    this.#complain = complain;
  }

  condition(entry: unknown): readonly Condition[] {
    if (!isObject(entry) || !("attr" in entry || "value" in entry)) {
      this.#bad("", "the condition speaks of neither an attribute nor a value", 'write {"attr": "Conv0.group", "equals": 1} or {"value": "In0", "rank": 4}');
      return [];
    }
    const made = "attr" in entry ? this.#attribute(entry) : this.#value(entry);
    return this.#good && made ? [made] : [];
  }

  #attribute(entry: Json): AttributeCondition | undefined {
    this.#known(entry, attributeFields);
    const [, node = "", attribute = ""] = typeof entry["attr"] === "string" ? (/^(.+)\.(\w+)$/.exec(entry["attr"]) ?? []) : [];
    if (attribute === "") this.#bad(".attr", "attr is no attribute of a node", 'write "attr": "Conv0.group"');
    else if (!this.#nodes.includes(node)) this.#unknown(".attr", `'${String(entry["attr"])}' names no attribute of a node`, node, this.#nodes, "Node.attribute");
    const { equals, in: choices, min, max } = entry;
    if (equals !== undefined && !isScalar(equals) && !isScalars(equals)) this.#bad(".equals", "equals is not a number, a string or a list of them", 'write "equals": 1');
    if (choices !== undefined && !(Array.isArray(choices) && choices.length > 0 && choices.every((c) => isScalar(c) || isScalars(c)))) this.#bad(".in", "in is not a list of values", 'write "in": [-1, 3]');
    for (const [name, bound] of [["min", min], ["max", max]] as const) if (bound !== undefined && typeof bound !== "number") this.#bad(`.${name}`, `${name} is not a number`, `write "${name}": 0`);
    if ([equals, choices, min, max].every((x) => x === undefined)) this.#bad("", "the condition on the attribute wants nothing", 'add "equals", "in", "min" or "max"');
    return this.#good ? { kind: "attribute", node, attribute, test: entry as AttributeTest } : undefined;
  }

  #value(entry: Json): ValueCondition | undefined {
    this.#known(entry, valueFields);
    const [, node = "", slot = "0"] = typeof entry["value"] === "string" ? (/^(.+?)(?::(\d+))?$/.exec(entry["value"]) ?? []) : [];
    if (typeof entry["value"] !== "string" || entry["value"] === "") this.#bad(".value", "value is no name", 'write "value": "In0"');
    else if (!this.#names.includes(node)) this.#unknown(".value", `'${String(entry["value"])}' names no node or port`, node, this.#names, '"In0" or "Conv0:0"');
    const types = entry["dtype"] === undefined ? undefined : this.#dtypes(entry["dtype"]);
    const rank = entry["rank"] === undefined ? undefined : this.#number(entry["rank"], ".rank");
    const dims = entry["dims"] === undefined ? [] : this.#dims(entry["dims"]);
    const { constant } = entry;
    if (constant !== undefined && typeof constant !== "boolean") this.#bad(".constant", "constant is neither true nor false", 'write "constant": true');
    if (!types && !rank && dims.length === 0 && constant === undefined) this.#bad("", "the condition on the value wants nothing", 'add "dtype", "rank", "dims" or "constant"');
    return this.#good ? { kind: "value", value: { node, slot: Number(slot) }, dims, ...(types ? { dtypes: types } : {}), ...(rank ? { rank } : {}), ...(typeof constant === "boolean" ? { constant } : {}) } : undefined;
  }

  #dtypes(given: unknown): readonly DType[] {
    const list: readonly unknown[] = Array.isArray(given) ? given : [given];
    if (list.length === 0 || !list.every((name) => typeof name === "string")) { this.#bad(".dtype", "dtype is neither an element type nor a list of them", 'write "dtype": "float32"'); return []; }
    const known = Object.keys(dtypes) as DType[];
    return list.flatMap((name) => {
      const type = known.find((k) => k === name);
      if (type === undefined) this.#unknown(".dtype", `'${String(name)}' is no element type`, String(name), known, "an element type such as float32");
      return type === undefined ? [] : [type];
    });
  }

  #dims(given: unknown): ValueCondition["dims"] {
    if (!isObject(given) || Object.keys(given).length === 0) { this.#bad(".dims", "dims names no sizes", 'write "dims": {"1": {"multipleOf": 8}, "-1": 64}'); return []; }
    return Object.entries(given).flatMap(([axis, test]) => {
      if (!/^-?\d+$/.test(axis)) this.#bad(`.dims.${axis}`, `'${axis}' is not an axis`, 'write "1", or "-1" for the last one');
      const read = this.#number(test, `.dims.${axis}`);
      return read ? [{ axis: Number(axis), test: read }] : [];
    });
  }

  #number(given: unknown, at: string): NumberTest | undefined {
    if (Number.isSafeInteger(given)) return { equals: Number(given) };
    if (!isObject(given)) { this.#bad(at, "it is neither a whole number nor a test of one", 'write 4 or {"min": 2}'); return undefined; }
    this.#known(given, testFields, at);
    const { in: choices, ...single } = given;
    for (const [name, bound] of Object.entries(single)) if (testFields.includes(name) && !(Number.isSafeInteger(bound) && (name !== "multipleOf" || Number(bound) > 0))) this.#bad(`${at}.${name}`, `${name} is not a whole number`, `write "${name}": 8`);
    if (choices !== undefined && !(Array.isArray(choices) && choices.length > 0 && choices.every(Number.isSafeInteger))) this.#bad(`${at}.in`, "in is not a list of whole numbers", 'write "in": [2, 4]');
    if (Object.keys(given).length === 0) this.#bad(at, "the test wants nothing", 'write {"min": 2}');
    return given as NumberTest;
  }

  #known(entry: Json, fields: readonly string[], at = ""): void {
    for (const key of Object.keys(entry)) if (!fields.includes(key)) this.#unknown(`${at}.${key}`, `there is no field '${key}'`, key, fields, fields.join(", "));
  }
  #bad(at: string, message: string, hint: string): void { this.#good = false; this.#complain("OF4021", `${this.#at}${at}`, message, hint); }
  #unknown(at: string, message: string, name: string, names: readonly string[], form: string): void {
    const near = nearestName(name, names);
    this.#good = false;
    this.#complain("OF4022", `${this.#at}${at}`, message, near === undefined ? `write ${form}` : `did you mean '${near}'?`);
  }
}

/** A test in words. */
export function wanted(test: NumberTest | AttributeTest): string {
  const { equals, in: choices, min, max } = test;
  const multipleOf = "multipleOf" in test ? test.multipleOf : undefined;
  const say = (x: unknown): string => (Array.isArray(x) ? `[${x.join(", ")}]` : String(x));
  return [
    ...(equals === undefined ? [] : [say(equals)]),
    ...(choices === undefined ? [] : [`one of ${choices.map(say).join(", ")}`]),
    ...(min === undefined ? [] : [`at least ${min}`]),
    ...(max === undefined ? [] : [`at most ${max}`]),
    ...(multipleOf === undefined ? [] : [`a multiple of ${multipleOf}`]),
  ].join(" and ");
}

/** Whether a number passes. */
export const passes = (x: number, { equals, in: choices, min, max, multipleOf }: NumberTest): boolean =>
  (equals === undefined || x === equals) && (choices === undefined || choices.includes(x)) && (min === undefined || x >= min) && (max === undefined || x <= max) && (multipleOf === undefined || x % multipleOf === 0);
