/** Det: determinants of square matrices, on the host. */
import { dimEqual, formatShape } from "../core/dim.ts";
import { Det as evaluate } from "../evaluate/det.ts";
import { defineOp } from "../graph/op.ts";
import { checkType } from "./element-wise.ts";

export const Det = defineOp({
  type: "Det", domain: "", since: 11, evaluate,
  inputs: { X: "required" },
  attributes: {},
  fusionKind: "opaque",
  infer: ({ X }, _, context) => {
    checkType(context, X, "X", "float");
    const [rows, columns] = X.shape.slice(-2);
    if (rows === undefined || columns === undefined || (typeof rows === "number" && typeof columns === "number" && !dimEqual(rows, columns))) return context.fail("OF3010", `needs square matrices, got ${formatShape(X.shape)}`);
    context.agree?.(rows, columns, "equal");
    return [{ dtype: X.dtype, shape: X.shape.slice(0, -2) }];
  },
});
