/** A generated graph of a few nodes with its inputs: as a model, and each node of it as a model of its own. */
import { dtypes, type DType } from "../src/core/dtype.ts";
import type { Tensor } from "../src/core/tensor.ts";
import type { AttributeSpec, ModelSpec } from "../test/support/model-spec.ts";

export type Tensors = Readonly<Record<string, Tensor>>;

export interface GraphNode {
  readonly type: string;
  readonly domain?: string;
  /** Names of values; "" for one that is left out. */
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes?: Readonly<Record<string, AttributeSpec>>;
}
export interface GraphCase {
  readonly nodes: readonly GraphNode[];
  readonly feeds: Tensors;
  readonly constants: Tensors;
  readonly outputs: readonly string[];
  /** Sizes of inputs above 1 are declared as symbols: equal ones as the same. */
  readonly symbolic: boolean;
}

const opset = 21;

export function graphSpec(c: GraphCase, outputs: readonly string[] = c.outputs): ModelSpec {
  const declared = (d: number): number | string => (c.symbolic && d > 1 ? `s${d}` : d);
  return {
    opset, ir: 10, nodes: c.nodes, initializers: c.constants, outputs: Object.fromEntries(outputs.map((name) => [name, undefined])),
    inputs: Object.fromEntries(Object.entries(c.feeds).map(([name, t]) => [name, { dtype: t.dtype, dims: t.dims.map(declared) }])),
  };
}

/** One node as a graph, fed with these values; inputs that are constants of the graph are so here. */
export function nodeAlone({ constants }: Pick<GraphCase, "constants">, node: GraphNode, values: Tensors): GraphCase {
  const own = new Set(node.inputs.filter((name) => name !== "")), pick = (from: Tensors): Tensors => Object.fromEntries(Object.entries(from).filter(([name]) => own.has(name)));
  const fixed = pick(constants), feeds = Object.fromEntries(Object.entries(pick(values)).filter(([name]) => !Object.hasOwn(fixed, name)));
  return { nodes: [node], feeds, constants: fixed, outputs: node.outputs.filter((name) => name !== ""), symbolic: false };
}

/** The graph in one line, for messages. */
export function describeGraph(c: GraphCase): string {
  const type = (t: Tensor): string => `${t.dtype}[${t.dims}]`;
  const given = [...Object.entries(c.feeds).map(([name, t]) => `${name}: ${type(t)}`), ...Object.entries(c.constants).map(([name, t]) => `${name} = ${type(t)}`)];
  const nodes = c.nodes.map((n) => `${n.outputs.join(", ")} = ${n.type}(${n.inputs.join(", ")})${attributesText(n.attributes)}`);
  return `${given.join(", ")}; ${nodes.join("; ")} → ${c.outputs.join(", ")}${c.symbolic ? " (symbolic)" : ""}`;
}
const attributesText = (attributes: GraphNode["attributes"]): string =>
  attributes && Object.keys(attributes).length ? ` ${JSON.stringify(attributes, (_, v: unknown) => (typeof v === "bigint" ? Number(v) : v))}` : "";

/** The step from 1 to the next number of a float type. */
export const ulpOf = (dtype: DType): number => ({ float64: 2 ** -52, float16: 2 ** -10, bfloat16: 2 ** -7 } as Partial<Record<DType, number>>)[dtype] ?? 2 ** -23;
export const isNumeric = (t: Tensor): boolean => Object.hasOwn(dtypes, t.dtype) && t.dtype !== "string";
