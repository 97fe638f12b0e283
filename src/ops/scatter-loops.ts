/**
 * Loops that copy a tensor and then put updates into it, one after the other, where data says: the last of equal places
 * stays, or all are combined. Updates for places outside are left out, so that no index reaches beyond the result.
 */
import type { Operand } from "../graph/op.ts";
import { add, and, cast, constant, dimExpr, ge, i64, load, local, lt, max, min, mul, select, type Buffer, type Expr } from "../kernel/expr.ts";
import { block, letLocal, type Stmt } from "../kernel/stmt.ts";
import type { WholeLoops } from "../kernel/structure.ts";
import { narrow } from "./element-wise.ts";
import { overShape } from "./loops-over.ts";

/** What becomes of an element and an update. */
export function combine(reduction: string, old: Expr, update: Expr): Expr {
  switch (reduction) {
    case "add": return add(old, update);
    case "mul": return mul(old, update);
    case "max": return max(old, update);
    case "min": return min(old, update);
    default: return update;
  }
}

export interface ScatterPlan {
  readonly data: Operand & { buffer(): Buffer };
  readonly updates: Operand & { buffer(): Buffer };
  readonly out: Buffer | undefined;
  readonly reduction: string;
  /** Axes of the result whose index is data, as it stands in memory, for the update at these indices. */
  readonly given: readonly { readonly axis: number; readonly at: (update: readonly Expr[]) => Expr }[];
  /** The update's index for every other axis of the result. */
  readonly plain: (axis: number, update: readonly Expr[]) => Expr;
}

export function scatterLoops({ data, updates, out, reduction, given, plain }: ScatterPlan): WholeLoops {
  if (!out) return { kind: "loops", body: block(), scratch: [] };
  const from = data.buffer(), values = updates.buffer();
  const copy = overShape("o", data.shape, (indices): Stmt => ({ kind: "store", buffer: out, indices, value: load(from, indices) }));
  const put = overShape("u", updates.shape, (update) => {
    const lets = given.map(({ at }, k) => letLocal(`given${k}`, cast(at(update), "i64")));
    const places = given.map(({ axis }, k) => { const size = cast(dimExpr(data.shape[axis] ?? 1), "i64"), own = local(`given${k}`, i64); return { own: select(lt(own, 0), add(own, size), own), size }; });
    const inside = places.map(({ own, size }) => and(ge(own, 0), lt(own, size)));
    const target = data.shape.map((_, axis): Expr => { const k = given.findIndex((g) => g.axis === axis), place = places[k]; return place ? cast(place.own, "i32") : plain(axis, update); });
    const value = load(values, update), next = reduction === "none" ? value : narrow(combine(reduction, load(out, target), value), data.dtype);
    const store: Stmt = { kind: "store", buffer: out, indices: target, value: next };
    return block(...lets, inside.length ? { kind: "if", condition: inside.reduce((a, b) => and(a, b)), then: store } : store);
  });
  return { kind: "loops", body: block(copy, put), scratch: [] };
}

/** Column `c` of the row of indices that an update of ScatterND belongs to. */
export const columnOf = (indices: Buffer, update: readonly Expr[], c: number): Expr => load(indices, [...update.slice(0, indices.shape.length - 1), constant(c, { scalar: "i32", lanes: 1 })]);
