/**
 * A model whose types hang on sizes in more than one way: one graph whose Ifs, by predicates over the sizes of its inputs,
 * choose among whole readings of the model. Results that differ in rank have the larger one, as `TypeInfo.rank` says.
 */
import { present } from "../core/assert.ts";
import { fail } from "../core/diagnostic.ts";
import { dimSub, symbolsOf } from "../core/dim.ts";
import { Graph, type Value } from "../graph/graph.ts";
import { inferNode } from "../graph/infer-node.ts";
import { If } from "../ops/if.ts";
import { KnownElements, knownElements } from "../ops/known-elements.ts";
import { settled, type Assumptions, type Readings, type Split } from "./assumptions.ts";
import type { NodeAgreement } from "../core/agreement.ts";
import type { Requirement } from "./reachable.ts";
import type { ReadState } from "./reading.ts";

/** One variant of the model, read as a subgraph. */
export interface Variant { readonly graph: Graph; readonly agreements: Iterable<NodeAgreement> }

/**
 * Puts the variants into the main graph and gives its results. `read` reads one as a subgraph of the graph that it is
 * given. Fails with OF2090 where a predicate is about sizes that inputs do not tell.
 */
export function joinVariants(split: Split<unknown>, names: readonly string[], state: ReadState, read: (name: string, around: Graph, assumptions: Assumptions) => Variant): readonly Value[] {
  const told = new Set(state.main.inputs.flatMap((v) => v.type.shape.flatMap((d) => [...symbolsOf(d)])));
  let count = 0;
  const build = (readings: Readings<unknown>, around: Graph, answers: readonly Requirement[]): Graph => {
    const name = `variant_${count++}`;
    if (readings.kind === "one") {
      const { graph, agreements } = read(name, around, settled(answers));
      for (const a of agreements) state.agreements.set(`${name}: ${state.agreements.size}`, { ...a, where: answers.map(({ predicate, taken }) => (taken ? predicate : dimSub(1, predicate))) });
      return graph;
    }
    const graph = new Graph(name, around);
    graph.setOutputs(choose(readings, graph, answers));
    return graph;
  };
  const choose = ({ predicate, node, yes, no }: Split<unknown>, graph: Graph, answers: readonly Requirement[], outputNames?: readonly string[]): readonly Value[] => {
    const place = { node };
    if (![...symbolsOf(predicate)].every((s) => told.has(s)))
      fail("OF2090", "the model takes different paths for sizes that only running it tells", { place, hint: "give the shapes of its inputs when compiling" });
    const condition = graph.insert({ op: KnownElements, inputs: [], attributes: knownElements("bool", [], [predicate]), outputs: [{ dtype: "bool", shape: [], elements: [predicate] }], name: `${node}/condition`, origins: [node] });
    const branch = (readings: Readings<unknown>, taken: boolean): Graph => build(readings, graph, [...answers, { predicate, taken }]);
    const attributes = { then_branch: branch(yes, true), else_branch: branch(no, false) };
    const outputs = inferNode(If, condition.outputs, attributes, names.length, { place, fresh: (hint) => state.symbols.fresh(`${node}_${hint}`) });
    return graph.insert({ op: If, inputs: [present(condition.outputs[0], "a condition")], attributes, outputs, name: `${node}/variants`, origins: [node], ...(outputNames ? { outputNames } : {}) }).outputs;
  };
  return choose(split, state.main, [], names);
}
