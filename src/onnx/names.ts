/** Names of values while a model is written: fresh ones, and where the size behind a symbol can be read. */
import { isSymbolic } from "../core/dim.ts";
import { subgraphs, type Graph, type Value } from "../graph/graph.ts";
import { KnownElements } from "../ops/known-elements.ts";

/** Names that are taken; the graph itself is left as it is. */
export class Names {
  readonly #taken: Set<string>;
  constructor(taken: Iterable<string>) { this.#taken = new Set(taken); }

  fresh(hint: string): string {
    let name = hint;
    for (let i = 1; this.#taken.has(name); i++) name = `${hint}_${i}`;
    this.#taken.add(name);
    return name;
  }
}

export const nodeNames = (graph: Graph): string[] => graph.nodes.flatMap((n) => [n.name, ...subgraphs(n).flatMap(nodeNames)]);
export const valueNames = (graph: Graph): string[] => [
  ...graph.inputs.map((v) => v.name), ...graph.outputs.map((v) => v.name),
  ...graph.nodes.flatMap((n) => [...n.inputs.flatMap((v) => (v ? [v.name] : [])), ...n.outputs.map((v) => v.name), ...subgraphs(n).flatMap(valueNames)]),
];

/** For each symbol, the first value of the main graph (inputs first) that has it as one of its sizes. */
export function symbolSources(graph: Graph): ReadonlyMap<string, { readonly value: string; readonly axis: number }> {
  const sources = new Map<string, { value: string; axis: number }>();
  const add = (value: Value): void => value.type.shape.forEach((d, axis) => {
    const only = isSymbolic(d) && d.terms.length === 1 ? d.terms[0] : undefined;
    const atom = only?.atoms[0];
    if (only?.coefficient === 1 && only.atoms.length === 1 && atom?.kind === "symbol" && !sources.has(atom.name)) sources.set(atom.name, { value: value.name, axis });
  });
  graph.inputs.forEach(add);
  for (const node of graph.nodes) if (node.op !== KnownElements) node.outputs.forEach(add);
  return sources;
}
