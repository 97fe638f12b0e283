/**
 * A graph as readable SSA text in the form of GE's `ge_readable` dumps: a line a value with its number of users, the
 * operator, its inputs by name and its attributes; constants show their first and last elements.
 */
import { formatItem } from "../core/container.ts";
import { formatShape } from "../core/dim.ts";
import type { Tensor } from "../core/tensor.ts";
import { Graph, subgraphs, type Node, type Value } from "./graph.ts";
import { isTypeAttribute, type AttributeValue } from "./op.ts";

/** Ends with a newline. */
export function readableText(graph: Graph): string { return `${lines(graph, "").join("\n")}\n`; }

function lines(graph: Graph, indent: string): string[] {
  const inner = `${indent}    `;
  return [
    `${indent}graph(${JSON.stringify(graph.name)}):`,
    ...graph.inputs.map((v) => `${inner}${head(v)} = Node[type=Data] (attrs = {dtype: ${v.type.dtype}, shape: ${formatShape(v.type.shape)}})`),
    ...constantsOf(graph).map((v) => `${inner}${head(v)} = Node[type=Const] (attrs = {dtype: ${v.type.dtype}, shape: ${formatShape(v.type.shape)}, value: ${elements(v.constant)}})`),
    ...graph.nodes.flatMap((n) => [`${inner}${nodeLine(n)}`, ...subgraphs(n).flatMap((g) => lines(g, inner))]),
    `${inner}return (${graph.outputs.map((v) => `%${v.name}`).join(", ")})`,
  ];
}

const head = (v: Value): string => `%${v.name} : [#users=${v.uses.length + v.resultOf.length}]`;

function nodeLine(node: Node): string {
  const names = Object.keys(node.op.inputs);
  const inputs = node.inputs.flatMap((v, i) => (v ? [`${names[Math.min(i, names.length - 1)] ?? "x"}=%${v.name}`] : []));
  const attributes = Object.entries(node.attributes).flatMap(([name, value]) => (value === undefined || value instanceof Graph ? [] : [`${name}: ${attributeText(value)}`]));
  const origins = node.origins.length === 1 && node.origins[0] === node.name ? [] : [`_datadump_original_op_names: [${node.origins.join(", ")}]`];
  const type = node.op.domain === "" ? node.op.type : `${node.op.domain}.${node.op.type}`;
  return `${node.outputs.map(head).join(", ")} = Node[type=${type}] (inputs = (${inputs.join(", ")}), attrs = {${[...attributes, ...origins].join(", ")}})`;
}

function attributeText(value: Exclude<AttributeValue, Graph>): string {
  if (typeof value === "number") return String(value);
  if (typeof value === "string") return JSON.stringify(value);
  if ("dims" in value) return `${value.dtype}[${value.dims.join(", ")}] ${elements(value)}`;
  if (isTypeAttribute(value)) return formatItem(value.valueType);
  return `[${value.join(", ")}]`;
}

/** `[1, 2, 3 ... 8, 9, 10]` */
function elements(tensor: Tensor | undefined): string {
  if (!tensor) return "[]";
  const list = Array.from(tensor.data as ArrayLike<unknown>, (x) => (typeof x === "string" ? JSON.stringify(x) : String(x)));
  return list.length <= 6 ? `[${list.join(", ")}]` : `[${list.slice(0, 3).join(", ")} ... ${list.slice(-3).join(", ")}]`;
}

/** Constants that nodes of this graph read, in order of first use. */
function constantsOf(graph: Graph): Value[] {
  const read = [...graph.nodes.flatMap((n) => n.inputs), ...graph.outputs];
  return [...new Set(read)].filter((v): v is Value => v?.constant !== undefined && v.graph === graph);
}
