/**
 * Checks of values that kernels rely on, where only running can tell them: what range they cover, as a kernel, and that
 * this is what it must be, as a step of its own. No ONNX operators; written files have none.
 */
import { ValueRange as evaluate } from "../evaluate/onnxfuse-value-range.ts";
import { defineOp, int, required, string, type Operand } from "../graph/op.ts";
import { cast, constant, i64, select, eq, type Expr, type ReduceOp } from "../kernel/expr.ts";
import { axesFrom, overAxes } from "./axis-reduction.ts";
import { origin } from "./index-map.ts";

/** The least and the largest element: of all, or with `each` for each place along the last axis. With `divisor`, 0 stands for 0 and 1 for all others. */
export const ValueRange = defineOp({
  type: "ValueRange", domain: "onnxfuse", since: 1, evaluate,
  inputs: { x: "required" },
  attributes: { each: int(0), divisor: int(0) },
  fusionKind: "opaque",
  infer: ({ x }, { each }) => {
    const shape = each ? x.shape.slice(-1) : [];
    return [{ dtype: "int64", shape }, { dtype: "int64", shape }];
  },
  lower: ({ x }, { each, divisor }) => [along("min", x, each, divisor), along("max", x, each, divisor)],
});

function along(op: ReduceOp, x: Operand, each: number, divisor: number): (...indices: readonly Expr[]) => Expr {
  const rank = x.shape.length;
  const term = (e: Expr): Expr => (divisor ? select(eq(e, 0), constant(0n, i64), constant(1n, i64)) : cast(e, "i64"));
  return (...place) => overAxes(op, x.shape, axesFrom(0, each ? rank - 1 : rank), x.shape.map((_, d) => (d === rank - 1 ? place[0] : undefined) ?? origin), (at) => term(x.at(...at)));
}

/** Stops the run where a range is not within these axes (sizes in JSON), or, without any, begins at 0. */
export const ValueCheck = defineOp({
  type: "ValueCheck", domain: "onnxfuse", since: 1,
  inputs: { low: "required", high: "required" },
  attributes: { sizes: required("strings"), node: string(""), value: string("") },
  fusionKind: "opaque",
  sideEffects: true,
  infer: () => [],
  expand: () => [],
});
