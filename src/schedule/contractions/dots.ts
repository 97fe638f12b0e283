/** Dot products of contiguous float32 vectors: lanes along the contracted axis, summed at the end. */
import { add, binary, constant, f32, f32x4, i32, madd, type Expr } from "../../kernel/expr.ts";
import { assign, type Stmt } from "../../kernel/stmt.ts";
import { loadAt, type KernelBuilder } from "../builder.ts";
import { laneOf } from "./tile.ts";
import { transpose4 } from "../loops/runs.ts";

const longest = 2 ** 28;

/** Σ_k row[k]·column[k] for 1 or 4 columns: a scalar, or a vector with a lane a column. */
export function dotProducts(b: KernelBuilder, into: Stmt[], row: Expr, columns: readonly Expr[], steps: Expr, relaxed: boolean): Expr {
  const whole = steps.kind === "const" ? constant(Number(steps.value) & -4, i32) : b.let(into, "whole", binary("and", steps, constant(-4, i32)));
  const sums = columns.map(() => b.let(into, "sum", constant(0, f32x4)));
  const left = b.let(into, "pa", row), moving = columns.map((c) => b.let(into, "pb", c));
  const advance = (body: Stmt[], bytes: number): void => [left, ...moving].forEach((p) => { if (p.kind === "local") body.push(assign(p.name, add(p, constant(bytes, i32)))); });
  b.loop(into, "k", 0, whole, 4, longest, (_, body) => {
    const x = b.let(body, "x", loadAt(left, 0, "float32", f32x4));
    sums.forEach((s, j) => { const p = moving[j]; if (s.kind === "local" && p) body.push(assign(s.name, madd(x, loadAt(p, 0, "float32", f32x4), s, relaxed))); });
    advance(body, 16);
  });
  const joined = sums.length === 4
    ? transpose4(b, into, sums).reduce((s, v) => add(s, v))
    : [1, 2, 3].reduce<Expr>((s, lane) => add(s, laneOf(sums[0] ?? left, lane)), laneOf(sums[0] ?? left, 0));
  if (steps.kind === "const" && Number(steps.value) % 4 === 0) return b.let(into, "dot", joined);
  const rests = columns.map(() => b.let(into, "rest", constant(0, f32)));
  b.loop(into, "k", whole, steps, 1, longest, (_, body) => {
    const x = b.let(body, "x", loadAt(left, 0, "float32", f32));
    rests.forEach((s, j) => { const p = moving[j]; if (s.kind === "local" && p) body.push(assign(s.name, madd(x, loadAt(p, 0, "float32", f32), s, relaxed))); });
    advance(body, 4);
  });
  const rest: Expr = rests.length === 4 ? { kind: "lanes", elements: rests, type: f32x4 } : rests[0] ?? constant(0, f32);
  return b.let(into, "dot", add(joined, rest));
}
