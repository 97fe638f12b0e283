/**
 * The reference interpreter: what a graph means. Every node is run by its operator's naive `evaluate`, control flow
 * node by node; each result is checked against what inference said of it (dtype, sizes, known elements), so that a wrong
 * inference cannot hide.
 */
import { invariant, present } from "../core/assert.ts";
import { fail } from "../core/diagnostic.ts";
import type { EvaluateAttribute } from "../core/evaluate.ts";
import { evaluateDim, formatShape } from "../core/dim.ts";
import { fromNumbers, type Tensor } from "../core/tensor.ts";
import { Graph, type Node, type Value } from "../graph/graph.ts";
import { If } from "../ops/if.ts";
import { Loop } from "../ops/loop.ts";
import { Scan } from "../ops/scan.ts";
import { Bindings } from "./bindings.ts";
import { runIf, runLoop, runScan, type KnownSize, type RunGraph } from "./control-flow.ts";

export interface InterpretOptions {
  /** Sees every value as it is computed; in loops, once each iteration. */
  readonly observe?: (value: Value, tensor: Tensor) => void;
}

/**
 * The graph's results, by name. `feeds` holds its inputs by name; those with a stored default may be left out.
 * Fails with OF3201 to OF3203 (feeds), or throws an InvariantError where a result is not what inference said.
 */
export function interpret(graph: Graph, feeds: Readonly<Record<string, Tensor>>, options: InterpretOptions = {}): Record<string, Tensor> {
  for (const name of Object.keys(feeds)) if (!graph.inputs.some((v) => v.name === name)) fail("OF3201", `the graph has no input '${name}'`, { place: { value: name } });
  const inputs = graph.inputs.map((input) => feeds[input.name] ?? input.default ?? fail("OF3202", `input '${input.name}' is not fed`, { place: { value: input.name } }));
  const results = new Interpreter(options).run(graph, inputs, new Bindings());
  return Object.fromEntries(graph.outputs.map((v, i) => [v.name, present(results[i], "a result")]));
}

class Interpreter {
  readonly #values = new Map<Value, Tensor>();
  readonly #options: InterpretOptions;
  constructor(options: InterpretOptions) { this.#options = options; }

  /** Runs a graph, or a subgraph in the middle of its parent. */
  run(graph: Graph, inputs: readonly Tensor[], bindings: Bindings): Tensor[] {
    const cycle = graph.sort();
    invariant(!cycle, `the graph has a cycle: ${cycle?.join(", ")}`);
    graph.inputs.forEach((value, i) => {
      const tensor = present(inputs[i], "an input");
      if (graph.parent === undefined && !bindings.accepts(value.type, tensor))
        fail("OF3203", `input '${value.name}' is ${value.type.dtype}${formatShape(value.type.shape)}, fed with ${tensor.dtype}${formatShape(tensor.dims)}`, { place: { value: value.name } });
      this.#define(value, tensor, bindings);
    });
    for (const node of graph.nodes) {
      const results = this.#runNode(node, bindings);
      node.outputs.forEach((value, i) => this.#define(value, present(results[i], `output ${i} of ${node.name}`), bindings));
    }
    return graph.outputs.map((v) => this.#read(v));
  }

  #runNode(node: Node, bindings: Bindings): readonly Tensor[] {
    const inputs = node.inputs.map((v) => v && this.#read(v));
    const runGraph: RunGraph = (graph, given) => this.run(graph, given, new Bindings(bindings));
    const known: KnownSize = (d) => (bindings.knows(d) ? evaluateDim(d, bindings.lookup) : undefined);
    switch (node.op) {
      case If: return runIf(node, inputs, runGraph);
      case Loop: return runLoop(node, inputs, runGraph, known);
      case Scan: return runScan(node, inputs, runGraph, known);
    }
    if (node.op.evaluate) return node.op.evaluate(inputs, evaluateAttributes(node), { outputCount: node.outputs.length });
    return node.outputs.map(({ name, type: { dtype, shape, elements } }) => {
      invariant(elements, `'${node.name}' (${node.op.type}) has neither an evaluation nor known elements for '${name}'`);
      return fromNumbers(dtype, bindings.sizes(shape), bindings.sizes(elements));
    });
  }

  #read(value: Value): Tensor {
    return value.constant ?? present(this.#values.get(value), `the value of '${value.name}'`);
  }

  #define(value: Value, tensor: Tensor, bindings: Bindings): void {
    const { dtype, shape, elements } = value.type;
    const by = value.producer ? `${value.producer.node.op.type} '${value.producer.node.name}'` : "the input";
    invariant(tensor.dtype === dtype, `${by} gave ${tensor.dtype} for '${value.name}', inferred ${dtype}`);
    invariant(bindings.bind(shape, tensor.dims), `${by} gave [${tensor.dims}] for '${value.name}', inferred ${formatShape(shape)}${bindings.explain(shape)}`);
    elements?.forEach((d, i) => {
      if (!bindings.knows(d)) return;
      const inferred = evaluateDim(d, bindings.lookup);
      invariant(Number(tensor.data[i]) === inferred, `${by} gave ${tensor.data[i]} as element ${i} of '${value.name}', inferred ${inferred}`);
    });
    this.#values.set(value, tensor);
    this.#options.observe?.(value, tensor);
  }
}

function evaluateAttributes(node: Node): Record<string, EvaluateAttribute | undefined> {
  const out: Record<string, EvaluateAttribute | undefined> = {};
  for (const [name, value] of Object.entries(node.attributes)) if (!(value instanceof Graph)) out[name] = value;
  return out;
}
