/** What the proof of a rule came to, with the inputs on which it fails. */
import type { Tensor } from "../core/tensor.ts";
import type { Graph } from "../graph/graph.ts";
import type { InputKind } from "./inputs.ts";

/** What the proof of a rule came to. */
export interface Proof {
  readonly rule: string;
  /** `unproved`: it fired nowhere, so nothing was compared. */
  readonly outcome: "proved" | "wrong" | "unproved";
  /** Graphs on which it fired, and comparisons made there. */
  readonly graphs: number;
  readonly runs: number;
  /** Why it is not proved. */
  readonly reason?: string;
  readonly counterExample?: CounterExample;
}
/** Inputs on which the rule changes a result. */
export interface CounterExample {
  readonly kind: InputKind;
  readonly inputs: Readonly<Record<string, Tensor>>;
  /** Constants of the graph, by name. */
  readonly constants: Readonly<Record<string, Tensor>>;
  /** Nodes of the graph, in words. */
  readonly nodes: readonly string[];
  readonly output: string;
  readonly original: Tensor;
  /** Absent where the rewritten graph could not be run. */
  readonly rewritten?: Tensor;
}

/** A graph for people. */
export function described(graph: Graph): Pick<CounterExample, "constants" | "nodes"> {
  const constants = graph.nodes.flatMap((n) => n.inputs).flatMap((v): [string, Tensor][] => (v?.constant ? [[v.name, v.constant]] : []));
  const attributes = (a: Readonly<Record<string, unknown>>): string => Object.entries(a).flatMap(([k, v]) => (typeof v === "number" || typeof v === "string" || Array.isArray(v) ? [`${k}=${JSON.stringify(v)}`] : [])).join(", ");
  return { constants: Object.fromEntries(constants), nodes: graph.nodes.map((n) => `${n.outputs.map((v) => v.name).join(", ")} = ${n.op.type}(${n.inputs.map((v) => v?.name ?? "").join(", ")})${attributes(n.attributes) === "" ? "" : ` {${attributes(n.attributes)}}`}`) };
}
