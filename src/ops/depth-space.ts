/** DepthToSpace and SpaceToDepth: blocks of channels to blocks of pixels and back. */
import { dimFloorDiv, dimMul, formatShape } from "../core/dim.ts";
import * as evaluate from "../evaluate/movement.ts";
import { defineOp, optional, required, type InferContext, type TypeInfo } from "../graph/op.ts";
import { add, dimExpr, div, mul, rem } from "../kernel/expr.ts";
import { origin, timesDim } from "./index-map.ts";

function checkBlock(x: TypeInfo, blocksize: number, context: InferContext): void {
  if (x.shape.length !== 4) context.fail("OF3010", `needs rank 4, got ${formatShape(x.shape)}`);
  if (blocksize < 1) context.fail("OF3012", `blocksize must be at least 1, got ${blocksize}`);
}

export const DepthToSpace = defineOp({
  type: "DepthToSpace", domain: "", since: 1, evaluate: evaluate.DepthToSpace,
  inputs: { input: "required" },
  attributes: { blocksize: required("int"), mode: optional("string") },
  fusionKind: "injective",
  infer: ({ input }, { blocksize: b, mode = "DCR" }, context) => {
    checkBlock(input, b, context);
    const [n = 1, c = 1, h = 1, w = 1] = input.shape;
    if (mode !== "DCR" && mode !== "CRD") context.fail("OF3012", `unknown mode '${mode}'`, "it is 'DCR' or 'CRD'");
    if (typeof c === "number" && c % (b * b) !== 0) context.fail("OF3011", `${c} channels do not divide into blocks of ${b} × ${b}`);
    return [{ dtype: input.dtype, shape: [n, dimFloorDiv(c, b * b), dimMul(h, b), dimMul(w, b)] }];
  },
  lower: ({ input }, { blocksize: b, mode = "DCR" }) => [(n = origin, c = origin, h = origin, w = origin) => {
    const cell = add(mul(rem(h, b), b), rem(w, b));
    const depth = dimFloorDiv(input.shape[1] ?? 1, b * b);
    const channel = mode === "CRD" ? add(mul(c, b * b), cell) : add(timesDim(cell, depth), c);
    return input.at(n, channel, div(h, b), div(w, b));
  }],
});

export const SpaceToDepth = defineOp({
  type: "SpaceToDepth", domain: "", since: 1, evaluate: evaluate.SpaceToDepth,
  inputs: { input: "required" },
  attributes: { blocksize: required("int") },
  fusionKind: "injective",
  infer: ({ input }, { blocksize: b }, context) => {
    checkBlock(input, b, context);
    const [n = 1, c = 1, h = 1, w = 1] = input.shape;
    for (const size of [h, w]) if (typeof size === "number" && size % b !== 0) context.fail("OF3011", `${formatShape(input.shape)} does not divide into blocks of ${b} × ${b}`);
    return [{ dtype: input.dtype, shape: [n, dimMul(c, b * b), dimFloorDiv(h, b), dimFloorDiv(w, b)] }];
  },
  lower: ({ input }, { blocksize: b }) => [(n = origin, c = origin, h = origin, w = origin) => {
    const channels = dimExpr(input.shape[1] ?? 1), cell = div(c, channels);
    return input.at(n, rem(c, channels), add(mul(h, b), div(cell, b)), add(mul(w, b), rem(cell, b)));
  }],
});
