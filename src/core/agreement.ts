/** Sizes that an operator needs to agree, where only running tells them. */
import type { Dim } from "./dim.ts";

/** Two sizes that must be equal, or one of which may be 1 instead. */
export interface Agreement { readonly a: Dim; readonly b: Dim; readonly how: "equal" | "broadcast" }

/** An agreement that a node of the model needs. */
export interface NodeAgreement extends Agreement {
  readonly node: string;
  /** Only where none of these is 0: in one of the model's variants. */
  readonly where?: readonly Dim[];
}
