/** Joining two descriptions of the same value: what either knows, the other may use. */
import { invariant } from "../core/assert.ts";
import { isUnranked, sameContainer } from "../core/container.ts";
import { dimEqual, formatShape, type Dim } from "../core/dim.ts";
import type { TypeInfo } from "./op.ts";

/**
 * What is known when both `declared` and `inferred` describe a value. A number beats a symbol; of two different
 * symbolic sizes the inferred one stays, since it is said in terms of the graph's inputs. Dtypes and ranks must agree.
 * Of containers, which say less of sizes, the inferred type stays; of a tensor of any rank, what is said of its shape elsewhere.
 */
export function refineType(declared: TypeInfo, inferred: TypeInfo): TypeInfo {
  if (isUnranked(inferred) && !declared.container && declared.dtype === inferred.dtype) return declared;
  if (inferred.container ? declared.container : isUnranked(declared) && declared.dtype === inferred.dtype) return inferred;
  invariant(!declared.container && !inferred.container && declared.dtype === inferred.dtype && declared.shape.length === inferred.shape.length,
    `${declared.dtype}${formatShape(declared.shape)} and ${inferred.dtype}${formatShape(inferred.shape)} describe one value`);
  const shape = inferred.shape.map((d, i) => refineDim(declared.shape[i] ?? d, d));
  const elements = refineElements(declared.elements, inferred.elements);
  const constant = inferred.constant ?? declared.constant;
  return { dtype: declared.dtype, shape, ...(inferred.rank === undefined ? {} : { rank: inferred.rank }), ...(elements ? { elements } : {}), ...(constant ? { constant } : {}) };
}
const refineDim = (declared: Dim, inferred: Dim): Dim => (typeof inferred !== "number" && typeof declared === "number" ? declared : inferred);
function refineElements(declared: readonly Dim[] | undefined, inferred: readonly Dim[] | undefined): readonly Dim[] | undefined {
  if (!declared || !inferred) return inferred ?? declared;
  return inferred.map((e, i) => refineDim(declared[i] ?? e, e));
}

/** Whether no value can be both: another element type, rank or number of elements along an axis. */
export function contradicts(a: TypeInfo, b: TypeInfo): boolean {
  if (isUnranked(a) || isUnranked(b)) return a.dtype !== b.dtype || [a, b].some((t) => t.container && !isUnranked(t));
  if (a.container || b.container) return (a.container === undefined) !== (b.container === undefined);
  return a.dtype !== b.dtype || a.shape.length !== b.shape.length || a.shape.some((d, i) => { const other = b.shape[i]; return typeof d === "number" && typeof other === "number" && d !== other; });
}

/** Whether two descriptions say the same. */
export function sameType(a: TypeInfo, b: TypeInfo): boolean {
  const same = (x: readonly Dim[] | undefined, y: readonly Dim[] | undefined): boolean =>
    x === y || (x !== undefined && y !== undefined && x.length === y.length && x.every((d, i) => dimEqual(d, y[i] ?? -1)));
  if (a.container || b.container) return a.container !== undefined && b.container !== undefined && sameContainer(a.container, b.container);
  return a.dtype === b.dtype && dimEqual(a.rank ?? -1, b.rank ?? -1) && a.constant === b.constant && same(a.shape, b.shape) && same(a.elements, b.elements);
}
