/**
 * Pattern terms: data that describes the sub-graph a rule looks for, from its last operator backwards. Captures are
 * named, and their names and kinds are part of the term's type, so that guards and rewrites see typed bindings.
 * The same name at two places means the same value; the same term with `as` means the same node.
 */
import { invariant } from "../core/assert.ts";
import { dtypes } from "../core/dtype.ts";
import { sizeOf, toNumbers, type Tensor } from "../core/tensor.ts";
import type { Node, Value } from "../graph/graph.ts";
import type { Attributes, OpDef } from "../graph/op.ts";

/** A value whose elements are fixed. */
export interface ConstantValue extends Value { readonly constant: Tensor }

/** A condition on something captured, that says in words what it wanted. */
export interface Predicate<T> {
  readonly wants: string;
  /** Refusal code when it does not hold, where the general one says too little. */
  readonly code?: string;
  holds(x: T): boolean;
}

export type Term =
  | { readonly kind: "value"; readonly name: string | undefined }
  /** `quiet`: a value that some node computes is not even a near miss. */
  | { readonly kind: "constant"; readonly name: string | undefined; readonly predicate: Predicate<ConstantValue> | undefined; readonly quiet: boolean }
  | { readonly kind: "absent" }
  | { readonly kind: "optional"; readonly term: Term }
  | { readonly kind: "any"; readonly terms: readonly Term[] }
  | OpTerm;

export interface OpTerm {
  readonly kind: "op";
  readonly ops: readonly OpDef[];
  /** Inputs in schema order. Inputs past the end must be absent, unless `rest` is set. */
  readonly inputs: readonly Term[];
  /** The first two operands may stand in either order. */
  readonly commutes: boolean;
  readonly as: string | undefined;
  /** Which output of the node the value must be. */
  readonly output: number;
  readonly attributes: Predicate<Attributes> | undefined;
  /** Its outputs may be used elsewhere: the node then stays beside the rewritten one. */
  readonly shared: boolean;
  /** Inputs past those named may be anything, instead of absent. */
  readonly rest?: boolean;
}

/** The key of what a term binds; it exists for types alone. */
export declare const bindings: unique symbol;
/** A term that binds `B`. */
export type Pattern<B extends object = object> = Term & { readonly [bindings]?: B };
export type OpPattern<B extends object = object> = OpTerm & { readonly [bindings]?: B };
export type Bound<P> = P extends { readonly [bindings]?: infer B } ? (B extends object ? B : object) : object;
export type Intersect<U> = (U extends unknown ? (x: U) => void : never) extends (x: infer I) => void ? I : never;
export type Flat<T> = { [K in keyof T]: T[K] };
export type All<P extends readonly Pattern[]> = number extends P["length"] ? object : P["length"] extends 0 ? object : Flat<Intersect<Bound<P[number]>>>;
export type KeysOfAny<U> = U extends unknown ? keyof U : never;
export type ValueAt<U, K> = U extends unknown ? (K extends keyof U ? U[K] : undefined) : never;
/** What every alternative binds is there; what only some bind may be undefined. */
export type Either<U> = { readonly [K in KeysOfAny<U>]: ValueAt<U, K> };

/** Any value; the same name elsewhere in the pattern must be the same value. */
export const value = <const N extends string>(name: N): Pattern<{ readonly [K in N]: Value }> => ({ kind: "value", name });
/** Any value, not bound. */
export const anything = (): Pattern => ({ kind: "value", name: undefined });
/** A value with fixed elements, not an overridable initializer. */
export const constant = <const N extends string>(name: N, predicate?: Predicate<ConstantValue>): Pattern<{ readonly [K in N]: ConstantValue }> =>
  ({ kind: "constant", name, predicate, quiet: false });
/** As `constant`, where a computed operand is commonplace: it makes no near miss. */
export const parameter = <const N extends string>(name: N): Pattern<{ readonly [K in N]: ConstantValue }> =>
  ({ kind: "constant", name, predicate: undefined, quiet: true });
/** A constant of one element (of any rank). */
export const scalar = <const N extends string>(name: N): Pattern<{ readonly [K in N]: ConstantValue }> => constant(name, oneElement);
/** A constant all of whose elements are `x`, within a relative tolerance (at least what the dtype can say). */
export const literal = (x: number, relative?: number): Pattern => ({ kind: "constant", name: undefined, predicate: equalTo(x, relative), quiet: false });
/** An input that is not given. */
export const absent = (): Pattern => ({ kind: "absent" });
/** An input that may be given; its captures are undefined when it is not. */
export const optionalInput = <B extends object>(pattern: Pattern<B>): Pattern<{ readonly [K in keyof B]: B[K] | undefined }> =>
  ({ kind: "optional", term: pattern });
/** The first of these that matches. */
export const anyOf = <const P extends readonly Pattern[]>(...terms: P): Pattern<Flat<Either<Bound<P[number]>>>> => ({ kind: "any", terms });

export interface OpOptions<N extends string> {
  readonly as?: N;
  readonly output?: number;
  readonly attributes?: Predicate<Attributes>;
  readonly shared?: boolean;
  readonly rest?: boolean;
}
export type WithNode<B, N extends string> = [N] extends [never] ? B : Flat<B & { readonly [K in N]: Node }>;

/** The output of an operator (one of several, if a list is given) on these inputs. */
export const op = <const P extends readonly Pattern[], const N extends string = never>(
  ops: OpDef | readonly OpDef[], inputs: P, options: OpOptions<N> = {},
): OpPattern<WithNode<All<P>, N> & object> => opTerm(ops, inputs, false, options);
/** As `op`, with the first two operands in either order. */
export const commuted = <const P extends readonly [Pattern, Pattern, ...Pattern[]], const N extends string = never>(
  ops: OpDef | readonly OpDef[], inputs: P, options: OpOptions<N> = {},
): OpPattern<WithNode<All<P>, N> & object> => opTerm(ops, inputs, true, options);
/** `inner`, perhaps with one of `ops` after it. The other inputs of that operator are as given. */
export const maybe = <B extends object>(ops: OpDef | readonly OpDef[], inner: Pattern<B>, others: readonly Pattern[] = []): Pattern<B> =>
  ({ kind: "any", terms: [opTerm(ops, [inner, ...others], false, {}), inner] });

function opTerm(ops: OpDef | readonly OpDef[], inputs: readonly Term[], commutes: boolean, options: OpOptions<string>): OpTerm {
  return {
    kind: "op", ops: isList(ops) ? ops : [ops], inputs, commutes,
    as: options.as, output: options.output ?? 0, attributes: options.attributes, shared: options.shared ?? false, rest: options.rest ?? false,
  };
}
const isList = (ops: OpDef | readonly OpDef[]): ops is readonly OpDef[] => Array.isArray(ops);

/** The operator terms a whole pattern may end in: itself, or its alternatives. */
export function rootsOf(term: Term): readonly OpTerm[] {
  if (term.kind === "op") return [term];
  invariant(term.kind === "any", "a pattern ends in an operator, or in alternatives of operators");
  return term.terms.flatMap(rootsOf);
}

/** How many operators deep a pattern is. */
export function depthOf(term: Term): number {
  switch (term.kind) {
    case "value": case "constant": case "absent": return 0;
    case "optional": return depthOf(term.term);
    case "any": return Math.max(...term.terms.map(depthOf));
    case "op": return 1 + Math.max(0, ...term.inputs.map(depthOf));
  }
}

/** A constant of one element. */
export const oneElement: Predicate<ConstantValue> = { wants: "a single number", holds: (c) => sizeOf(c.constant.dims) === 1 };

/** One number, however often it stands there. */
export const uniform: Predicate<ConstantValue> = {
  wants: "one number throughout",
  holds: (c) => dtypes[c.constant.dtype].kind !== "string" && sizeOf(c.constant.dims) > 0 && Array.from(toNumbers(c.constant)).every((x, _, all) => Object.is(x, all[0])),
};

/** Elements all equal to `x`, within a relative tolerance, at least one rounding of the constant's dtype. */
export function equalTo(x: number, relative?: number): Predicate<ConstantValue> {
  return {
    wants: String(x),
    holds(c) {
      if (dtypes[c.constant.dtype].kind === "string" || sizeOf(c.constant.dims) === 0) return false;
      const near = Math.abs(x) * Math.max(relative ?? 0, unitRoundoff(c.constant));
      const values = toNumbers(c.constant);
      for (let i = 0; i < values.length; i++) if (!(values[i] === x || Math.abs((values[i] ?? NaN) - x) <= near)) return false;
      return true;
    },
  };
}
function unitRoundoff(t: Tensor): number {
  switch (t.dtype) {
    case "float64": return 2 ** -52;
    case "float32": return 2 ** -23;
    case "float16": return 2 ** -10;
    case "bfloat16": return 2 ** -7;
    default: return 0;
  }
}
/** The number in a constant of one element. */
export const numberIn = (c: ConstantValue): number => toNumbers(c.constant)[0] ?? NaN;
