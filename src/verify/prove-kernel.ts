/** The proof of a custom rule whose result is one kernel: that kernel, compiled and run, against the reference interpreter. */
import { compileModel } from "../compiler/compile.ts";
import { DiagnosticError } from "../core/diagnostic.ts";
import type { Tensor } from "../core/tensor.ts";
import type { Graph } from "../graph/graph.ts";
import type { ModelInfo } from "../onnx/model-info.ts";
import { newestOpset } from "../onnx/operators.ts";
import { writeModel } from "../onnx/write.ts";
import { interpret } from "../reference/interpret.ts";
import { reassociates } from "../rewrite/rule.ts";
import { load } from "../runtime/load.ts";
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
    const { artifact, report } = compileModel(writeModel(graph, info), { customRules });
    const site = report.sites.find((s) => s.name === rule);
    if (site?.outcome !== "fired") { refusal ??= site ? `${site.code}: ${site.reason}` : "its pattern does not match"; continue; }
    graphs++;
    const session = await load(artifact);
    for (const kind of inputKinds) {
      const inputs = Object.fromEntries(graph.inputs.map((v, i) => [v.name, generateTensor(v.type.dtype, v.type.shape.map(Number), kind, 100 + i)]));
      const expected = reference(graph, inputs);
      if (!expected) continue;
      const results = await session.run<Record<string, RunValue>>(Object.fromEntries(Object.entries(inputs).map(([name, t]) => [name, resultOf(t)])));
      const actual = leavesOf(Object.fromEntries(Object.entries(results).map(([name, value]) => [name, datumOf(value)])));
      runs++;
      for (const [output, original] of Object.entries(expected)) {
        const found = disagreement(original, actual[output], kernelNumerics), rewritten = actual[output];
        if (found) return { rule, outcome: "wrong", graphs, runs, reason: `on ${kind} inputs, '${output}': ${found.reason}`, counterExample: { kind, inputs, ...described(graph), output, original, ...(rewritten ? { rewritten } : {}) } };
      }
    }
    session.dispose();
  }
  return graphs === 0 ? { rule, outcome: "unproved", graphs, runs, reason: `it fires on no graph that its conditions allow (${refusal ?? ""})` } : { rule, outcome: "proved", graphs, runs };
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
