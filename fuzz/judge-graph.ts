/**
 * A graph run by onnxruntime, by the reference interpreter, and compiled both ways. What is compiled is held against the
 * reference, the reference against onnxruntime; where they differ by more than rounding explains, the node that does so
 * on onnxruntime's own values is named, and may be one that is known.
 */
import { isFloat, type DType } from "../src/core/dtype.ts";
import { toNumbers, type Tensor } from "../src/core/tensor.ts";
import { modelBytes } from "../test/support/model-spec.ts";
import { runOnnxruntime } from "../test/support/onnxruntime.ts";
import { runWay, type Way } from "../test/support/operator-oracle.ts";
import { attempt, lacksKernel, type Verdict } from "./compare.ts";
import { allowances } from "./conditioning.ts";
import { exact } from "./fuzz-case.ts";
import { graphSpec, isNumeric, nodeAlone, ulpOf, type GraphCase, type GraphNode, type Tensors } from "./graph-case.ts";
import { isKnown } from "./known-differences.ts";

/** What a few steps may round by, and functions be off by: relative to the element, and to the largest finite one of the tensor. */
const slackOf = (dtype: DType): { readonly element: number; readonly largest: number; readonly function: number } => {
  switch (dtype) {
    case "float64": return { element: 1e-11, largest: 1e-14, function: 2e-12 };
    case "float16": case "bfloat16": return { element: 4 * ulpOf(dtype), largest: 2 * ulpOf(dtype), function: 0.5 * ulpOf(dtype) };
    default: return { element: 1e-5, largest: 5e-7, function: 2e-6 };
  }
};

/** What is refused where a size is a symbol that says a rank, or is one of a window. */
const needsSizes = /^OF3014/;

/** Whether an input has a size of 0, which a model's declaration cannot say: it is read as a size that is not known. */
const hasEmpty = ({ feeds }: GraphCase): boolean => Object.values(feeds).some((t) => t.dims.includes(0));

/** Whose results are compared: those of onnxruntime's functions may be off absolutely. */
export type Whose = "ours" | "onnxruntime's";

/** What differs by more than a few roundings, or than `allowed` says where it is given. */
export function graphMismatch(actual: Tensors, expected: Tensors, allowed?: Readonly<Record<string, Float64Array>>, whose: Whose = "ours"): string | undefined {
  for (const [name, t] of Object.entries(expected)) {
    const found = tensorMismatch(actual[name], t, allowed?.[name], whose);
    if (found !== undefined) return `${name}: ${found}`;
  }
  return undefined;
}

function tensorMismatch(actual: Tensor | undefined, expected: Tensor, allowed: Float64Array | undefined, whose: Whose): string | undefined {
  if (!actual) return "no such result";
  if (actual.dtype !== expected.dtype || actual.dims.join() !== expected.dims.join())
    return allowed && allowed.length > 0 && allowed.every((a) => a === Infinity) && actual.dtype === expected.dtype ? undefined : `${actual.dtype}[${actual.dims}], expected ${expected.dtype}[${expected.dims}]`;
  if (!isNumeric(expected)) return undefined;
  const isExact = !isFloat(expected.dtype), x = isExact ? actual.data : toNumbers(actual), y = isExact ? expected.data : toNumbers(expected), by = slackOf(expected.dtype);
  let largest = 0;
  for (let i = 0; i < y.length; i++) if (Number.isFinite(Number(y[i]))) largest = Math.max(largest, Math.abs(Number(y[i])));
  for (let i = 0; i < y.length; i++) {
    if (x[i] === y[i] || (Number.isNaN(x[i]) && Number.isNaN(y[i])) || allowed?.[i] === Infinity) continue;
    const slack = isExact ? 0 : by.element * Math.abs(Number(y[i])) + by.largest * largest + (whose === "ours" ? 0 : by.function) + (allowed?.[i] ?? 0);
    if (!(Math.abs(Number(x[i]) - Number(y[i])) <= slack) || slack === 0) return `element ${i} is ${String(x[i])}, expected ${String(y[i])}`;
  }
  return undefined;
}

/** What differs and is not explained by rounding. */
function beyondRounding(c: GraphCase, actual: Tensors, expected: Tensors, whose: Whose, computed?: ReadonlySet<string>): string | undefined {
  return graphMismatch(actual, expected, undefined, whose) === undefined ? undefined : graphMismatch(actual, expected, allowances(c, expected, computed), whose);
}

export interface GraphVerdict extends Omit<Verdict, "kind"> {
  readonly kind: Verdict["kind"] | "needs sizes";
  /** Told by rounding: results differ by no more than it explains. */
  readonly rounding?: boolean;
}

export async function judgeGraph(c: GraphCase): Promise<GraphVerdict> {
  const bytes = modelBytes(graphSpec(c)), theirs = await attempt(() => runOnnxruntime(bytes, c.feeds)), reference = await attempt(() => runWay(bytes, c.feeds, "reference"));
  if ("error" in reference && (c.symbolic || hasEmpty(c)) && needsSizes.test(reference.error)) return { kind: "needs sizes", message: reference.error };
  if ("error" in reference) return { kind: "differs", message: `reference ${reference.isDiagnostic ? "refused" : "broke"}: ${reference.error}` };
  let rounding = false;
  for (const way of ["unfused", "fused"] as const satisfies readonly Way[]) {
    const compiled = await attempt(() => runWay(bytes, c.feeds, way));
    if ("error" in compiled) return { kind: "differs", message: `${way} ${compiled.isDiagnostic ? "refused" : "broke"}: ${compiled.error}` };
    const found = beyondRounding(c, compiled.results, reference.results, "ours");
    if (found !== undefined) return { kind: "differs", message: `${way} against reference: ${found}` };
    rounding ||= graphMismatch(compiled.results, reference.results) !== undefined;
  }
  if ("error" in theirs) return { kind: "unjudged", message: `${lacksKernel.test(theirs.error) ? "" : "onnxruntime: "}${theirs.error}` };
  if (graphMismatch(reference.results, theirs.results, undefined, "onnxruntime's") === undefined) return { kind: "agrees", rounding };
  if (beyondRounding(c, theirs.results, reference.results, "onnxruntime's") === undefined) return { kind: "agrees", rounding: true };
  return await whichNode(c) ?? { kind: "agrees", rounding: true };
}

/** The first node whose result the reference has otherwise, from what onnxruntime gives it. */
async function whichNode(c: GraphCase): Promise<GraphVerdict | undefined> {
  const all = c.nodes.flatMap((n) => n.outputs), theirs = await runOnnxruntime(modelBytes(graphSpec(c, all)), c.feeds), values = { ...c.feeds, ...c.constants, ...theirs }, computed = new Set(all);
  let known: GraphVerdict | undefined;
  for (const node of c.nodes) {
    const alone = nodeAlone(c, node, values), reference = await attempt(() => runWay(modelBytes(graphSpec(alone)), alone.feeds, "reference"));
    const found = "error" in reference ? reference.error : beyondRounding(alone, Object.fromEntries(node.outputs.flatMap((n): [string, Tensor][] => { const t = theirs[n]; return t ? [[n, t]] : []; })), reference.results, "onnxruntime's", computed);
    if (found === undefined) continue;
    const message = `reference against onnxruntime, ${node.type}: onnxruntime's ${found} by the reference`;
    if (!isKnown(fuzzCaseOf(node, values), message)) return { kind: "differs", message };
    known ??= { kind: "known to differ", message };
  }
  return known;
}

const fuzzCaseOf = (node: GraphNode, values: Tensors) => ({ type: node.type, inputs: node.inputs.map((n) => values[n]), attributes: node.attributes ?? {}, outputs: node.outputs.length, tolerance: exact });
