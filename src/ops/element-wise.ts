/**
 * Makers of element-wise operators: one function of the elements of one operand, or of several broadcast ones. Integers
 * narrower than 32 bits are computed in 32 and wrapped after every operation.
 */
import { broadcastShapes, formatShape, type Dim } from "../core/dim.ts";
import { dtypes, isFloat, isInteger, isStorageOnly, type DType } from "../core/dtype.ts";
import type { Evaluate } from "../core/evaluate.ts";
import { defineOp, type Guard, type InferContext, type LowerContext, type OpDef, type Operand, type TypeInfo } from "../graph/op.ts";
import { binary, type Expr } from "../kernel/expr.ts";
import { wrapInteger } from "../kernel/storage-types.ts";
import { broadcastIndices } from "./broadcast-read.ts";
import { combineElements, typeWith } from "./element-values.ts";

export type Allowed = "float" | "numeric" | "integer" | "bool" | "signed" | "any";
const admits: Readonly<Record<Allowed, (dtype: DType) => boolean>> = {
  float: (d) => isFloat(d) && !isStorageOnly(d),
  numeric: (d) => d !== "string" && d !== "bool" && !isStorageOnly(d),
  integer: (d) => isInteger(d) && !isStorageOnly(d),
  bool: (d) => d === "bool",
  signed: (d) => (isFloat(d) || dtypes[d].kind === "int") && !isStorageOnly(d),
  any: () => true,
};

/** Reports OF3013 where an operand's type is not one the operator has. */
export function checkType(context: InferContext, t: TypeInfo, name: string, allowed: Allowed): void {
  if (!admits[allowed](t.dtype)) context.fail("OF3013", `input '${name}' is ${t.dtype}, must be ${allowed === "numeric" ? "a number" : allowed}`);
}
/** Reports OF3013 where operands that must have one type differ. */
export function checkSameType(context: InferContext, operands: readonly TypeInfo[]): void {
  const [first] = operands;
  const other = operands.find((t) => t.dtype !== first?.dtype);
  if (first && other) context.fail("OF3013", `operands have different types, ${first.dtype} and ${other.dtype}`, "insert a Cast");
}
/** Notes that shapes must broadcast; `broadcastShapes` has not found them to contradict each other. */
export function agreeBroadcast(context: InferContext, shapes: readonly (readonly Dim[])[]): void {
  shapes.reduce((joined, own) => {
    for (let d = 1; d <= Math.min(joined.length, own.length); d++) context.agree?.(joined[joined.length - d] ?? 1, own[own.length - d] ?? 1, "broadcast");
    return broadcastShapes(joined, own) ?? joined;
  }, []);
}

/** The broadcast shape; reports OF3011 where there is none. */
export function broadcastOf(context: InferContext, operands: readonly TypeInfo[]): readonly Dim[] {
  agreeBroadcast(context, operands.map((t) => t.shape));
  return broadcastShapes(...operands.map((t) => t.shape)) ?? context.fail("OF3011", `shapes do not broadcast: ${operands.map((t) => formatShape(t.shape)).join(" and ")}`);
}

/** Wraps an integer computed in 32 bits to a narrower dtype; other values stay. */
export function narrow(x: Expr, dtype: DType): Expr {
  switch (dtype) {
    case "int8": return binary("shr", binary("shl", x, 24), 24);
    case "int16": return binary("shr", binary("shl", x, 16), 16);
    case "uint8": return binary("and", x, 255);
    case "uint16": return binary("and", x, 65535);
    case "int4": case "uint4": case "int2": case "uint2": return wrapInteger(x, dtype);
    default: return x;
  }
}

/** The operand's element at the indices of a broadcast result. */
export const readBroadcast = (operand: Operand, result: readonly Dim[], indices: readonly Expr[]): Expr =>
  operand.at(...broadcastIndices(operand.shape, result, indices));

/** The type and shape of output `i`. */
export const outputOf = (context: LowerContext, i = 0): TypeInfo => context.outputs[i] ?? { dtype: "float32", shape: [] };

/** A function of one operand's elements, without attributes. */
export const unaryOp = (type: string, since: number, allowed: Allowed, evaluate: Evaluate, lower: (x: Expr, dtype: DType) => Expr, elements?: (x: Dim) => Dim | undefined, hasKernel?: (dtype: DType) => boolean): OpDef => defineOp({
  type, domain: "", since, evaluate,
  inputs: { X: "required" },
  attributes: {},
  fusionKind: "elementwise",
  infer: ({ X }, _, context) => {
    checkType(context, X, "X", allowed);
    return [typeWith(X.dtype, X.shape, elements && combineElements(X.shape, [X], elements))];
  },
  ...(hasKernel ? { lowerable: ({ X }: { readonly X: TypeInfo }) => hasKernel(X.dtype) } : {}),
  lower: ({ X }) => [(...indices) => narrow(lower(X.at(...indices), X.dtype), X.dtype)],
});

export interface BinarySpec {
  readonly type: string;
  readonly since: number;
  readonly allowed: Allowed;
  /** The result's type; that of the operands by default. */
  readonly result?: DType;
  readonly evaluate: Evaluate;
  lower(a: Expr, b: Expr): Expr;
  /** On known elements; undefined where the outcome is not known. */
  elements?(a: Dim, b: Dim, dtype: DType): Dim | undefined;
  /** What its kernel relies on. */
  readonly guards?: (inputs: { readonly A: TypeInfo }) => readonly Guard[];
}
/** A function of the elements of two broadcast operands of one type. */
export const binaryOp = ({ type, since, allowed, result, evaluate, lower, elements, guards }: BinarySpec): OpDef => defineOp({
  type, domain: "", since, evaluate, ...(guards ? { guards } : {}),
  inputs: { A: "required", B: "required" },
  attributes: {},
  fusionKind: "broadcast",
  infer: ({ A, B }, _, context) => {
    checkType(context, A, "A", allowed);
    checkSameType(context, [A, B]);
    const shape = broadcastOf(context, [A, B]);
    return [typeWith(result ?? A.dtype, shape, elements && combineElements(shape, [A, B], (a, b) => elements(a ?? 0, b ?? 0, A.dtype)))];
  },
  lower: ({ A, B }, _, context) => {
    const { shape, dtype } = outputOf(context);
    return [(...indices) => narrow(lower(readBroadcast(A, shape, indices), readBroadcast(B, shape, indices)), dtype)];
  },
  lowerable: ({ A }) => A.dtype !== "string",
});

export interface VariadicSpec {
  readonly type: string;
  readonly since: number;
  readonly allowed: Allowed;
  readonly evaluate: Evaluate;
  /** Joins two elements. */
  lower(a: Expr, b: Expr): Expr;
  /** Applied to the joined elements of all operands. */
  finish?(x: Expr, count: number): Expr;
  elements?(a: Dim, b: Dim): Dim | undefined;
}
/** A fold over the elements of any number of broadcast operands of one type. */
export const variadicOp = ({ type, since, allowed, evaluate, lower, finish = (x) => x, elements }: VariadicSpec): OpDef => defineOp({
  type, domain: "", since, evaluate,
  inputs: { data: "variadic" },
  attributes: {},
  fusionKind: "broadcast",
  infer: ({ data }, _, context) => {
    const [first] = data;
    if (!first) return context.fail("OF3001", "needs at least one input");
    checkType(context, first, "data", allowed);
    checkSameType(context, data);
    const shape = broadcastOf(context, data);
    const joined = elements && combineElements(shape, data, (...x) => x.slice(1).reduce<Dim | undefined>((a, b) => (a === undefined ? undefined : elements(a, b)), x[0]));
    return [typeWith(first.dtype, shape, joined)];
  },
  lower: ({ data }, _, context) => {
    const { shape, dtype } = outputOf(context);
    return [(...indices) => {
      const [first, ...rest] = data.map((t) => readBroadcast(t, shape, indices));
      return narrow(finish(rest.reduce((a, b) => narrow(lower(a, b), dtype), first as Expr), data.length), dtype);
    }];
  },
});
