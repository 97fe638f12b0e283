import { expect, test } from "vitest";
import { symbol } from "../core/dim.ts";
import { tensor, type Tensor } from "../core/tensor.ts";
import { Graph } from "../graph/graph.ts";
import type { TypeInfo } from "../graph/op.ts";
import { Relu } from "../ops/activation.ts";
import { Shape } from "../ops/shape.ts";
import { interpret } from "./interpret.ts";

const f32 = (dims: readonly number[], ...values: number[]): Tensor => tensor("float32", dims, Float32Array.from(values));
const type: TypeInfo = { dtype: "float32", shape: [symbol("n"), symbol("n")] };

function relu(output: TypeInfo): Graph {
  const graph = new Graph();
  const x = graph.addInput("x", type);
  graph.setOutputs(graph.insert({ op: Relu, inputs: [x], outputs: [output], outputNames: ["y"], origins: ["relu"] }).outputs);
  return graph;
}

test("gives results by name and shows every value", () => {
  const seen: string[] = [];
  const { y } = interpret(relu(type), { x: f32([1, 1], -2) }, { observe: (value) => seen.push(value.name) });
  expect(y?.data).toEqual(Float32Array.of(0));
  expect(seen).toEqual(["x", "y"]);
});
test("refuses feeds that are missing, unknown, or of other types and sizes", () => {
  expect(() => interpret(relu(type), {})).toThrow(/OF3202/);
  expect(() => interpret(relu(type), { x: f32([1, 1], 1), z: f32([], 1) })).toThrow(/OF3201/);
  expect(() => interpret(relu(type), { x: f32([1, 2], 1, 2) })).toThrow(/OF3203/);
  expect(() => interpret(relu(type), { x: tensor("int32", [1, 1], Int32Array.of(1)) })).toThrow(/OF3203/);
});
test("sees results that are not what inference said", () => {
  expect(() => interpret(relu({ dtype: "float32", shape: [2, symbol("n")] }), { x: f32([1, 1], 1) })).toThrow(/gave \[1,1\] for 'y', inferred \[2, n\]/);
  expect(() => interpret(relu({ dtype: "float64", shape: type.shape }), { x: f32([1, 1], 1) })).toThrow(/gave float32 for 'y', inferred float64/);
  const graph = new Graph();
  const x = graph.addInput("x", type);
  const sizes: TypeInfo = { dtype: "int64", shape: [2], elements: [symbol("n"), 7] };
  graph.setOutputs(graph.insert({ op: Shape, inputs: [x], outputs: [sizes], outputNames: ["s"], origins: ["shape"] }).outputs);
  expect(() => interpret(graph, { x: f32([1, 1], 1) })).toThrow(/gave 1 as element 1 of 's', inferred 7/);
});
