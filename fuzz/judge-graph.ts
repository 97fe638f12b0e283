/**
 * A graph run by onnxruntime, by the reference interpreter, and compiled both ways. What is compiled is held against the
 * reference, the reference against onnxruntime; where they differ by more than rounding explains, the node that does so
 * on onnxruntime's own values is named, and may be one that is known.
 */
import { isFloat } from "../src/core/dtype.ts";
import { toNumbers, type Tensor } from "../src/core/tensor.ts";
import { modelBytes } from "../test/support/model-spec.ts";
import { runOnnxruntime } from "../test/support/onnxruntime.ts";
import { runWay, type Way } from "../test/support/operator-oracle.ts";
import { attempt, lacksKernel, type Verdict } from "./compare.ts";
import { allowances } from "./conditioning.ts";
import { exact } from "./fuzz-case.ts";
import { graphSpec, isNumeric, nodeAlone, ulpOf, type GraphCase, type GraphNode, type Tensors } from "./graph-case.ts";
import { isKnown } from "./known-differences.ts";

/** Rounding of a few steps: relative to the element, and to the largest finite one of the tensor, in units of the last place. */
const ofElement = 64, ofLargest = 4;

/** What is refused where a size is a symbol that says a rank, or is one of a window. */
const needsSizes = /^OF3014/;

/** What differs by more than a few roundings, or than `allowed` says where it is given. */
export function graphMismatch(actual: Tensors, expected: Tensors, allowed?: Readonly<Record<string, Float64Array>>): string | undefined {
  for (const [name, t] of Object.entries(expected)) {
    const found = tensorMismatch(actual[name], t, allowed?.[name]);
    if (found !== undefined) return `${name}: ${found}`;
  }
  return undefined;
}

function tensorMismatch(actual: Tensor | undefined, expected: Tensor, allowed: Float64Array | undefined): string | undefined {
  if (!actual) return "no such result";
  if (actual.dtype !== expected.dtype || actual.dims.join() !== expected.dims.join())
    return allowed && allowed.length > 0 && allowed.every((a) => a === Infinity) && actual.dtype === expected.dtype ? undefined : `${actual.dtype}[${actual.dims}], expected ${expected.dtype}[${expected.dims}]`;
  if (!isNumeric(expected)) return undefined;
  const isExact = !isFloat(expected.dtype), x = isExact ? actual.data : toNumbers(actual), y = isExact ? expected.data : toNumbers(expected), ulp = ulpOf(expected.dtype);
  let largest = 0;
  for (let i = 0; i < y.length; i++) if (Number.isFinite(Number(y[i]))) largest = Math.max(largest, Math.abs(Number(y[i])));
  for (let i = 0; i < y.length; i++) {
    if (x[i] === y[i] || (Number.isNaN(x[i]) && Number.isNaN(y[i])) || allowed?.[i] === Infinity) continue;
    const slack = isExact ? 0 : ulp * (ofElement * Math.abs(Number(y[i])) + ofLargest * largest) + (allowed?.[i] ?? 0);
    if (!(Math.abs(Number(x[i]) - Number(y[i])) <= slack) || slack === 0) return `element ${i} is ${String(x[i])}, expected ${String(y[i])}`;
  }
  return undefined;
}

/** What differs and is not explained by rounding. */
function beyondRounding(c: GraphCase, actual: Tensors, expected: Tensors): string | undefined {
  return graphMismatch(actual, expected) === undefined ? undefined : graphMismatch(actual, expected, allowances(c, expected));
}

export interface GraphVerdict extends Omit<Verdict, "kind"> {
  readonly kind: Verdict["kind"] | "needs sizes";
  /** Told by rounding: results differ by no more than it explains. */
  readonly rounding?: boolean;
}

export async function judgeGraph(c: GraphCase): Promise<GraphVerdict> {
  const bytes = modelBytes(graphSpec(c)), theirs = await attempt(() => runOnnxruntime(bytes, c.feeds)), reference = await attempt(() => runWay(bytes, c.feeds, "reference"));
  if ("error" in reference && c.symbolic && needsSizes.test(reference.error)) return { kind: "needs sizes", message: reference.error };
  if ("error" in reference) return { kind: "differs", message: `reference ${reference.isDiagnostic ? "refused" : "broke"}: ${reference.error}` };
  let rounding = false;
  for (const way of ["unfused", "fused"] as const satisfies readonly Way[]) {
    const compiled = await attempt(() => runWay(bytes, c.feeds, way));
    if ("error" in compiled) return { kind: "differs", message: `${way} ${compiled.isDiagnostic ? "refused" : "broke"}: ${compiled.error}` };
    const found = beyondRounding(c, compiled.results, reference.results);
    if (found !== undefined) return { kind: "differs", message: `${way} against reference: ${found}` };
    rounding ||= graphMismatch(compiled.results, reference.results) !== undefined;
  }
  if ("error" in theirs) return { kind: "unjudged", message: `${lacksKernel.test(theirs.error) ? "" : "onnxruntime: "}${theirs.error}` };
  if (graphMismatch(reference.results, theirs.results) === undefined) return { kind: "agrees", rounding };
  return await whichNode(c) ?? { kind: "agrees", rounding: true };
}

/** The first node whose result the reference has otherwise, from what onnxruntime gives it. */
async function whichNode(c: GraphCase): Promise<GraphVerdict | undefined> {
  const all = c.nodes.flatMap((n) => n.outputs), theirs = await runOnnxruntime(modelBytes(graphSpec(c, all)), c.feeds), values = { ...c.feeds, ...c.constants, ...theirs };
  let known: GraphVerdict | undefined;
  for (const node of c.nodes) {
    const alone = nodeAlone(c, node, values), reference = await attempt(() => runWay(modelBytes(graphSpec(alone)), alone.feeds, "reference"));
    const found = "error" in reference ? reference.error : beyondRounding(alone, Object.fromEntries(node.outputs.flatMap((n): [string, Tensor][] => { const t = theirs[n]; return t ? [[n, t]] : []; })), reference.results);
    if (found === undefined) continue;
    const message = `reference against onnxruntime, ${node.type}: onnxruntime's ${found} by the reference`;
    if (!isKnown(fuzzCaseOf(node, values), message)) return { kind: "differs", message };
    known ??= { kind: "known to differ", message };
  }
  return known;
}

const fuzzCaseOf = (node: GraphNode, values: Tensors) => ({ type: node.type, inputs: node.inputs.map((n) => values[n]), attributes: node.attributes ?? {}, outputs: node.outputs.length, tolerance: exact });
