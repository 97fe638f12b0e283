import { describe, expect, test } from "vitest";
import { symbol } from "../core/dim.ts";
import { tensor } from "../core/tensor.ts";
import { Add, Mul } from "../ops/arithmetic.ts";
import { Relu } from "../ops/activation.ts";
import { Graph, type Node, type Value } from "./graph.ts";
import type { OpDef, TypeInfo } from "./op.ts";
import { verifyGraph } from "./verify.ts";

const type: TypeInfo = { dtype: "float32", shape: [symbol("n"), 3] };

function chain(): { graph: Graph; x: Value; nodes: Node[] } {
  const graph = new Graph();
  const x = graph.addInput("x", type);
  const b = graph.addConstant(tensor("float32", [3], new Float32Array(3)), "b");
  const node = (op: OpDef, inputs: Value[]): Node => graph.insert({ op, inputs, outputs: [type], origins: ["test"] });
  const add = node(Add, [x, b]);
  const relu = node(Relu, [...add.outputs]);
  graph.setOutputs(relu.outputs);
  return { graph, x, nodes: [add, relu] };
}
const at = <T>(list: readonly T[], i: number): T => { const v = list[i]; if (v === undefined) throw new Error(`nothing at ${i}`); return v; };

describe("verifyGraph", () => {
  test("accepts a graph, and one after a rewrite", () => {
    const { graph, x, nodes } = chain();
    verifyGraph(graph);
    const relu = at(nodes, 1);
    const mul = graph.insert({ op: Mul, inputs: [x, x], outputs: [type], origins: ["test"] }, relu);
    graph.replaceUses(at(at(nodes, 0).outputs, 0), at(mul.outputs, 0));
    graph.erase(at(nodes, 0));
    verifyGraph(graph);
  });
  test("refuses types that inference does not give", () => {
    const { graph, nodes } = chain();
    graph.setType(at(at(nodes, 0).outputs, 0), { dtype: "float32", shape: [symbol("n"), 4] });
    expect(() => verifyGraph(graph)).toThrow(/is float32\[n, 4\], inference says float32\[n, 3\]/);
    graph.setType(at(at(nodes, 0).outputs, 0), { dtype: "int32", shape: [symbol("n"), 3] });
    expect(() => verifyGraph(graph)).toThrow(/int32/);
  });
  test("refuses a constant that is not of its type", () => {
    const { graph, nodes } = chain();
    graph.setType(at(at(nodes, 0).inputs, 1) as Value, { dtype: "float32", shape: [4] });
    expect(() => verifyGraph(graph)).toThrow(/constant 'b' is float32\[3\] of type float32\[4\]/);
  });
  test("refuses cycles", () => {
    const { graph, nodes } = chain();
    graph.setInput(at(nodes, 0), 1, at(at(nodes, 1).outputs, 0));
    expect(() => verifyGraph(graph)).toThrow(/nodes need each other: Add, Relu/);
  });
  test("refuses values of graphs that are not around", () => {
    const { graph, nodes } = chain();
    const other = new Graph("other");
    graph.setInput(at(nodes, 0), 1, other.addInput("y", type));
    expect(() => verifyGraph(graph)).toThrow(/belongs to other/);
  });
  test("refuses nodes whose inputs do not fit the schema", () => {
    const { graph, nodes } = chain();
    graph.setInput(at(nodes, 1), 0, undefined);
    expect(() => verifyGraph(graph)).toThrow(/needs its input 'X'/);
  });
});
