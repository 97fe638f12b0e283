/**
 * A depthwise convolution joins the 1x1 convolution that alone reads its result, which then takes it strip by strip from
 * a cache (schedule/contractions/row-strips.ts). That pays where the result is too large for the second-level cache:
 * smaller ones stay there between two kernels.
 */
import { dimProduct, formatShape, isSymbolic, shapeEqual } from "../core/dim.ts";
import { byteSize } from "../core/dtype.ts";
import { estimate } from "../graph/element-loops.ts";
import type { Node, Value } from "../graph/graph.ts";
import { Conv } from "../ops/index.ts";
import { refuse } from "../rewrite/rule.ts";
import type { Refusal } from "../rewrite/site.ts";
import { storesOf, type Group, type Groups } from "./groups.ts";
import type { PartitionContext } from "./partition-context.ts";

/** Results of fewer bytes are still in the second-level cache when the next kernel reads them. */
export const leastBytes = 1024 * 1024;
/** Bytes of a result; of one image where their number is not known. */
export function imageBytes({ type: { shape: [images = 1, ...image], dtype } }: Value): number {
  return (isSymbolic(images) ? 1 : images) * estimate(dimProduct(image)) * byteSize(dtype);
}

/** Joins the pairs, nodes in topological order; what either had taken along stays with it. */
export function joinStrips(groups: Groups, context: PartitionContext): void {
  for (const node of groups.graph.nodes) {
    const group = groups.of(node), [value] = node.inputs, above = groups.producer(value);
    if (group.anchor !== node || !value || !above?.anchor || above === group || !isPointwise(node) || !isDepthwise(above.anchor)) continue;
    const refusal = whyApart(above, value, group, groups, context);
    if (refusal) { context.noteAnchors(above, group, refusal); continue; }
    const part = { nodes: new Set(above.nodes), anchor: above.anchor };
    groups.merge(group, above);
    group.above = part;
  }
}

/** A convolution of two spatial dimensions in float32 whose weights are known. */
function weightOf(node: Node): readonly number[] | undefined {
  const [x, w] = node.inputs;
  return node.op === Conv && x?.type.dtype === "float32" && x.type.shape.length === 4 && w?.constant?.dtype === "float32" ? w.constant.dims : undefined;
}
/** Every output reads the one position where it stands. */
function isPointwise(node: Node): boolean {
  const dims = weightOf(node), [x] = node.inputs, [y] = node.outputs;
  const all = (name: string, value: number): boolean => { const list = node.attributes[name]; return list === undefined || (Array.isArray(list) && list.every((n) => n === value)); };
  return dims !== undefined && x !== undefined && y !== undefined && dims[2] === 1 && dims[3] === 1 && dims[1] === x.type.shape[1]
    && all("strides", 1) && all("pads", 0) && shapeEqual(x.type.shape.slice(2), y.type.shape.slice(2));
}
/** A filter for each channel. */
function isDepthwise(node: Node): boolean {
  const dims = weightOf(node);
  return dims !== undefined && dims[1] === 1 && dims[0] !== 1 && node.inputs[0]?.type.shape[1] === dims[0] && node.attributes["group"] === dims[0];
}

function whyApart(above: Group, value: Value, group: Group, groups: Groups, context: PartitionContext): Refusal | undefined {
  const stored = storesOf(above.nodes), other = stored.find((v) => v !== value) ?? (value.uses.length > 1 || value.resultOf.length > 0 ? value : undefined);
  if (above.role !== "anchored" || group.role !== "anchored" || above.above) return refuse("other-operator", `'${above.anchor?.name}' has a kernel that takes nothing along`, "none: it stays a kernel of its own");
  if (other) return refuse("interior-value-used", `'${other.name}' is read elsewhere too, or a result of the model`, "none: it is stored for its other readers anyway");
  const bytes = imageBytes(value);
  if (bytes < leastBytes) return refuse("stays-in-cache", `'${value.name}' ${formatShape(value.type.shape)} has ${Math.ceil(bytes / 1024)} KB, which a second-level cache keeps until they are read`, "none: two kernels are as quick");
  return groups.whyFull([...above.nodes, ...group.nodes]) ?? context.switchedOff([...above.nodes, ...group.nodes], group.anchor);
}
