/** Names of regions for people: what went into them, in the words of the original model. */
import type { Node } from "../graph/graph.ts";
import { FlashAttention } from "../ops/flash-attention.ts";

/** Original operators that leave nothing to compute; names are clearer without them. */
const silent: ReadonlySet<string> = new Set(["Constant", "ConstantOfShape", "Identity", "Dropout", "Cast", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Shape", "Expand", "Gather", "Slice", "Concat", "Split"]);
const tokenLimit = 5;

/** Words for a node: its own type, or those of the original nodes it stands for. */
function wordsOf(node: Node, typeOf: (origin: string) => string | undefined, seen: Set<string>): string[] {
  const fresh = node.origins.filter((o) => !seen.has(o));
  for (const o of fresh) seen.add(o);
  if (fresh.length === 0) return [];
  const types = fresh.map(typeOf).filter((t): t is string => t !== undefined);
  const heard = types.filter((t) => !silent.has(t) || t === node.op.type);
  if (heard.length === 0) return [node.op.type];
  if (types.includes(node.op.type) || new Set(heard).size === 1) return heard;
  return [node.op.type];
}

/** The types of the original operators that compute something in these nodes. */
export const fusedTypes = (nodes: readonly Node[], typeOf: (origin: string) => string | undefined): Set<string> =>
  new Set(nodes.flatMap((n) => n.origins).map(typeOf).filter((t): t is string => t !== undefined && !silent.has(t)));

/** `ConvBNReLU`, `MatMulAddRelu`, `FlashAttention`, `FusedElementwise`, `LayerNormalization`; a lone node's type. */
export function regionKind(nodes: readonly Node[], anchor: Node | undefined, typeOf: (origin: string) => string | undefined): string {
  const seen = new Set<string>();
  if (anchor?.op === FlashAttention) return anchor.op.type;
  const words = nodes.flatMap((n) => wordsOf(n, typeOf, seen));
  const main = anchor ?? nodes.find((n) => n.op.fusionKind === "reduction" || n.op.fusionKind === "opaque");
  if (!main && words.length > 1) return "FusedElementwise";
  if (words.length > tokenLimit) return `Fused${(main ?? nodes[0])?.op.type ?? ""}`;
  const conv = anchor !== undefined && /Conv/.test(words[0] ?? "");
  return words.map((w) => (w === "BatchNormalization" ? "BN" : w === "Relu" && conv ? "ReLU" : w)).join("");
}
