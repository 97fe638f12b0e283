/** Loops of whole-buffer kernels over the elements of a shape. */
import type { Dim } from "../core/dim.ts";
import { axisOf, dimExpr, type Axis, type Expr } from "../kernel/expr.ts";
import { loop, type Stmt } from "../kernel/stmt.ts";
import { origin } from "./index-map.ts";

/** `body` at every index of `shape`, row-major; `name` begins the loop variables' names. */
export function overShape(name: string, shape: readonly Dim[], body: (indices: readonly Expr[]) => Stmt): Stmt {
  const axes = shape.map((extent, d): Axis => ({ name: `${name}${d}`, extent }));
  return axes.reduceRight<Stmt>((inner, axis) => loop(axis, origin, dimExpr(axis.extent), 1, inner), body(axes.map(axisOf)));
}
