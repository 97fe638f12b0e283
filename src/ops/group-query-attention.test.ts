import { describe, expect, it } from "vitest";
import { compile } from "../api/index.ts";
import { fromNumbers } from "../core/tensor.ts";
import { mismatch, runCompiled } from "../../test/support/differential.ts";
import { judge, modelOf, type JudgedCase, type JudgedInput } from "../../test/support/onnxruntime-check.ts";
import { runOnnxruntime } from "../../test/support/onnxruntime.ts";
import { operatorDifference } from "../../test/support/operator-check.ts";
import { randomFrom, randomTensor } from "../../test/support/random.ts";
import { AppendToCache } from "./append-to-cache.ts";

const random = randomFrom(8), depth = 16;
const of = (...dims: number[]): JudgedInput => ({ tensor: randomTensor(dims, random) });
const ints = (dims: readonly number[], ...values: number[]): JudgedInput => ({ tensor: fromNumbers("int32", dims, values) });
const fixed = (input: JudgedInput): JudgedInput => ({ ...input, constant: true });

interface Query {
  readonly batch?: number; readonly heads?: number; readonly keyHeads?: number; readonly queries: number;
  /** Length of the cache given, and how much of it each of the batch has filled. */
  readonly past?: number; readonly filled?: readonly number[]; readonly total: number; readonly rotary?: number; readonly packed?: boolean;
  readonly bias?: boolean; readonly sink?: boolean; readonly attributes?: JudgedCase["attributes"]; readonly open?: boolean;
}
function grouped({ batch = 1, heads = 4, keyHeads = 2, queries, past, filled, total, rotary, packed, bias, sink, attributes = {}, open }: Query): JudgedCase {
  const counts = filled ?? new Array<number>(batch).fill(total - queries), cache = (): JudgedInput | undefined => (past === undefined ? undefined : open ? { ...of(batch, keyHeads, past, depth), dims: ["b", keyHeads, "p", depth] } : of(batch, keyHeads, past, depth));
  const own = (n: number): JudgedInput => (open ? { ...of(batch, queries, n * depth), dims: ["b", "s", n * depth] } : of(batch, queries, n * depth));
  return {
    type: "GroupQueryAttention", outputs: [["float32", 3], ["float32", 4], ["float32", 4]],
    attributes: { num_heads: heads, kv_num_heads: keyHeads, ...(rotary ? { do_rotary: 1 } : {}), ...attributes },
    inputs: [
      packed ? own(heads + 2 * keyHeads) : own(heads), packed ? undefined : own(keyHeads), packed ? undefined : own(keyHeads), cache(), cache(),
      ints([batch], ...counts.map((c) => c + queries - 1)), fixed(ints([1], total)),
      rotary ? fixed(of(32, rotary)) : undefined, rotary ? fixed(of(32, rotary)) : undefined, undefined,
      bias ? of(1, heads, queries, total) : undefined, sink ? of(heads) : undefined,
    ],
  };
}

/** The total length is fed. */
const fedTotal = (c: JudgedCase): JudgedCase => ({ ...c, inputs: c.inputs.map((input, i) => (i === 6 && input ? { tensor: input.tensor } : input)) });

describe("GroupQueryAttention as onnxruntime", () => {
  it.each<readonly [string, JudgedCase]>([
    ["a prompt", grouped({ queries: 5, total: 5 })],
    ["a prompt of two, packed", grouped({ batch: 2, queries: 9, total: 9, packed: true })],
    ["a prompt, rotated", grouped({ queries: 10, total: 10, rotary: 8 })],
    ["one token behind a cache", grouped({ queries: 1, past: 6, total: 7, rotary: 8 })],
    ["one token each behind caches filled differently", grouped({ batch: 2, queries: 1, past: 6, filled: [6, 3], total: 7, rotary: 8 })],
    ["sizes that stay open", grouped({ batch: 2, queries: 1, past: 6, filled: [6, 3], total: 7, rotary: 8, open: true })],
    ["some tokens behind a cache", grouped({ queries: 3, past: 6, total: 9, rotary: 8, attributes: { rotary_interleaved: 1 } })],
    ["a cache with room", grouped({ queries: 1, past: 12, filled: [4], total: 5 })],
    ["packed, rotated in part, a scale", grouped({ queries: 1, past: 3, total: 4, rotary: 8, packed: true, attributes: { scale: { float: 0.2 } } })],
    ["a window", grouped({ queries: 12, total: 12, attributes: { local_window_size: 4 } })],
    ["a window behind a cache", grouped({ queries: 1, past: 9, total: 10, attributes: { local_window_size: 4 } })],
    ["a soft cap", grouped({ queries: 4, total: 4, attributes: { softcap: { float: 0.8 } } })],
    ["a smooth softmax", grouped({ queries: 4, total: 4, attributes: { smooth_softmax: 1 } })],
    ["sinks", grouped({ queries: 4, total: 4, sink: true })],
    ["a prompt whose length only running tells", fedTotal(grouped({ queries: 5, total: 5, rotary: 8 }))],
    ["a cache with room, for a length that only running tells", fedTotal(grouped({ batch: 2, queries: 1, past: 6, filled: [4, 2], total: 5, rotary: 8 }))],
    ["a cache that grows to a length that only running tells", fedTotal(grouped({ queries: 3, past: 6, total: 9, open: true }))],
    ["added to the scores", grouped({ queries: 4, total: 4, bias: true })],
  ])("%s", async (_, c) => { expect(await judge(c)).toBeUndefined(); });
});

describe("AppendToCache", () => {
  const int64 = (...values: number[]) => fromNumbers("int64", [values.length], values);
  it.each([[0, 0], [2, 3], [5, 5]])("%i and %i tokens so far", (a, b) => {
    const inputs = [{ tensor: randomTensor([2, 1, 2, 3], random) }, { tensor: int64(a, b) }, { tensor: int64(7), constant: true }, { tensor: randomTensor([2, 1, 5, 3], random) }];
    expect(operatorDifference({ op: AppendToCache, inputs })).toBe(0);
    expect(operatorDifference({ op: AppendToCache, inputs: inputs.slice(0, 3) })).toBe(0);
  });
});

it("runs on kernels where the total length is fed", async () => {
  const { report } = await compile(modelOf(fedTotal(grouped({ queries: 3, past: 6, total: 9, rotary: 8 }))).bytes);
  expect(report.hostOperators.map((h) => h.op)).toEqual(["Range"]);
});

it("sees another window", async () => {
  const c = grouped({ queries: 12, total: 12, attributes: { local_window_size: 4 } }), { bytes, feeds } = modelOf(c);
  const other = modelOf({ ...c, attributes: { ...c.attributes, local_window_size: 5 } }).bytes;
  expect(mismatch(await runCompiled(other, feeds, true), await runOnnxruntime(bytes, feeds))).toBeDefined();
});
