/** What emitting an expression needs to know of the function around it. */
import type { Axis, Buffer } from "../../kernel/expr.ts";

/** Where the values that expressions name are held. */
export interface Names {
  axis(axis: Axis): number;
  local(name: string): number;
  dim(key: string): number;
  pointer(buffer: Buffer): number;
}
export interface EmitOptions {
  /** Every call is an exported function of its own. */
  readonly separateSteps?: boolean;
}
