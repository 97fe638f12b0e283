/**
 * Operators. A definition is one object that says everything about an operator: its schema in the newest form, type
 * inference, the naive evaluation, the lowering, and how older opsets spell it.
 */
import type { Container, ItemType } from "../core/container.ts";
import { asTensor } from "../core/datum.ts";
import type { Agreement } from "../core/agreement.ts";
import type { Dim } from "../core/dim.ts";
import type { DType } from "../core/dtype.ts";
import type { Evaluate, EvaluateAttribute, EvaluateData } from "../core/evaluate.ts";
import type { Tensor } from "../core/tensor.ts";
import type { Axis, Buffer, Expr } from "../kernel/expr.ts";
import type { EpilogueStore, PooledOutput, Structure, WholeLoops } from "../kernel/structure.ts";
import type { Graph } from "./graph.ts";

/** How freely an operator may share a kernel with its neighbours (TVM's OpPatternKind). */
export type FusionKind = "elementwise" | "broadcast" | "injective" | "reduction" | "contraction" | "opaque";

/** A type, as an attribute of an operator that makes a value of it. */
export interface TypeAttribute { readonly valueType: ItemType }
export type AttributeValue = EvaluateAttribute | Graph | TypeAttribute;
export const isTypeAttribute = (a: AttributeValue | undefined): a is TypeAttribute => typeof a === "object" && "valueType" in a;
export type Attributes = Readonly<Record<string, AttributeValue | undefined>>;

interface AttributeTypes {
  int: number; float: number; string: string;
  ints: readonly number[]; floats: readonly number[]; strings: readonly string[];
  tensor: Tensor; graph: Graph; type: TypeAttribute;
}
export interface AttributeSpec<K extends keyof AttributeTypes = keyof AttributeTypes, R extends boolean = boolean> {
  readonly type: K;
  readonly required: R;
  readonly default: AttributeTypes[K] | undefined;
}
type AttributeSchema = Readonly<Record<string, AttributeSpec>>;
type AttributesOf<S extends AttributeSchema> = {
  readonly [K in keyof S]: S[K]["required"] extends true ? AttributeTypes[S[K]["type"]] : AttributeTypes[S[K]["type"]] | undefined;
};

/** An attribute with a default is always there. */
export const int = (value: number): AttributeSpec<"int", true> => ({ type: "int", required: true, default: value });
export const float = (value: number): AttributeSpec<"float", true> => ({ type: "float", required: true, default: value });
export const string = (value: string): AttributeSpec<"string", true> => ({ type: "string", required: true, default: value });
export const ints = (value: readonly number[]): AttributeSpec<"ints", true> => ({ type: "ints", required: true, default: value });
/** An attribute that may be missing. */
export const optional = <K extends keyof AttributeTypes>(type: K): AttributeSpec<K, false> => ({ type, required: false, default: undefined });
/** An attribute that the node must give. */
export const required = <K extends keyof AttributeTypes>(type: K): AttributeSpec<K, true> => ({ type, required: true, default: undefined });

export type InputKind = "required" | "optional" | "variadic";
type InputSchema = Readonly<Record<string, InputKind>>;
export type InputsOf<I extends InputSchema, T> = {
  readonly [K in keyof I]: I[K] extends "required" ? T : I[K] extends "optional" ? T | undefined : readonly T[];
};

/** What is known of a value before it is computed. */
export interface TypeInfo {
  readonly dtype: DType;
  /** A container's shape is [], its dtype that of the tensors in it. */
  readonly shape: readonly Dim[];
  /** How many of the last sizes there are, where that hangs on sizes: those before are 1. Only results of a model have it. */
  readonly rank?: Dim;
  /** The value is a sequence, an optional or a map. Only operators that say `containers` see such inputs. */
  readonly container?: Container;
  /** Elements of a small integer or bool tensor where they are known, perhaps symbolically; row-major. */
  readonly elements?: readonly Dim[];
  /** Known in full. */
  readonly constant?: Tensor;
}

export interface InferContext {
  /** A new symbol for a size that only running can tell. */
  fresh(hint: string): Dim;
  /** Reports a type error at this node. */
  fail(code: string, message: string, hint?: string): never;
  /** Notes that two sizes must be equal (or broadcast); where they are symbolic, only running can tell. */
  agree?(a: Dim, b: Dim, how: Agreement["how"]): void;
  /** How many outputs the node uses (trailing unused ones are not counted). */
  readonly outputCount: number;
}

/** A tensor an operator reads while being lowered. Reading a producer of the same region inlines it. */
export interface Operand extends TypeInfo {
  /** The element at these indices (i32 each). */
  at(...indices: readonly Expr[]): Expr;
}
/** The element of one output at given indices. */
export type ElementFunction = (...indices: readonly Expr[]) => Expr;

export interface LowerContext {
  /** Types of the node's outputs. */
  readonly outputs: readonly TypeInfo[];
}

/** An operand of an anchor: also a whole buffer, for loops that are built around it. */
export interface AnchorOperand extends Operand {
  /** The value as a materialised buffer, stored with its logical shape. */
  buffer(): Buffer;
}

/** What a pool makes of the elements of a window, as a kernel that computes these says it. */
export type Pooling = Pick<PooledOutput, "reduce" | "divisor" | "windows">;

/** What an anchoring operator hands to region lowering: its structure up to the stores. */
export interface Anchor {
  /** The output's indices over the structure's axes; region lowering pulls the epilogue at these. */
  readonly indices: readonly Expr[];
  /** The anchor's element inside the epilogue: the accumulator local, with whatever the operator applies to it itself (bias, scale). */
  readonly element: Expr;
  /** Loops over the output, outermost first: the axes that `indices` mention. */
  readonly axes: readonly Axis[];
  /** Naive value of the accumulator, for the plain body of the kernel. */
  readonly accumulate: Expr;
  /** The same of the operator's further outputs, each with an accumulator of its own. */
  readonly others?: readonly { readonly accumulator: string; readonly element: Expr; readonly accumulate: Expr }[];
  readonly structure: (stores: readonly EpilogueStore[]) => Structure;
}


/** What a kernel relies on in the elements of an input. */
export interface Guard {
  /** Which input. */
  readonly input: number;
  /** Sizes of the axes that its elements index, from either end; absent where they must not be 0. */
  readonly axes?: readonly Dim[];
  /** Each place along the input's last axis has an axis of its own; otherwise there is one for all. */
  readonly each?: boolean;
}

/** A node as a file of some opset spells it, for `read` and `write`. */
export interface Spelling {
  readonly type: string;
  readonly domain: string;
  readonly inputs: readonly (SpellingInput | undefined)[];
  readonly attributes: Attributes;
}
/** An input by name of value, with its type, or a small constant to be materialised. */
export type SpellingInput = { readonly value: string; readonly constant?: Tensor; readonly type?: TypeInfo } | { readonly literal: Tensor };

/** One node of an operator's expansion, in its newest form. Inputs are names, or constants to be stored. */
export interface ExpansionNode {
  readonly op: OpDef;
  readonly inputs: readonly (string | Tensor | undefined)[];
  readonly outputs: readonly string[];
  readonly attributes?: Attributes;
}
/** What there is to expand. Names that an expansion makes up are local to it: the writer makes them unique. */
export interface ExpandContext {
  readonly inputs: readonly (string | undefined)[];
  readonly inputTypes: readonly (TypeInfo | undefined)[];
  readonly outputs: readonly string[];
  readonly outputTypes: readonly TypeInfo[];
}

export interface OpSpec<I extends InputSchema, S extends AttributeSchema> {
  readonly type: string;
  /** "" for the standard, "com.microsoft", or "onnxfuse" for our own. */
  readonly domain: string;
  /** The first opset version of the form defined here. */
  readonly since: number;
  readonly inputs: I;
  /** Inputs that say sizes, axes, positions or counts: int32 or int64 (OF3013). */
  readonly integers?: readonly (keyof NoInfer<I> & string)[];
  /** Groups of inputs that have one element type (OF3013). */
  readonly oneType?: readonly (readonly (keyof NoInfer<I> & string)[])[];
  readonly attributes: S;
  readonly fusionKind: FusionKind;
  /** False for operators whose results differ between runs; they are never folded, merged or copied. Default true. */
  readonly deterministic?: boolean;
  /** True when the node changes state besides its outputs (sequences, training). Default false. */
  readonly sideEffects?: boolean;
  /** Rounds floats to a grid of integers, or takes them back from there: only rules about such grids look past it. */
  readonly quantizes?: boolean;
  /** Output types, from input types. Broadcast and shape errors are reported through `context.fail`. */
  infer(inputs: InputsOf<I, TypeInfo>, attributes: AttributesOf<S>, context: InferContext): readonly TypeInfo[];
  /** The specification, written naively: the oracle for every lowering. Absent for control flow, which interpreters run. */
  readonly evaluate?: Evaluate;
  /** In the place of `evaluate` where inputs or results may be sequences, optionals or maps. */
  readonly evaluateData?: EvaluateData;
  /** True where inputs may be sequences, optionals or maps. Default false: inference refuses them. */
  readonly containers?: boolean;
  /** True where `infer` itself takes tensors whose rank is not known. Default false: it is asked under every rank, and the node runs on the host. */
  readonly anyRank?: boolean;
  /** One element function per output. Absent: the operator runs on the host (or through `structure`). */
  lower?(inputs: InputsOf<I, Operand>, attributes: AttributesOf<S>, context: LowerContext): readonly ElementFunction[];
  /** The loop structure this operator gives a kernel (contractions and attention); `lower` still says the same naively. */
  anchor?(inputs: InputsOf<I, AnchorOperand>, attributes: AttributesOf<S>, context: LowerContext): Anchor;
  /** The windows of a pool over two spatial axes of floats that the kernel of the convolution before it may apply; undefined for those that it may not. */
  pooling?(inputs: InputsOf<I, TypeInfo>, attributes: AttributesOf<S>): Pooling | undefined;
  /** Whole-buffer kernels that element functions cannot say (recurrences, scans, scatters): the structure or loops over the operands' buffers and these output buffers. */
  whole?(inputs: InputsOf<I, AnchorOperand>, attributes: AttributesOf<S>, outputs: readonly (Buffer | undefined)[]): Structure | WholeLoops;
  /** Whether `lower`, `anchor` or `whole` can say this node; one for which it answers false runs on the host. Absent: always. */
  lowerable?(inputs: InputsOf<I, TypeInfo>, attributes: AttributesOf<S>, context: LowerContext): boolean;
  /** What its kernel relies on in the elements of its inputs; checked when running where it is not known (OF7014). */
  guards?(inputs: InputsOf<I, TypeInfo>, attributes: AttributesOf<S>): readonly Guard[];
  /** Rewrites a spelling of an older opset to the form defined here. */
  read?(node: Spelling, opset: number): Spelling;
  /** Spells a node of this form for an older opset; undefined where that opset cannot say it. */
  write?(node: Spelling, opset: number): Spelling | undefined;
  /** The operator said by others, for files whose opset lacks it or cannot spell the node; exact but for rounding. Undefined where it cannot be said. */
  expand?(context: ExpandContext, attributes: AttributesOf<S>): readonly ExpansionNode[] | undefined;
}

/** An operator with its schema erased, so that operators of every arity share one type. */
export interface OpDef extends OpSpec<InputSchema, AttributeSchema> {}

export const defineOp = <const I extends InputSchema, const S extends AttributeSchema>(spec: OpSpec<I, S>): OpDef => spec as unknown as OpDef;

/** An operator's evaluation, on values of any kind; undefined where there is none. */
export function evaluationOf({ evaluate, evaluateData, type }: OpDef): EvaluateData | undefined {
  if (evaluateData || !evaluate) return evaluateData;
  return (inputs, attributes, context) => evaluate(inputs.map((x) => (x === undefined ? undefined : asTensor(x, `an input of ${type}`))), attributes, context);
}

/** Positional inputs under their schema names. */
export function named<T>(op: OpDef, inputs: readonly (T | undefined)[]): InputsOf<InputSchema, T> {
  const out: Record<string, T | undefined | readonly T[]> = {};
  let i = 0;
  for (const [name, kind] of Object.entries(op.inputs)) {
    if (kind === "variadic") { out[name] = inputs.slice(i).filter((x): x is T => x !== undefined); i = inputs.length; }
    else out[name] = inputs[i++];
  }
  return out as InputsOf<InputSchema, T>;
}
