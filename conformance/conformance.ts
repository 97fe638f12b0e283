/**
 * Runs the ONNX standard's node tests three ways and says how many pass.
 * Usage: npm run conformance [-- --cases DIR] [--only PART_OF_NAME] [--out FILE]
 * Cases come from DIR, from the folder in ONNXFUSE_TEST_DATA, or from Debian's libonnx-testdata. A run of all the cases
 * of the test data writes conformance/results.json, from which docs/operators.md is generated.
 */
import { existsSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { loadNodeCase } from "../test/support/node-cases.ts";
import { leftOut, wrongInRelease112 } from "../test/conformance/exclusions.ts";
import { casesFolder, listCases } from "./cases.ts";
import { elementTypes } from "./element-types.ts";
import { runCase, ways } from "./run-case.ts";
import { countLine, summarise, type Outcome } from "./summary.ts";

const { values } = parseArgs({ options: { cases: { type: "string" }, only: { type: "string" }, out: { type: "string" } } });
const folder = casesFolder(values.cases);
if (folder === undefined || !existsSync(folder)) {
  console.error(folder === undefined ? "no cases: give --cases DIR, set ONNXFUSE_TEST_DATA, or install Debian's libonnx-testdata" : `there is no folder ${folder}`);
  process.exit(1);
}
const cases = listCases(folder).filter((c) => values.only === undefined || c.name.includes(values.only));
/** The outcome with what is known of a case that the project leaves out on purpose. */
function explained(name: string, outcome: Outcome): Outcome {
  const why = leftOut[name] ?? wrongInRelease112[name];
  const explain = (reason: string | undefined): string | undefined => (reason === undefined || why === undefined || why === "random" ? reason : `${why} (${reason})`);
  return { reference: explain(outcome.reference), unfused: explain(outcome.unfused), fused: explain(outcome.fused) };
}
/** From the first case of each operator that passes and is a node of it. */
async function typesByOperator(from: string): Promise<Record<string, readonly string[]>> {
  const types: Record<string, readonly string[]> = {};
  for (const { info, outcome } of runs) {
    if (Object.hasOwn(types, info.operator) || ways.some((w) => outcome[w] !== undefined) || /_expanded/.test(info.name)) continue;
    const found = await elementTypes(loadNodeCase(info.name, from));
    if (found) types[info.operator] = found;
  }
  return Object.fromEntries(Object.entries(types).sort(([a], [b]) => (a < b ? -1 : 1)));
}
const runs: { info: (typeof cases)[number]; outcome: Outcome }[] = [];
for (const info of cases) {
  const outcome = explained(info.name, await runCase(loadNodeCase(info.name, folder)));
  runs.push({ info, outcome });
  const failed = ways.filter((w) => outcome[w] !== undefined);
  if (failed.length) console.log(`${info.name}: ${failed.length === ways.length ? "" : `(${failed.join(", ")}) `}${outcome[failed[0] ?? "reference"] ?? ""}`);
  if (process.stderr.isTTY && runs.length % 50 === 0) process.stderr.write(`${runs.length} of ${cases.length}\r`);
}
const target = values.out ?? (values.cases === undefined && values.only === undefined ? "conformance/results.json" : undefined);
const results = summarise(runs, target === undefined ? {} : await typesByOperator(folder));
console.log(countLine("all", results.total));
console.log(countLine("opset up to 26, plain tensors", results.plain));
if (target !== undefined) writeFileSync(target, `${JSON.stringify(results, null, 1)}\n`);
