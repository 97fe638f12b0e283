/**
 * Constant folding: what can be computed now is. A node whose inputs are constants is evaluated by the operator's
 * own definition; a value whose elements inference knows becomes a constant, or, where they are expressions over
 * symbolic sizes, a KnownElements node, so that the shape arithmetic behind it disappears.
 */
import { present } from "../core/assert.ts";
import { isStatic, symbolsOf, type Dim } from "../core/dim.ts";
import { isInteger, type DType } from "../core/dtype.ts";
import { byteLength, fromNumbers, sizeOf, type Tensor } from "../core/tensor.ts";
import { subgraphs, type Graph, type Node, type Value } from "../graph/graph.ts";
import { asTensor } from "../core/datum.ts";
import { evaluationOf } from "../graph/op.ts";
import type { EvaluateAttribute } from "../core/evaluate.ts";
import { Identity, KnownElements } from "../ops/index.ts";
import { knownElements } from "../ops/known-elements.ts";
import { isConstant } from "../rewrite/match.ts";
import type { Ledger } from "./ledger.ts";
import { isQuantizedOperand } from "./quantized-operand.ts";
import { replaceOutput } from "./replace.ts";

export interface FoldOptions {
  /** Replace values with known symbolic elements by KnownElements. False where the graph is to be written as ONNX. Default true. */
  readonly symbolic?: boolean;
  /** Keep constants quantised where rules may compute with the integers. Default false. */
  readonly keepQuantized?: boolean;
  /** A folded result may have at most this many bytes, unless its inputs, each counted once, have more together. */
  readonly maxBytes?: number;
}
const defaultMaxBytes = 64 * 1024 * 1024;

/** Returns whether anything was folded. */
export function fold(graph: Graph, ledger: Ledger, options: FoldOptions = {}): boolean {
  const known = new Set<string>();
  for (const v of graph.inputs) for (const d of v.type.shape) symbolsOf(d, known);
  return foldIn(graph, ledger, options, known);
}

function foldIn(graph: Graph, ledger: Ledger, options: FoldOptions, symbols: ReadonlySet<string>): boolean {
  let changed = false;
  for (const node of graph.nodes) {
    for (const inner of subgraphs(node)) if (foldIn(inner, ledger, options, symbols)) changed = true;
    if (options.keepQuantized && isQuantizedOperand(node)) continue;
    if (node.op.deterministic === false || node.op.sideEffects || node.op === KnownElements) continue;
    if (foldNode(node, ledger, options, symbols)) changed = true;
  }
  return changed;
}

function foldNode(node: Node, ledger: Ledger, options: FoldOptions, symbols: ReadonlySet<string>): boolean {
  const results = evaluated(node, options.maxBytes ?? defaultMaxBytes);
  let changed = false;
  for (const [index, value] of node.outputs.entries()) {
    const unused = value.uses.length === 0 && value.resultOf.length === 0;
    if (unused) continue;
    const constant = results?.[index] ?? knownConstant(value);
    if (constant) {
      const saved = replaceOutput(node, node.graph.addConstant(constant, `${value.name}_folded`), index);
      if (saved === undefined) continue;
      ledger.record("folded", node.op.type, saved, node.graph.has(node) ? 0 : 1);
      ledger.trace("folded", [node], results ? "its inputs are constants: it was computed when the model was compiled" : "its value follows from sizes that are known");
      changed = true;
    } else if (options.symbolic !== false && replaceByElements(node, index, ledger, symbols)) changed = true;
  }
  return changed;
}

/** The outputs of a node whose inputs are all constants; undefined where they are not, or too large. */
function evaluated(node: Node, maxBytes: number): readonly (Tensor | undefined)[] | undefined {
  const evaluate = evaluationOf(node.op);
  if (!evaluate || subgraphs(node).length || node.inputs.length === 0 || !node.inputs.every((v) => v === undefined || isConstant(v))) return undefined;
  const inputs = node.inputs.map((v) => v?.constant);
  const given = [...new Set(inputs)].reduce((n, t) => n + (t ? byteLength(t) : 0), 0);
  for (const v of node.outputs) {
    if (!isStatic(v.type.shape)) continue;
    if (byteLength({ dtype: v.type.dtype, dims: v.type.shape, data: [] }) > Math.max(maxBytes, given)) return undefined;
  }
  const results = evaluate(inputs, node.attributes as Readonly<Record<string, EvaluateAttribute | undefined>>, { outputCount: node.outputs.length, outputDTypes: node.outputs.map((v) => v.type.dtype) });
  return node.outputs.map(({ type }, i) => { const result = results[i]; return type.container || result === undefined ? undefined : asTensor(result); });
}

/** A computed value that inference knows in full. */
function knownConstant(value: Value): Tensor | undefined {
  const { dtype, shape, elements, constant } = value.type;
  if (constant) return constant;
  if (!elements || !isStatic(shape) || !elements.every((e): e is number => typeof e === "number" && Number.isSafeInteger(e))) return undefined;
  return sizeOf(shape) === elements.length && holdsIntegers(dtype) ? fromNumbers(dtype, shape, elements) : undefined;
}
const holdsIntegers = (dtype: DType): boolean => isInteger(dtype) || dtype === "bool";

function replaceByElements(node: Node, index: number, ledger: Ledger, symbols: ReadonlySet<string>): boolean {
  const value = present(node.outputs[index], "an output"), { dtype, shape, elements } = value.type;
  if (!elements || !isStatic(shape) || !isInteger(dtype) || elements.length !== sizeOf(shape) || !elements.every((e) => isOver(e, symbols))) return false;
  if (node.op === Identity && value.resultOf.length && value.uses.length === 0) return false;
  const attributes = knownElements(dtype, shape, elements);
  const stand = node.graph.insert({ op: KnownElements, inputs: [], attributes, outputs: [value.type], name: node.name, origins: node.origins }, node);
  const saved = replaceOutput(node, present(stand.outputs[0], "the elements"), index) ?? 0;
  ledger.record("folded", node.op.type, saved - 1);
  ledger.trace("folded", [node], "its elements are expressions over the sizes of the inputs");
  return true;
}
const isOver = (e: Dim, symbols: ReadonlySet<string>): boolean => (typeof e === "number" ? Number.isSafeInteger(e) : [...symbolsOf(e)].every((s) => symbols.has(s)));
