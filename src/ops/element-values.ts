/**
 * Knowledge of small tensors of whole numbers during inference: each element as a Dim, perhaps symbolic, so that exporters'
 * shape arithmetic is known before anything runs. Truth values are Dims of 0 and 1. Floats count where they are whole:
 * exporters cast sizes to float and back. Sizes are taken to be below 2^24, so that float32 holds them exactly.
 */
import { dimAdd, dimEqual, dimExactDiv, dimFloorDiv, dimMax, dimMin, dimMod, dimMul, dimProduct, dimRange, dimSub, isStatic, type Dim } from "../core/dim.ts";
import { byteSize, integerRange, isFloat, isInteger, type DType } from "../core/dtype.ts";
import type { Evaluate, EvaluateAttributes } from "../core/evaluate.ts";
import { fromNumbers, numericData, toNumbers, type Tensor } from "../core/tensor.ts";
import { broadcastSources } from "../core/strided.ts";
import type { TypeInfo } from "../graph/op.ts";

/** Larger tensors are not followed. */
export const elementLimit = 64;
/** Larger constants are not looked through: what is asked of them is asked often. */
const constantLimit = 2 ** 18;

const isCounted = (dtype: DType): boolean => dtype !== "string" && (!isFloat(dtype) || byteSize(dtype) >= 4);

/** The largest whole number that a dtype follows exactly. */
export const largestWhole = (dtype: DType): number => (dtype === "float32" ? 2 ** 24 : Number.MAX_SAFE_INTEGER);

/** The elements of a tensor, where they are known and whole. */
export function elementsOf(t: TypeInfo | undefined): readonly Dim[] | undefined {
  if (!t || !isCounted(t.dtype)) return undefined;
  if (t.elements) return t.elements;
  if (t.shape.includes(0)) return [];
  if (!t.constant || t.constant.data.length > elementLimit) return undefined;
  const values = Array.from(toNumbers(t.constant));
  const largest = largestWhole(t.dtype);
  return values.every((v) => Number.isInteger(v) && Math.abs(v) <= largest) ? values : undefined;
}

/** The elements of a numeric tensor as numbers, where all are known and not too many; 64-bit ones are rounded past 2^53. */
export function numbersKnown(t: TypeInfo | undefined): readonly number[] | undefined {
  if (t?.constant && t.dtype !== "string" && t.constant.data.length <= constantLimit) return Array.from(toNumbers(t.constant));
  return t?.elements && isStatic(t.elements) ? t.elements : undefined;
}

/** As `numbersKnown` of integers, without a list of them: the n-th. */
export function integerAt(t: TypeInfo): ((n: number) => number) | undefined {
  const { constant, elements } = t;
  if (constant && isInteger(t.dtype) && constant.data.length <= constantLimit) {
    const data = numericData(constant);
    return (n) => Number(data[n] ?? 0);
  }
  return elements && isStatic(elements) ? (n) => elements[n] ?? 0 : undefined;
}

/** Whether a dtype holds this number as it is. Where it wraps or rounds, the number is not followed. Sizes are taken to fit in 32 bits. */
function isHeldBy(dtype: DType, element: Dim): boolean {
  if (typeof element !== "number") return !isInteger(dtype) || byteSize(dtype) >= 4;
  const [least, most] = isInteger(dtype) ? integerRange(dtype) : [-Infinity, Infinity];
  return Math.abs(element) <= largestWhole(dtype) && element >= least && element <= most;
}

/** A type with these elements, where all are known, few enough, and such as it holds. */
export function typeWith(dtype: DType, shape: readonly Dim[], elements: readonly (Dim | undefined)[] | undefined): TypeInfo {
  if (!elements || !isCounted(dtype) || elements.length > elementLimit || dimProduct(shape) !== elements.length) return { dtype, shape };
  const known = elements.filter((e): e is Dim => e !== undefined && isHeldBy(dtype, e));
  return known.length === elements.length ? { dtype, shape, elements: known } : { dtype, shape };
}

/** Elements of an element-wise result of known, broadcast operands. */
export function combineElements(shape: readonly Dim[], operands: readonly TypeInfo[], f: (...x: Dim[]) => Dim | undefined): readonly (Dim | undefined)[] | undefined {
  if (!isStatic(shape) || (dimProduct(shape) as number) > elementLimit) return undefined;
  const all = operands.map((t) => {
    const elements = elementsOf(t);
    return elements && isStatic(t.shape) ? Array.from(broadcastSources(t.shape, shape), (i) => elements[i] ?? 0) : undefined;
  });
  const [first] = all;
  if (!first) return undefined;
  const lists = all.filter((list) => list !== undefined);
  return lists.length === all.length ? first.map((_, i) => f(...lists.map((list) => list[i] ?? 0))) : undefined;
}

/**
 * Elements of the results of an operator that only moves them: it is evaluated on the elements' positions. Inputs listed
 * in `moved` hold what is moved; the others must be known numbers, within bounds.
 */
export function movedElements(evaluate: Evaluate, inputs: readonly (TypeInfo | undefined)[], moved: readonly number[], attributes: EvaluateAttributes, outputCount: number): readonly (readonly Dim[])[] | undefined {
  const pool: Dim[] = [];
  const tensors: (Tensor | undefined)[] = [];
  for (const [i, t] of inputs.entries()) {
    if (!t) { tensors.push(undefined); continue; }
    if (!isStatic(t.shape)) return undefined;
    if (moved.includes(i)) {
      const elements = elementsOf(t);
      if (!elements) return undefined;
      tensors.push(fromNumbers("int32", t.shape, elements.map((_, k) => pool.length + k)));
      pool.push(...elements);
    } else {
      const tensor = t.constant ?? (t.elements && isStatic(t.elements) ? fromNumbers(t.dtype, t.shape, t.elements) : undefined);
      if (!tensor) return undefined;
      tensors.push(tensor);
    }
  }
  return evaluate(tensors, attributes, { outputCount }).map((t) => Array.from(toNumbers(t), (k) => pool[k] ?? 0));
}

/** a / b truncated toward zero, for b not negative; undefined where b may be. */
export function truncatedDiv(a: Dim, b: Dim): Dim | undefined {
  if (typeof a === "number" && typeof b === "number") return b === 0 ? 0 : Math.trunc(a / b);
  const exact = dimExactDiv(a, b);
  if (exact !== undefined) return exact;
  if (dimRange(b).lower < 0) return undefined;
  if (dimRange(a).lower >= 0) return dimFloorDiv(a, b);
  return dimSub(dimMax(0, dimFloorDiv(a, b)), dimMax(0, dimFloorDiv(dimMul(-1, a), b)));
}
/** a mod b: the sign of b, or with `truncated` that of a; undefined where b may be negative, or 0 for a negative a. */
export function remainder(a: Dim, b: Dim, truncated: boolean): Dim | undefined {
  if (typeof a === "number" && typeof b === "number") {
    if (b === 0) return 0;
    const r = a % b;
    return truncated || r === 0 || r < 0 === b < 0 ? r + 0 : r + b;
  }
  if (dimRange(b).lower < 0) return undefined;
  if (!truncated || dimRange(a).lower >= 0) return dimMod(a, b);
  const quotient = dimRange(b).lower >= 1 ? truncatedDiv(a, b) : undefined;
  return quotient === undefined ? undefined : dimSub(a, dimMul(b, quotient));
}

/** 1 where a < b, else 0. */
export const lessDim = (a: Dim, b: Dim): Dim => dimMax(0, dimMin(1, dimSub(b, a)));
/** 1 where a = b, else 0. */
export const equalDim = (a: Dim, b: Dim): Dim => (dimEqual(a, b) ? 1 : dimMax(0, dimSub(1, dimMax(dimSub(a, b), dimSub(b, a)))));
export const notDim = (a: Dim): Dim => dimSub(1, a);
/** condition ? a : b, for a condition of 0 or 1. */
export const chooseDim = (condition: Dim, a: Dim, b: Dim): Dim => {
  if (typeof condition === "number") return condition !== 0 ? a : b;
  return dimEqual(a, b) ? a : dimAdd(b, dimMul(condition, dimSub(a, b)));
};
