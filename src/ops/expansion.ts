/** Builds the list of nodes by which an operator is said in terms of others. */
import type { DType } from "../core/dtype.ts";
import { fromNumbers, type Tensor } from "../core/tensor.ts";
import type { Attributes, ExpansionNode, OpDef } from "../graph/op.ts";

export class Expansion {
  readonly nodes: ExpansionNode[] = [];

  /** Adds a node with one result and gives the result's name: a local one, or `output`. */
  add(op: OpDef, inputs: readonly (string | Tensor | undefined)[], attributes: Attributes = {}, output = `t${this.nodes.length}`): string {
    this.nodes.push({ op, inputs, outputs: [output], attributes });
    return output;
  }
}

/** A scalar of a dtype. */
export const scalarOf = (dtype: DType, value: number): Tensor => fromNumbers(dtype, [], [value]);
/** A list of int64. */
export const listOf = (...values: readonly number[]): Tensor => fromNumbers("int64", [values.length], values);
