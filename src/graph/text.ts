/**
 * Prints a graph in ONNX's textual syntax (as onnx.printer does), for people and for golden files. Operators appear in
 * their newest form; symbolic sizes as text.
 */
import { formatContainer, formatItem } from "../core/container.ts";
import { formatDim } from "../core/dim.ts";
import type { DType } from "../core/dtype.ts";
import { decoderOf } from "../core/float-bits.ts";
import type { Tensor } from "../core/tensor.ts";
import { Graph, subgraphs, type Node, type Value } from "./graph.ts";
import { isTypeAttribute, type AttributeSpec, type AttributeValue, type TypeInfo } from "./op.ts";

export interface TextOptions {
  /** Constants with more elements are cut to `{...}`. Default 16; `Infinity` prints all, which onnx.parser can read. */
  readonly maxElements?: number;
}

/** The graph as text; deterministic, ends with a newline. */
export function graphText(graph: Graph, options: TextOptions = {}): string {
  return `${graphLines(graph, "", options.maxElements ?? 16)}\n`;
}

function graphLines(graph: Graph, indent: string, limit: number): string {
  const inner = `${indent}   `;
  const head = `${identifier(graph.name)} (${graph.inputs.map((v) => typed(v, limit)).join(", ")}) => (${graph.outputs.map((v) => typed(v, limit)).join(", ")})`;
  const constants = constantsOf(graph).map((v) => `${inner}${typeText(v.type)} ${identifier(v.name)} = ${v.constant ? elementsText(v.constant, limit) : ""}`);
  const initializers = constants.length ? `\n${indent}<\n${constants.join(",\n")}\n${indent}>` : "";
  return `${head}${initializers}\n${indent}{\n${graph.nodes.map((n) => `${inner}${nodeText(n, inner, limit)}\n`).join("")}${indent}}`;
}

/** Constants that the graph's own nodes or results read, in order of first use. */
function constantsOf(graph: Graph): Value[] {
  const read = [...graph.nodes.flatMap((n) => [...n.inputs, ...subgraphs(n).flatMap(constantsAround)]), ...graph.outputs];
  return [...new Set(read)].filter((v): v is Value => v?.constant !== undefined && v.graph === graph);
}
const constantsAround = (graph: Graph): (Value | undefined)[] => [...graph.nodes.flatMap((n) => [...n.inputs, ...subgraphs(n).flatMap(constantsAround)]), ...graph.outputs];

function nodeText(node: Node, indent: string, limit: number): string {
  const outputs = node.outputs.map((v) => identifier(v.name)).join(", ");
  const type = node.op.domain === "" ? node.op.type : `${node.op.domain}.${node.op.type}`;
  const attributes = Object.entries(node.attributes).flatMap(([name, value]) => (value === undefined ? [] : [attributeText(name, value, node.op.attributes[name]?.type, indent, limit)]));
  const inputs = node.inputs.map((v) => (v ? identifier(v.name) : '""')).join(", ");
  return `[${JSON.stringify(node.name)}] ${outputs} = ${type} ${attributes.length ? `<${attributes.join(", ")}> ` : ""}(${inputs})`;
}

function attributeText(name: string, value: AttributeValue, kind: AttributeSpec["type"] | undefined, indent: string, limit: number): string {
  if (value instanceof Graph) return `${name}: graph = ${graphLines(value, indent, limit)}`;
  if (typeof value === "number") return kind === "float" ? `${name}: float = ${value}` : `${name}: int = ${value}`;
  if (typeof value === "string") return `${name}: string = ${JSON.stringify(value)}`;
  if (isTypeAttribute(value)) return `${name}: type_proto = ${JSON.stringify(formatItem(value.valueType))}`;
  if ("dtype" in value) return `${name}: tensor = ${typeText({ dtype: value.dtype, shape: value.dims })} ${elementsText(value, limit)}`;
  const list = kind ?? (typeof value[0] === "string" ? "strings" : "ints");
  return `${name}: ${list} = [${value.map((x) => (typeof x === "string" ? JSON.stringify(x) : String(x))).join(", ")}]`;
}

const typed = (value: Value, limit: number): string =>
  `${typeText(value.type)} ${identifier(value.name)}${value.default ? ` = ${elementsText(value.default, limit)}` : ""}`;

const dtypeNames: Partial<Readonly<Record<DType, string>>> = { float32: "float", float64: "double" };
function typeText(type: TypeInfo): string {
  if (type.container) return JSON.stringify(formatContainer(type.container));
  const name = dtypeNames[type.dtype] ?? type.dtype;
  if (type.shape.length === 0) return name;
  return `${name}[${type.shape.map((d) => (typeof d === "number" ? String(d) : identifier(formatDim(d)))).join(",")}]`;
}

function elementsText(t: Tensor, limit: number): string {
  if (t.data.length > limit) return "{...}";
  const decode = decoderOf(t.dtype);
  const elements: ArrayLike<string | number | bigint> = t.data;
  return `{${Array.from(elements, (x) => (typeof x === "string" ? JSON.stringify(x) : String(decode && typeof x === "number" ? decode(x) : x))).join(", ")}}`;
}

/** A name as it stands where it is a plain word, else in quotes. */
const identifier = (name: string): string => (/^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name));
