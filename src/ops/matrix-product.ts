/** What matrix products share: numpy's shape rules, the naive sum and the structure. */
import { invariant } from "../core/assert.ts";
import { broadcastShapes, formatShape, type Dim } from "../core/dim.ts";
import type { Anchor, InferContext, Operand, TypeInfo } from "../graph/op.ts";
import { axisOf, constant, i32, local, mul, reduce, scalarType, type Axis, type Expr, type Scalar } from "../kernel/expr.ts";
import { broadcastIndices } from "./broadcast-read.ts";
import { agreeBroadcast } from "./element-wise.ts";

/** Sizes of a stack of products. `vectorA`: the result has no row axis; `vectorB`: no column axis. */
export interface MatrixProduct {
  readonly batch: readonly Dim[];
  readonly m: Dim;
  readonly n: Dim;
  readonly k: Dim;
  readonly vectorA: boolean;
  readonly vectorB: boolean;
  /** Element of A for (batch, row, k), of B for (batch, k, column). */
  readonly a: (batch: readonly Expr[], row: Expr, k: Expr) => Expr;
  readonly b: (batch: readonly Expr[], k: Expr, column: Expr) => Expr;
}

/** What becomes of an element before it is multiplied; `indices` are the operand's own. */
export type MatrixElement = (operand: Operand, indices: readonly Expr[]) => Expr;
export const plainElement: MatrixElement = (operand, indices) => operand.at(...indices);

/** numpy's matmul of two operands whose shapes inference has checked. */
export function matrixProduct(A: Operand, B: Operand, elementA: MatrixElement = plainElement, elementB: MatrixElement = plainElement): MatrixProduct {
  const a = A.shape, b = B.shape;
  const vectorA = a.length === 1, vectorB = b.length === 1;
  const stackA = a.slice(0, -2), stackB = b.slice(0, -2);
  const batch = broadcastShapes(stackA, stackB) ?? [];
  return {
    batch, vectorA, vectorB,
    m: vectorA ? 1 : (a[a.length - 2] ?? 1), n: vectorB ? 1 : (b[b.length - 1] ?? 1), k: a[a.length - 1] ?? 1,
    a: (at, row, k) => elementA(A, vectorA ? [k] : [...broadcastIndices(stackA, batch, at), row, k]),
    b: (at, k, column) => elementB(B, vectorB ? [k] : [...broadcastIndices(stackB, batch, at), k, column]),
  };
}

/** The result's shape by numpy's rules; reports what does not fit. */
export function inferMatrixProduct(A: TypeInfo, B: TypeInfo, context: InferContext): readonly Dim[] {
  const a = A.shape, b = B.shape;
  if (a.length === 0 || b.length === 0) context.fail("OF3010", `needs operands of rank 1 or more, got ${formatShape(a)} and ${formatShape(b)}`);
  const inner = a[a.length - 1] ?? 1, other = b[b.length === 1 ? 0 : b.length - 2] ?? 1;
  if (typeof inner === "number" && typeof other === "number" && inner !== other)
    context.fail("OF3011", `inner sizes differ: ${formatShape(a)} and ${formatShape(b)}`);
  context.agree?.(inner, other, "equal");
  agreeBroadcast(context, [a.slice(0, -2), b.slice(0, -2)]);
  const batch = broadcastShapes(a.slice(0, -2), b.slice(0, -2)) ?? context.fail("OF3011", `leading sizes do not broadcast: ${formatShape(a)} and ${formatShape(b)}`);
  return [...batch, ...(a.length === 1 ? [] : a.slice(-2, -1)), ...(b.length === 1 ? [] : b.slice(-1))];
}

/** Σ_k a·b at the result's indices. */
export function matrixProductSum(p: MatrixProduct, indices: readonly Expr[]): Expr {
  const { batch, row, column } = place(p, indices);
  return reduce("add", [p.k], (...taps) => {
    const k = taps[0] ?? constant(0, i32);
    return mul(p.a(batch, row, k), p.b(batch, k, column));
  });
}

/** Result indices apart: leading, row, column (0 where the result has no such axis). */
function place(p: MatrixProduct, indices: readonly Expr[]): { batch: readonly Expr[]; row: Expr; column: Expr } {
  const zero = constant(0, i32);
  const depth = p.batch.length;
  return {
    batch: indices.slice(0, depth),
    row: p.vectorA ? zero : (indices[depth] ?? zero),
    column: p.vectorB ? zero : (indices[depth + (p.vectorA ? 0 : 1)] ?? zero),
  };
}

/** The anchor of products of one left operand with several right ones of one size, each with an accumulator and an output of its own. */
export function anchorProducts(first: MatrixProduct, others: readonly MatrixProduct[], accumulator: Scalar): Anchor {
  const plain = anchorMatrixProduct(first, accumulator, (e) => e), type = scalarType(accumulator);
  const structure = plain.structure([]);
  invariant(structure.kind === "matmul", "the anchor of a product is one");
  const { batch, n, k, a } = structure, zero = constant(0, i32);
  const more = others.map((p, i) => {
    const name = `acc${i + 1}`, b = p.b(batch.map(axisOf), axisOf(k), p.vectorB ? zero : axisOf(n));
    const accumulate: Expr = { kind: "reduce", op: "add", axes: [k], init: constant(0, type), body: mul(a, b), type };
    return { b, accumulator: name, element: local(name, type), accumulate };
  });
  return {
    ...plain, others: more,
    structure: (stores) => ({ ...structure, stores, others: more.map((o) => ({ b: o.b, accumulator: { name: o.accumulator, type } })) }),
  };
}

/** The anchor of a product. `finish` applies what the operator itself does to the accumulator at the result's indices. */
export function anchorMatrixProduct(p: MatrixProduct, accumulator: Scalar, finish: (accumulator: Expr, indices: readonly Expr[]) => Expr): Anchor {
  const batch = p.batch.map((extent, i): Axis => ({ name: `b${i}`, extent }));
  const m: Axis = { name: "m", extent: p.m }, n: Axis = { name: "n", extent: p.n }, k: Axis = { name: "k", extent: p.k };
  const axes = [...batch, ...(p.vectorA ? [] : [m]), ...(p.vectorB ? [] : [n])];
  const indices = axes.map(axisOf);
  const zero = constant(0, i32), stack = batch.map(axisOf);
  const a = p.a(stack, p.vectorA ? zero : axisOf(m), axisOf(k));
  const b = p.b(stack, axisOf(k), p.vectorB ? zero : axisOf(n));
  const type = scalarType(accumulator), name = "acc";
  return {
    indices, axes,
    element: finish(local(name, type), indices),
    accumulate: { kind: "reduce", op: "add", axes: [k], init: constant(accumulator === "i64" || accumulator === "u64" ? 0n : 0, type), body: mul(a, b), type },
    structure: (stores) => ({ kind: "matmul", batch, m, n, k, a, b, accumulator: { name, type }, stores }),
  };
}

