/** Building graphs by hand: types are inferred, names are made, random constants are seeded. For rules' examples and tests. */
import { present } from "../core/assert.ts";
import { symbol, type Dim } from "../core/dim.ts";
import type { DType } from "../core/dtype.ts";
import { fromNumbers, sizeOf, type Tensor } from "../core/tensor.ts";
import { freshSymbol } from "./fresh.ts";
import { Graph, type Value } from "./graph.ts";
import { inferNode } from "./infer-node.ts";
import type { Attributes, OpDef } from "./op.ts";

/** How an operand may be written: a value, a float32 number, or nothing. */
export type OperandSpec = Value | number | undefined;

export class GraphBuilder {
  readonly graph: Graph;
  #seed = 1;

  constructor(graph: Graph = new Graph()) {
    this.graph = graph;
  }

  /** A float32 graph input unless said otherwise; a string is a symbolic size. */
  input(name: string, dims: readonly (number | string)[], dtype: DType = "float32"): Value {
    return this.graph.addInput(name, { dtype, shape: dims.map((d): Dim => (typeof d === "string" ? symbol(d) : d)) });
  }
  /** A graph input with a stored default. */
  overridable(name: string, tensor: Tensor): Value {
    return this.graph.addInput(name, { dtype: tensor.dtype, shape: tensor.dims }, tensor);
  }
  constant(tensor: Tensor, name?: string): Value { return this.graph.addConstant(tensor, name); }
  /** A constant of these numbers; of rank 1 unless `dims` are given. */
  numbers(values: readonly number[], dims: readonly number[] = [values.length], dtype: DType = "float32"): Value {
    return this.constant(fromNumbers(dtype, dims, values));
  }
  scalar(value: number, dtype: DType = "float32"): Value { return this.numbers([value], [], dtype); }
  int64(...values: readonly number[]): Value { return this.numbers(values, [values.length], "int64"); }
  /** A seeded random constant, uniform in [low, high). */
  random(dims: readonly number[], { low = -1, high = 1, dtype = "float32" as DType } = {}): Value {
    return this.constant(fromNumbers(dtype, dims, Array.from({ length: sizeOf(dims) }, () => low + (high - low) * this.#next())));
  }

  /** The first output of a new node. */
  add(op: OpDef, inputs: readonly OperandSpec[], attributes: Attributes = {}, name?: string): Value {
    return present(this.addAll(op, inputs, attributes, 1, name)[0], "output");
  }
  /** All outputs of a new node. */
  addAll(op: OpDef, inputs: readonly OperandSpec[], attributes: Attributes, outputCount: number, name: string = `${op.type.toLowerCase()}${this.graph.nodeCount}`): readonly Value[] {
    const values = inputs.map((x) => (typeof x === "number" ? this.scalar(x) : x));
    const outputs = inferNode(op, values, attributes, outputCount, { place: { node: name }, fresh: (hint) => freshSymbol(this.graph, hint) });
    const node = this.graph.insert({ op, inputs: values, attributes, outputs, name, outputNames: outputs.map((_, i) => (i === 0 ? `${name}_out` : `${name}_out${i}`)), origins: [name] });
    return node.outputs;
  }
  /** Ends the graph: its outputs. */
  build(...outputs: readonly Value[]): Graph {
    this.graph.setOutputs(outputs);
    return this.graph;
  }

  /** Lehmer's generator. */
  #next(): number {
    this.#seed = (this.#seed * 48271) % 2147483647;
    return this.#seed / 2147483647;
  }
}
