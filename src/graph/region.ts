/** A region: the nodes that one kernel computes. Found by partition; named for people by what is in it. */
import type { Node, Value } from "./graph.ts";

export interface Region {
  /** Readable kind, such as `ConvBNReLU`, `MatMulAddRelu`, `FlashAttention`, `FusedElementwise`, `LayerNormalization`. */
  readonly kind: string;
  /** In topological order. */
  readonly nodes: readonly Node[];
  /** The contraction, attention or recurrence that fixes the loops; absent for loops over elements and rows. */
  readonly anchor?: Node;
  /** A region within this one, with an anchor of its own: its one output is what the anchor convolves, which reads its rows as they are computed. */
  readonly above?: Region;
  /** The node that pools what `above` computes, whose anchor is then this region's own; nodes behind it read the pool's result. */
  readonly pool?: Node;
  /** Values from outside that the nodes read. */
  readonly inputs: readonly Value[];
  /** Values that the kernel stores: read outside the region, or graph outputs. */
  readonly outputs: readonly Value[];
  /** `host`: run by `evaluate`. `view`: no step, its output is another value's memory. `control`: If or Loop. `check`: a look at values that kernels rely on. */
  readonly execution: "kernel" | "host" | "view" | "control" | "check";
  /** Regions of the node's subgraphs, in the order of `subgraphs(node)`; for `control` only. */
  readonly branches?: readonly (readonly Region[])[];
}
