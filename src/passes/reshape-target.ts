/** How to write the target of a Reshape: as a constant wherever sizes allow it, so that equal targets are equal values. */
import { dimEqual, isStatic, shapeEqual, symbol, symbolsOf, type Dim } from "../core/dim.ts";
import { fromNumbers, type Tensor } from "../core/tensor.ts";
import type { Node, Value } from "../graph/graph.ts";
import { inferTypes } from "../graph/infer-node.ts";
import type { Attributes } from "../graph/op.ts";
import { KnownElements, Reshape } from "../ops/index.ts";
import { knownElements } from "../ops/known-elements.ts";

/**
 * A constant that makes Reshape turn `x` into `to`: sizes, 0 for a size kept in its place, and at most one -1.
 * Undefined where only running can tell.
 */
export function constantTarget(x: Value, to: readonly Dim[]): Tensor | undefined {
  const sizes = targetSizes(x.type.shape, to);
  if (!sizes) return undefined;
  const target = fromNumbers("int64", [sizes.length], sizes);
  const [type] = inferTypes(Reshape, [x.type, { dtype: "int64", shape: target.dims, constant: target }], {}, 1, { place: { value: x.name }, fresh: (hint) => symbol(`?${hint}`) });
  return type && shapeEqual(type.shape, to) ? target : undefined;
}

function targetSizes(from: readonly Dim[], to: readonly Dim[]): readonly number[] | undefined {
  if (isStatic(to)) return to.every((d, i) => d !== 0 || from[i] === 0) ? to : undefined;
  if (to.includes(0)) return undefined;
  const target: number[] = [];
  for (const [i, d] of to.entries()) {
    if (typeof d === "number") target.push(d);
    else if (dimEqual(d, from[i] ?? -1)) target.push(0);
    else if (target.includes(-1)) return undefined;
    else target.push(-1);
  }
  return target;
}

/** A Reshape's target, and its attributes. */
export interface Target { readonly value: Value; readonly attributes: Attributes }

/**
 * What to give a Reshape as its target, near `before`: a constant, or KnownElements where the sizes can be said only in
 * terms of `symbols`. Undefined where neither can. A size of 0 that does not stay in its place needs `allowzero`.
 */
export function reshapeTarget(x: Value, to: readonly Dim[], before: Node, symbols: ReadonlySet<string> | undefined): Target | undefined {
  const { graph } = before;
  const target = constantTarget(x, to);
  if (target) return { value: graph.addConstant(target, `${before.name}_shape`), attributes: {} };
  const attributes: Attributes = to.includes(0) ? { allowzero: 1 } : {};
  if (isStatic(to)) return { value: graph.addConstant(fromNumbers("int64", [to.length], to), `${before.name}_shape`), attributes };
  if (!symbols || !to.every((d) => [...symbolsOf(d)].every((s) => symbols.has(s)))) return undefined;
  const [value] = graph.insert({
    op: KnownElements, inputs: [], attributes: knownElements("int64", [to.length], to), outputs: [{ dtype: "int64", shape: [to.length], elements: to }], name: `${before.name}_shape`, origins: before.origins,
  }, before).outputs;
  return value && { value, attributes };
}
