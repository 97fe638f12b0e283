/**
 * The reference interpreter: what a graph means. Every node is run by its operator's naive `evaluate`, control flow
 * node by node; each result is checked against what inference said of it (dtype, sizes, known elements), so that a wrong
 * inference cannot hide.
 */
import { invariant } from "../core/assert.ts";
import { containerMismatch, formatContainer } from "../core/container.ts";
import { asTensor, isTensor, type Datum } from "../core/datum.ts";
import { fail } from "../core/diagnostic.ts";
import type { EvaluateAttribute } from "../core/evaluate.ts";
import { evaluateDim, formatShape } from "../core/dim.ts";
import { fromNumbers, type Tensor } from "../core/tensor.ts";
import { Graph, type Node, type Value } from "../graph/graph.ts";
import { evaluationOf, isTypeAttribute } from "../graph/op.ts";
import { If } from "../ops/if.ts";
import { Loop } from "../ops/loop.ts";
import { Scan } from "../ops/scan.ts";
import { Bindings } from "./bindings.ts";
import { runIf, runLoop, runScan, type KnownSize, type RunGraph } from "./control-flow.ts";

export interface InterpretOptions {
  /** Sees every value as it is computed; in loops, once each iteration. */
  readonly observe?: (value: Value, datum: Datum) => void;
}

/** As `interpretData`, for a graph whose results are tensors. */
export function interpret(graph: Graph, feeds: Readonly<Record<string, Datum>>, options: InterpretOptions = {}): Record<string, Tensor> {
  return Object.fromEntries(Object.entries(interpretData(graph, feeds, options)).map(([name, d]) => [name, asTensor(d, name)]));
}

/**
 * The graph's results, by name. `feeds` holds its inputs by name; those with a stored default may be left out.
 * Fails with OF3201 to OF3203 (feeds), or throws an InvariantError where a result is not what inference said.
 */
export function interpretData(graph: Graph, feeds: Readonly<Record<string, Datum>>, options: InterpretOptions = {}): Record<string, Datum> {
  for (const name of Object.keys(feeds)) if (!graph.inputs.some((v) => v.name === name)) fail("OF3201", `the graph has no input '${name}'`, { place: { value: name } });
  const inputs = graph.inputs.map((input) => feeds[input.name] ?? input.default ?? absent(input));
  const results = new Interpreter(options).run(graph, inputs, new Bindings());
  return Object.fromEntries(graph.outputs.map((v, i) => [v.name, results[i] ?? null]));
}

class Interpreter {
  readonly #values = new Map<Value, Datum>();
  readonly #options: InterpretOptions;
  constructor(options: InterpretOptions) { this.#options = options; }

  /** Runs a graph, or a subgraph in the middle of its parent. */
  run(graph: Graph, inputs: readonly Datum[], bindings: Bindings): Datum[] {
    const cycle = graph.sort();
    invariant(!cycle, `the graph has a cycle: ${cycle?.join(", ")}`);
    graph.inputs.forEach((value, i) => {
      const datum = inputs[i];
      invariant(datum !== undefined, `input ${i} of ${graph.name}`);
      if (graph.parent === undefined) refuseMismatch(value, datum, bindings);
      this.#define(value, datum, bindings);
    });
    for (const node of graph.nodes) {
      const results = this.#runNode(node, bindings);
      node.outputs.forEach((value, i) => {
        const result = results[i];
        invariant(result !== undefined, `output ${i} of ${node.name}`);
        this.#define(value, result, bindings);
      });
    }
    return graph.outputs.map((v) => this.#read(v));
  }

  #runNode(node: Node, bindings: Bindings): readonly Datum[] {
    const inputs = node.inputs.map((v) => v && this.#read(v));
    const runGraph: RunGraph = (graph, given) => this.run(graph, given, new Bindings(bindings));
    const known: KnownSize = (d) => (bindings.knows(d) ? evaluateDim(d, bindings.lookup) : undefined);
    switch (node.op) {
      case If: return runIf(node, inputs, runGraph);
      case Loop: return runLoop(node, inputs, runGraph, known);
      case Scan: return runScan(node, inputs, runGraph, known);
    }
    const evaluate = evaluationOf(node.op);
    if (evaluate) return evaluate(inputs, evaluateAttributes(node), { outputCount: node.outputs.length, outputDTypes: node.outputs.map((v) => v.type.dtype) });
    return node.outputs.map(({ name, type: { dtype, shape, elements } }) => {
      invariant(elements, `'${node.name}' (${node.op.type}) has neither an evaluation nor known elements for '${name}'`);
      return fromNumbers(dtype, bindings.sizes(shape), bindings.sizes(elements));
    });
  }

  #read(value: Value): Datum {
    if (value.constant) return value.constant;
    const datum = this.#values.get(value);
    invariant(datum !== undefined, `the value of '${value.name}'`);
    return datum;
  }

  #define(value: Value, datum: Datum, bindings: Bindings): void {
    const by = value.producer ? `${value.producer.node.op.type} '${value.producer.node.name}'` : "the input";
    const { container } = value.type;
    const wrong = container && containerMismatch(container, datum);
    invariant(wrong === undefined, `${by} gave no ${container && formatContainer(container)} for '${value.name}': ${wrong}`);
    if (!container) checkTensor(value, asTensor(datum, value.name), by, bindings);
    this.#values.set(value, datum);
    this.#options.observe?.(value, datum);
  }
}

/** An optional input that is not fed holds nothing. */
const absent = ({ name, type }: Value): Datum => (type.container?.kind === "optional" ? null : fail("OF3202", `input '${name}' is not fed`, { place: { value: name } }));

function refuseMismatch({ name, type }: Value, datum: Datum, bindings: Bindings): void {
  if (type.container) {
    const wrong = containerMismatch(type.container, datum);
    if (wrong !== undefined) fail("OF3203", `input '${name}' is a ${formatContainer(type.container)}: ${wrong}`, { place: { value: name } });
  } else if (!isTensor(datum) || !bindings.accepts(type, datum)) {
    fail("OF3203", `input '${name}' is ${type.dtype}${formatShape(type.shape)}, fed with ${isTensor(datum) ? `${datum.dtype}${formatShape(datum.dims)}` : "a container"}`, { place: { value: name } });
  }
}

/** What inference said of a tensor holds. */
function checkTensor(value: Value, tensor: Tensor, by: string, bindings: Bindings): void {
  const { dtype, shape, elements, rank } = value.type;
  invariant(tensor.dtype === dtype, `${by} gave ${tensor.dtype} for '${value.name}', inferred ${dtype}`);
  if (rank !== undefined && bindings.knows(rank)) invariant(tensor.dims.length === evaluateDim(rank, bindings.lookup), `${by} gave rank ${tensor.dims.length} for '${value.name}', inferred ${evaluateDim(rank, bindings.lookup)}`);
  const dims = rank === undefined ? tensor.dims : [...Array<number>(Math.max(0, shape.length - tensor.dims.length)).fill(1), ...tensor.dims];
  invariant(bindings.bind(shape, dims), `${by} gave [${tensor.dims}] for '${value.name}', inferred ${formatShape(shape)}${bindings.explain(shape)}`);
  elements?.forEach((d, i) => {
    if (!bindings.knows(d)) return;
    const inferred = evaluateDim(d, bindings.lookup);
    invariant(Number(tensor.data[i]) === inferred, `${by} gave ${tensor.data[i]} as element ${i} of '${value.name}', inferred ${inferred}`);
  });
}

function evaluateAttributes(node: Node): Record<string, EvaluateAttribute | undefined> {
  const out: Record<string, EvaluateAttribute | undefined> = {};
  for (const [name, value] of Object.entries(node.attributes)) if (!(value instanceof Graph) && !isTypeAttribute(value)) out[name] = value;
  return out;
}
