/** The tests of the catalogue see what is wrong: results, calls, rules, and rows that are not on the page. */
import { expect, test } from "vitest";
import { Pad, MaxPool } from "../../src/ops/index.ts";
import { fuses, graphOf, keeps, outcomeOf, sectionOf, strangers, type Build } from "../support/catalogue-cases.ts";
import { conv3, norm, picture } from "../support/catalogue-parts.ts";

const pooled = (fill: number): Build => (b) => b.add(MaxPool, [b.add(Pad, [picture(b), b.int64(0, 0, 1, 1, 0, 0, 1, 1), fill])], { kernel_shape: [3, 3] });

test("a wrong rewrite is seen on some kind of values", async () => {
  expect((await outcomeOf(fuses(1, pooled(-Infinity)))).wrong).toEqual([]);
  const { wrong } = await outcomeOf(fuses(1, pooled(-Infinity)), graphOf(pooled(0)));
  expect(wrong.map((w) => w.split(",")[1]?.trim())).toContain("negative");
  expect(wrong.map((w) => w.split(",")[1]?.trim())).not.toContain("zero");
});
test("calls and rules are those of the compiled model", async () => {
  const fired = await outcomeOf(fuses(1, (b) => norm(b, conv3(b))));
  expect(fired).toMatchObject({ nodes: 1, calls: 1, fired: ["fold-batch-norm-into-conv"], wrong: [] });
  expect(await outcomeOf(keeps(2, (b) => { const y = conv3(b); return [norm(b, y), y]; }))).toMatchObject({ fired: ["decompose-batch-norm"], wrong: [] });
});
test("a row that is not on the page is seen", () => {
  expect(strangers(sectionOf("one", "two"), ["two", "three"])).toEqual(["three"]);
});
