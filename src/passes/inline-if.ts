/** An If whose condition is known runs only one branch: its nodes move into the place of the If. */
import { invariant } from "../core/assert.ts";
import { Graph, subgraphs, type Node, type Value } from "../graph/graph.ts";
import { typeWithConstant } from "../graph/infer-node.ts";
import { If } from "../ops/index.ts";
import { knownCondition } from "../ops/if.ts";
import { countNodes, withNested, type Ledger } from "./ledger.ts";
import { agreementsOf, copyNode, copyOf, replaceKeepingName } from "./copy-nodes.ts";

/** Returns whether any If went. */
export function inlineKnownIfs(graph: Graph, ledger: Ledger): boolean {
  let changed = false;
  for (const node of graph.nodes) {
    for (const inner of subgraphs(node)) if (inlineKnownIfs(inner, ledger)) changed = true;
    const [condition] = node.inputs;
    const taken = node.op === If && condition ? knownCondition(typeWithConstant(condition)) : undefined;
    if (taken === undefined) continue;
    inlineBranch(node, taken ? "then_branch" : "else_branch", ledger);
    changed = true;
  }
  return changed;
}

function inlineBranch(node: Node, name: "then_branch" | "else_branch", ledger: Ledger): void {
  const branch = node.attributes[name];
  invariant(branch instanceof Graph, `${node.name} has no ${name}`);
  const { graph } = node;
  const before = countNodes(graph);
  ledger.trace("inlined", [node], `its condition is known: '${name}' is always taken, and stands in its place`);
  for (const other of subgraphs(node)) if (other !== branch) ledger.trace("eliminated", other.nodes.flatMap(withNested), `it is in the branch of '${node.name}' that is never taken`);
  const copies = new Map<Value, Value>();
  graph.agreements = [...graph.agreements, ...agreementsOf(branch)];
  for (const inner of branch.nodes) copyNode(inner, graph, node, copies);
  const results = branch.outputs.map((v) => copyOf(v, graph, copies));
  for (const [i, old] of node.outputs.entries()) {
    const by = results[i];
    if (!by || (old.uses.length === 0 && old.resultOf.length === 0)) continue;
    replaceKeepingName(node, i, by);
  }
  if (graph.has(node)) graph.erase(node);
  ledger.record("inlined", "If", before - countNodes(graph));
}
