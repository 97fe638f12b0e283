/** Kernels that copy one buffer to another, element by element. */
import { axisOf, constant, i32, load, type Axis, type Buffer } from "../kernel/expr.ts";
import { buildLoops } from "../kernel/hoist.ts";
import type { Kernel } from "../kernel/kernel.ts";
import { ExprTable } from "../kernel/share.ts";

/** `to` = `from`; they have one shape and dtype. */
export function copyKernel(name: string, from: Buffer, to: Buffer): Kernel {
  const axes = from.shape.map((extent, d): Axis | undefined => (extent === 1 ? undefined : { name: `i${d}`, extent }));
  const indices = axes.map((a) => (a ? axisOf(a) : constant(0, i32)));
  const body = buildLoops(new ExprTable(), [{ axes: axes.filter((a) => a !== undefined), buffer: to, indices, value: load(from, indices) }]);
  return { name, inputs: [from], outputs: [to], scratch: [], body };
}
