/** The catalogue names rules that exist, and says something about each row. */
import { expect, test } from "vitest";
import { attention } from "../scripts/pages/catalogue-attention.ts";
import { movement } from "../scripts/pages/catalogue-movement.ts";
import { normalisation } from "../scripts/pages/catalogue-normalisation.ts";
import { cataloguePage, row } from "../scripts/pages/catalogue.ts";
import { rules } from "../src/rules/index.ts";

const known = new Set(rules.map((r) => r.name));
const unknown = (sections: typeof normalisation[]): string[] => sections.flatMap((s) => s.rows.flatMap((r) => [...(r.rules ?? []).filter((n) => !known.has(n)), ...((r.means === "rule") === ((r.rules ?? []).length > 0) ? [] : [r.what])]));

test("names rules that there are, for rows that rules carry out", () => {
  expect(unknown([normalisation, attention, movement])).toEqual([]);
  expect(unknown([{ title: "t", rows: [row("a", "rule", "b", "no-such-rule"), row("c", "rule", "d")] }])).toEqual(["no-such-rule", "c"]);
});
test("says how, once a row", () => {
  const rows = [normalisation, attention, movement].flatMap((s) => s.rows);
  expect(new Set(rows.map((r) => r.what)).size).toBe(rows.length);
  for (const r of rows) expect(r.note.length, r.what).toBeGreaterThan(3);
  expect(cataloguePage([normalisation]).filter((l) => l.startsWith("| "))).toHaveLength(normalisation.rows.length + 1);
});
