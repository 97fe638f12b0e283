/** Records of what partition fused, and of what it almost fused. */
import type { Node } from "../graph/graph.ts";
import type { Refusal, Site } from "../rewrite/site.ts";

export const originsOf = (nodes: Iterable<Node>): string[] => [...new Set([...nodes].flatMap((n) => n.origins))];

export const firedSite = (name: string, root: Node, nodes: readonly Node[]): Site =>
  ({ kind: "region", name, at: root.name, nodes: originsOf(nodes), outcome: "fired", nodesSaved: nodes.length - 1 });
export const refusedSite = (name: string, root: Node, nodes: readonly Node[], why: Refusal): Site =>
  ({ kind: "region", name, at: root.name, nodes: originsOf(nodes), outcome: "refused", ...why });
