/** The kernel language's statements: structured loops over buffers. */
import type { DType } from "../core/dtype.ts";
import type { Axis, Buffer, Expr, ReduceOp, Type } from "./expr.ts";

/** `parallel` marks a loop whose iterations are independent; backends may run it as `serial`. */
export type LoopMode = "serial" | "parallel";

export type Stmt =
  /** for (axis = begin; axis < end; axis += step). `step` > 0. */
  | { readonly kind: "for"; readonly axis: Axis; readonly begin: Expr; readonly end: Expr; readonly step: number; readonly mode: LoopMode; readonly body: Stmt }
  | { readonly kind: "block"; readonly body: readonly Stmt[] }
  /** Declares a local; names are unique in a kernel. It may be assigned later. */
  | { readonly kind: "let"; readonly name: string; readonly value: Expr }
  | { readonly kind: "assign"; readonly name: string; readonly value: Expr }
  /** name = name ⊕ value */
  | { readonly kind: "accumulate"; readonly name: string; readonly op: ReduceOp; readonly value: Expr }
  /** Stores one element, or with `along` as many consecutive ones as `value` has lanes, rounding to the buffer's dtype. */
  | { readonly kind: "store"; readonly buffer: Buffer; readonly indices: readonly Expr[]; readonly value: Expr; readonly along?: number }
  /** Stores `value` (all its lanes, consecutive) as `dtype` at `pointer` + `offset` bytes. */
  | { readonly kind: "storeAt"; readonly pointer: Expr; readonly offset: number; readonly dtype: DType; readonly value: Expr }
  | { readonly kind: "if"; readonly condition: Expr; readonly then: Stmt; readonly else?: Stmt };

export const block = (...body: readonly Stmt[]): Stmt => {
  const flat = body.flatMap((s) => (s.kind === "block" ? s.body : [s]));
  const only = flat[0];
  return only && flat.length === 1 ? only : { kind: "block", body: flat };
};
export const loop = (axis: Axis, begin: Expr, end: Expr, step: number, body: Stmt, mode: LoopMode = "serial"): Stmt => ({ kind: "for", axis, begin, end, step, mode, body });
export const letLocal = (name: string, value: Expr): Stmt => ({ kind: "let", name, value });
export const assign = (name: string, value: Expr): Stmt => ({ kind: "assign", name, value });

/** A local's type is that of its `let`'s value. */
export type LocalTypes = ReadonlyMap<string, Type>;
