/**
 * DeformConv: a convolution whose taps read between pixels, at places moved by data. It is said as DeformSample, which
 * gathers what the taps read, and a convolution of size 1 over those columns, which runs as a matrix product.
 */
import { dimMul, formatShape, type Dim } from "../core/dim.ts";
import { DeformConv as evaluate } from "../evaluate/deform-conv.ts";
import { DeformSample as evaluateSample } from "../evaluate/onnxfuse-deform-sample.ts";
import { sizeOf } from "../core/tensor.ts";
import { defineOp, int, optional, required, type AttributeSpec, type InferContext, type TypeInfo } from "../graph/op.ts";
import { add, cast, constant, dimExpr, div, i32, mul, rem, type Expr } from "../kernel/expr.ts";
import { Conv } from "./conv.ts";
import { checkBias, checkWeights } from "./convolution.ts";
import { checkType } from "./element-wise.ts";
import { Expansion, listOf } from "./expansion.ts";
import { origin } from "./index-map.ts";
import { Reshape } from "./reshape.ts";
import { linearTaps, orNothing, sampled } from "./sample-element.ts";
import { windowsOf } from "./window.ts";

const geometry = { dilations: optional("ints"), offset_group: int(1), pads: optional("ints"), strides: optional("ints") } as const satisfies Record<string, AttributeSpec>;
interface Geometry { readonly dilations: readonly number[] | undefined; readonly offset_group: number; readonly pads: readonly number[] | undefined; readonly strides: readonly number[] | undefined }

/** The sizes of the result, once offsets and mask fit the kernel. */
function placesOf(x: TypeInfo, offset: TypeInfo, mask: TypeInfo | undefined, kernel: readonly number[], options: Geometry, context: InferContext): readonly Dim[] {
  const rank = x.shape.length - 2, taps = sizeOf(kernel) * options.offset_group;
  const places = windowsOf(x.shape.slice(2), kernel, { ...options, auto_pad: "NOTSET" }).map((w) => w.output);
  for (const [name, t, channels] of [["offset", offset, taps * rank], ["mask", mask, taps]] as const) {
    if (!t) continue;
    const expected: readonly Dim[] = [x.shape[0] ?? 1, channels, ...places];
    if (t.shape.length !== rank + 2 || t.shape.some((d, i) => { const e = expected[i] ?? d; return typeof d === "number" && typeof e === "number" && d !== e; })) context.fail("OF3011", `${name} ${formatShape(t.shape)} must be ${formatShape(expected)}`);
    t.shape.forEach((d, i) => context.agree?.(d, expected[i] ?? d, "equal"));
  }
  const channels = x.shape[1];
  if (options.offset_group < 1 || (typeof channels === "number" && channels % options.offset_group !== 0)) context.fail("OF3011", `${channels === undefined ? 0 : String(channels)} channels do not divide into ${options.offset_group} offset groups`);
  return places.map((d, i) => (typeof d === "number" ? d : offset.shape[i + 2] ?? d));
}

export const DeformConv = defineOp({
  type: "DeformConv", domain: "", since: 19, evaluate,
  inputs: { X: "required", W: "required", offset: "required", B: "optional", mask: "optional" }, oneType: [["X", "W", "offset", "B", "mask"]],
  attributes: { ...geometry, group: int(1), kernel_shape: optional("ints") },
  fusionKind: "opaque",
  infer: ({ X, W, offset, B, mask }, attributes, context) => {
    checkType(context, X, "X", "float");
    const [filters = 1, own = 1, ...kernel] = checkWeights(X, W, { ...attributes, auto_pad: "NOTSET" }, context), [, channels] = X.shape;
    if (filters % attributes.group !== 0 || (typeof channels === "number" && channels !== own * attributes.group)) context.fail("OF3011", `weights ${formatShape(W.shape)} do not fit input ${formatShape(X.shape)} in ${attributes.group} groups`);
    context.agree?.(channels ?? 1, own * attributes.group, "equal");
    checkBias(B, filters, context);
    return [{ dtype: X.dtype, shape: [X.shape[0] ?? 1, filters, ...placesOf(X, offset, mask, kernel, attributes, context)] }];
  },
  expand: ({ inputs: [x, w, offset, bias, mask], inputTypes, outputs }, { group, dilations, offset_group, pads, strides }) => {
    const [filters, , ...kernel] = inputTypes[1]?.shape ?? [], sizes = kernel.filter((k): k is number => typeof k === "number");
    if (typeof filters !== "number" || sizes.length !== kernel.length) return undefined;
    const to = new Expansion(), given = { dilations, pads, strides, offset_group, kernel_shape: sizes };
    const columns = to.add(DeformSample, [x, offset, mask], Object.fromEntries(Object.entries(given).filter(([, v]) => v !== undefined)));
    const flat = to.add(Reshape, [w, listOf(filters, -1, ...sizes.map(() => 1))]);
    to.add(Conv, [columns, flat, bias], { group }, outputs[0]);
    return to.nodes;
  },
});

/** What a DeformConv's taps read, times the mask: [N, channels · taps, output…]. */
export const DeformSample = defineOp({
  type: "DeformSample", domain: "onnxfuse", since: 1, evaluate: evaluateSample,
  inputs: { X: "required", offset: "required", mask: "optional" },
  attributes: { ...geometry, kernel_shape: required("ints") },
  fusionKind: "injective",
  infer: ({ X, offset, mask }, attributes, context) =>
    [{ dtype: X.dtype, shape: [X.shape[0] ?? 1, dimMul(X.shape[1] ?? 1, sizeOf(attributes.kernel_shape)), ...placesOf(X, offset, mask, attributes.kernel_shape, attributes, context)] }],
  lower: ({ X, offset, mask }, { kernel_shape, dilations, offset_group, pads, strides }) => {
    const taps = sizeOf(kernel_shape), rank = kernel_shape.length;
    return [(n = origin, row = origin, ...place) => {
      const c = div(row, taps), tap = rem(row, taps), group = offset_group === 1 ? origin : div(mul(c, offset_group), dimExpr(X.shape[1] ?? 1));
      const first = add(mul(group, taps), tap);
      let rest: Expr = tap;
      const within = kernel_shape.map((): Expr => origin);
      for (let d = rank - 1; d >= 0; d--) {
        within[d] = d === 0 ? rest : rem(rest, kernel_shape[d] ?? 1);
        rest = div(rest, kernel_shape[d] ?? 1);
      }
      const along = X.shape.slice(2).map((size, d) => {
        const moved = offset.at(n, add(mul(first, rank), constant(d, i32)), ...place);
        const from = add(add(mul(place[d] ?? origin, strides?.[d] ?? 1), mul(within[d] ?? origin, dilations?.[d] ?? 1)), -(pads?.[d] ?? 0));
        return linearTaps(add(cast(from, moved.type.scalar), moved), (index) => orNothing(index, size));
      });
      const value = sampled((indices) => X.at(n, c, ...indices), along);
      return mask ? mul(value, mask.at(n, first, ...place)) : value;
    }];
  },
});
