/** Where: chooses between two broadcast operands by a bool. */
import { Where as evaluate } from "../evaluate/logic.ts";
import { defineOp } from "../graph/op.ts";
import { select } from "../kernel/expr.ts";
import { chooseDim, combineElements, typeWith } from "./element-values.ts";
import { broadcastOf, checkSameType, checkType, outputOf, readBroadcast } from "./element-wise.ts";

export const Where = defineOp({
  type: "Where", domain: "", since: 9, evaluate,
  inputs: { condition: "required", X: "required", Y: "required" }, oneType: [["X", "Y"]],
  attributes: {},
  fusionKind: "broadcast",
  infer: ({ condition, X, Y }, _, context) => {
    checkType(context, condition, "condition", "bool");
    checkSameType(context, [X, Y]);
    const shape = broadcastOf(context, [condition, X, Y]);
    return [typeWith(X.dtype, shape, combineElements(shape, [condition, X, Y], (c, x, y) => chooseDim(c ?? 0, x ?? 0, y ?? 0)))];
  },
  lowerable: ({ X }) => X.dtype !== "string",
  lower: ({ condition, X, Y }, _, context) => {
    const { shape } = outputOf(context);
    return [(...indices) => select(readBroadcast(condition, shape, indices), readBroadcast(X, shape, indices), readBroadcast(Y, shape, indices))];
  },
});
