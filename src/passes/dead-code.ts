/** Erases nodes whose results nothing uses, and graph inputs never (they are the model's interface). */
import { subgraphs, type Graph } from "../graph/graph.ts";
import { withNested, type Ledger } from "./ledger.ts";
import { eraseIfDead } from "./replace.ts";

/** Returns whether anything was erased. */
export function eliminateDeadCode(graph: Graph, ledger: Ledger): boolean {
  let changed = false;
  for (const node of [...graph.nodes].reverse()) {
    const nodes = withNested(node);
    const { type } = node.op;
    if (eraseIfDead(node)) {
      ledger.record("eliminated", `unused ${type}`, nodes.length);
      ledger.trace("eliminated", nodes, "nothing reads its results");
      changed = true;
      continue;
    }
    for (const inner of subgraphs(node)) if (eliminateDeadCode(inner, ledger)) changed = true;
  }
  return changed;
}
