/** Names of the instructions for binary operations, and the bytes of vector constants. */
import { invariant } from "../../core/assert.ts";
import { byteSize } from "../../core/dtype.ts";
import { formatType, type BinaryOp, type Expr, type Type } from "../../kernel/expr.ts";
import { isFloating, isUnsigned, laneShape, widthOf } from "./lane-types.ts";

/** The name without its shape. */
export function scalarName(op: BinaryOp, t: Type): string {
  const float = isFloating(t.scalar);
  const sign = float ? "" : isUnsigned(t.scalar) || t.scalar === "bool" ? "_u" : "_s";
  switch (op) {
    case "lt": case "le": case "gt": case "ge": return op + sign;
    case "shr": return op + sign;
    case "pow": return invariant(false, "pow was not legalised") as never;
    default: return op;
  }
}
/** The name for lanes of a shape. */
export function vectorName(op: BinaryOp, t: Type, shape: string): string {
  const float = isFloating(t.scalar), sign = float ? "" : isUnsigned(t.scalar) ? "_u" : "_s";
  switch (op) {
    case "and": case "or": case "xor": return `v128.${op}`;
    case "eq": return `${shape}.eq`;
    case "ne": return t.scalar === "bool" ? "v128.xor" : `${shape}.ne`;
    case "lt": case "le": case "gt": case "ge": return `${shape}.${op}${sign}`;
    case "pmin": case "pmax": return float ? `${shape}.${op}` : `${shape}.${op.slice(1)}${sign}`;
    case "min": case "max":
      if (t.scalar === "bool") return op === "min" ? "v128.and" : "v128.or";
      return `${shape}.${op}${sign}`;
    case "add": case "sub": case "mul": return `${shape}.${op}`;
    case "div": invariant(float, "vector division of integers was not legalised"); return `${shape}.div`;
    default: return invariant(false, `${op} of ${formatType(t)} was not legalised`) as never;
  }
}
/** Writes one lane of a constant. */
export function putLane(view: DataView, at: number, shape: ReturnType<typeof laneShape>, value: number | bigint): void {
  switch (shape) {
    case "f32x4": view.setFloat32(at, Number(value), true); return;
    case "f64x2": view.setFloat64(at, Number(value), true); return;
    case "i64x2": view.setBigInt64(at, BigInt(value), true); return;
    case "i32x4": view.setInt32(at, Number(value), true); return;
    case "i16x8": view.setInt16(at, Number(value), true); return;
    case "i8x16": view.setInt8(at, Number(value)); return;
  }
}

/** The instruction that reads an element straight into a lane. */
export function laneLoad(x: Extract<Expr, { kind: "loadAt" }>, t: Type): string | undefined {
  return byteSize(x.dtype) * 8 === widthOf(t.scalar) ? `v128.load${widthOf(t.scalar)}_lane` : undefined;
}
/** The scalar type that holds a lane's bits. */
export const scalarOfLane = (t: Type): Type => ({ scalar: laneShape(t) === "i64x2" ? "i64" : "i32", lanes: 1 });
