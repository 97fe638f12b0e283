/**
 * Composite operators: nodes that have no kernel of their own, but which other operators say. They are replaced by
 * those, so that the parts are compiled and fused like any others. One that reads or gives a tensor of any rank stays,
 * since its parts would have no kernels either.
 */
import { present } from "../core/assert.ts";
import { isUnranked } from "../core/container.ts";
import { attributesOf } from "../graph/elements.ts";
import { freshSymbol } from "../graph/fresh.ts";
import { subgraphs, type Graph, type Node, type Value } from "../graph/graph.ts";
import { hasKernel } from "../graph/has-kernel.ts";
import { inferNode, typeWithConstant } from "../graph/infer-node.ts";
import type { ExpansionNode } from "../graph/op.ts";
import { refineType } from "../graph/refine.ts";
import type { Ledger } from "./ledger.ts";
import { eraseIfDead, replaceOutput } from "./replace.ts";

/**
 * Replaces every composite node, in subgraphs too. With `portable`, a node stays where it could only be said by operators
 * that no file can hold. Returns whether there was one.
 */
export function expandComposites(graph: Graph, ledger: Ledger, portable = false): boolean {
  let changed = false;
  for (const node of graph.nodes) {
    for (const inner of subgraphs(node)) changed = expandComposites(inner, ledger, portable) || changed;
    changed = expandNode(node, ledger, portable) || changed;
  }
  return changed;
}

function expandNode(node: Node, ledger: Ledger, portable: boolean): boolean {
  if (!node.op.expand || hasKernel(node) || node.outputs.every(isUnused) || [...node.inputs, ...node.outputs].some((v) => isUnranked(v?.type))) return false;
  const steps = node.op.expand({
    inputs: node.inputs.map((v) => v?.name), inputTypes: node.inputs.map((v) => v && typeWithConstant(v)),
    outputs: node.outputs.map((v) => v.name), outputTypes: node.outputs.map((v) => v.type),
  }, attributesOf(node));
  if (!steps || (portable && steps.some(({ op }) => op.domain === "onnxfuse" && !op.expand))) return false;
  ledger.record("canonicalised", node.op.type, 1 - steps.length);
  const values = insertSteps(node, steps);
  node.outputs.forEach((old, i) => {
    if (isUnused(old)) return;
    const by = present(values.get(old.name), `${old.name} in the expansion of ${node.op.type}`);
    node.graph.setType(by, refineType(old.type, by.type));
    replaceOutput(node, by, i);
  });
  if (node.graph.has(node)) eraseIfDead(node);
  return true;
}

const isUnused = (value: Value): boolean => value.uses.length === 0 && value.resultOf.length === 0;

/** Inserts the steps before `node`; the values they name. */
function insertSteps(node: Node, steps: readonly ExpansionNode[]): ReadonlyMap<string, Value> {
  const { graph } = node;
  const values = new Map(node.inputs.flatMap((v): [string, Value][] => (v ? [[v.name, v]] : [])));
  for (const { op, inputs, outputs, attributes = {} } of steps) {
    const read = inputs.map((i) => (i === undefined ? undefined : typeof i === "string" ? present(values.get(i), `${i} in the expansion of ${node.op.type}`) : graph.addConstant(i)));
    const types = inferNode(op, read, attributes, outputs.length, { place: { node: node.name }, fresh: (hint) => freshSymbol(graph, hint) });
    const made = graph.insert({ op, inputs: read, attributes, outputs: types, name: `${node.name}_${op.type}`, origins: node.origins }, node);
    outputs.forEach((name, i) => values.set(name, present(made.outputs[i], name)));
  }
  return values;
}
