/** Sizes of an operand that follow from other operands: refused where they are known to differ, and checked by running where not. */
import { dimEqual, dimMin, formatShape, type Dim } from "../core/dim.ts";
import type { InferContext, TypeInfo } from "../graph/op.ts";

/**
 * An operand that is given must have these sizes: each `equal`, or 1 instead (`broadcast`), or not larger (`within`).
 * Reports OF3010 for another rank, OF3011 where sizes cannot fit; what they hang on is noted for the runtime.
 */
export function agreeSizes(context: InferContext, name: string, operand: TypeInfo | undefined, expected: readonly Dim[], how: "equal" | "broadcast" | "within" = "equal"): void {
  if (!operand) return;
  const { shape } = operand;
  if (shape.length !== expected.length) context.fail("OF3010", `${name} needs rank ${expected.length}, got ${formatShape(shape)}`);
  shape.forEach((own, axis) => {
    const wanted = expected[axis] ?? own, fitting = how === "equal" ? wanted : how === "within" ? dimMin(own, wanted) : own === 1 ? 1 : wanted;
    if (typeof own === "number" && typeof fitting === "number" && own !== fitting) context.fail("OF3011", `${name} is ${formatShape(shape)}, which does not fit ${formatShape(expected)}`);
    if (!dimEqual(own, fitting)) context.agree?.(fitting, own, how === "broadcast" ? "broadcast" : "equal");
  });
}
