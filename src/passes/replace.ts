/**
 * Replacing a value by an equal one while every graph output keeps its name: where the new value cannot take the
 * name (an input, another output, something captured), an Identity stays between.
 */
import { present } from "../core/assert.ts";
import { freshSymbol } from "../graph/fresh.ts";
import type { Node, Value } from "../graph/graph.ts";
import { inferNode } from "../graph/infer-node.ts";
import type { Attributes, OpDef } from "../graph/op.ts";
import { refineType } from "../graph/refine.ts";
import { Identity } from "../ops/index.ts";
import { canReturn } from "../rewrite/driver.ts";

/**
 * Makes every use of output `index` of `node` a use of `by`, keeping names. The node is erased if nothing uses it any
 * more. Returns the number of nodes fewer, or undefined when nothing could be done (the node is such an Identity).
 */
export function replaceOutput(node: Node, by: Value, index = 0): number | undefined {
  const old = node.outputs[index];
  if (!old || old === by) return undefined;
  const { graph } = node;
  if (canReturn(by, old)) {
    const { name } = old;
    const takesName = old.resultOf.length > 0;
    graph.replaceUses(old, by);
    const erased = eraseIfDead(node);
    if (takesName) giveName(old, by, name, erased);
    return erased ? 1 : 0;
  }
  if (node.op === Identity) {
    if (old.uses.length === 0) return undefined;
    for (const use of old.uses) graph.setInput(use.node, use.index, by);
    return 0;
  }
  const identity = graph.insert({ op: Identity, inputs: [by], outputs: [old.type], name: node.name, origins: node.origins }, node);
  const [copy] = identity.outputs;
  if (!copy) return undefined;
  const { name } = old;
  for (const use of old.uses) graph.setInput(use.node, use.index, by);
  graph.replaceUses(old, copy);
  const erased = eraseIfDead(node);
  giveName(old, copy, name, erased);
  if (!erased) return -1;
  graph.renameNode(identity, node.name);
  return 0;
}

/** Moves a result's name from `old`, whose node may live on for its other outputs, to `by`. */
function giveName(old: Value, by: Value, name: string, erased: boolean): void {
  const { graph } = by;
  if (!erased) graph.rename(old, graph.freshName(name));
  graph.rename(by, name);
}

/** Erases a node whose outputs nothing uses. */
export function eraseIfDead(node: Node): boolean {
  if (node.op.sideEffects || node.outputs.some((v) => v.uses.length || v.resultOf.length)) return false;
  node.graph.erase(node);
  return true;
}

/**
 * Puts a node of another operator in the place of a node with one used output: same names, same origins.
 * The value that is now computed instead.
 */
export function replaceNode(node: Node, op: OpDef, inputs: readonly (Value | undefined)[], attributes: Attributes = {}): Value {
  const { graph, name } = node;
  const old = present(node.outputs[0], "output");
  const types = inferNode(op, inputs, attributes, 1, { place: { node: name }, fresh: (hint) => freshSymbol(graph, hint) });
  const made = graph.insert({ op, inputs, attributes, outputs: types, name, origins: node.origins }, node);
  const by = present(made.outputs[0], "output");
  graph.setType(by, refineType(old.type, by.type));
  const { name: valueName } = old;
  graph.replaceUses(old, by);
  graph.erase(node);
  graph.rename(by, valueName);
  graph.renameNode(made, name);
  return by;
}
