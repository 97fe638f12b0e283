/** What custom rules in JSON say, once read: a chain of operators, or a sub-graph with what becomes of it. */
import type { Condition, Port } from "./rule-conditions.ts";

/** A chain whose operators become one kernel, named `outputOp`. */
export interface ChainRule {
  readonly kind: "chain";
  readonly name: string;
  readonly pattern: readonly string[];
  readonly outputOp: string;
  readonly conditions: ChainConditions;
  /** Conditions on its nodes, which are named as by `chainNodes`, and on the value `input`. */
  readonly where: readonly Condition[];
}
export interface ChainConditions {
  /** What BatchNormalization must be doing. */
  readonly bn_mode?: "inference" | "training";
  /** The element type of the chain's result. */
  readonly dtype?: string;
}

/** Names of a chain's nodes: their types, with #2, #3 … behind those that stand more than once. */
export const chainNodes = (pattern: readonly string[]): readonly string[] =>
  pattern.map((type, i) => { const before = pattern.slice(0, i).filter((t) => t === type).length; return before === 0 ? type : `${type}#${before + 1}`; });

/** A sub-graph, and what replaces it: other nodes, or one kernel named `outputOp`. */
export interface GraphRule {
  readonly kind: "graph";
  readonly name: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly origin: RuleGraph;
  readonly becomes: { readonly kind: "graph"; readonly graph: RuleGraph } | { readonly kind: "kernel"; readonly outputOp: string };
  /** Attributes of the replacement: those of an original node, or literal ones. */
  readonly attributes: readonly RuleAttribute[];
  readonly where: readonly Condition[];
}
export interface RuleAttribute { readonly to: Endpoint; readonly from: Endpoint | { readonly literal: Literal } }
export type Literal = number | string | readonly number[] | readonly string[];
export interface RuleGraph {
  readonly nodes: readonly { readonly name: string; readonly types: readonly string[] }[];
  /** Constants: of the original, that all elements equal the number; of the replacement, the numbers in the result's element type. */
  readonly constants: readonly { readonly name: string; readonly value: number | readonly number[] }[];
  readonly edges: readonly { readonly from: Port; readonly to: Port }[];
}
export interface Endpoint { readonly node: string; readonly attribute: string }
export type CustomRule = ChainRule | GraphRule;
export type { Port } from "./rule-conditions.ts";
