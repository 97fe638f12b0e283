/** Every row of the catalogue that something carries out is tested: by cases here, by its rules' own examples, or in the file named. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { attention } from "../../scripts/pages/catalogue-attention.ts";
import { contractions, epilogues } from "../../scripts/pages/catalogue-contractions.ts";
import { elements } from "../../scripts/pages/catalogue-elements.ts";
import { movement } from "../../scripts/pages/catalogue-movement.ts";
import { normalisation } from "../../scripts/pages/catalogue-normalisation.ts";
import { quantisation } from "../../scripts/pages/catalogue-quantisation.ts";
import { grouping, wholeGraph } from "../../scripts/pages/catalogue-whole-graph.ts";
import { row, type CatalogueRow } from "../../scripts/pages/catalogue.ts";

const elsewhere: Readonly<Record<string, string>> = {
  "mixtures of experts from TopK and loops": "test/microsoft-experts.test.ts",
  "dot products of bytes by relaxed SIMD": "src/schedule/contractions/integer.test.ts",
  "depthwise and 1x1 convolution in one kernel": "src/passes/join-strips.test.ts",
  "pooling in the kernel of the convolution before it": "src/passes/join-pools.test.ts",
  "functions of the model": "test/import.test.ts",
  "fixed sizes": "test/sizes.test.ts",
  "version conversion, sub-models, external data": "test/opset-history.test.ts",
};
const folder = new URL("./", import.meta.url);
const cases = readdirSync(folder).filter((f) => f !== "rows.test.ts").map((f) => readFileSync(new URL(f, folder), "utf8")).join("\n");
const untested = (rows: readonly CatalogueRow[]): readonly string[] => rows
  .filter((r) => r.means !== "none" && r.means !== "missing" && r.means !== "rule" && !(r.what in elsewhere) && !cases.includes(JSON.stringify(r.what)))
  .map((r) => r.what);

test("every row that something carries out is tested", () => {
  expect(untested([attention, contractions, epilogues, elements, movement, normalisation, quantisation, wholeGraph, grouping].flatMap((s) => s.rows))).toEqual([]);
  for (const file of Object.values(elsewhere)) expect(existsSync(file), file).toBe(true);
});
test("a row that nothing tests is seen", () => {
  expect(untested([row("one of its own", "partition", "a reason"), row("another", "none", "a reason"), row("Einsum", "kernel", "a reason")])).toEqual(["one of its own"]);
});
