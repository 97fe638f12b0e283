import { describe, expect, it } from "vitest";
import { operatorDifference, runOperator } from "../../test/support/operator-check.ts";
import { DiagnosticError } from "../core/diagnostic.ts";
import type { DType } from "../core/dtype.ts";
import { fromNumbers } from "../core/tensor.ts";
import { defineOp, type OpDef } from "../graph/op.ts";
import { binary, lift, unary, type Expr } from "../kernel/expr.ts";

/** An operator that takes any number, and whose kernel computes `lower`. */
const made = (lower: (x: Expr) => Expr): OpDef => defineOp({
  type: "Made", domain: "test", since: 1, inputs: { x: "required" }, attributes: {}, fusionKind: "elementwise",
  infer: ({ x }) => [{ dtype: x.dtype, shape: x.shape }],
  evaluate: ([x]) => [x ?? fromNumbers("float32", [], [0])],
  lower: ({ x }) => [(...indices) => lower(x.at(...indices))],
});
const codeOf = (op: OpDef, dtype: DType): string => {
  try {
    runOperator({ op, inputs: [{ tensor: fromNumbers(dtype, [4], [1, 1, 1, 1]) }] });
    return "done";
  } catch (e) {
    if (e instanceof DiagnosticError) return e.message;
    throw e;
  }
};

describe("functions of floats", () => {
  const power = made((x) => binary("pow", x, lift(3, x.type))), root = made((x) => unary("sqrt", x));
  it("are refused of integers, with the node", () => {
    for (const dtype of ["int64", "uint64", "int32", "int8"] as const) {
      expect(codeOf(power, dtype)).toMatch(/^OF5103: a kernel cannot compute pow of [iu](64|32) \(node 'Made/);
      expect(codeOf(root, dtype)).toMatch(/^OF5103: a kernel cannot compute sqrt of/);
    }
  });
  it("are computed of floats, and what integers have is of them", () => {
    for (const op of [power, root]) for (const dtype of ["float32", "float64", "float16"] as const) expect(operatorDifference({ op, inputs: [{ tensor: fromNumbers(dtype, [4], [1, 1, 1, 1]) }] })).toBe(0);
    expect(codeOf(made((x) => unary("abs", unary("neg", x))), "int64")).toBe("done");
  });
});
