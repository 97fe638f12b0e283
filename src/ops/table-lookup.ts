/** A function of 8-bit integers as a table of its 256 results; the least integer's comes first. */
import { formatShape } from "../core/dim.ts";
import { fromNumbers } from "../core/tensor.ts";
import { TableLookup as evaluate } from "../evaluate/onnxfuse-table-lookup.ts";
import { defineOp } from "../graph/op.ts";
import { add } from "../kernel/expr.ts";
import { Add } from "./arithmetic.ts";
import { Cast } from "./cast.ts";
import { Expansion } from "./expansion.ts";
import { Gather } from "./gather.ts";

export const TableLookup = defineOp({
  type: "TableLookup",
  domain: "onnxfuse",
  since: 1,
  inputs: { x: "required", table: "required" },
  attributes: {},
  fusionKind: "injective",
  infer({ x, table }, _, context) {
    if (x.dtype !== "int8" && x.dtype !== "uint8") context.fail("OF3013", `looks up integers of 8 bits, got ${x.dtype}`);
    if (table.shape.length !== 1 || table.shape[0] !== 256) context.fail("OF3011", `needs a table of 256 elements, got ${formatShape(table.shape)}`);
    return [{ dtype: table.dtype, shape: x.shape }];
  },
  evaluate,
  lower: ({ x, table }) => [(...indices) => table.at(x.dtype === "int8" ? add(x.at(...indices), 128) : x.at(...indices))],
  expand({ inputs: [x, table], inputTypes: [type], outputs }) {
    const to = new Expansion(), whole = to.add(Cast, [x], { to: 6 });
    to.add(Gather, [table, type?.dtype === "int8" ? to.add(Add, [whole, fromNumbers("int32", [], [128])]) : whole], {}, outputs[0]);
    return to.nodes;
  },
});
