/** Whether generated code can compute a node; all others run on the host or are control flow. */
import { isHeld } from "../core/container.ts";
import { attributesOf, lowerContext } from "./elements.ts";
import type { Node } from "./graph.ts";
import { named } from "./op.ts";

export function hasKernel(node: Node): boolean {
  const { op } = node;
  if (!op.lower && !op.anchor && !op.whole) return false;
  if ([...node.inputs, ...node.outputs].some((v) => v && isHeld(v.type))) return false;
  return op.lowerable?.(named(op, node.inputs.map((v) => v?.type)), attributesOf(node), lowerContext(node)) ?? true;
}
