/**
 * Contractions and attention take their followers: bias, activation, residual, requantisation, applied while the
 * accumulator is in a register. A follower is element-wise, of the accumulator's shape, and everything else it reads is
 * there before; cheap work on that side is taken along.
 */
import { shapeEqual } from "../core/dim.ts";
import type { Node, Value } from "../graph/graph.ts";
import { refuse } from "../rewrite/rule.ts";
import type { Refusal } from "../rewrite/site.ts";
import { storesOf, type Group, type Groups } from "./groups.ts";
import type { PartitionContext } from "./partition-context.ts";

/** A kernel stores at most this many values of one accumulator. */
const storeLimit = 4;

/** Grows every anchored group, nodes in topological order. */
export function growAnchored(groups: Groups, context: PartitionContext): void {
  for (const node of groups.graph.nodes) follow(node, groups, context);
  for (const group of groups.all()) if (group.role === "anchored") takeSides(group, groups, context);
}

const isFollower = (node: Node): boolean =>
  node.op.fusionKind === "elementwise" || node.op.fusionKind === "broadcast" || node.op.sideEffects === true || node.op.deterministic === false;

function follow(node: Node, groups: Groups, context: PartitionContext): void {
  if (!isFollower(node) || groups.of(node).role === "view") return;
  const own = groups.of(node);
  const leaders = new Set(node.inputs.map((v) => groups.producer(v)).filter((g): g is Group => g?.role === "anchored" && g !== own));
  for (const group of [...leaders].sort((a, b) => groups.endOf(b) - groups.endOf(a))) {
    const refused = whyNot(group, node, groups, context);
    if (!refused) { groups.merge(group, own); return; }
    context.note(group, node, refused);
  }
}

/** Why `node` cannot join the epilogue of `group`; undefined where it can. */
function whyNot(group: Group, node: Node, groups: Groups, context: PartitionContext): Refusal | undefined {
  const own = groups.of(node);
  const result = node.outputs[0];
  const shape = group.anchor?.outputs[0]?.type.shape ?? [];
  if (node.op.sideEffects) return refuse("side-effect-between", `${node.op.type} '${node.name}' changes state`, "move it behind the chain");
  if (node.op.deterministic === false) return refuse("non-deterministic-between", `${node.op.type} '${node.name}' gives other results on every run`, "export the model for inference");
  if (own.role !== "free" || own.nodes.size !== 1) return refuse("other-operator", `${node.op.type} '${node.name}' needs a kernel of its own`, "none: nothing can be done in one kernel with it");
  if (!result || node.outputs.some((v) => !shapeEqual(v.type.shape, shape)))
    return refuse("shape-grows", `'${result?.name ?? node.name}' is larger than what it is computed from`, "none: it is computed in loops over its own elements");
  const interior = node.inputs.filter((v): v is Value => v !== undefined && groups.producer(v) === group);
  if (interior.some((v) => !shapeEqual(v.type.shape, shape))) return refuse("shape-grows", `'${interior[0]?.name}' is broadcast`, "none: it is computed in loops over its own elements");
  if (groups.pathBetween([group], [own])) return refuse("residual-cycle", `another input of '${node.name}' is computed from this result`, "none: it has to wait");
  const full = groups.whyFull([...group.nodes, node]);
  if (full) return full;
  const stores = storesOf([...group.nodes, node]);
  if (stores.length > storeLimit) return refuse("interior-value-used", `${stores.length} values would have to be stored, '${stores[0]?.name}' is used elsewhere`, "use fewer intermediate values outside the chain");
  return context.switchedOff([...group.nodes, node], group.anchor);
}

/** Element-wise work that only the epilogue reads, at most a few operations a value. */
function takeSides(group: Group, groups: Groups, context: PartitionContext): void {
  const shape = group.anchor?.outputs[0]?.type.shape ?? [];
  for (let changed = true; changed;) {
    changed = false;
    for (const node of groups.ordered(group.nodes)) {
      if (node === group.anchor) continue;
      for (const value of node.inputs) {
        const side = groups.producer(value);
        if (!value || !side || side === group || side.role !== "free" || side.nodes.size !== 1) continue;
        const maker = value.producer?.node;
        if (!maker || maker.outputs.length !== 1 || value.resultOf.length > 0 || value.uses.some((u) => !group.nodes.has(u.node))) continue;
        if (!context.isSide(maker, shape) || groups.pathBetween([side], [group]) || groups.pathBetween([group], [side])) continue;
        if (context.switchedOff([...group.nodes, maker], group.anchor)) continue;
        groups.merge(group, side);
        changed = true;
      }
    }
  }
}
