/** How often a model file uses each operator: nodes of subgraphs included, calls of functions as the nodes in them where that is asked for. */
import type { FunctionProto, ModelProto, NodeProto } from "./schema/onnx_pb.ts";

export type OperatorCounts = Readonly<Record<string, number>>;

/** Operators by type, those of domains other than ONNX's own as `domain.Type`. Recursive calls, which no model may have, count as calls. */
export function countOperators(model: ModelProto, inline: boolean): OperatorCounts {
  const counts = new Map<string, number>();
  const functions = new Map(model.functions.map((f) => [key(f.domain, f.name, f.overload), f]));
  const visit = (nodes: readonly NodeProto[], within: readonly FunctionProto[]): void => {
    for (const node of nodes) {
      const called = inline ? functions.get(key(node.domain, node.opType, node.overload)) : undefined;
      if (called && !within.includes(called)) { visit(called.node, [...within, called]); continue; }
      const name = ownDomain(node.domain) === "" ? node.opType : `${node.domain}.${node.opType}`;
      counts.set(name, (counts.get(name) ?? 0) + 1);
      for (const attribute of node.attribute) for (const graph of [attribute.g, ...attribute.graphs]) if (graph) visit(graph.node, within);
    }
  };
  visit(model.graph?.node ?? [], []);
  return Object.fromEntries([...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)));
}

const ownDomain = (domain: string): string => (domain === "ai.onnx" ? "" : domain);
const key = (domain: string, name: string, overload: string): string => JSON.stringify([ownDomain(domain), name, overload]);

/** Nodes in all. */
export const totalOf = (counts: OperatorCounts): number => Object.values(counts).reduce((a, b) => a + b, 0);
