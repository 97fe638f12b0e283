/**
 * Small models on which fusions are known to fire, to be wrong or to be out of place (`conformance/fusion-cases.*` in
 * the test data), with how many nodes onnxruntime's own optimiser leaves of each.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
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
