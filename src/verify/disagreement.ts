/** Where a rewritten graph gives something else than the original, by the numerics that its rule states. */
import { isFloat, type DType } from "../core/dtype.ts";
import { toNumbers, type Tensor } from "../core/tensor.ts";
import type { Numerics } from "../rewrite/rule.ts";

/** The first element that is too far off, and why. */
export interface Disagreement { readonly element: number; readonly reason: string }

/**
 * Exact rules keep every bit. Others stay within their bound, as a share of the largest finite element, and keep NaN and
 * infinities where they are. `slack` is allowed on top: what rounding costs that the graph itself magnifies.
 */
export function disagreement(expected: Tensor, actual: Tensor | undefined, numerics: Numerics, slack = 0): Disagreement | undefined {
  if (actual === undefined) return { element: 0, reason: "it is missing" };
  if (actual.dtype !== expected.dtype || actual.dims.join() !== expected.dims.join()) return { element: 0, reason: `${describe(expected)} became ${describe(actual)}` };
  if (expected.dtype === "string") return differs(expected.data, actual.data);
  const x = toNumbers(expected), y = toNumbers(actual);
  if (numerics.kind === "exact" || !isFloat(expected.dtype)) return differs(x, y);
  let most = 0;
  for (let i = 0; i < x.length; i++) if (Number.isFinite(x[i])) most = Math.max(most, Math.abs(x[i] ?? 0));
  const allowed = numerics.bound * (coarser[expected.dtype] ?? 1) * most + slack + tiny;
  for (let i = 0; i < x.length; i++) {
    const p = x[i] ?? NaN, q = y[i] ?? NaN;
    if (p === q || Object.is(p, q)) continue;
    if (!(Math.abs(p - q) <= allowed)) return { element: i, reason: `element ${i}: ${p} became ${q} (${allowed.toExponential(1)} is allowed)` };
  }
  return undefined;
}
/** What rounding among denormals may cost. */
const tiny = 1e-42;
/** How much coarser than float32 a type rounds; bounds are stated for float32. */
const coarser: Readonly<Partial<Record<DType, number>>> = { float16: 2 ** 13, bfloat16: 2 ** 16 };

function differs(x: ArrayLike<unknown>, y: ArrayLike<unknown>): Disagreement | undefined {
  for (let i = 0; i < x.length; i++) if (!Object.is(x[i], y[i])) return { element: i, reason: `element ${i}: ${String(x[i])} became ${String(y[i])} (no difference is allowed)` };
  return undefined;
}
const describe = (t: Tensor): string => `${t.dtype}[${t.dims.join(", ")}]`;
