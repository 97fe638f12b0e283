/** The generated pages of docs/, by path. */
import { readFileSync } from "node:fs";
import { knownDifferences } from "../../fuzz/known-differences.ts";
import type { Results } from "../../conformance/summary.ts";
import { operators } from "../../src/ops/index.ts";
import { rules } from "../../src/rules/index.ts";
import { codedCalls } from "./calls.ts";
import { diagnosticsPage } from "./diagnostics.ts";
import { differencesPage } from "./differences.ts";
import { fusionsPage } from "./fusions.ts";
import { operatorsPage } from "./operators.ts";

const conformanceResults = (): Results => JSON.parse(readFileSync("conformance/results.json", "utf8")) as Results;

const diagnostic = /^OF\d{4}$/;

export const pages = (): ReadonlyMap<string, string> => new Map([
  ["docs/fusions.md", fusionsPage(rules, codedCalls(new Set(["refuse"])).filter((c) => !diagnostic.test(c.code)))],
  ["docs/onnxruntime-differences.md", differencesPage(knownDifferences)],
  ["docs/operators.md", operatorsPage(operators, conformanceResults())],
  ["docs/diagnostics.md", diagnosticsPage(codedCalls(new Set(["fail"])).filter((c) => diagnostic.test(c.code)))],
]);
