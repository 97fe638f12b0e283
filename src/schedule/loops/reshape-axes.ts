/**
 * Other loop variables for the same iterations: an axis that indices divide is split into quotient and remainder; axes
 * that every access passes over as one are joined. Both only substitute, and the algebra of sums (kernel/simplify.ts,
 * kernel/share.ts) takes divisions and remainders out of the addresses again.
 */
import { dimEqual, dimExactDiv, dimMul, dimRange, type Dim } from "../../core/dim.ts";
import { add, axisOf, binary, dimExpr, mul, type Axis, type Expr } from "../../kernel/expr.ts";
import type { Stmt } from "../../kernel/stmt.ts";
import { expressionsOf, visitExpr, visitStmt } from "../../kernel/traverse.ts";
import { substitute, type Nest } from "./nest.ts";
import { axesUsedAsValues, type Strides } from "./strides.ts";

/** Splits axes x that occur in (c·d·x + …) / d or % d as x = d'·q + r where that makes the division exact. */
export function splitDividedAxes(nest: Nest, strides: Strides): Nest {
  for (const [position, axis] of nest.axes.entries()) {
    for (const divisor of divisorsOf(axis, nest.body, strides)) {
      const count = dimExactDiv(axis.extent, divisor);
      if (count === undefined || count === 1) continue;
      const outer: Axis = { name: `${axis.name}_q`, extent: count }, inner: Axis = { name: `${axis.name}_r`, extent: divisor };
      const whole = add(mul(axisOf(outer), dimExpr(divisor)), axisOf(inner));
      const axes = [...nest.axes.slice(0, position), outer, inner, ...nest.axes.slice(position + 1)];
      return splitDividedAxes({ axes, body: substitute(nest.body, new Map([[axis, whole]]), strides.table) }, strides);
    }
  }
  return nest;
}

/** Sizes that the axis alone, or with something added, is divided by. */
function divisorsOf(axis: Axis, body: Stmt, strides: Strides): Dim[] {
  const found: Dim[] = [];
  const seen = new Set<Expr>();
  visitStmt(body, (s) => expressionsOf(s).forEach((root) => visitExpr(root, (e) => {
    if (e.kind !== "binary" || (e.op !== "div" && e.op !== "rem") || e.type.scalar !== "i32" || e.type.lanes !== 1) return;
    const by = strides.table.linear(strides.table.make(e.b));
    const own = strides.table.linear(strides.table.make(e.a)).terms.find((t) => t.atom.kind === "axis" && t.atom.axis === axis);
    if (!own || by.terms.length > 0) return;
    const quotient = dimExactDiv(by.constant, own.coefficient);
    const divisor = quotient !== undefined && dimRange(quotient).upper < 0 ? dimMul(-1, quotient) : quotient;
    if (divisor !== undefined && divisor !== 1 && !found.some((d) => dimEqual(d, divisor))) found.push(divisor);
  }, seen)));
  return found;
}

/** Joins neighbours of the nest where every access moves along the outer one as if the inner one went on counting. */
export function joinAxes(nest: Nest, strides: Strides): Nest {
  const values = axesUsedAsValues(nest.body, strides);
  const accesses = strides.accesses(nest.body);
  for (let i = nest.axes.length - 2; i >= 0; i--) {
    const outer = nest.axes[i], inner = nest.axes[i + 1];
    if (!outer || !inner || values.has(outer) || values.has(inner)) continue;
    const joined = accesses.every(({ access }) => {
      const far = strides.along(access, outer), near = strides.along(access, inner);
      return far !== undefined && near !== undefined && dimEqual(far, dimMul(near, inner.extent));
    });
    if (!joined) continue;
    const axis: Axis = { name: `${outer.name}${inner.name}`, extent: dimMul(outer.extent, inner.extent) };
    const size = dimExpr(inner.extent);
    const map = new Map([[outer, binary("div", axisOf(axis), size)], [inner, binary("rem", axisOf(axis), size)]]);
    const axes = [...nest.axes.slice(0, i), axis, ...nest.axes.slice(i + 2)];
    return joinAxes({ axes, body: substitute(nest.body, map, strides.table) }, strides);
  }
  return nest;
}
