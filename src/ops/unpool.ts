/** MaxUnpool: zeros, then every maximum stored where its index says. Indices outside the result are left out. */
import { dimAdd, dimEqual, dimMul, dimProduct, dimSub, formatShape, type Dim } from "../core/dim.ts";
import { MaxUnpool as evaluate } from "../evaluate/fold.ts";
import { defineOp, optional, required, type TypeInfo } from "../graph/op.ts";
import { and, cast, computeScalar, constant, dimExpr, div, ge, i32, i64, lift, load, local, lt, rem, scalarType, type Expr } from "../kernel/expr.ts";
import { block, letLocal, type Stmt } from "../kernel/stmt.ts";
import { elementsOf } from "./element-values.ts";
import { overShape } from "./loops-over.ts";

/** The sizes that the pool which is undone had read. */
function pooledFrom(shape: readonly Dim[], { kernel_shape, pads, strides }: { readonly kernel_shape: readonly number[]; readonly pads: readonly number[] | undefined; readonly strides: readonly number[] | undefined }): readonly Dim[] {
  const rank = shape.length - 2;
  return shape.map((d, i): Dim => {
    const s = i - 2;
    return s < 0 ? d : dimAdd(dimMul(dimSub(d, 1), strides?.[s] ?? 1), (kernel_shape[s] ?? 1) - (pads?.[s] ?? 0) - (pads?.[s + rank] ?? 0));
  });
}
/** The result's sizes, where they are known. */
const resultOf = (x: TypeInfo, given: TypeInfo | undefined, attributes: Parameters<typeof pooledFrom>[1]): readonly Dim[] | undefined => (given ? elementsOf(given) : pooledFrom(x.shape, attributes));

export const MaxUnpool = defineOp({
  type: "MaxUnpool", domain: "", since: 11, evaluate,
  inputs: { X: "required", I: "required", output_shape: "optional" }, integers: ["I", "output_shape"],
  attributes: { kernel_shape: required("ints"), pads: optional("ints"), strides: optional("ints") },
  fusionKind: "opaque",
  infer: ({ X, I, output_shape }, attributes, context) => {
    const rank = X.shape.length - 2;
    if (rank < 1 || I.shape.length !== X.shape.length) context.fail("OF3010", `needs planes and as many indices, got ${formatShape(X.shape)} and ${formatShape(I.shape)}`);
    for (const [name, length] of [["kernel_shape", rank], ["pads", 2 * rank], ["strides", rank]] as const) {
      const list = attributes[name];
      if (list && list.length !== length) context.fail("OF3012", `attribute '${name}' needs ${length} values, got ${list.length}`);
    }
    X.shape.forEach((d, i) => context.agree?.(d, I.shape[i] ?? d, "equal"));
    const shape = resultOf(X, output_shape, attributes) ?? X.shape.map((_, i) => context.fresh(`d${i}`));
    if (shape.length !== X.shape.length) context.fail("OF3011", `output_shape needs ${X.shape.length} elements, got ${shape.length}`);
    return [{ dtype: X.dtype, shape }];
  },
  lowerable: ({ X, output_shape }) => X.dtype !== "string" && (!output_shape || elementsOf(output_shape) !== undefined),
  whole: ({ X, I, output_shape }, attributes, [out]) => {
    const values = X.buffer(), places = I.buffer(), pooled = pooledFrom(X.shape, attributes), shape = resultOf(X, output_shape, attributes) ?? pooled;
    if (!out) return { kind: "loops", body: block(), scratch: [] };
    const zero = lift(0, scalarType(computeScalar(X.dtype)));
    const clear = overShape("o", shape, (indices): Stmt => ({ kind: "store", buffer: out, indices, value: zero }));
    const move = overShape("i", X.shape, (indices) => {
      const place = local("place", i64), flat = local("flat", i32);
      let rest: Expr = flat;
      const at = pooled.map((): Expr => constant(0, i32));
      for (let d = pooled.length - 1; d >= 0; d--) {
        const size = dimExpr(pooled[d] ?? 1);
        at[d] = d === 0 ? rest : rem(rest, size);
        if (d > 0) rest = div(rest, size);
      }
      const fits = at.flatMap((index, d) => (dimEqual(pooled[d] ?? 1, shape[d] ?? 1) ? [] : [lt(index, dimExpr(shape[d] ?? 1))]));
      const store: Stmt = { kind: "store", buffer: out, indices: at, value: load(values, indices) };
      const inner: Stmt = fits.length ? { kind: "if", condition: fits.reduce((a, b) => and(a, b)), then: store } : store;
      const within = and(ge(place, 0), lt(place, cast(dimExpr(dimProduct(pooled)), "i64")));
      return block(letLocal("place", load(places, indices)), { kind: "if", condition: within, then: block(letLocal("flat", cast(place, "i32")), inner) });
    });
    return { kind: "loops", body: block(clear, move), scratch: [] };
  },
});
