/** A · B for each of several matrices B, by numpy's rules, in float64. */
import { present } from "../core/assert.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { MatMul } from "./matmul.ts";

export const SiblingMatMul: Evaluate = ([A, ...matrices], _, context) =>
  matrices.flatMap((B) => MatMul([present(A, "A"), present(B, "B")], {}, context));
