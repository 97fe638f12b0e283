/**
 * Small models on which fusions are known to fire, to be wrong or to be out of place (`conformance/fusion-cases.*` in
 * the test data), with how many nodes onnxruntime's own optimiser leaves of each.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { CompileOptions } from "../../src/api/index.ts";
import { evaluateDim } from "../../src/core/dim.ts";
import { isFloat } from "../../src/core/dtype.ts";
import { fromNumbers, sizeOf, type Tensor } from "../../src/core/tensor.ts";
import type { Graph } from "../../src/graph/graph.ts";
import { dataFolder } from "./cases.ts";
import { unpackedArchive } from "./node-cases.ts";
import { randomFrom, type Random } from "./random.ts";

export interface FusionCase {
  /** Path in the archive, without its extension. */
  readonly name: string;
  readonly bytes: Uint8Array;
  /** Nodes that onnxruntime's extended optimisation leaves. */
  readonly extended: number;
}

/** The cases that onnxruntime runs, in the table's order; empty without test data. */
export function fusionCases(): FusionCase[] {
  const table = dataFolder === undefined ? undefined : join(dataFolder, "conformance", "fusion-cases.csv");
  const folder = unpackedArchive(/^fusion-cases\.tar\.xz$/);
  if (table === undefined || folder === undefined || !existsSync(table)) return [];
  const [head = "", ...rows] = readFileSync(table, "utf8").trim().split("\n");
  const columns = head.split(",");
  return rows.map((row) => row.split(",")).filter((row) => row[columns.indexOf("run")] === "ok").map((row) => {
    const path = row[columns.indexOf("path")] ?? "";
    return { name: path.replace(/\.onnx$/, ""), bytes: readFileSync(join(folder, "fusion-cases", path)), extended: Number(row[columns.indexOf("ort_extended")]) };
  });
}

/** How inputs are drawn where the defaults do not run. */
export interface FeedOptions {
  /** Sizes by name; others are 2. */
  readonly sizes?: Readonly<Record<string, number>>;
  /** A number of an input; by default normal, and for integers 0 or 1, which are in range as indices, masks and lengths. */
  readonly number?: (random: Random, input: string) => number;
}

/** Inputs of a graph, from a seed. Strings are single letters. */
export function randomFeeds(graph: Graph, seed: number, { sizes = {}, number }: FeedOptions = {}): Record<string, Tensor> {
  const random = randomFrom(seed);
  return Object.fromEntries(graph.inputs.filter((v) => !v.default).map(({ name, type: { dtype, shape } }): [string, Tensor] => {
    const dims = shape.map((d) => evaluateDim(d, (symbol) => sizes[symbol] ?? 2));
    if (dtype === "string") return [name, { dtype, dims, data: Array.from({ length: sizeOf(dims) }, () => random.pick(["a", "b", "c", "d"])) }];
    return [name, fromNumbers(dtype, dims, Array.from({ length: sizeOf(dims) }, () => (number ? number(random, name) : isFloat(dtype) ? random.normal() : random.int(2))))];
  }));
}

const positive: FeedOptions = { number: (random) => 1 + random() };
/** What a case needs to run at all. */
export const feedOptions: Readonly<Record<string, FeedOptions>> = {
  dropout_ratio: { number: (random) => random() },
  "fusion/attention_past_unidir": { sizes: { total_seq_len: 4 } },
  "fusion/div_mul": { number: (random, name) => (name === "B" ? 0.25 + random() / 4 : name === "A" ? 1 + random() : 100 + 20 * random()) },
  "fusion/reshape_fusion_input_is_graph_input": { sizes: { input_dim_0: 30, input_dim_1: 30, input_dim_2: 30 } },
  "noop-add": { sizes: { K: 1 } },
  "fusion/matmul_scale_int32": positive,
};
/** Sizes that a model leaves out of its declarations. */
export const compileOptions: Readonly<Record<string, CompileOptions>> = { "matmul_add_fusion/matmul_add_missing_shape": { inputShapes: { C: [2, 2] } } };

/** Cases whose results are drawn at random: only their types are onnxruntime's. */
export const isRandom = (graph: Graph): boolean => graph.nodes.some((n) => n.op.deterministic === false);

/** Rows of four that are nearly constant: dividing by their deviation magnifies the roundings of a float16 sum. */
const magnified = new Set(["fusion/skip_layer_norm_format2_graph_output_with_cast", "fusion/skip_layer_norm_format2_with_cast"]);
/** A few roundings to the narrowest float that the model computes with, relative to the largest value. */
export function toleranceOf(name: string, graph: Graph): number {
  if (magnified.has(name)) return 1e-2;
  const narrow = [...graph.nodes.flatMap((n) => n.outputs), ...graph.inputs].some((v) => v.type.dtype === "float16" || v.type.dtype === "bfloat16");
  return narrow ? 2e-3 : 2e-4;
}

/** Models that onnxruntime too runs only since a fusion of its own changes them, and what we say of them. */
export const refused: Readonly<Record<string, readonly [error: RegExp, why: string]>> = {
  "fusion/fuse-matmul-bn-only-reshape": [/^OF3011: BatchNormalization: scale is \[5\], which does not fit \[1\]/, "the scale has five elements for one channel; onnxruntime takes it for one of columns"],
};
