/**
 * One case, three ways: by the reference interpreter, compiled without fusion, and compiled with it. A way passes where
 * every output of every data set has the dtype and dims that are expected, and elements within rtol 1e-3 and atol 1e-7.
 */
import { compileModel } from "../src/compiler/compile.ts";
import { isTensor, type Datum } from "../src/core/datum.ts";
import type { Tensor } from "../src/core/tensor.ts";
import { verifyGraph } from "../src/graph/verify.ts";
import { readModel } from "../src/onnx/read.ts";
import { operators } from "../src/ops/index.ts";
import { interpretData } from "../src/reference/interpret.ts";
import { load, type RunValue } from "../src/runtime/index.ts";
import { datumOf, resultOf } from "../src/runtime/run-values.ts";
import { nodeCaseMismatch } from "../test/conformance/tolerance.ts";
import { fedOtherwise, type NodeCase } from "../test/support/node-cases.ts";
import { reasonOf } from "./cases.ts";
import { randomMismatch } from "./random-cases.ts";

export const ways = ["reference", "unfused", "fused"] as const;
export type Way = (typeof ways)[number];
const relativeTolerance = 1e-3;
type Data = Readonly<Record<string, Datum>>;
/** Those among the values that are tensors. */
const tensorsOf = (data: Data): Readonly<Record<string, Tensor>> => Object.fromEntries(Object.entries(data).flatMap(([name, d]): [string, Tensor][] => (isTensor(d) ? [[name, d]] : [])));

/** For each way, undefined where it passed, or why it did not. */
export async function runCase(node: NodeCase): Promise<Readonly<Record<Way, string | undefined>>> {
  const outcome: Record<Way, string | undefined> = { reference: undefined, unfused: undefined, fused: undefined };
  for (const way of ways) {
    try {
      outcome[way] = await mismatchOf(node, way);
    } catch (error) {
      outcome[way] = reasonOf(error);
    }
  }
  return outcome;
}

async function mismatchOf(node: NodeCase, way: Way): Promise<string | undefined> {
  for (const { feeds, expected } of node.dataSets()) {
    const run = (): Promise<Data> => runModel(node.bytes, feeds, way);
    const random = await randomMismatch(node.name, async () => tensorsOf(await run()), tensorsOf(feeds), tensorsOf(expected));
    if (random !== undefined) return random;
    const results = await run();
    for (const [name, datum] of Object.entries(expected)) {
      const found = nodeCaseMismatch(results[name], datum, relativeTolerance);
      if (found !== undefined) return `${name}: ${found}`;
    }
  }
  return undefined;
}

/** A model's results in one of the ways. An input that is fed another shape than it is declared with has the one that is fed. */
export async function runModel(bytes: Uint8Array, feeds: Data, way: Way): Promise<Record<string, Datum>> {
  const inputShapes = fedOtherwise(bytes, feeds);
  if (way === "reference") {
    const { graph } = readModel(bytes, operators, { inputShapes });
    verifyGraph(graph);
    return interpretData(graph, feeds);
  }
  const session = await load(compileModel(bytes, { enableFusion: way === "fused", inputShapes }).artifact);
  try {
    const results = await session.run<Record<string, RunValue>>(Object.fromEntries(Object.entries(feeds).map(([name, d]) => [name, resultOf(d)])));
    return Object.fromEntries(Object.entries(results).map(([name, value]) => [name, datumOf(value)]));
  } finally {
    session.dispose();
  }
}
