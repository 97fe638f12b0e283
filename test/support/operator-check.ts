/** One operator alone: its evaluation against its lowered kernel, interpreted. */
import { fromNumbers, sizeOf, toNumbers, type Tensor } from "../../src/core/tensor.ts";
import type { Dim } from "../../src/core/dim.ts";
import type { Attributes, OpDef } from "../../src/graph/op.ts";
import { interpretProgram } from "../../src/kernel/interpret-program.ts";
import { lowerProgram } from "../../src/lower/program.ts";
import { expandComposites } from "../../src/passes/expand.ts";
import { Ledger } from "../../src/passes/ledger.ts";
import { partition } from "../../src/passes/partition.ts";
import { simplify } from "../../src/passes/simplify.ts";
import { interpret } from "../../src/reference/interpret.ts";
import { difference, GraphBuilder } from "./graph-builder.ts";
import type { Random } from "./random.ts";

export interface OperatorCase {
  readonly op: OpDef;
  readonly inputs: readonly (OperatorInput | undefined)[];
  readonly attributes?: Attributes;
  readonly outputs?: number;
}
/** A fed tensor; `shape` names the sizes that stay symbolic. A constant is known when compiling. */
export interface OperatorInput {
  readonly tensor: Tensor;
  readonly shape?: readonly (number | string | Dim)[];
  readonly constant?: boolean;
}

export interface OperatorResults {
  readonly expected: readonly Tensor[];
  readonly actual: readonly Tensor[];
}

/** Runs a case both ways, composite operators as their parts. Throws where the operator would run on the host. */
export function runOperator({ op, inputs, attributes = {}, outputs = 1 }: OperatorCase): OperatorResults {
  const b = new GraphBuilder();
  const feeds: Record<string, Tensor> = {};
  const values = inputs.map((input, i) => {
    if (!input) return undefined;
    if (input.constant) return b.constant(input.tensor);
    feeds[`x${i}`] = input.tensor;
    return b.input(`x${i}`, input.shape ?? input.tensor.dims, input.tensor.dtype);
  });
  const graph = b.outputs(...b.nodes(op, values, attributes, outputs));
  const expected = Object.values(interpret(graph, feeds));
  if (expandComposites(graph, new Ledger())) simplify(graph, new Ledger());
  const { regions } = partition(graph, { fusion: false, isEnabled: () => true, opTypesOf: () => undefined });
  if (regions.some((r) => r.execution === "host")) throw new Error(`${op.type} would run on the host`);
  return { expected, actual: Object.values(interpretProgram(lowerProgram(graph, regions), feeds)) };
}

/** The worst difference of a case's results, relative to the largest magnitude. */
export function operatorDifference(c: OperatorCase): number {
  const { expected, actual } = runOperator(c);
  return Math.max(...expected.map((e, i) => difference(actual[i], e)));
}

/** The operator without its anchor, so that `lower` alone is tested. */
export function withoutAnchor(op: OpDef): OpDef {
  const { anchor: _, ...plain } = op;
  return plain;
}

/** A copy with one element moved: what a comparison must see. */
export function perturbed(t: Tensor, by: number): Tensor {
  const values = Array.from(toNumbers(t)), at = Math.floor(values.length / 2);
  return fromNumbers(t.dtype, t.dims, values.map((v, i) => v + (i === at ? by : 0)));
}

/** Integers of a range, of any dtype. */
export const randomIntegers = (dtype: Tensor["dtype"], dims: readonly number[], low: number, high: number, random: Random): Tensor =>
  fromNumbers(dtype, dims, Array.from({ length: sizeOf(dims) }, () => low + random.int(high - low + 1)));
