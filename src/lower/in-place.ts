/**
 * Which outputs may share memory with an input: those whose element is written only after every read of the input's
 * element at the same indices. Reads in a loop that ends before the writes of its row begin count as earlier.
 */
import { dimEqual } from "../core/dim.ts";
import { byteSize } from "../core/dtype.ts";
import type { Axis, Buffer, Expr } from "../kernel/expr.ts";
import type { Kernel } from "../kernel/kernel.ts";
import type { Stmt } from "../kernel/stmt.ts";
import { bodiesOf, expressionsOf, visitExpr } from "../kernel/traverse.ts";

/** A read or write with the loops around it, outermost first, and its place in program order. */
interface Access { readonly buffer: Buffer; readonly indices: readonly Expr[]; readonly loops: readonly Axis[]; readonly order: number }

/** Pairs of a naive kernel. A structured kernel offers only what its epilogue reads. */
export function inPlacePairs(kernel: Kernel): { readonly input: Buffer; readonly output: Buffer }[] {
  const reads: Access[] = [], writes: Access[] = [];
  collect(kernel.body, [], reads, writes);
  return kernel.inputs.flatMap((input) => kernel.outputs.filter((output) => shareable(input, output, reads, writes)).map((output) => ({ input, output })));
}

function collect(body: Stmt, loops: readonly Axis[], reads: Access[], writes: Access[]): void {
  for (const root of expressionsOf(body)) visitExpr(root, (e) => {
    if (e.kind === "load") reads.push({ buffer: e.buffer, indices: e.indices, loops, order: reads.length + writes.length });
  });
  if (body.kind === "store") writes.push({ buffer: body.buffer, indices: body.indices, loops, order: reads.length + writes.length });
  const inner = body.kind === "for" ? [...loops, body.axis] : loops;
  for (const child of bodiesOf(body)) collect(child, inner, reads, writes);
}

function shareable(input: Buffer, output: Buffer, reads: readonly Access[], writes: readonly Access[]): boolean {
  if (byteSize(input.dtype) !== byteSize(output.dtype) || input.shape.length !== output.shape.length) return false;
  if (input.shape.some((d, i) => !dimEqual(d, output.shape[i] ?? -1))) return false;
  const own = writes.filter((w) => w.buffer === output);
  return own.length === 1 && own.every((w) => isIdentity(w) && reads.every((r) => r.buffer !== input || before(r, w)));
}

/** Stored once at every index, by loops that run over the output's axes in order. */
const isIdentity = (w: Access): boolean => {
  const over = w.indices.filter((e) => !(e.kind === "const"));
  return over.length === w.loops.length && over.every((e, d) => e.kind === "axis" && e.axis === w.loops[d]);
};

/** The read sees elements of the loops shared with the write only at the write's own indices, and comes first. */
function before(read: Access, write: Access): boolean {
  if (read.order > write.order) return false;
  const shared = read.loops.filter((a, i) => write.loops[i] === a);
  return write.indices.every((e, d) => {
    const at = read.indices[d];
    if (e.kind === "axis" && shared.includes(e.axis)) return at?.kind === "axis" && at.axis === e.axis;
    return true;
  });
}
