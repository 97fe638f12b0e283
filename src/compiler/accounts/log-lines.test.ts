import { expect, it } from "vitest";
import { convBnRelu } from "../../../test/support/article-models.ts";
import { modelBytes } from "../../../test/support/model-spec.ts";
import { compileModel } from "../compile.ts";
import { summaryLines } from "./log-lines.ts";

it("lists what was fused, not what merely became less", () => {
  const { report } = compileModel(modelBytes(convBnRelu("conv").spec)), { counts } = report;
  const lines = summaryLines(report), less = { label: "Slice+Slice", times: 0, nodesSaved: 1 };
  expect(lines.filter((l) => l.endsWith(" times"))).toHaveLength(counts.details.length);
  expect(summaryLines({ ...report, counts: { ...counts, details: [...counts.details, less] } })).toEqual(lines);
  expect(summaryLines({ ...report, counts: { ...counts, details: [...counts.details, { ...less, times: 1 }] } })).toContain("[GE]   Slice+Slice: 1 times");
});
