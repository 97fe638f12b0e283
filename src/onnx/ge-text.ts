/**
 * A graph in the text form of GE's own proto (`ge_proto` dumps): one `op` a node with its inputs as `producer:index`,
 * its output descriptions and its attributes. Field names follow the published ge_ir.proto.
 */
import { formatItem } from "../core/container.ts";
import { formatDim } from "../core/dim.ts";
import type { DType } from "../core/dtype.ts";
import { Graph, subgraphs, type Node, type Value } from "../graph/graph.ts";
import { isTypeAttribute, type AttributeValue, type TypeInfo } from "../graph/op.ts";

/** GE's names of element types. */
const geTypes: Partial<Record<DType, string>> = {
  float32: "DT_FLOAT", float16: "DT_FLOAT16", bfloat16: "DT_BF16", float64: "DT_DOUBLE", int8: "DT_INT8", int16: "DT_INT16", int32: "DT_INT32",
  int64: "DT_INT64", uint8: "DT_UINT8", uint16: "DT_UINT16", uint32: "DT_UINT32", uint64: "DT_UINT64", bool: "DT_BOOL", string: "DT_STRING",
};

/** The model as GE prints it; ends with a newline. */
export function geText(graph: Graph): string {
  return [`name: ${quote(graph.name)}`, ...graphsOf(graph).flatMap((g) => ["graph {", ...graphLines(g).map((l) => `  ${l}`), "}"]), ""].join("\n");
}

const graphsOf = (graph: Graph): Graph[] => [graph, ...graph.nodes.flatMap(subgraphs).flatMap(graphsOf)];

function graphLines(graph: Graph): string[] {
  const constants = [...new Set(graph.nodes.flatMap((n) => n.inputs))].filter((v): v is Value => v?.constant !== undefined && v.graph === graph);
  return [
    `name: ${quote(graph.name)}`,
    ...graph.inputs.flatMap((v) => opLines(v.name, "Data", [], [v.type], [])),
    ...constants.flatMap((v) => opLines(v.name, "Const", [], [v.type], [])),
    ...graph.nodes.flatMap((n) => opLines(n.name, n.op.type, n.inputs.flatMap((v) => (v ? [source(v)] : [])), n.outputs.map((v) => v.type), attributesOf(n))),
    ...opLines("Node_Output", "NetOutput", graph.outputs.map(source), [], []),
  ];
}

const source = (v: Value): string => (v.producer ? `${v.producer.node.name}:${v.producer.node.outputs.indexOf(v)}` : `${v.name}:0`);
const quote = (text: string): string => JSON.stringify(text);

function opLines(name: string, type: string, inputs: readonly string[], outputs: readonly TypeInfo[], attributes: readonly string[]): string[] {
  return [
    "op {", `  name: ${quote(name)}`, `  type: ${quote(type)}`, ...inputs.map((i) => `  input: ${quote(i)}`), ...attributes.map((a) => `  ${a}`),
    ...outputs.flatMap((t) => ["  output_desc {", `    dtype: ${geTypes[t.dtype] ?? "DT_UNDEFINED"}`, "    shape {", ...t.shape.map((d) => `      dim: ${typeof d === "number" ? d : -1}${typeof d === "number" ? "" : `  # ${formatDim(d)}`}`), "    }", "  }"]),
    "}",
  ];
}

function attributesOf(node: Node): string[] {
  const own = Object.entries(node.attributes).flatMap(([key, value]) => (value === undefined || value instanceof Graph ? [] : attribute(key, value)));
  const isOwn = node.origins.length === 1 && node.origins[0] === node.name;
  return isOwn ? own : [...own, ...attribute("_datadump_original_op_names", node.origins)];
}

function attribute(key: string, value: Exclude<AttributeValue, Graph>): string[] {
  return ["attr {", `  key: ${quote(key)}`, "  value {", ...attributeValue(value).map((l) => `    ${l}`), "  }", "}"];
}

function attributeValue(value: Exclude<AttributeValue, Graph>): string[] {
  const scalar = (v: number | string): string => (typeof v === "string" ? `s: ${quote(v)}` : Number.isInteger(v) ? `i: ${v}` : `f: ${v}`);
  if (typeof value === "number" || typeof value === "string") return [scalar(value)];
  if ("dims" in value) return [`t { desc { dtype: ${geTypes[value.dtype] ?? "DT_UNDEFINED"} shape { ${value.dims.map((d) => `dim: ${d}`).join(" ")} } } }`];
  if (isTypeAttribute(value)) return [scalar(formatItem(value.valueType))];
  return ["list {", ...value.map((v) => `  ${scalar(v)}`), "}"];
}
