/** Operators on strings. They run on the host: strings have no place in memory. */
import { broadcastShapes, formatShape } from "../core/dim.ts";
import { fullMatcher } from "../core/regular-expression.ts";
import { defineOp, int, optional, string, type InferContext, type TypeInfo } from "../graph/op.ts";
import { RegexFullMatch as evaluateMatch } from "../evaluate/regex-full-match.ts";
import * as evaluate from "../evaluate/strings.ts";

const shared = { domain: "", fusionKind: "opaque" } as const;

function checkStrings(inputs: Readonly<Record<string, TypeInfo>>, context: InferContext): void {
  for (const [name, { dtype }] of Object.entries(inputs)) if (dtype !== "string") context.fail("OF3013", `input '${name}' is ${dtype}, must be string`);
}

export const StringConcat = defineOp({
  ...shared, type: "StringConcat", since: 20, inputs: { X: "required", Y: "required" }, oneType: [["X", "Y"]], attributes: {},
  infer({ X, Y }, _, context) {
    checkStrings({ X, Y }, context);
    return [{ dtype: "string", shape: broadcastShapes(X.shape, Y.shape) ?? context.fail("OF3011", `${formatShape(X.shape)} and ${formatShape(Y.shape)} do not broadcast`) }];
  },
  evaluate: evaluate.StringConcat,
});

export const StringSplit = defineOp({
  ...shared, type: "StringSplit", since: 20, inputs: { X: "required" }, attributes: { delimiter: optional("string"), maxsplit: optional("int") },
  infer({ X }, _, context) {
    checkStrings({ X }, context);
    return [{ dtype: "string", shape: [...X.shape, context.fresh("parts")] }, { dtype: "int64", shape: X.shape }];
  },
  evaluate: evaluate.StringSplit,
});

const caseChanges: readonly string[] = ["NONE", "LOWER", "UPPER"];

export const StringNormalizer = defineOp({
  ...shared, type: "StringNormalizer", since: 10, inputs: { X: "required" },
  attributes: { case_change_action: string("NONE"), is_case_sensitive: int(0), locale: optional("string"), stopwords: optional("strings") },
  infer({ X }, { case_change_action }, context) {
    checkStrings({ X }, context);
    if (!caseChanges.includes(case_change_action)) context.fail("OF3012", `unknown case_change_action '${case_change_action}'`, `it is one of ${caseChanges.join(", ")}`);
    const [rows] = X.shape, fits = X.shape.length === 1 || (X.shape.length === 2 && rows === 1);
    if (!fits) context.fail("OF3010", `needs [C] or [1, C], got ${formatShape(X.shape)}`);
    return [{ dtype: "string", shape: [...X.shape.slice(0, -1), context.fresh("words")] }];
  },
  evaluate: evaluate.StringNormalizer,
});

export const RegexFullMatch = defineOp({
  ...shared, type: "RegexFullMatch", since: 20, inputs: { X: "required" }, attributes: { pattern: optional("string") },
  infer({ X }, { pattern }, context) {
    checkStrings({ X }, context);
    try {
      fullMatcher(pattern ?? "");
    } catch (e) {
      if (!(e instanceof SyntaxError)) throw e;
      context.fail("OF3012", `pattern '${pattern}': ${e.message}`, "patterns are in RE2's syntax");
    }
    return [{ dtype: "bool", shape: X.shape }];
  },
  evaluate: evaluateMatch,
});
