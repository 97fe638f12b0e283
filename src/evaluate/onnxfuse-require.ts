/** A condition that must hold for the rest of the graph to mean what the model does. */
import type { Evaluate } from "../core/evaluate.ts";
import { fail } from "../core/diagnostic.ts";

export const Require: Evaluate = ([condition], { holds, node, reason }) => {
  if ((condition?.data[0] !== 0) !== (holds !== 0))
    fail("OF3204", `the model cannot run on inputs of these sizes: ${String(reason)}`, { place: { node: String(node) } });
  return [];
};
