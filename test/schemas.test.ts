/**
 * The published JSON Schemas against our readers: a document is valid by the schema exactly when the reader finds its
 * structure right. Documents are good ones with up to three changes at random places, and random ones that follow the
 * schema's own grammar. What no schema can say (which names there are, where edges may lead) is not held against it.
 */
import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseSwitchFile } from "../src/cli/options/fusion-switch-file.ts";
import { readCustomRules } from "../src/compiler/custom-rules/custom-rules.ts";
import { DiagnosticError } from "../src/core/diagnostic.ts";

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
type Schema = { readonly [key: string]: Json };
const isObject = (x: Json | undefined): x is Schema => typeof x === "object" && x !== null && !Array.isArray(x);
const isList = (x: Json | undefined): x is readonly Json[] => Array.isArray(x);
const schemaOf = (name: string): Schema => JSON.parse(readFileSync(new URL(`../schemas/${name}.schema.json`, import.meta.url), "utf8")) as Schema;

/** Refusals that are about names and edges. */
const meaning = /there is no node or port|names no attribute of a node|names no node or port|is no element type|nothing leads to|names two things|an edge leads|needs itself/;
const accepts = (read: (text: string) => unknown) => (doc: Json): boolean => {
  try { read(JSON.stringify(doc)); return true; } catch (e) {
    if (!(e instanceof DiagnosticError)) throw e;
    return e.diagnostics.every((d) => meaning.test(d.message));
  }
};

// Changes at a place of a document.
type Path = readonly (string | number)[];
function places(doc: Json, at: Path = []): Path[] {
  const inner = isList(doc) ? doc.flatMap((x, i) => places(x, [...at, i])) : isObject(doc) ? Object.entries(doc).flatMap(([k, x]) => places(x, [...at, k])) : [];
  return [at, ...inner];
}
function changed(doc: Json, [key, ...rest]: Path, change: (x: Json) => Json | undefined): Json | undefined {
  if (key === undefined) return change(doc);
  if (isList(doc)) return doc.flatMap((x, i) => { const y = i === key ? changed(x, rest, change) : x; return y === undefined ? [] : [y]; });
  if (!isObject(doc)) return doc;
  return Object.fromEntries(Object.entries(doc).flatMap(([k, x]) => { const y = k === key ? changed(x, rest, change) : x; return y === undefined ? [] : [[k, y] as const]; }));
}
const others: readonly Json[] = [null, true, 0, -1, 1.5, 2 ** 60, "", "x", "=", "A.x", [], {}, ["x"], ["x", 1], [1, 2], [null], { x: 1 }];
const changes: readonly ((x: Json) => Json | undefined)[] = [
  () => undefined,
  (x) => (isObject(x) ? { ...x, other: 1 } : x),
  (x) => (isList(x) ? [...x, ...x] : x),
  (x) => [x],
  ...others.map((other) => () => other),
];

// Documents by a schema's grammar.
const merged = (a: Schema, b: Schema): Schema => Object.entries(b).reduce<Schema>((out, [k, y]) => { const x = out[k]; return { ...out, [k]: isObject(x) && isObject(y) ? merged(x, y) : y }; }, a);
function resolved({ $ref: ref, ...own }: Schema, root: Schema): Schema {
  const defs = root["$defs"], found = typeof ref === "string" && isObject(defs) ? defs[ref.slice("#/$defs/".length)] : undefined;
  return isObject(found) ? merged(resolved(found, root), own) : own;
}
const words = ["A", "B", "In0", "Out0", "A.x", "A:0", "Relu", "float32", "on", "=", "1", "-1", ""];
function documents(schema: Schema, root: Schema, depth = 0): fc.Arbitrary<Json> {
  const all = (list: Json | undefined): Schema[] => (isList(list) ? list.filter(isObject) : []);
  const one = (of: Json | undefined): fc.Arbitrary<Json> => (isObject(of) && depth < 12 ? documents(of, root, depth + 1) : fc.constantFrom<Json>(1, "A"));
  const { allOf, ...own } = resolved(schema, root);
  const [base] = all(allOf);
  if (base) return documents(merged(resolved(base, root), own), root, depth);
  const { enum: values, const: value, type } = own;
  if (isList(values)) return fc.constantFrom(...values);
  if (value !== undefined) return fc.constant(value);
  if (type === undefined) return fc.oneof(...all(own["anyOf"] ?? own["oneOf"]).map(one));
  if (isList(type)) return fc.oneof(...type.map((t) => one({ ...own, type: t })));
  if (type === "string") return fc.constantFrom<Json>(...words.filter((w) => w.length >= Number(own["minLength"] ?? 0) && (typeof own["pattern"] !== "string" || new RegExp(own["pattern"], "u").test(w))));
  if (type === "number") return fc.constantFrom<Json>(0, -1, 1.5);
  if (type === "integer") return fc.constantFrom<Json>(0, 1, 8);
  if (type === "boolean") return fc.boolean();
  if (type === "array") return fc.array(one(own["items"]), { minLength: Number(own["minItems"] ?? 0), maxLength: Number(own["maxItems"] ?? 3) });
  const fields = isObject(own["properties"]) ? own["properties"] : {}, more = own["additionalProperties"];
  const known = fc.record(Object.fromEntries(Object.entries(fields).map(([k, s]) => [k, one(s)])), { requiredKeys: isList(own["required"]) ? own["required"].map(String).filter((k) => k in fields) : [] });
  const keys = isObject(own["propertyNames"]) ? ["0", "-1"] : ["ALL", "first", "second"];
  return isObject(more) ? fc.tuple(known, fc.dictionary(fc.constantFrom(...keys), one(more), { maxKeys: 2 })).map(([a, b]): Json => ({ ...a, ...b })) : known;
}

const graphRule: Json = {
  RuleName: "R", Description: "d", OuterInputs: [{ name: "In0" }, { name: "In1" }], OuterOutputs: [{ name: "Out0" }],
  OriginGraph: { Nodes: [{ name: "A", type: "Relu" }, { name: "B", type: ["Mul", "Add"] }], Constants: [{ name: "Half", value: 0.5 }], Edges: [{ src: "In0", dst: "A" }, { src: "A:0", dst: "B:0" }, { src: "Half", dst: "B:1" }, { src: "B", dst: "Out0" }] },
  FusionGraph: { Nodes: [{ name: "N", type: "Relu" }], Constants: [{ name: "C", value: [1, 2] }], Edges: [{ src: "In0", dst: "N" }, { src: "N", dst: "Out0" }], Attrs: [{ attr: "N.axis", literal: [1, 2] }] },
  Attrs: [{ attr: "N.axis", value: "A.axis", expr: "=" }, { attr: "N.to", literal: "x" }],
  Conditions: [{ attr: "A.group", equals: 1 }, { attr: "A.kernel", in: [[1, 1], 3, "x"], min: 0, max: 1.5 }, { value: "In0", dtype: ["float32"], rank: { min: 2, in: [2, 3] }, dims: { "-1": { multipleOf: 8 }, "0": 4 }, constant: false }, { value: "A:0", rank: 4, dtype: "float16" }],
};
const chain: Json = { pattern: ["Conv", "Relu"], output_op: "ConvRelu", conditions: { bn_mode: "inference", dtype: "float32", where: [{ attr: "Conv.group", equals: 1 }, { value: "input", constant: true }] } };
const { FusionGraph: _, Attrs: __, ...kernelRule } = graphRule as { readonly [key: string]: Json };
const kinds = [
  { name: "fusion-rules", accept: accepts((text) => readCustomRules(text)), good: [graphRule, { ...kernelRule, OutputOp: "Both" }, [graphRule, chain], { Rules: [graphRule] }, { chain, other: graphRule }, {}, []] as readonly Json[] },
  { name: "fusion-switches", accept: accepts((text) => parseSwitchFile(text, "switches.json")), good: [{ Switch: { GraphFusion: { ALL: "off", Named: "on" }, UBFusion: { ALL: "on" } } }, { Switch: {}, more: 1 }] as readonly Json[] },
];

describe.each(kinds)("$name", ({ name, accept, good }) => {
  const schema = schemaOf(name), valid = new Ajv2020({ strict: false }).compile(schema);
  const agree = (doc: Json): void => { if (valid(doc) !== accept(doc)) expect.fail(`${valid(doc) ? "valid, but refused" : "invalid, but accepted"}: ${JSON.stringify(doc)}`); };
  /** Files that do not begin with a brace are switches in text. */
  const isFor = (doc: Json): boolean => name !== "fusion-switches" || isObject(doc);

  test("good documents are valid", () => expect(good.map((doc) => [valid(doc), accept(doc)])).toEqual(good.map(() => [true, true])));
  test("one change anywhere", () => {
    const seen = { valid: 0, invalid: 0 };
    for (const doc of good) for (const path of places(doc)) for (const change of changes) {
      const other = changed(doc, path, change);
      if (other === undefined || !isFor(other)) continue;
      agree(other);
      seen[valid(other) ? "valid" : "invalid"]++;
    }
    expect(Math.min(seen.valid, seen.invalid)).toBeGreaterThan(20);
  });
  test("several changes", () => {
    const step = fc.tuple(fc.nat(), fc.nat(changes.length - 1));
    fc.assert(fc.property(fc.constantFrom(...good), fc.array(step, { minLength: 2, maxLength: 3 }), (doc, steps) => {
      const other = steps.reduce<Json | undefined>((d, [place, change]) => {
        if (d === undefined) return undefined;
        const all = places(d);
        return changed(d, all[place % all.length] ?? [], changes[change] ?? ((x) => x));
      }, doc);
      if (other !== undefined && isFor(other)) agree(other);
    }), { seed: 1, numRuns: 1500 });
  });
  test("documents by the schema's grammar", () => {
    fc.assert(fc.property(documents(schema, schema), (doc) => { if (isFor(doc)) agree(doc); }), { seed: 2, numRuns: 1500 });
  });
  test("a schema that forgets a field is seen", () => {
    const loose = new Ajv2020({ strict: false }).compile({ type: "object" });
    expect(good.flatMap((doc) => places(doc).flatMap((p) => changes.map((c) => changed(doc, p, c)))).some((d) => d !== undefined && isFor(d) && loose(d) !== accept(d))).toBe(true);
  });
});
