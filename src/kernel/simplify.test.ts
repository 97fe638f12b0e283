import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { evaluateDim, symbol } from "../core/dim.ts";
import { add, axisOf, binary, constant, dimExpr, div, f32, i32, lt, mul, reduce, rem, select, sub, unary, type Axis, type BinaryOp, type Expr } from "./expr.ts";
import { printExpr } from "./print.ts";
import { numberBinary } from "./scalar-ops.ts";
import { ExprTable } from "./share.ts";
import { operandsOf } from "./traverse.ts";

const i: Axis = { name: "i", extent: 6 }, j: Axis = { name: "j", extent: symbol("W") };
const W = dimExpr(symbol("W"));
const simplified = (e: Expr): string => printExpr(new ExprTable().make(e));

describe("index algebra", () => {
  test("a row-major address split and joined again is itself", () => {
    const linear = add(mul(axisOf(i), W), axisOf(j));
    expect(simplified(div(linear, W))).toBe("i");
    expect(simplified(rem(linear, W))).toBe("j");
    expect(simplified(add(mul(div(linear, 4), 4), rem(linear, 4)))).toBe(simplified(linear));
  });
  test("nested divisions join", () => {
    const a = add(mul(axisOf(j), 6), axisOf(i));
    expect(simplified(div(div(a, 3), 2))).toBe("j");
    expect(simplified(rem(div(a, 3), 2))).toBe("i / 3");
  });
  test("comparisons that bounds decide disappear, others stay", () => {
    expect(simplified(lt(axisOf(i), 6))).toBe("true");
    expect(simplified(lt(axisOf(j), W))).toBe("true");
    expect(simplified(lt(axisOf(i), 5))).toBe("i < 5");
    expect(simplified(select(binary("ge", axisOf(i), 0), axisOf(i), 0))).toBe("i");
    expect(simplified(lt(sub(axisOf(i), 1), 0))).toBe("(i - 1) < 0");
  });
  test("division of what may be negative stays", () => {
    expect(simplified(div(sub(axisOf(i), 1), 1))).toBe("i - 1");
    expect(simplified(div(sub(axisOf(i), 1), 2))).toBe("(i - 1) / 2");
  });
});

test("floating point keeps signed zeros and NaN", () => {
  const x: Expr = { kind: "local", name: "x", type: f32 };
  expect(simplified(mul(x, 1))).toBe("x");
  expect(simplified(sub(x, 0))).toBe("x");
  expect(simplified(add(x, 0))).toBe("x + 0.0");
  expect(simplified(mul(x, 0))).toBe("x * 0.0");
  expect(simplified(unary("exp", constant(1, f32)))).toBe("exp(1.0)");
});

test("equal reductions over different variables are one object", () => {
  const table = new ExprTable();
  const total = (): Expr => reduce("add", [6], (k) => mul(k ?? W, 2));
  expect(table.make(total())).toBe(table.make(total()));
  expect(table.make(reduce("add", [6], (k) => mul(k ?? W, 3)))).not.toBe(table.make(total()));
});

/** The value of an expression of constants, axes and operations on i32. */
function evaluate(e: Expr, at: ReadonlyMap<Axis, number>): number {
  const [a = 0, b = 0, c = 0] = operandsOf(e).map((x) => evaluate(x, at));
  switch (e.kind) {
    case "const": return Number(e.value);
    case "axis": return at.get(e.axis) ?? 0;
    case "dim": return evaluateDim(e.dim, () => 5);
    case "binary": return numberBinary(e.op, "i32")(a, b);
    case "select": return a !== 0 ? b : c;
    case "unary": return e.op === "not" ? Number(a === 0) : -a;
    default: throw new Error(e.kind);
  }
}
const small = fc.integer({ min: -7, max: 7 });
const ops: readonly BinaryOp[] = ["add", "sub", "mul", "div", "rem", "min", "max"];
const comparisons: readonly BinaryOp[] = ["lt", "le", "gt", "ge", "eq"];
const index = fc.letrec<{ e: Expr }>((tie) => ({
  e: fc.oneof({ maxDepth: 5 },
    small.map((v) => constant(v, i32)), fc.constantFrom(axisOf(i), axisOf(j), W),
    fc.tuple(fc.constantFrom(...ops), tie("e"), tie("e")).map(([op, a, b]) => binary(op, a, b)),
    fc.tuple(fc.constantFrom(...comparisons), tie("e"), tie("e"), tie("e"), tie("e")).map(([op, a, b, c, d]) => select(binary(op, a, b), c, d)),
  ),
})).e;

test("random index expressions keep their value", () => {
  fc.assert(fc.property(index, fc.integer({ min: 0, max: 5 }), fc.integer({ min: 0, max: 4 }), (e, x, y) => {
    const at = new Map([[i, x], [j, y]]);
    expect(evaluate(new ExprTable().make(e), at)).toBe(evaluate(e, at));
  }), { numRuns: 2000, seed: 1 });
});

test("a wrong rule would be found: the value of a different expression differs", () => {
  expect(evaluate(new ExprTable().make(div(sub(axisOf(i), 1), 2)), new Map([[i, 0]]))).not.toBe(Math.floor(-1 / 2));
});
