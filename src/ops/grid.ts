/** AffineGrid and GridSample over any number of spatial axes. */
import { formatShape, type Dim } from "../core/dim.ts";
import { isFloat } from "../core/dtype.ts";
import * as evaluate from "../evaluate/grid.ts";
import { defineOp, int, string } from "../graph/op.ts";
import { add, cast, constant, dimExpr, div, eq, i32, mul, select, sub, type Expr } from "../kernel/expr.ts";
import { agreeSizes } from "./agree-sizes.ts";
import { elementsOf } from "./element-values.ts";
import { checkType } from "./element-wise.ts";
import { origin } from "./index-map.ts";
import { cubicTaps, linearTaps, padded, pixelCoordinate, sampled, sizeAs, type Border } from "./sample-element.ts";

/** Position of pixel i between −1 and 1: by centres of the corner pixels, or by their outer edges. */
function pixelPosition(i: Expr, size: Dim, corners: boolean, like: Expr): Expr {
  const x = cast(i, like.type.scalar), n = sizeAs(size, like.type);
  if (!corners) return sub(div(add(mul(x, 2), 1), n), 1);
  if (size === 1) return constant(-1, like.type);
  const spread = sub(div(mul(x, 2), sub(n, 1)), 1);
  return typeof size === "number" ? spread : select(eq(dimExpr(size), 1), constant(-1, like.type), spread);
}

export const AffineGrid = defineOp({
  type: "AffineGrid", domain: "", since: 20, evaluate: evaluate.AffineGrid,
  inputs: { theta: "required", size: "required" }, integers: ["size"],
  attributes: { align_corners: int(0) },
  fusionKind: "injective",
  infer: ({ theta, size }, _, context) => {
    checkType(context, theta, "theta", "float");
    const [batch = 1, rows, columns] = theta.shape, axes = typeof rows === "number" ? rows : typeof columns === "number" ? columns - 1 : undefined;
    if (theta.shape.length !== 3 || (axes !== undefined && axes !== 2 && axes !== 3)) context.fail("OF3010", `needs matrices [N, 2, 3] or [N, 3, 4], got ${formatShape(theta.shape)}`);
    const length = size.shape[0], known = axes ?? (typeof length === "number" ? length - 2 : undefined);
    if (known === undefined) return context.fail("OF3014", "the number of spatial axes must be known", "fix the sizes of theta with --input_shape");
    const spatial = elementsOf(size)?.slice(2);
    if ((spatial && spatial.length !== known) || (typeof length === "number" && length !== known + 2)) context.fail("OF3011", `size needs ${known + 2} elements for ${known} spatial axes`);
    return [{ dtype: theta.dtype, shape: [batch, ...(spatial ?? Array.from({ length: known }, (_d, d) => context.fresh(`d${d}`))), known] }];
  },
  lowerable: ({ theta, size }) => elementsOf(size) !== undefined && (typeof theta.shape[1] === "number" || typeof size.shape[0] === "number"),
  lower: ({ theta, size }, { align_corners }) => {
    const spatial = elementsOf(size)?.slice(2) ?? [], axes = spatial.length;
    return [(n = origin, ...indices) => {
      const row = indices[axes] ?? origin, at = (column: number): Expr => theta.at(n, row, constant(column, i32));
      return spatial.reduce<Expr>((sum, d, k) => add(sum, mul(pixelPosition(indices[k] ?? origin, d, align_corners !== 0, sum), at(axes - 1 - k))), at(axes));
    }];
  },
});

const modes: ReadonlyMap<string, string> = new Map([["bilinear", "linear"], ["bicubic", "cubic"]]);
const formerModes: ReadonlyMap<string, string> = new Map([["linear", "bilinear"], ["cubic", "bicubic"]]);
/** Most taps of one element that are worth a kernel. */
const mostTaps = 64;
const tapCount = (mode: string): number => (mode === "nearest" ? 1 : mode === "linear" ? 2 : 4);

export const GridSample = defineOp({
  type: "GridSample", domain: "", since: 20, evaluate: evaluate.GridSample,
  inputs: { X: "required", grid: "required" },
  attributes: { align_corners: int(0), mode: string("linear"), padding_mode: string("zeros") },
  fusionKind: "injective",
  infer: ({ X, grid }, { mode, padding_mode }, context) => {
    checkType(context, grid, "grid", "float");
    const rank = X.shape.length, last = grid.shape[grid.shape.length - 1];
    if (rank < 3 || grid.shape.length !== rank || (typeof last === "number" && last !== rank - 2)) context.fail("OF3010", `grid ${formatShape(grid.shape)} does not fit input ${formatShape(X.shape)}`);
    if (!["nearest", "linear", "cubic"].includes(mode)) context.fail("OF3012", `unknown mode '${mode}'`, "it is nearest, linear or cubic");
    if (mode !== "nearest" && !isFloat(X.dtype)) context.fail("OF3013", `mode ${mode} needs floats, got ${X.dtype}`);
    if (!["zeros", "border", "reflection"].includes(padding_mode)) context.fail("OF3012", `unknown padding_mode '${padding_mode}'`, "it is zeros, border or reflection");
    agreeSizes(context, "grid", grid, [X.shape[0] ?? 1, ...grid.shape.slice(1, -1), rank - 2]);
    return [{ dtype: X.dtype, shape: [X.shape[0] ?? 1, X.shape[1] ?? 1, ...grid.shape.slice(1, -1)] }];
  },
  lowerable: ({ X }, { mode }) => X.dtype !== "string" && tapCount(mode) ** (X.shape.length - 2) <= mostTaps,
  lower: ({ X, grid }, { align_corners, mode, padding_mode }) => [(n = origin, c = origin, ...place) => {
    const border: Border = { padding: padding_mode, corners: align_corners !== 0 }, spatial = X.shape.slice(2);
    const taps = spatial.map((size, d) => {
      const at = pixelCoordinate(grid.at(n, ...place, constant(spatial.length - 1 - d, i32)), size, border, mode === "nearest");
      const tap = (index: Expr) => padded(index, size, border);
      if (mode === "nearest") return [tap(cast(at, "i32"))];
      return mode === "linear" ? linearTaps(at, tap) : cubicTaps(at, tap);
    });
    return sampled((indices) => X.at(n, c, ...indices), taps);
  }],
  read: (node) => ({ ...node, attributes: { ...node.attributes, ...(typeof node.attributes.mode === "string" ? { mode: modes.get(node.attributes.mode) ?? node.attributes.mode } : {}) } }),
  write: (node, opset) => (opset >= 20 || typeof node.attributes.mode !== "string" ? node : { ...node, attributes: { ...node.attributes, mode: formerModes.get(node.attributes.mode) ?? node.attributes.mode } }),
});
