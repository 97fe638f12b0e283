/** `onnxfuse compare`: two models or artifacts on the same inputs, output by output. */
import { fail } from "../../core/diagnostic.ts";
import type { Tensor } from "../../core/tensor.ts";
import type { Feed, RunValue, Session } from "../../runtime/index.ts";
import { datumOf } from "../../runtime/run-values.ts";
import { leavesOf } from "../../verify/leaves.ts";
import { differenceOf, isWithin } from "../../verify/metrics.ts";
import { compileOptionsOf } from "../options/compile-options.ts";
import { assumedLines } from "../assumed-sizes.ts";
import { feedOptions, feedsFor } from "../feeds.ts";
import { openSession } from "../open.ts";
import { table } from "../table.ts";
import { jsonOption, modelOptions, type Command } from "./command.ts";

export const compare: Command = {
  name: "compare", operands: "<first> <second>", doc: "compare two models or artifacts, output by output",
  options: [{ flags: "tolerance <share>", doc: "largest difference, as a share of the largest element (default 1e-4)" }, ...feedOptions, ...modelOptions, jsonOption],
  async run(line, console) {
    const [first = "", second = ""] = line.operands;
    const text = line.value("tolerance") ?? "1e-4", tolerance = Number(text);
    if (!(tolerance >= 0)) fail("OF1002", `--tolerance ${text} is not a number`);
    const options = await compileOptionsOf(line);
    const [a, b] = [await openSession(first, options), await openSession(second, options)];
    const { feeds, assumed } = feedsFor(b.session, [a.artifact, b.artifact], line);
    for (const text of assumedLines(assumed)) console.error(text);
    const [x, y] = [await leavesFrom(a.session, feeds), await leavesFrom(b.session, feeds)];
    const rows = Object.entries(y).map(([name, expected]) => {
      const actual = x[name];
      const d = actual && differenceOf(actual, expected);
      return { name, ...d, within: d !== undefined && isWithin(d, tolerance), ...(d ? {} : { mismatch: actual ? `${actual.dtype} [${actual.dims.join(", ")}] against ${expected.dtype} [${expected.dims.join(", ")}]` : "is missing" }) };
    });
    if (line.has("json")) console.out(JSON.stringify({ tolerance, outputs: rows }));
    else {
      const number = (v: number | undefined): string => (v === undefined ? "" : v.toPrecision(6));
      for (const row of table(["output", "cosine", "rel. Euclid", "max abs", "max / largest", ""], rows.map((r) => [r.name, number(r.cosine), number(r.relativeEuclidean), number(r.maxAbsolute), number(r.maxScaled), r.within ? "equal" : (r.mismatch ?? "differs")]))) console.out(row);
    }
    return rows.every((r) => r.within) ? 0 : 1;
  },
};

/** Results as tensors: what is in sequences, optionals and maps one by one. */
async function leavesFrom(session: Session, feeds: Readonly<Record<string, Feed>>): Promise<Record<string, Tensor>> {
  const results = await session.run<Record<string, RunValue>>(feeds);
  return leavesOf(Object.fromEntries(Object.entries(results).map(([name, value]) => [name, datumOf(value)])));
}
