/** Operators that make or repeat values: ConstantOfShape, Expand, Tile, Range, EyeLike, Trilu, OneHot. */
import { broadcastDim, dimCeilDiv, dimEqual, dimMax, dimMul, dimSub, formatShape, isStatic, type Dim } from "../core/dim.ts";
import { dtypeFromOnnx, isFloat } from "../core/dtype.ts";
import { toBigInts, toNumbers, type Tensor } from "../core/tensor.ts";
import * as evaluate from "../evaluate/shape.ts";
import { defineOp, int, optional, type TypeInfo } from "../graph/op.ts";
import { add, cast, computeScalar, constant, dimExpr, eq, ge, i32, le, mul, rem, scalarType, select, sub, type Expr } from "../kernel/expr.ts";
import { elementLimit, elementsOf, movedElements, numbersKnown, typeWith } from "./element-values.ts";
import { outputOf, readBroadcast } from "./element-wise.ts";
import { axisIn, frontAxis, indexFrom, origin, scalarOf } from "./index-map.ts";
import { openShape } from "./reshape.ts";

/** A tensor's only element as a constant expression of its dtype's scalar. */
function constantOf(t: Tensor): Expr {
  const type = scalarType(computeScalar(t.dtype));
  return constant(type.scalar === "i64" || type.scalar === "u64" ? toBigInts(t)[0] ?? 0n : toNumbers(t)[0] ?? 0, type);
}

/** How many elements a result has, where they are few enough to be followed; more are not even made. */
function fewElements(shape: readonly Dim[]): number | undefined {
  const count = isStatic(shape) && shape.every((d) => d >= 0) ? shape.reduce((n, d) => n * d, 1) : Infinity;
  return count <= elementLimit ? count : undefined;
}

export const ConstantOfShape = defineOp({
  type: "ConstantOfShape", domain: "", since: 9, evaluate: evaluate.ConstantOfShape,
  inputs: { input: "required" }, integers: ["input"],
  attributes: { value: optional("tensor") },
  fusionKind: "injective",
  infer: ({ input }, { value }, context) => {
    const dtype = value?.dtype ?? "float32", shape = elementsOf(input);
    if (value && value.data.length !== 1) context.fail("OF3012", "attribute 'value' must have one element");
    if (!shape) return [{ dtype, shape: openShape(input, context) }];
    const count = fewElements(shape), element = value && dtype !== "string" ? toNumbers(value)[0] : undefined;
    return [typeWith(dtype, shape, Number.isInteger(element) && element !== undefined && count !== undefined ? new Array<Dim>(count).fill(element) : undefined)];
  },
  lowerable: ({ input }, { value }) => elementsOf(input) !== undefined && value?.dtype !== "string",
  lower: (_, { value }) => [() => (value ? constantOf(value) : constant(0, scalarType("f32")))],
});

export const Expand = defineOp({
  type: "Expand", domain: "", since: 8, evaluate: evaluate.Expand,
  inputs: { input: "required", shape: "required" }, integers: ["shape"],
  attributes: {},
  fusionKind: "broadcast",
  infer: ({ input, shape }, _, context) => {
    const target = elementsOf(shape);
    const wanted = target ?? openShape(shape, context);
    const rank = Math.max(wanted.length, input.shape.length);
    const out = Array.from({ length: rank }, (_, i): Dim => {
      const own = input.shape[i - rank + input.shape.length] ?? 1, size = wanted[i - rank + wanted.length] ?? 1;
      if (!target) return typeof own === "number" && own !== 1 ? own : i < rank - wanted.length ? own : size;
      return broadcastDim(own, size) ?? context.fail("OF3011", `${formatShape(input.shape)} does not expand to ${formatShape(target)}`);
    });
    return [typeWith(input.dtype, out, fewElements(out) !== undefined ? movedElements(evaluate.Expand, [input, shape], [0], {}, 1)?.[0] : undefined)];
  },
  lowerable: ({ input, shape }) => input.dtype !== "string" && elementsOf(shape) !== undefined,
  lower: ({ input }, _, context) => {
    const { shape } = outputOf(context);
    return [(...indices) => readBroadcast(input, shape, indices)];
  },
});

export const Tile = defineOp({
  type: "Tile", domain: "", since: 6, evaluate: evaluate.Tile,
  inputs: { input: "required", repeats: "required" }, integers: ["repeats"],
  attributes: {},
  fusionKind: "injective",
  infer: ({ input, repeats }, _, context) => {
    const counts = elementsOf(repeats);
    if (counts && counts.length !== input.shape.length) context.fail("OF3011", `repeats needs ${input.shape.length} elements, got ${counts.length}`);
    const shape = input.shape.map((d, i): Dim => (counts ? dimMul(d, counts[i] ?? 1) : context.fresh(`d${i}`)));
    return [typeWith(input.dtype, shape, fewElements(shape) !== undefined ? movedElements(evaluate.Tile, [input, repeats], [0], {}, 1)?.[0] : undefined)];
  },
  lowerable: ({ input, repeats }) => input.dtype !== "string" && elementsOf(repeats) !== undefined,
  lower: ({ input }, _, context) => {
    const { shape } = outputOf(context);
    return [(...indices) => input.at(...input.shape.map((d, i) => (d === 1 ? origin : dimEqual(d, shape[i] ?? d) ? indices[i] ?? origin : rem(indices[i] ?? origin, dimExpr(d)))))];
  },
});

/** How many elements a Range has, where that is known. */
function rangeCount(start: TypeInfo, limit: TypeInfo, delta: TypeInfo): Dim | undefined {
  const [from] = elementsOf(start) ?? [], [to] = elementsOf(limit) ?? [], [by] = elementsOf(delta) ?? [];
  if (from === undefined || to === undefined || typeof by !== "number") {
    const [first, last, step] = [start, limit, delta].map((t) => (isFloat(t.dtype) ? numbersKnown(t)?.[0] : undefined));
    return first === undefined || last === undefined || step === undefined ? undefined : Math.max(0, Math.ceil((last - first) / step));
  }
  if (by === 0) return undefined;
  return by > 0 ? dimCeilDiv(dimMax(0, dimSub(to, from)), by) : dimCeilDiv(dimMax(0, dimSub(from, to)), -by);
}

export const Range = defineOp({
  type: "Range", domain: "", since: 11, evaluate: evaluate.Range,
  inputs: { start: "required", limit: "required", delta: "required" }, oneType: [["start", "limit", "delta"]],
  attributes: {},
  fusionKind: "injective",
  infer: ({ start, limit, delta }, _, context) => {
    const count = rangeCount(start, limit, delta);
    const from = elementsOf(start)?.[0], by = elementsOf(delta)?.[0];
    const few = typeof count === "number" && count <= elementLimit && from !== undefined && by !== undefined;
    return [typeWith(start.dtype, [count ?? context.fresh("range")], few ? Array.from({ length: count }, (_, i) => dimSub(from, dimMul(-i, by))) : undefined)];
  },
  lowerable: ({ start, limit, delta }) => rangeCount(start, limit, delta) !== undefined,
  lower: ({ start, delta }) => [(i = origin) => {
    const from = scalarOf(start);
    return add(from, mul(cast(i, from.type.scalar), scalarOf(delta)));
  }],
});

const ofScalar = (value: number, dtype: Parameters<typeof computeScalar>[0]): Expr => cast(constant(value, i32), computeScalar(dtype));

export const EyeLike = defineOp({
  type: "EyeLike", domain: "", since: 9, evaluate: evaluate.EyeLike,
  inputs: { input: "required" },
  attributes: { dtype: optional("int"), k: int(0) },
  fusionKind: "injective",
  infer: ({ input }, { dtype }, context) => {
    if (input.shape.length !== 2) context.fail("OF3010", `needs a matrix, got ${formatShape(input.shape)}`);
    const type = dtype === undefined ? input.dtype : dtypeFromOnnx(dtype) ?? context.fail("OF3013", `element type ${dtype} is not supported`);
    return [{ dtype: type, shape: input.shape }];
  },
  lower: (_, { k }, context) => [(i = origin, j = origin) => {
    const { dtype } = outputOf(context);
    return select(eq(sub(j, i), k), ofScalar(1, dtype), ofScalar(0, dtype));
  }],
});

/** The diagonal, where inference knows it. */
const diagonalOf = (k: TypeInfo | undefined): Dim | undefined => (k ? elementsOf(k)?.[0] : 0);

/** Keeps the upper (or lower) triangle of the last two axes, zero elsewhere. */
export const Trilu = defineOp({
  type: "Trilu", domain: "", since: 14, evaluate: evaluate.Trilu,
  inputs: { input: "required", k: "optional" }, integers: ["k"],
  attributes: { upper: int(1) },
  fusionKind: "injective",
  infer: ({ input }, _, context) => {
    if (input.shape.length < 2) context.fail("OF3010", `needs rank 2 or more, got ${formatShape(input.shape)}`);
    return [{ dtype: input.dtype, shape: input.shape }];
  },
  lowerable: ({ input }) => input.dtype !== "string",
  lower: ({ input, k }, { upper }, context) => [(...indices) => {
    const known = diagonalOf(k), diagonal = k && known === undefined ? cast(scalarOf(k), "i32") : dimExpr(known ?? 0);
    const row = indices[indices.length - 2] ?? origin, column = indices[indices.length - 1] ?? origin;
    return select((upper ? ge : le)(sub(column, row), diagonal), input.at(...indices), ofScalar(0, outputOf(context).dtype));
  }],
});

/** A new axis of size `depth` that holds values[1] at the index, values[0] elsewhere. */
export const OneHot = defineOp({
  type: "OneHot", domain: "", since: 11, evaluate: evaluate.OneHot,
  inputs: { indices: "required", depth: "required", values: "required" },
  attributes: { axis: int(-1) },
  fusionKind: "injective",
  infer: ({ indices, depth, values }, { axis }, context) => {
    const at = axisIn(context, axis, indices.shape.length + 1);
    for (const [name, t, wanted] of [["depth", depth, 1], ["values", values, 2]] as const) if (t.shape.length > 1 || (wanted === 2 && !t.shape.length) || (typeof t.shape[0] === "number" && t.shape[0] !== wanted)) context.fail("OF3011", `${name} must have ${wanted} elements, got ${formatShape(t.shape)}`);
    const size = elementsOf(depth)?.[0] ?? numbersKnown(depth)?.map(Math.trunc)[0] ?? context.fresh("depth");
    return [{ dtype: values.dtype, shape: [...indices.shape.slice(0, at), size, ...indices.shape.slice(at)] }];
  },
  lowerable: ({ depth, values }) => values.dtype !== "string" && (elementsOf(depth) ?? numbersKnown(depth)) !== undefined,
  lower: ({ indices, values }, { axis }, context) => {
    const { shape } = outputOf(context), at = frontAxis(axis, shape.length);
    return [(...position) => {
      const wanted = indexFrom(indices.at(...position.filter((_, i) => i !== at)), shape[at] ?? 1);
      return select(eq(wanted, position[at] ?? origin), values.at(constant(1, i32)), values.at(origin));
    }];
  },
});
