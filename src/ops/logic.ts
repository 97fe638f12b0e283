/** Comparisons, logic and bit operations on broadcast operands. */
import { dimMax, dimMul, dimSub, type Dim } from "../core/dim.ts";
import { byteSize, isFloat, type DType } from "../core/dtype.ts";
import * as evaluate from "../evaluate/logic.ts";
import { defineOp, int, required, type OpDef } from "../graph/op.ts";
import { binary, eq, ge, gt, le, lt, select, unary, and, constant, bool } from "../kernel/expr.ts";
import { equalDim, lessDim, notDim } from "./element-values.ts";
import { binaryOp, broadcastOf, checkSameType, checkType, narrow, outputOf, readBroadcast, unaryOp } from "./element-wise.ts";
import { typeOfInput } from "./spelling.ts";

/** The element types of opset 7; others came with opset 11, strings with 19. */
const equalBefore11: readonly (DType | undefined)[] = ["bool", "int32", "int64"];
export const Equal: OpDef = {
  ...binaryOp({ type: "Equal", since: 7, allowed: "any", result: "bool", evaluate: evaluate.Equal, lower: eq, elements: equalDim }),
  write: (node, opset) => {
    const dtype = typeOfInput(node.inputs[0])?.dtype;
    return opset >= (dtype === "string" ? 19 : equalBefore11.includes(dtype) ? 7 : 11) ? node : undefined;
  },
};
export const Less: OpDef = binaryOp({ type: "Less", since: 7, allowed: "numeric", result: "bool", evaluate: evaluate.Less, lower: lt, elements: lessDim });
export const Greater: OpDef = binaryOp({ type: "Greater", since: 7, allowed: "numeric", result: "bool", evaluate: evaluate.Greater, lower: gt, elements: (a, b) => lessDim(b, a) });
export const LessOrEqual: OpDef = binaryOp({ type: "LessOrEqual", since: 12, allowed: "numeric", result: "bool", evaluate: evaluate.LessOrEqual, lower: le, elements: (a, b) => notDim(lessDim(b, a)) });
export const GreaterOrEqual: OpDef = binaryOp({ type: "GreaterOrEqual", since: 12, allowed: "numeric", result: "bool", evaluate: evaluate.GreaterOrEqual, lower: ge, elements: (a, b) => notDim(lessDim(a, b)) });

const xorDim = (a: Dim, b: Dim): Dim => dimSub(dimMax(a, b), dimMul(a, b));
export const And: OpDef = binaryOp({ type: "And", since: 7, allowed: "bool", evaluate: evaluate.And, lower: and, elements: dimMul });
export const Or: OpDef = binaryOp({ type: "Or", since: 7, allowed: "bool", evaluate: evaluate.Or, lower: (a, b) => binary("or", a, b), elements: dimMax });
export const Xor: OpDef = binaryOp({ type: "Xor", since: 7, allowed: "bool", evaluate: evaluate.Xor, lower: (a, b) => binary("xor", a, b), elements: xorDim });
export const Not: OpDef = unaryOp("Not", 1, "bool", evaluate.Not, (x) => unary("not", x), notDim);

export const BitwiseAnd: OpDef = binaryOp({ type: "BitwiseAnd", since: 18, allowed: "integer", evaluate: evaluate.BitwiseAnd, lower: and });
export const BitwiseOr: OpDef = binaryOp({ type: "BitwiseOr", since: 18, allowed: "integer", evaluate: evaluate.BitwiseOr, lower: (a, b) => binary("or", a, b) });
export const BitwiseXor: OpDef = binaryOp({ type: "BitwiseXor", since: 18, allowed: "integer", evaluate: evaluate.BitwiseXor, lower: (a, b) => binary("xor", a, b) });
export const BitwiseNot: OpDef = unaryOp("BitwiseNot", 18, "integer", evaluate.BitwiseNot, (x) => unary("not", x));

/** Shifts of unsigned integers; by the type's width or more they give 0. */
export const BitShift = defineOp({
  type: "BitShift", domain: "", since: 11,
  inputs: { X: "required", Y: "required" },
  attributes: { direction: required("string") },
  fusionKind: "broadcast",
  evaluate: evaluate.BitShift,
  infer: ({ X, Y }, { direction }, context) => {
    checkType(context, X, "X", "integer");
    checkSameType(context, [X, Y]);
    if (direction !== "LEFT" && direction !== "RIGHT") context.fail("OF3012", `unknown direction '${direction}'`, "it is 'LEFT' or 'RIGHT'");
    return [{ dtype: X.dtype, shape: broadcastOf(context, [X, Y]) }];
  },
  lower: ({ X, Y }, { direction }, context) => {
    const { shape, dtype } = outputOf(context), width = 8 * byteSize(dtype);
    return [(...indices) => {
      const x = readBroadcast(X, shape, indices), n = readBroadcast(Y, shape, indices);
      return narrow(select(binary("lt", n, width), binary(direction === "LEFT" ? "shl" : "shr", x, n), 0), dtype);
    }];
  },
});

export const IsNaN = defineOp({
  type: "IsNaN", domain: "", since: 9,
  inputs: { X: "required" },
  attributes: {},
  fusionKind: "elementwise",
  evaluate: evaluate.IsNaN,
  infer: ({ X }, _, context) => { if (!isFloat(X.dtype)) checkType(context, X, "X", "float"); return [{ dtype: "bool", shape: X.shape }]; },
  lower: ({ X }) => [(...indices) => unary("isnan", X.at(...indices))],
});
export const IsInf = defineOp({
  type: "IsInf", domain: "", since: 10,
  inputs: { X: "required" },
  attributes: { detect_negative: int(1), detect_positive: int(1) },
  fusionKind: "elementwise",
  evaluate: evaluate.IsInf,
  infer: ({ X }, _, context) => { if (!isFloat(X.dtype)) checkType(context, X, "X", "float"); return [{ dtype: "bool", shape: X.shape }]; },
  lower: ({ X }, { detect_negative, detect_positive }) => [(...indices) => {
    const x = X.at(...indices);
    if (detect_negative && detect_positive) return unary("isinf", x);
    return detect_positive ? eq(x, Infinity) : detect_negative ? eq(x, -Infinity) : constant(0, bool);
  }],
});
