/**
 * Rules: a rewrite of the graph as one object that says everything about it: the pattern, when it must not fire and
 * why, what it makes, how exact it is, a graph on which it fires and graphs on which it refuses.
 *
 * What every rule keeps: a result that was finite stays finite, and NaN and infinities stay where they were, except
 * that a rule which reassociates may give a finite result where an intermediate of the original overflowed.
 * Everything looser is `approximates` and needs the user's consent.
 */
import type { Tensor } from "../core/tensor.ts";
import type { Graph, Node, Value } from "../graph/graph.ts";
import type { Attributes, OpDef } from "../graph/op.ts";
import type { Pattern } from "./pattern.ts";
import type { Refusal } from "./site.ts";

/** How near the rewritten graph is to the original. `bound` is relative to the largest output in float32. */
export type Numerics =
  | { readonly kind: "exact" }
  | { readonly kind: "reassociates"; readonly bound: number }
  | { readonly kind: "approximates"; readonly bound: number; readonly why: string };

export const exact: Numerics = { kind: "exact" };
export const reassociates = (bound = 1e-5): Numerics => ({ kind: "reassociates", bound });
export const approximates = (bound: number, why: string): Numerics => ({ kind: "approximates", bound, why });

/** A guard's answer. */
export type Verdict = true | Refusal;
/** A refusal: a stable code, the failing condition with its values, and what would make the rule fire. */
export const refuse = (code: string, reason: string, remedy: string): Refusal => ({ code, reason, remedy });
export const isRefusal = (x: unknown): x is Refusal => typeof x === "object" && x !== null && "code" in x && "remedy" in x;

export interface InsertOptions {
  /** Name of the new node; default: the root's. */
  readonly name?: string;
  /** Default: all original nodes of the match. */
  readonly origins?: readonly string[];
  readonly outputCount?: number;
}

/** Values of a site that others stand for from now on. */
export type Replacements = ReadonlyMap<Value, Value>;

/** What a rewrite may do. New nodes stand where the root stands, so they may read anything that the match read. */
export interface Editor {
  readonly graph: Graph;
  /** The node whose output is replaced. */
  readonly root: Node;
  /** Original nodes that take part, in data-flow order. */
  readonly origins: readonly string[];
  /** Inserts a node, its types inferred; its first output. */
  insert(op: OpDef, inputs: readonly (Value | undefined)[], attributes?: Attributes, options?: InsertOptions): Value;
  /** A new constant; initializers are never changed in place, since others may read them. */
  constant(tensor: Tensor, hint: string): Value;
}

/**
 * When a rule runs: `recognise` brings spelled-out functions to one operator, the longest spelling first; `fold`
 * puts nodes into their neighbours; `decompose` takes apart what could not be folded; `merge` joins what stands side by
 * side; `move` brings what is left nearer to what it belongs to.
 */
export const stages = ["recognise", "fold", "decompose", "merge", "move"] as const;
export type Stage = (typeof stages)[number];

export interface RuleSpec<B extends object> {
  /** kebab-case: file name, switch name and report key. */
  readonly name: string;
  /** The pass of Huawei's GE that does the same, where there is one: its name works as a switch too. */
  readonly gePass?: string;
  /** One paragraph: what it does, and what for. */
  readonly doc: string;
  /** Default `fold`. */
  readonly stage?: Stage;
  /** An operator, or alternatives (`anyOf`) that are operators. The root's first output is what is replaced. */
  readonly match: Pattern<B>;
  /** More nodes of the site, which no pattern says since they do not feed the root; undefined: there is no site. */
  beside?(match: B, root: Node): readonly Node[] | undefined;
  /** Operators without one of which an attempt is no near miss, where the rest of the pattern is commonplace. */
  readonly hallmarks?: readonly OpDef[];
  /** Codes with which an attempt is no near miss, where what else stands there is what usually does. */
  readonly commonplace?: readonly string[];
  /** Checked in order after the match; the first refusal is reported. */
  readonly where?: readonly Guard<B>[];
  readonly numerics: Numerics;
  /** The value that replaces the root's output, or a value for each that is replaced; or a refusal, given before anything is inserted. */
  rewrite(match: B, edit: Editor): Value | Replacements | Refusal;
  /** A graph on which the rule fires, and stays equal. */
  example(): Graph;
  /** More graphs on which it fires: other spellings. */
  readonly examples?: readonly (() => Graph)[];
  /** Graphs on which it refuses, by code. */
  readonly refuses: Readonly<Record<string, () => Graph>>;
}
/** A side condition. Declared as a method so that rules of different bindings share one type. */
export type Guard<B extends object> = { check(match: B, root: Node): Verdict }["check"];

/** A rule with its bindings erased. */
export interface Rule extends RuleSpec<object> {}

export const defineRule = <B extends object>(rule: RuleSpec<B>): Rule => rule as RuleSpec<object>;
