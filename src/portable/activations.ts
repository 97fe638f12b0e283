/** Activations as onnxruntime's fused operators name them, with their parameters. */
import type { Node } from "../graph/graph.ts";
import type { OpDef } from "../graph/op.ts";
import { Clip, HardSigmoid, LeakyRelu, Relu, Sigmoid, Tanh } from "../ops/index.ts";
import { isConstant } from "../rewrite/match.ts";
import { numberIn } from "../rewrite/pattern.ts";
import { refuse } from "../rewrite/rule.ts";
import type { Refusal } from "../rewrite/site.ts";

export const activations: readonly OpDef[] = [Relu, Sigmoid, Tanh, LeakyRelu, HardSigmoid];

/** Parameters in onnxruntime's order: alpha and beta, or least and most. Refuses a Clip whose bounds are not constant. */
export function activationParameters(node: Node): readonly number[] | Refusal {
  const number = (name: string): number => Number(node.attributes[name]);
  switch (node.op) {
    case LeakyRelu: return [number("alpha")];
    case HardSigmoid: return [number("alpha"), number("beta")];
    case Clip: {
      const bounds = [node.inputs[1], node.inputs[2]].map((v, i) => (v === undefined ? (i === 0 ? -largest : largest) : isConstant(v) ? numberIn(v) : undefined));
      const known = bounds.filter((b): b is number => b !== undefined && Number.isFinite(b));
      return known.length === 2 ? known : refuse("not-constant", `'${node.name}' clips to bounds that are not known`, "make its bounds initializers");
    }
    default: return [];
  }
}
const largest = 3.4028234663852886e38;
