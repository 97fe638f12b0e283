/** The proof of a custom rule whose result is one kernel: that kernel, compiled and run, against the reference interpreter. */
import { compileModel } from "../compiler/compile.ts";
import { DiagnosticError } from "../core/diagnostic.ts";
import { isFloat } from "../core/dtype.ts";
import { fromNumbers, toNumbers, type Tensor } from "../core/tensor.ts";
import type { Graph } from "../graph/graph.ts";
import type { ModelInfo } from "../onnx/model-info.ts";
import { newestOpset } from "../onnx/operators.ts";
import { writeModel } from "../onnx/write.ts";
import { interpret } from "../reference/interpret.ts";
import { reassociates } from "../rewrite/rule.ts";
import type { Site } from "../rewrite/site.ts";
import { load } from "../runtime/load.ts";
import type { Session } from "../runtime/session.ts";
import { datumOf, resultOf, type RunValue } from "../runtime/run-values.ts";
import { disagreement } from "./disagreement.ts";
import { generateTensor, inputKinds } from "./inputs.ts";
import { leavesOf } from "./leaves.ts";
import { described, type Proof } from "./proof.ts";

/** What kernels may add by themselves: another order of float additions. */
const kernelNumerics = reassociates(1e-5);
/** The newest opset that the format of files knows. */
const info: ModelInfo = {
  irVersion: 10, opsets: new Map([["", newestOpset]]), producerName: "", producerVersion: "", domain: "", modelVersion: 0, docString: "",
  name: "example", metadata: {}, originalNodes: 0, variants: 1, nodeTypes: new Map(), agreements: [], warnings: [],
};

/** Compiles each graph with the rule; those on which it fires are run on inputs of every kind. */
export async function provedKernel(rule: string, customRules: unknown, drawn: readonly Graph[]): Promise<Proof> {
  let graphs = 0, runs = 0, refusal: string | undefined;
  for (const graph of drawn) {
    const { artifact, sites, problem } = compiled(graph, customRules);
    const site = sites.find((s) => s.name === rule);
    if (!artifact || site?.outcome !== "fired") { refusal ??= problem ?? (site ? `${site.code}: ${site.reason}` : "its pattern does not match"); continue; }
    graphs++;
    const session = await load(artifact);
    for (const kind of inputKinds) {
      const inputs = Object.fromEntries(graph.inputs.map((v, i) => [v.name, generateTensor(v.type.dtype, v.type.shape.map(Number), kind, 100 + i)]));
      const expected = reference(graph, inputs);
      if (!expected) continue;
      const shaken = reference(graph, Object.fromEntries(Object.entries(inputs).map(([name, t]) => [name, nudged(t)])));
      const { results: actual, problem: failed } = await ran(session, inputs);
      runs++;
      for (const [output, original] of Object.entries(expected)) {
        const found = actual ? disagreement(original, actual[output], kernelNumerics, magnified * distance(original, shaken?.[output])) : { reason: `its kernel cannot be run: ${failed ?? ""}` };
        const rewritten = actual?.[output];
        if (found) return { rule, outcome: "wrong", graphs, runs, reason: `on ${kind} inputs, '${output}': ${found.reason}`, counterExample: { kind, inputs, ...described(graph), output, original, ...(rewritten ? { rewritten } : {}) } };
      }
    }
    session.dispose();
  }
  return graphs === 0 ? { rule, outcome: "unproved", graphs, runs, reason: `it fires on no graph that its conditions allow (${refusal ?? ""})` } : { rule, outcome: "proved", graphs, runs };
}

/** A graph that the engine refuses, as where a shape is wrong, shows nothing of the rule. */
function compiled(graph: Graph, customRules: unknown): { readonly artifact?: Uint8Array; readonly sites: readonly Site[]; readonly problem?: string } {
  try {
    const { artifact, report } = compileModel(writeModel(graph, info), { customRules });
    return { artifact, sites: report.sites };
  } catch (e) {
    if (e instanceof DiagnosticError) return { sites: [], problem: `${e.code}: ${e.message}` };
    throw e;
  }
}

async function ran(session: Session, inputs: Readonly<Record<string, Tensor>>): Promise<{ readonly results?: Readonly<Record<string, Tensor>>; readonly problem?: string }> {
  try {
    const results = await session.run<Record<string, RunValue>>(Object.fromEntries(Object.entries(inputs).map(([name, t]) => [name, resultOf(t)])));
    return { results: leavesOf(Object.fromEntries(Object.entries(results).map(([name, value]) => [name, datumOf(value)]))) };
  } catch (e) {
    if (e instanceof DiagnosticError) return { problem: e.message };
    throw e;
  }
}

/**
 * Kernels add in another order, which changes a sum by some roundings of its terms; where terms cancel, that is much of
 * the sum. How far inputs changed by one rounding each move a result says how much of that the graph lets through.
 */
const magnified = 8;
/** Every element one or two roundings larger or smaller. */
function nudged(t: Tensor): Tensor {
  return isFloat(t.dtype) ? fromNumbers(t.dtype, t.dims, Array.from(toNumbers(t), (x, i) => x * (1 + (i % 3 === 0 ? -1 : 1) * 2 ** -23))) : t;
}
/** The largest difference between finite elements. */
function distance(a: Tensor, b: Tensor | undefined): number {
  if (!b || !isFloat(a.dtype) || a.dims.join() !== b.dims.join()) return 0;
  const x = toNumbers(a), y = toNumbers(b);
  let most = 0;
  for (let i = 0; i < x.length; i++) if (Number.isFinite(x[i]) && Number.isFinite(y[i])) most = Math.max(most, Math.abs((x[i] ?? 0) - (y[i] ?? 0)));
  return most;
}

/** Undefined where the inputs are none that the graph accepts. */
function reference(graph: Graph, inputs: Readonly<Record<string, Tensor>>): Readonly<Record<string, Tensor>> | undefined {
  try {
    return interpret(graph, inputs);
  } catch (e) {
    if (e instanceof DiagnosticError) return undefined;
    throw e;
  }
}
