/**
 * Makes a scheduled kernel legal for code generation: no reductions, no functions that have no instruction, no logical
 * accesses (addresses.ts), pointers moved rather than recomputed (induction.ts), every value computed once in the
 * outermost loop it can be (bind.ts). The result computes the same bits; the interpreter runs it too.
 */
import { present } from "../../core/assert.ts";
import type { Buffer } from "../../kernel/expr.ts";
import type { Kernel, Layout } from "../../kernel/kernel.ts";
import type { Placement } from "../../kernel/program.ts";
import { ExprTable } from "../../kernel/share.ts";
import { addressAccesses } from "./addresses.ts";
import { bindValues } from "./bind.ts";
import { dropUnused } from "../loops/unused.ts";
import { freshNames } from "../fresh.ts";
import { reduceStrength } from "./induction.ts";
import { legalizeMath } from "./math.ts";
import { expandReductions } from "../loops/reductions.ts";

/**
 * The legal form of `kernel`: accesses are loadAt and storeAt, `address` names first elements only, there is no `reduce`
 * and no unary or binary operation without an instruction. Loop variables must stay below their axis's extent. Only the
 * strides of `placements` matter.
 */
export function legalize(kernel: Kernel, placements: ReadonlyMap<Buffer, Placement>): Kernel {
  const layoutOf = (b: Buffer): Layout => present(placements.get(b), `placement of ${b.name}`).layout;
  const fresh = freshNames(kernel.body);
  const table = new ExprTable();
  const expanded = legalizeMath({ ...kernel, body: expandReductions(kernel.body, fresh) });
  const { body, safe } = addressAccesses(expanded.body, table, layoutOf);
  const pointers = reduceStrength(body, table, fresh);
  const bound = bindValues(pointers, { table, safe, fresh, constant: new Set(kernel.inputs) });
  return { ...kernel, body: dropUnused(bound) };
}
