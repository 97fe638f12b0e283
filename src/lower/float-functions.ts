/**
 * Functions that kernels compute of floats only. Of integers they would have to be spelled out bit by bit, in
 * expressions that double with every bit; operators that have them say so (`lowerable`) and run on the host.
 */
import { fail } from "../core/diagnostic.ts";
import type { Region } from "../graph/region.ts";
import type { Expr, UnaryOp } from "../kernel/expr.ts";
import type { Kernel } from "../kernel/kernel.ts";
import { expressionsOf, visitExpr, visitStmt } from "../kernel/traverse.ts";

const ofAnything: ReadonlySet<UnaryOp> = new Set<UnaryOp>(["neg", "abs", "not"]);

/** Fails with OF5103 where a kernel has such a function of integers. */
export function checkFloatFunctions(kernel: Kernel, region: Region): Kernel {
  const seen = new Set<Expr>();
  const check = (e: Expr): void => {
    if (e.kind !== "unary" && e.kind !== "binary") return;
    if (e.kind === "unary" ? ofAnything.has(e.op) : e.op !== "pow") return;
    const { scalar } = e.a.type;
    if (scalar === "f32" || scalar === "f64") return;
    const [node] = region.nodes;
    fail("OF5103", `a kernel cannot compute ${e.op} of ${scalar}`, { ...(node ? { place: { node: node.name } } : {}), hint: "cast the operand to a float type in the model" });
  };
  visitStmt(kernel.body, (s) => expressionsOf(s).forEach((root) => visitExpr(root, check, seen)));
  return kernel;
}
