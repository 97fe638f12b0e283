import { describe, expect, it } from "vitest";
import { dimMul, symbol, type Dim } from "../../core/dim.ts";
import { add, axisOf, constant, dimExpr, exp, f32, i32, load, local, lt, mul, select, sub, type Axis, type Buffer, type Expr } from "../../kernel/expr.ts";
import { rowMajor, type Kernel } from "../../kernel/kernel.ts";
import type { Placement } from "../../kernel/program.ts";
import { printKernel } from "../../kernel/print.ts";
import { block, loop, type Stmt } from "../../kernel/stmt.ts";
import { visitStmt } from "../../kernel/traverse.ts";
import { legalize } from "./legalize.ts";

const buffer = (name: string, shape: readonly Dim[], dtype: Buffer["dtype"] = "float32"): Buffer => ({ name, dtype, shape });
const axis = (name: string, extent: Dim): Axis => ({ name, extent });
const each = (a: Axis, body: Stmt): Stmt => loop(a, constant(0, i32), dimExpr(a.extent), 1, body);
const store = (b: Buffer, indices: readonly Expr[], value: Expr): Stmt => ({ kind: "store", buffer: b, indices, value });

function legal(inputs: Buffer[], outputs: Buffer[], body: Stmt): { kernel: Kernel; text: string; lines: string[] } {
  const kernel: Kernel = { name: "k", inputs, outputs, scratch: [], body };
  const placements = new Map([...inputs, ...outputs].map((b): [Buffer, Placement] => [b, { storage: { name: b.name, kind: "arena", bytes: 0 }, layout: rowMajor(b.shape, dimMul) }]));
  const result = legalize(kernel, placements), text = printKernel(result);
  return { kernel: result, text, lines: text.split("\n") };
}
/** Lines of the innermost loop's body. */
function innermost(kernel: Kernel): string[] {
  let body: Stmt = kernel.body;
  visitStmt(kernel.body, (s) => { if (s.kind === "for") ({ body } = s); });
  return printKernel({ ...kernel, body }).split("\n").slice(1, -1).map((l) => l.trim());
}

describe("legalize", () => {
  const i = axis("i", 5), j = axis("j", 7), n = symbol("n");

  it("moves pointers in innermost loops instead of computing addresses", () => {
    const x = buffer("x", [5, 7]), y = buffer("y", [5, 7]);
    const { kernel } = legal([x], [y], each(i, each(j, store(y, [axisOf(i), axisOf(j)], mul(load(x, [axisOf(i), axisOf(j)]), 2)))));
    expect(innermost(kernel)).toEqual(["store_float32(p1 + 0) = load_float32:f32(p0 + 0) * 2.0", "p0 = p0 + 4", "p1 = p1 + 4"]);
  });
  it("puts constant distances into offsets, but none that would make a pointer negative", () => {
    const x = buffer("x", [9]), y = buffer("y", [9]);
    const { text } = legal([x], [y], each(j, store(y, [constant(8, i32)], add(load(x, [constant(3, i32)]), load(x, [sub(constant(8, i32), axisOf(j))])))));
    expect(text).toContain("&x[0] + 12");
    expect(text).toContain("&y[0] + 32");
    expect(text).toMatch(/let p0: i32 = &x\[0\] \+ 32/);
  });
  it("computes once what both sides of selects choose in turn, however deep", () => {
    const x = buffer("x", [5]), y = buffer("y", [5]), at = load(x, [axisOf(i)]);
    // Every level's value is in both sides of the next.
    let value: Expr = select(lt(at, constant(0, f32)), exp(at), mul(at, 3));
    for (let level = 1; level <= 6; level++) value = select(lt(at, constant(level, f32)), sub(value, constant(level, f32)), mul(value, value));
    const { lines } = legal([x], [y], each(i, store(y, [axisOf(i)], value)));
    expect(lines.filter((l) => l.includes("* 3.0")).length).toBe(1);
    for (let level = 1; level <= 6; level++) expect(lines.filter((l) => l.includes(`< ${level}.0`)).length, `level ${level}`).toBe(1);
  });
  it("computes in a branch what only one side needs", () => {
    const x = buffer("x", [5]), y = buffer("y", [5]), at = load(x, [axisOf(i)]);
    const costly = select(lt(at, constant(1, f32)), exp(at), mul(at, 3));
    const { lines } = legal([x], [y], each(i, store(y, [axisOf(i)], select(lt(at, constant(0, f32)), at, mul(costly, costly)))));
    const branch = lines.findIndex((l) => l.includes("if (")), product = lines.findIndex((l) => l.includes("* 3.0"));
    expect(branch).toBeGreaterThan(0);
    expect(product).toBeGreaterThan(branch);
  });
  it("computes what a loop does not change before it, once", () => {
    const x = buffer("x", [5, 7]), s = buffer("s", [5]), y = buffer("y", [5, 7]);
    const scale = exp(load(s, [axisOf(i)]));
    const { kernel, lines } = legal([x, s], [y], each(i, each(j, store(y, [axisOf(i), axisOf(j)], mul(load(x, [axisOf(i), axisOf(j)]), scale)))));
    expect(innermost(kernel).some((l) => l.includes("1.44"))).toBe(false);
    expect(lines.filter((l) => l.includes("1.44")).length).toBe(1);
  });
  it("reads before a loop only what the loop would read", () => {
    const x = buffer("x", [n]), s = buffer("s", [n]), y = buffer("y", [n]);
    const k = axis("k", n);
    const { text } = legal([x, s], [y], each(k, store(y, [axisOf(k)], add(load(x, [axisOf(k)]), load(s, [sub(dimExpr(n), 1)])))));
    expect(text).toMatch(/if \(0 < \{n\}\)[^}]*\{\n\s+let v\d+: f32 = load_float32/);
  });
  it("leaves guarded reads behind their guard", () => {
    const x = buffer("x", [5]), y = buffer("y", [5, 7]);
    const guarded = select(lt(axisOf(i), 3), load(x, [add(axisOf(i), 2)]), 0);
    const { text } = legal([x], [y], each(i, each(j, store(y, [axisOf(i), axisOf(j)], guarded))));
    expect(text).toMatch(/\(i < 3\) \? load_float32/);
  });
  it("does not carry a value over a change of what it was made from", () => {
    const x = buffer("x", [7]), y = buffer("y", [7]);
    const value = mul(local("t", f32), local("t", f32));
    const body = block({ kind: "let", name: "t", value: constant(2, f32) }, each(j, block(store(y, [axisOf(j)], add(value, load(x, [axisOf(j)]))), { kind: "assign", name: "t", value })));
    const { kernel } = legal([x], [y], body);
    expect(innermost(kernel)).toContain("t = v0");
    expect(innermost(kernel)).toContain("let v0: f32 = t * t");
  });
  it("drops what nothing reads", () => {
    const x = buffer("x", [7]), y = buffer("y", [7]);
    const { text } = legal([x], [y], each(j, block({ kind: "let", name: "unused", value: exp(load(x, [axisOf(j)])) }, store(y, [axisOf(j)], constant(1, f32)))));
    expect(text).not.toContain("&x");
  });
});
