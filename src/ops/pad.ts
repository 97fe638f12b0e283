/** Pad: constant, reflect, edge and wrap; negative pads crop. */
import { dimAdd, dimMax, dimMul, dimSub, formatShape, type Dim } from "../core/dim.ts";
import { Pad as evaluate } from "../evaluate/movement.ts";
import { defineOp, string, type TypeInfo } from "../graph/op.ts";
import { add, and, computeScalar, dimExpr, ge, lift, lt, max, min, rem, scalarType, select, sub, cast, type Expr } from "../kernel/expr.ts";
import { elementsOf } from "./element-values.ts";
import { axisIn, frontAxis, minusDim, origin, scalarOf } from "./index-map.ts";
import { listInput, numberIn, numbersIn, numbersOfInput, scalarInput, without } from "./spelling.ts";

/** Elements added before and after each axis, where known. */
function padsOf(data: TypeInfo, pads: TypeInfo, axes: TypeInfo | undefined): { readonly before: readonly Dim[]; readonly after: readonly Dim[] } | undefined {
  const given = elementsOf(pads), at = axes ? elementsOf(axes) : data.shape.map((_, i) => i);
  if (!given || !at || given.length !== 2 * at.length) return undefined;
  const before: Dim[] = data.shape.map(() => 0), after: Dim[] = data.shape.map(() => 0);
  for (const [i, axis] of at.entries()) {
    if (typeof axis !== "number") return undefined;
    const front = frontAxis(axis, data.shape.length);
    before[front] = given[i] ?? 0;
    after[front] = given[i + at.length] ?? 0;
  }
  return { before, after };
}

const modes = ["constant", "reflect", "edge", "wrap"];

export const Pad = defineOp({
  type: "Pad", domain: "", since: 11, evaluate,
  inputs: { data: "required", pads: "required", constant_value: "optional", axes: "optional" }, integers: ["pads", "axes"], oneType: [["data", "constant_value"]],
  attributes: { mode: string("constant") },
  fusionKind: "injective",
  infer: ({ data, pads, axes }, { mode }, context) => {
    if (!modes.includes(mode)) context.fail("OF3012", `unknown mode '${mode}'`, `it is one of ${modes.join(", ")}`);
    const at = axes && elementsOf(axes);
    at?.forEach((a) => { if (typeof a === "number") axisIn(context, a, data.shape.length); });
    const given = elementsOf(pads), count = axes ? at?.length : data.shape.length;
    if (given && count !== undefined && given.length !== 2 * count) context.fail("OF3011", `pads needs ${2 * count} elements for ${formatShape(data.shape)}, got ${given.length}`);
    const known = padsOf(data, pads, axes);
    return [{ dtype: data.dtype, shape: data.shape.map((d, i): Dim => (known ? padded(d, known.before[i] ?? 0, known.after[i] ?? 0) : context.fresh(`d${i}`))) }];
  },
  lowerable: ({ data, pads, axes }) => data.dtype !== "string" && padsOf(data, pads, axes) !== undefined,
  lower: ({ data, pads, constant_value, axes }, { mode }) => {
    const { before, after } = padsOf(data, pads, axes) ?? { before: [], after: [] };
    const type = scalarType(computeScalar(data.dtype));
    return [(...indices) => {
      const inside: Expr[] = [];
      const source = indices.map((index, d): Expr => {
        const size = data.shape[d] ?? 1, first = before[d] ?? 0, last = after[d] ?? 0, p = minusDim(index, first);
        if (first === 0 && last === 0) return index;
        if (mode !== "constant") return wrapped(mode, p, size);
        if (!isCrop(first)) inside.push(ge(p, 0));
        if (!isCrop(last)) inside.push(lt(p, dimExpr(size)));
        return p;
      });
      const [first, ...rest] = inside;
      const value = data.at(...source);
      return first ? select(rest.reduce(and, first), value, constant_value ? cast(scalarOf(constant_value), type.scalar) : lift(0, type)) : value;
    }];
  },
  read: (node, opset) => {
    if (opset >= 11) return node;
    const pads = numbersIn(node.attributes.pads) ?? numbersIn(node.attributes.paddings), value = numberIn(node.attributes.value);
    return { ...node, inputs: [node.inputs[0], ...(pads ? [listInput(pads)] : []), ...(value ? [scalarInput(value)] : [])], attributes: without(node.attributes, "pads", "paddings", "value") };
  },
  write: (node, opset) => {
    if (opset >= 18 || (opset >= 11 && !node.inputs[3] && node.attributes.mode !== "wrap")) return node;
    const [data, padsInput, valueInput, axes] = node.inputs;
    if (axes || node.attributes.mode === "wrap" || opset >= 11) return undefined;
    const pads = numbersOfInput(padsInput), value = valueInput ? numbersOfInput(valueInput)?.[0] : 0;
    return pads && value !== undefined ? { ...node, inputs: [data], attributes: { ...node.attributes, pads, value } } : undefined;
  },
});

const padded = (size: Dim, before: Dim, after: Dim): Dim => { const sum = dimAdd(dimAdd(size, before), after); return typeof sum === "number" ? Math.max(0, sum) : isCrop(before) || isCrop(after) ? dimMax(0, sum) : sum; };
const isCrop = (pad: Dim): boolean => typeof pad === "number" && pad <= 0;

/** Position p of an axis of `size` elements that goes on past its ends. */
function wrapped(mode: string, p: Expr, size: Dim): Expr {
  if (size === 1) return origin;
  const n = dimExpr(size);
  if (mode === "edge") return max(min(p, sub(n, 1)), 0);
  const modulo = (period: Expr): Expr => { const r = rem(p, period); return select(lt(r, 0), add(r, period), r); };
  if (mode === "wrap") return modulo(n);
  const span = dimSub(dimMul(2, size), 2), period = typeof span === "number" ? dimExpr(span) : max(dimExpr(span), 1);
  const q = modulo(period);
  return select(lt(q, n), q, sub(period, q));
}
