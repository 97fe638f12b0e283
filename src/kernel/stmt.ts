/** The kernel language's statements: structured loops over buffers. */
import type { Dim } from "../core/dim.ts";
import type { DType } from "../core/dtype.ts";
import type { Axis, Buffer, Expr, ReduceOp, Type } from "./expr.ts";

/**
 * `parallel`: the loop counts from 0 to its axis's extent and its iterations may run in any order, at the same time. In
 * the body around it, what comes before it may be done again for every part of it, and what comes after it needs none of
 * its iterations.
 */
export type LoopMode = "serial" | "parallel";

export type Stmt =
  /** for (axis = begin; axis < end; axis += step). `step` > 0. */
  | { readonly kind: "for"; readonly axis: Axis; readonly begin: Expr; readonly end: Expr; readonly step: number; readonly mode: LoopMode; readonly body: Stmt;
      /** Instructions of one iteration, roughly, of a parallel loop; absent: what its body says. */
      readonly work?: Dim }
  /**
   * Work that several threads may share: runs `body` for ranges [from, to) that together cover [0, outer·inner), in any
   * order and at the same time; all of it is one range as well. A range lies within one group of `inner`, or is made of
   * whole ones. Ranges of fewer than `grain` are not worth a thread's while; one
   * iteration is roughly `work` instructions. `from` and `to` are i32 locals of the body.
   */
  | { readonly kind: "split"; readonly from: string; readonly to: string; readonly outer: Dim; readonly inner: Dim; readonly grain: number; readonly work: number; readonly body: Stmt }
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

export type Split = Extract<Stmt, { kind: "split" }>;

export const block = (...body: readonly Stmt[]): Stmt => {
  const flat = body.some((s) => s.kind === "block") ? body.flatMap((s) => (s.kind === "block" ? s.body : [s])) : body;
  const only = flat[0];
  return only && flat.length === 1 ? only : { kind: "block", body: flat };
};
export const loop = (axis: Axis, begin: Expr, end: Expr, step: number, body: Stmt, mode: LoopMode = "serial"): Stmt => ({ kind: "for", axis, begin, end, step, mode, body });
export const letLocal = (name: string, value: Expr): Stmt => ({ kind: "let", name, value });
export const assign = (name: string, value: Expr): Stmt => ({ kind: "assign", name, value });

/** A local's type is that of its `let`'s value. */
export type LocalTypes = ReadonlyMap<string, Type>;
