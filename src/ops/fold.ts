/** Operators that put pieces back into an image or a cache: CenterCropPad, Col2Im, TensorScatter. */
import { dimAdd, dimExactDiv, dimFloorDiv, dimMax, dimMin, dimSub, formatShape, mostAxes } from "../core/dim.ts";
import { sizeOf } from "../core/tensor.ts";
import * as evaluate from "../evaluate/fold.ts";
import { defineOp, int, optional, string, type InferContext } from "../graph/op.ts";
import { add, and, cast, constant, dimExpr, div, eq, ge, lt, mul, reduce, rem, select, sub, type Expr } from "../kernel/expr.ts";
import { elementsOf, numbersKnown } from "./element-values.ts";
import { agreeSizes } from "./agree-sizes.ts";
import { checkSameType, checkType, outputOf } from "./element-wise.ts";
import { axisIn, frontAxis, minusDim, origin, plusDim } from "./index-map.ts";

const axesOf = (axes: readonly number[] | undefined, rank: number): readonly number[] => (axes ?? Array.from({ length: rank }, (_, i) => i)).map((a) => frontAxis(a, rank));
const zeroOf = (x: Expr): Expr => constant(x.type.scalar === "i64" || x.type.scalar === "u64" ? 0n : 0, x.type);

export const CenterCropPad = defineOp({
  type: "CenterCropPad", domain: "", since: 18, evaluate: evaluate.CenterCropPad,
  inputs: { input_data: "required", shape: "required" }, integers: ["shape"],
  attributes: { axes: optional("ints") },
  fusionKind: "injective",
  infer: ({ input_data: x, shape }, { axes }, context) => {
    const rank = x.shape.length, sizes = elementsOf(shape);
    for (const a of axes ?? []) axisIn(context, a, rank);
    const own = axesOf(axes, rank);
    if (sizes && sizes.length !== own.length) context.fail("OF3011", `shape needs ${own.length} elements, got ${sizes.length}`);
    return [{ dtype: x.dtype, shape: x.shape.map((d, i) => { const k = own.indexOf(i); return k < 0 ? d : sizes?.[k] ?? context.fresh(`d${i}`); }) }];
  },
  lowerable: ({ input_data, shape }) => input_data.dtype !== "string" && elementsOf(shape) !== undefined,
  lower: ({ input_data: x }, _, context) => [(...indices) => {
    const { shape } = outputOf(context), inside: Expr[] = [];
    const at = x.shape.map((size, d) => {
      const out = shape[d] ?? size, cropped = dimFloorDiv(dimMax(0, dimSub(size, out)), 2), padded = dimFloorDiv(dimMax(0, dimSub(out, size)), 2);
      const place = plusDim(minusDim(indices[d] ?? origin, padded), cropped);
      if (dimMax(0, dimSub(out, size)) !== 0) inside.push(ge(place, 0), lt(place, dimExpr(size)));
      return place;
    });
    const value = x.at(...at);
    return inside.length ? select(inside.reduce((a, b) => and(a, b)), value, zeroOf(value)) : value;
  }],
});

interface BlockOptions { readonly dilations: readonly number[] | undefined; readonly pads: readonly number[] | undefined; readonly strides: readonly number[] | undefined }

function checkLists(rank: number, { dilations, pads, strides }: BlockOptions, context: InferContext): void {
  for (const [name, list, length] of [["dilations", dilations, rank], ["pads", pads, 2 * rank], ["strides", strides, rank]] as const)
    if (list && (list.length !== length || list.some((v) => v < (name === "pads" ? 0 : 1)))) context.fail("OF3012", `attribute '${name}' needs ${length} values of at least ${name === "pads" ? 0 : 1}, got [${list.join(", ")}]`);
}

export const Col2Im = defineOp({
  type: "Col2Im", domain: "", since: 18, evaluate: evaluate.Col2Im,
  inputs: { input: "required", image_shape: "required", block_shape: "required" }, integers: ["image_shape", "block_shape"],
  attributes: { dilations: optional("ints"), pads: optional("ints"), strides: optional("ints") },
  fusionKind: "reduction",
  infer: ({ input, image_shape, block_shape }, attributes, context) => {
    checkType(context, input, "input", "numeric");
    const rank = image_shape.shape[0];
    if (input.shape.length !== 3) context.fail("OF3010", `needs columns [N, C · block, L], got ${formatShape(input.shape)}`);
    if (typeof rank !== "number") return context.fail("OF3014", "the number of spatial axes must be known");
    if (rank > mostAxes) context.fail("OF3020", `its result would have ${rank + 2} axes`, `tensors have at most ${mostAxes}`);
    checkLists(rank, attributes, context);
    const image = elementsOf(image_shape) ?? Array.from({ length: rank }, (_, d) => context.fresh(`d${d}`));
    const block = numbersKnown(block_shape), rows = input.shape[1] ?? 1;
    const channels = block ? dimExactDiv(rows, sizeOf(block)) : context.fresh("channels");
    if (channels === undefined && typeof rows === "number") context.fail("OF3011", `${rows} rows do not divide into blocks [${block?.join(", ") ?? ""}]`);
    return [{ dtype: input.dtype, shape: [input.shape[0] ?? 1, channels ?? dimFloorDiv(rows, sizeOf(block ?? [])), ...image] }];
  },
  lowerable: ({ image_shape, block_shape }) => elementsOf(image_shape) !== undefined && numbersKnown(block_shape) !== undefined,
  lower: ({ input, image_shape, block_shape }, { dilations, pads, strides }) => {
    const image = elementsOf(image_shape) ?? [], block = numbersKnown(block_shape) ?? [], rank = image.length;
    const axes = image.map((size, d) => {
      const kernel = block[d] ?? 1, dilation = dilations?.[d] ?? 1, stride = strides?.[d] ?? 1, before = pads?.[d] ?? 0;
      const steps = dimAdd(dimFloorDiv(dimSub(dimAdd(size, before + (pads?.[d + rank] ?? 0)), dilation * (kernel - 1) + 1), stride), 1);
      return { kernel, dilation, stride, before, steps };
    });
    return [(n = origin, c = origin, ...place) => reduce("add", block, (...taps) => {
      const inside: Expr[] = [];
      let row: Expr = c, column: Expr = origin;
      axes.forEach(({ kernel, dilation, stride, before, steps }, d) => {
        const tap = taps[d] ?? origin, from = sub(add(place[d] ?? origin, before), mul(tap, dilation)), step = stride === 1 ? from : div(from, stride);
        inside.push(ge(from, 0), lt(step, dimExpr(steps)));
        if (stride !== 1) inside.push(eq(rem(from, stride), 0));
        row = add(mul(row, kernel), tap);
        column = add(mul(column, dimExpr(steps)), step);
      });
      const value = input.at(n, row, column);
      return inside.length ? select(inside.reduce((a, b) => and(a, b)), value, zeroOf(value)) : value;
    })];
  },
});

export const TensorScatter = defineOp({
  type: "TensorScatter", domain: "", since: 24, evaluate: evaluate.TensorScatter,
  inputs: { past_cache: "required", update: "required", write_indices: "optional" }, integers: ["write_indices"], oneType: [["past_cache", "update"]],
  attributes: { mode: string("linear"), axis: int(-2) },
  fusionKind: "injective",
  infer: ({ past_cache, update, write_indices }, { mode, axis }, context) => {
    checkSameType(context, [past_cache, update]);
    const rank = past_cache.shape.length, at = axisIn(context, axis, rank);
    if (mode !== "linear" && mode !== "circular") context.fail("OF3012", `unknown mode '${mode}'`, "it is linear or circular");
    if (at === 0) context.fail("OF3012", "the axis cannot be that of the batch");
    if (update.shape.length !== rank) context.fail("OF3010", `update ${formatShape(update.shape)} and cache ${formatShape(past_cache.shape)} must have one rank`);
    const cache = past_cache.shape, written = update.shape[at] ?? 1;
    agreeSizes(context, "update", update, cache.map((d, i) => (i === at ? dimMin(d, written) : d)));
    agreeSizes(context, "write_indices", write_indices, cache.slice(0, 1));
    return [{ dtype: past_cache.dtype, shape: past_cache.shape }];
  },
  lowerable: ({ past_cache }) => past_cache.dtype !== "string",
  lower: ({ past_cache: past, update, write_indices }, { mode, axis }) => [(...indices) => {
    const at = frontAxis(axis, past.shape.length), size = dimExpr(past.shape[at] ?? 1), count = dimExpr(update.shape[at] ?? 1), place = indices[at] ?? origin;
    const start = write_indices ? cast(write_indices.at(indices[0] ?? origin), "i32") : origin;
    const offset = sub(place, start), step = mode === "circular" ? rem(add(rem(offset, size), size), size) : offset;
    const fresh = update.at(...indices.map((index, i) => (i === at ? step : index)));
    return select(and(ge(step, 0), lt(step, count)), fresh, past.at(...indices));
  }],
});
