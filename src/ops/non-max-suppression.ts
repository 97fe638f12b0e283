/** NonMaxSuppression: how many boxes stay only running can tell; it runs on the host, in O(n log n + kept · n). */
import { formatShape } from "../core/dim.ts";
import { NonMaxSuppression as evaluate } from "../evaluate/non-max-suppression.ts";
import { defineOp, int } from "../graph/op.ts";
import { checkType } from "./element-wise.ts";

export const NonMaxSuppression = defineOp({
  type: "NonMaxSuppression", domain: "", since: 11, evaluate,
  inputs: { boxes: "required", scores: "required", max_output_boxes_per_class: "optional", iou_threshold: "optional", score_threshold: "optional" }, integers: ["max_output_boxes_per_class"], oneType: [["boxes", "scores", "iou_threshold", "score_threshold"]],
  attributes: { center_point_box: int(0) },
  fusionKind: "opaque",
  infer: ({ boxes, scores }, _, context) => {
    checkType(context, boxes, "boxes", "float");
    checkType(context, scores, "scores", "float");
    if (boxes.shape.length !== 3 || (typeof boxes.shape[2] === "number" && boxes.shape[2] !== 4)) context.fail("OF3010", `needs boxes [batch, count, 4], got ${formatShape(boxes.shape)}`);
    if (scores.shape.length !== 3) context.fail("OF3010", `needs scores [batch, classes, count], got ${formatShape(scores.shape)}`);
    context.agree?.(boxes.shape[0] ?? 1, scores.shape[0] ?? 1, "equal");
    context.agree?.(boxes.shape[1] ?? 1, scores.shape[2] ?? 1, "equal");
    return [{ dtype: "int64", shape: [context.fresh("selected"), 3] }];
  },
});
