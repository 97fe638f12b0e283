/** A table of 4-bit integers that rows are gathered from keeps two in a byte in memory, too. */
import type { DType } from "../core/dtype.ts";
import { fromNumbers, sizeOf, tensor, toNumbers, type Tensor } from "../core/tensor.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { Value } from "../graph/graph.ts";
import { GatherBlockQuantized } from "../ops/index.ts";
import { constant, op, optionalInput, value } from "../rewrite/pattern.ts";
import { defineRule, exact, refuse } from "../rewrite/rule.ts";

/** Integers, `more` added, two in a byte along the last axis, the first in the low half. */
function inPairs(t: Tensor, more: number): Tensor {
  const values = toNumbers(t), size = t.dims.at(-1) ?? 1, bytes = Math.ceil(size / 2), rows = size === 0 ? 0 : values.length / size, out = new Uint8Array(rows * bytes);
  for (let row = 0; row < rows; row++) for (let i = 0; i < size; i++) {
    const at = row * bytes + (i >> 1);
    out[at] = (out[at] ?? 0) | (((values[row * size + i] ?? 0) + more) << (4 * (i & 1)));
  }
  return tensor("uint8", [...t.dims.slice(0, -1), bytes], out);
}

interface Case { readonly type?: DType; readonly zeros?: boolean; readonly width?: number; readonly gather?: number }
const build = (c: Case = {}) => () => {
  const b = new GraphBuilder(), type = c.type ?? "int4", width = c.width ?? 32, [low, high] = type === "uint4" ? [0, 15] : [-8, 8], along = c.gather === 1 ? 0 : 1, blocks = along === 1 ? [5, Math.ceil(width / 16)] : [1, width];
  const integers = (dims: readonly number[]): Value => b.random(dims, { low, high, dtype: type });
  return b.build(b.add(GatherBlockQuantized, [integers([5, width]), b.input("rows", [2, "n"], "int64"), b.random(blocks, { low: 0.1 }), c.zeros ? integers(blocks) : undefined], { block_size: 16, gather_axis: c.gather ?? 0, quantize_axis: along }));
};

export const packGatheredWeights = defineRule({
  name: "pack-gathered-weights",
  doc: "GatherBlockQuantized from a constant table of 4-bit integers reads them as bytes of two, as which they lie in memory.",
  stage: "decompose",
  match: op(GatherBlockQuantized, [constant("table"), value("rows"), constant("scales"), optionalInput(constant("zeros"))], { as: "gather" }),
  where: [
    ({ table, gather }) => table.constant.dtype === "int4" || table.constant.dtype === "uint4" || refuse("quantized-type", `'${gather.name}' gathers from ${table.constant.dtype}`, "none: bytes are read as they are"),
    ({ table, gather }) => (table.constant.dims.at(-1) ?? 0) % 2 === 0 || refuse("odd-width", `rows of '${gather.name}' have an odd number of elements`, "make it even"),
    ({ table, gather }) => {
      const axis = Number(gather.attributes["gather_axis"]), rank = table.constant.dims.length;
      return (axis < 0 ? axis + rank : axis) !== rank - 1 || refuse("gathers-along-rows", `'${gather.name}' gathers along the axis whose elements share bytes`, "gather along another axis");
    },
  ],
  numerics: exact,
  rewrite({ table, rows, scales, zeros, gather }, edit) {
    const signed = table.constant.dtype === "int4", more = signed ? 8 : 0;
    const none = (): Value => edit.constant(inPairs(fromNumbers("uint8", scales.constant.dims, new Uint8Array(sizeOf(scales.constant.dims))), 0), `${gather.name}_zeros`);
    const points = zeros ? edit.constant(inPairs(zeros.constant, more), `${zeros.name}_pairs`) : signed ? undefined : none();
    return edit.insert(GatherBlockQuantized, [edit.constant(inPairs(table.constant, more), `${table.name}_pairs`), rows, scales, points], { ...gather.attributes, bits: 4 }, { name: gather.name });
  },
  example: build(),
  examples: [build({ zeros: true }), build({ type: "uint4" }), build({ type: "uint4", zeros: true, width: 48 })],
  refuses: {
    "quantized-type": build({ type: "int8" }),
    "odd-width": build({ width: 31 }),
    "gathers-along-rows": build({ gather: 1 }),
  },
});
