/** Whether a custom rule's graph is one: names of one thing each, edges from what gives to what takes, and no cycle. */
import type { RuleGraph } from "./custom-rule.ts";

/** Tells `bad` what is wrong, with the fix. */
export function checkRuleGraph({ nodes, constants, edges }: RuleGraph, inputs: readonly string[], outputs: readonly string[], bad: (message: string, hint: string) => void): void {
  const givers = [...inputs, ...constants.map((c) => c.name)], all = [...givers, ...outputs, ...nodes.map((n) => n.name)];
  const twice = all.find((name, i) => all.indexOf(name) !== i);
  if (twice !== undefined) bad(`'${twice}' names two things`, "give inputs, outputs, constants and nodes names of their own");
  for (const { from, to } of edges) {
    if (outputs.includes(from.node)) bad(`an edge leads from the output '${from.node}'`, "let edges start at inputs, constants and nodes");
    if (givers.includes(to.node)) bad(`an edge leads to '${to.node}', which takes none`, "let edges end at nodes and outputs");
    if (outputs.includes(to.node) && to.slot !== 0) bad(`an edge leads to slot ${to.slot} of the output '${to.node}'`, `write "dst": "${to.node}"`);
  }
  const cycle = cycleIn(nodes.map((n) => n.name), edges);
  if (cycle !== undefined) bad(`'${cycle}' needs itself`, "take the cycle of edges apart");
}

/** A node that its own edges lead back to. */
function cycleIn(nodes: readonly string[], edges: RuleGraph["edges"]): string | undefined {
  const done = new Set<string>(), open = new Set<string>();
  const visit = (name: string): string | undefined => {
    if (open.has(name)) return name;
    if (done.has(name)) return undefined;
    open.add(name);
    const found = edges.filter((e) => e.to.node === name).map((e) => visit(e.from.node)).find((n) => n !== undefined);
    open.delete(name);
    done.add(name);
    return found;
  };
  return nodes.map(visit).find((n) => n !== undefined);
}
