/** The form of an operator's naive evaluation. Shared by the reference interpreter, constant folding and the runtime's host operators. */
import type { DType } from "./dtype.ts";
import type { Datum } from "./datum.ts";
import type { Tensor } from "./tensor.ts";

export type EvaluateAttribute = number | string | readonly number[] | readonly string[] | Tensor;
/** Attributes with defaults filled in. */
export type EvaluateAttributes = Readonly<Record<string, EvaluateAttribute | undefined>>;
export interface EvaluateContext {
  /** How many outputs the node uses. */
  readonly outputCount: number;
  /** Their element types, for operators whose results' types nothing in their inputs says (maps). */
  readonly outputDTypes?: readonly DType[];
}
/** Inputs in schema order, absent ones undefined. Returns at least `outputCount` tensors. */
export type Evaluate = (inputs: readonly (Tensor | undefined)[], attributes: EvaluateAttributes, context: EvaluateContext) => readonly Tensor[];
/** As `Evaluate`, where inputs or results may be sequences, optionals or maps. An absent input is undefined, an optional that holds nothing null. */
export type EvaluateData = (inputs: readonly (Datum | undefined)[], attributes: EvaluateAttributes, context: EvaluateContext) => readonly Datum[];
