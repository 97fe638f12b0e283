/** Working memory of threads besides the first: where each kernel's own lies in a thread's region. The first one's is planned in the arena. */
import { dimAdd, dimCeilDiv, dimMul, dimProduct, type Dim } from "../core/dim.ts";
import { byteSize } from "../core/dtype.ts";
import type { Buffer } from "../kernel/expr.ts";
import type { Kernel } from "../kernel/kernel.ts";
import { privateScratch } from "../kernel/phases.ts";
import { alignment } from "./place.ts";

export interface ThreadScratch {
  /** Bytes from the start of a thread's region. */
  readonly offsets: ReadonlyMap<Buffer, Dim>;
  readonly bytes: Dim;
}

/** The buffers of one kernel, one after the other; kernels follow each other, so they share the region. */
export function threadScratch(kernel: Kernel): ThreadScratch {
  const offsets = new Map<Buffer, Dim>();
  let bytes: Dim = 0;
  for (const b of privateScratch(kernel)) {
    offsets.set(b, bytes);
    bytes = dimAdd(bytes, dimMul(dimCeilDiv(dimProduct([...b.shape, byteSize(b.dtype)]), alignment), alignment));
  }
  return { offsets, bytes };
}
