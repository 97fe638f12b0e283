/** The catalogue names rules that exist, and says something about each row. */
import { expect, test } from "vitest";
import { attention } from "../scripts/pages/catalogue-attention.ts";
import { contractions, epilogues } from "../scripts/pages/catalogue-contractions.ts";
import { elements } from "../scripts/pages/catalogue-elements.ts";
import { movement } from "../scripts/pages/catalogue-movement.ts";
import { normalisation } from "../scripts/pages/catalogue-normalisation.ts";
import { quantisation } from "../scripts/pages/catalogue-quantisation.ts";
import { grouping, wholeGraph } from "../scripts/pages/catalogue-whole-graph.ts";
import { cataloguePage, row } from "../scripts/pages/catalogue.ts";
import { rules } from "../src/rules/index.ts";

const sections = [contractions, epilogues, elements, normalisation, attention, movement, quantisation, wholeGraph, grouping];
const known = new Set(rules.map((r) => r.name));
const unknown = (of: typeof normalisation[]): string[] => of.flatMap((s) => s.rows.flatMap((r) => [...(r.rules ?? []).filter((n) => !known.has(n)), ...((r.means === "rule") === ((r.rules ?? []).length > 0) ? [] : [r.what])]));

test("names rules that there are, for rows that rules carry out", () => {
  expect(unknown(sections)).toEqual([]);
  expect(unknown([{ title: "t", rows: [row("a", "rule", "b", "no-such-rule"), row("c", "rule", "d")] }])).toEqual(["no-such-rule", "c"]);
});
test("says how, once a row", () => {
  const rows = sections.flatMap((s) => s.rows);
  expect(new Set(rows.map((r) => r.what)).size).toBe(rows.length);
  for (const r of rows) expect(r.note.length, r.what).toBeGreaterThan(3);
  expect(cataloguePage([normalisation]).filter((l) => l.startsWith("| "))).toHaveLength(normalisation.rows.length + 1);
});
