/** Graphs for tests, node by node with inferred types. */
import type { Dim } from "../../src/core/dim.ts";
import { symbol } from "../../src/core/dim.ts";
import type { DType } from "../../src/core/dtype.ts";
import { rowMajorStrides, type Tensor } from "../../src/core/tensor.ts";
import { Graph, type Value } from "../../src/graph/graph.ts";
import { inferNode } from "../../src/graph/infer-node.ts";
import type { Attributes, OpDef } from "../../src/graph/op.ts";

export class GraphBuilder {
  readonly graph: Graph;
  #fresh = 0;
  constructor(graph = new Graph()) { this.graph = graph; }

  input(name: string, shape: readonly (number | string | Dim)[], dtype: DType = "float32", defaultValue?: Tensor): Value {
    return this.graph.addInput(name, { dtype, shape: shape.map((d) => (typeof d === "string" ? symbol(d) : d)) }, defaultValue);
  }
  constant(tensor: Tensor): Value { return this.graph.addConstant(tensor); }
  ints(...values: number[]): Value { return this.graph.addConstant({ dtype: "int64", dims: [values.length], data: BigInt64Array.from(values, BigInt) }); }

  /** The node's outputs. */
  nodes(op: OpDef, inputs: readonly (Value | undefined)[], attributes: Attributes = {}, outputCount = 1): readonly Value[] {
    const types = inferNode(op, inputs, attributes, outputCount, { place: { node: op.type }, fresh: (hint) => symbol(`${hint}_${this.#fresh++}`) });
    return this.graph.insert({ op, inputs, attributes, outputs: types, origins: [`${op.type}_${this.#fresh++}`] }).outputs;
  }
  node(op: OpDef, inputs: readonly (Value | undefined)[], attributes: Attributes = {}): Value {
    const [first] = this.nodes(op, inputs, attributes);
    if (!first) throw new Error(`${op.type} has no output`);
    return first;
  }
  outputs(...values: readonly Value[]): Graph {
    this.graph.setOutputs(values);
    return this.graph;
  }
}

/** The largest difference, relative to the largest expected magnitude; infinite where dtype, dims or NaNs differ. */
export function difference(actual: Tensor | undefined, expected: Tensor): number {
  if (!actual || actual.dtype !== expected.dtype || rowMajorStrides(actual.dims).length !== expected.dims.length || actual.dims.some((d, i) => d !== expected.dims[i])) return Infinity;
  let largest = 0, worst = 0;
  for (let i = 0; i < expected.data.length; i++) {
    const a = Number(actual.data[i]), e = Number(expected.data[i]);
    if (Number.isNaN(a) !== Number.isNaN(e)) return Infinity;
    if (Object.is(a, e) || Number.isNaN(e)) continue;
    if (!Number.isFinite(e) && a !== e) return Infinity;
    largest = Math.max(largest, Math.abs(e));
    worst = Math.max(worst, Math.abs(a - e));
  }
  return worst === 0 ? 0 : worst / Math.max(largest, 1e-30);
}
