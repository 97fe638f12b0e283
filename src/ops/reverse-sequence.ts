/** ReverseSequence: reverses the first elements of each batch entry along time. */
import { formatShape } from "../core/dim.ts";
import { ReverseSequence as evaluate } from "../evaluate/movement.ts";
import { defineOp, int } from "../graph/op.ts";
import { cast, lt, select, sub } from "../kernel/expr.ts";
import { origin } from "./index-map.ts";

export const ReverseSequence = defineOp({
  type: "ReverseSequence", domain: "", since: 10, evaluate,
  inputs: { input: "required", sequence_lens: "required" }, integers: ["sequence_lens"],
  attributes: { batch_axis: int(1), time_axis: int(0) },
  fusionKind: "injective",
  infer: ({ input }, { batch_axis, time_axis }, context) => {
    if (input.shape.length < 2) context.fail("OF3010", `needs rank 2 or more, got ${formatShape(input.shape)}`);
    if (batch_axis + time_axis !== 1 || batch_axis * time_axis !== 0) context.fail("OF3012", "batch_axis and time_axis must be 0 and 1");
    return [{ dtype: input.dtype, shape: input.shape }];
  },
  lowerable: ({ input }) => input.dtype !== "string",
  lower: ({ input, sequence_lens }, { batch_axis, time_axis }) => [(...indices) => {
    const t = indices[time_axis] ?? origin, length = cast(sequence_lens.at(indices[batch_axis] ?? origin), "i32");
    const at = select(lt(t, length), sub(sub(length, 1), t), t);
    return input.at(...indices.map((index, i) => (i === time_axis ? at : index)));
  }],
});
