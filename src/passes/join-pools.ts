/**
 * A convolution joins the pool that alone reads its result, which then takes it strip by strip from a cache
 * (schedule/contractions/pool-strips.ts). That pays where the result is too large for the second-level cache. Rows that
 * windows of two strips need are computed twice, which costs more than reading them again unless they take little.
 */
import { formatShape, shapeEqual } from "../core/dim.ts";
import type { Node, Value } from "../graph/graph.ts";
import { attributesOf } from "../graph/elements.ts";
import { named, type Pooling } from "../graph/op.ts";
import { Conv } from "../ops/index.ts";
import { refuse } from "../rewrite/rule.ts";
import type { Refusal } from "../rewrite/site.ts";
import { storesOf, type Group, type Groups } from "./groups.ts";
import { imageBytes, leastBytes } from "./join-strips.ts";
import type { PartitionContext } from "./partition-context.ts";

/** Products of an element whose rows may be computed twice: measured at 1x1 convolutions of 8, 16 and 27 inputs, 1.11, 1.01 and 0.98 times as fast as apart. */
const fewProducts = 8;

/** Joins the pairs, nodes in topological order; what either had taken along stays with it. */
export function joinPools(groups: Groups, context: PartitionContext): void {
  for (const node of groups.graph.nodes) {
    const pooling = poolingOf(node), [value] = node.inputs;
    const group = groups.of(node), above = groups.producer(value);
    if (!pooling || !value || !above?.anchor || above === group || !isWhole(above.anchor)) continue;
    const refusal = whyApart(above, value, group, node, pooling, groups, context);
    if (refusal) { context.notePool(above, group, refusal); continue; }
    const part = { nodes: new Set(above.nodes), anchor: above.anchor };
    groups.merge(group, above);
    group.above = part;
    group.pool = node;
  }
}

function poolingOf(node: Node): Pooling | undefined {
  const types = node.inputs.map((v) => v?.type);
  return node.outputs.length === 1 ? node.op.pooling?.(named(node.op, types), attributesOf(node)) : undefined;
}

/** A convolution of two spatial dimensions in float32 and one group, whose weights are known. */
function isWhole(node: Node): boolean {
  const [x, w] = node.inputs;
  return node.op === Conv && node.attributes["group"] === 1 && x?.type.dtype === "float32" && x.type.shape.length === 4 && w?.constant?.dtype === "float32";
}

/** Products that an element of the result sums. */
const productsOf = ({ inputs: [, w] }: Node): number => (w?.constant?.dims.slice(1) ?? []).reduce((a, b) => a * b, 1);

function whyApart(above: Group, value: Value, group: Group, pool: Node, { windows: [down] }: Pooling, groups: Groups, context: PartitionContext): Refusal | undefined {
  const stored = storesOf(above.nodes), other = stored.find((v) => v !== value) ?? (value.uses.length > 1 || value.resultOf.length > 0 ? value : undefined);
  if (above.role !== "anchored" || above.above || group.role !== "free" || !followsAlone(group, pool)) return refuse("other-operator", `'${pool.name}' shares its loops with what the rows of '${above.anchor?.name}' do not suit`, "none: it stays a kernel of its own");
  if (other) return refuse("interior-value-used", `'${other.name}' is read elsewhere too, or a result of the model`, "none: it is stored for its other readers anyway");
  const bytes = imageBytes(value);
  if (bytes < leastBytes) return refuse("stays-in-cache", `'${value.name}' ${formatShape(value.type.shape)} has ${Math.ceil(bytes / 1024)} KB, which a second-level cache keeps until they are read`, "none: two kernels are as quick");
  const products = above.anchor ? productsOf(above.anchor) : 0;
  if (down.taps > down.stride && products > fewProducts) return refuse("windows-overlap", `windows of ${down.taps} rows of '${pool.name}' begin every ${down.stride}: rows between two strips would be computed twice, ${products} products an element`, "none: reading them again costs less");
  return groups.whyFull([...above.nodes, ...group.nodes]) ?? context.switchedOff([...above.nodes, ...group.nodes], above.anchor);
}

/** Whether all else in a pool's group is computed from its result, element by element. */
function followsAlone(group: Group, pool: Node): boolean {
  const [result] = pool.outputs;
  return [...group.nodes].every((n) => n === pool || ((n.op.fusionKind === "elementwise" || n.op.fusionKind === "broadcast") && n.outputs.every((v) => result !== undefined && shapeEqual(v.type.shape, result.type.shape))));
}
