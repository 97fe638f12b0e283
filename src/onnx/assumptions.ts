/**
 * Conditions over sizes while a model is read. Exporters write `if the size is 1: Squeeze`, so that the rank of a value
 * hangs on a size; a graph has fixed ranks. A model is read for each answer to such a condition. An answer under which its
 * types do not fit, or that no sizes can give beside the others, is out: the other one is required where it had to be
 * assumed. Where both fit, the model has variants, and it takes one when it runs.
 */
import { DiagnosticError, fail } from "../core/diagnostic.ts";
import { formatDim, type Dim } from "../core/dim.ts";
import type { Graph, Value } from "../graph/graph.ts";
import { typeWithConstant } from "../graph/infer-node.ts";
import { knownCondition } from "../ops/if.ts";
import { possible, type Requirement } from "./reachable.ts";

interface Answer extends Requirement {
  /** The run cannot have another: it was asked before, or no other one is possible. */
  readonly sure: boolean;
}
/** By the predicate's text. */
type Answers = ReadonlyMap<string, Answer>;

export interface Decision {
  readonly taken: boolean;
  /** It was assumed, for the first time here: the graph must require it. */
  readonly required: boolean;
}

export class Assumptions {
  readonly #answers: Answers;
  readonly #around: Assumptions | undefined;
  readonly #required = new Set<string>();
  constructor(answers: Answers = new Map(), around?: Assumptions) {
    this.#answers = answers;
    this.#around = around;
  }

  /** Which way a condition goes, where that is known or assumed. */
  decide(condition: Value): Decision | undefined {
    const type = typeWithConstant(condition);
    const known = knownCondition(type);
    if (known !== undefined) return { taken: known, required: false };
    const predicate = type.elements?.[0];
    return predicate === undefined ? undefined : this.#assumed(formatDim(predicate));
  }
  #assumed(predicate: string): Decision | undefined {
    const answer = this.#answers.get(predicate);
    if (answer === undefined) return this.#around ? this.#around.#assumed(predicate) : undefined;
    const required = !answer.sure && !this.#required.has(predicate);
    this.#required.add(predicate);
    return { taken: answer.taken, required };
  }

  /** What holds here. */
  requirements(): readonly Requirement[] { return [...(this.#around?.requirements() ?? []), ...this.#answers.values()]; }

  /** Asks for an answer where two branches give results of different types by a condition over sizes. */
  checkTypes(condition: Value, branches: readonly Graph[], node: string): void {
    const predicate = condition.type.elements?.[0];
    const [yes, no] = branches;
    if (predicate !== undefined && yes && no && yes.outputs.some((v, i) => differ(v, no.outputs[i]))) throw new Undecided(predicate, node);
  }
}

/** Whether no one type says both values. */
function differ(a: Value, b: Value | undefined): boolean {
  if (!b || a.type.container || b.type.container) return false;
  return a.type.shape.length !== b.type.shape.length || a.type.dtype !== b.type.dtype;
}

/** What holds in one of a model's variants: the answers that the run has found. */
export const settled = (answers: readonly Requirement[]): Assumptions =>
  new Assumptions(new Map(answers.map((a) => [formatDim(a.predicate), { ...a, sure: true }])));

/** Asks that reading start again with an answer. */
class Undecided extends Error {
  readonly predicate: Dim;
  readonly node: string;
  constructor(predicate: Dim, node: string) {
    super(`the types at ${node} hang on ${formatDim(predicate)}`);
    this.predicate = predicate;
    this.node = node;
  }
}

/** What reading gave: once, or for each answer to a condition at `node`. */
export type Readings<T> = { readonly kind: "one"; readonly value: T } | Split<T>;
export interface Split<T> {
  readonly kind: "split";
  readonly predicate: Dim;
  readonly node: string;
  readonly yes: Readings<T>;
  readonly no: Readings<T>;
}

/** More combinations than this ask for shapes. */
const maxReadings = 64;
/** A model has no more variants than this. */
const maxVariants = 16;

/**
 * What `read` gives under every combination of answers for which it succeeds. Fails with OF2090 where these are too many,
 * and with the first type error where there are none.
 */
export function readings<T>(around: Assumptions | undefined, read: (assumptions: Assumptions) => T): Readings<T> {
  let tried = 0, fitting = 0, refusal: DiagnosticError | undefined;
  const under = (answers: Answers): Readings<T> | undefined => {
    const assumptions = new Assumptions(answers, around);
    try {
      tried++;
      const value = read(assumptions);
      fitting++;
      return { kind: "one", value };
    } catch (error) {
      if (error instanceof Undecided) return split(answers, assumptions.requirements(), error);
      if (!isTypeError(error)) throw error;
      refusal ??= error;
      return undefined;
    }
  };
  const split = (answers: Answers, requirements: readonly Requirement[], { predicate, node }: Undecided): Readings<T> | undefined => {
    if (tried >= maxReadings || fitting > maxVariants) tooMany(node);
    const may = (taken: boolean): boolean => possible([...requirements, { predicate, taken }]);
    const both = may(true) && may(false);
    const take = (taken: boolean): Readings<T> | undefined =>
      (may(taken) ? under(new Map([...answers, [formatDim(predicate), { predicate, taken, sure: !both }]])) : undefined);
    const yes = take(true), no = take(false);
    if (fitting > maxVariants) tooMany(node);
    return yes && no ? { kind: "split", predicate, node, yes, no } : yes ?? no;
  };
  const found = under(new Map());
  if (found === undefined) throw refusal ?? new Error("no sizes are possible");
  return found;
}

const tooMany = (node: string): never =>
  fail("OF2090", "the model takes too many different paths for different sizes", { place: { node }, hint: "give the shapes of its inputs when compiling" });

/** As `readings` where one of them has to do. Two ask what is around to decide; what they gave is passed to `discard`. */
export function readOne<T>(around: Assumptions, read: (assumptions: Assumptions) => T, discard: (unused: T) => void): T {
  const found = readings(around, read);
  if (found.kind === "one") return found.value;
  valuesOf(found).forEach(discard);
  throw new Undecided(found.predicate, found.node);
}

const valuesOf = <T>(found: Readings<T>): T[] => (found.kind === "one" ? [found.value] : [...valuesOf(found.yes), ...valuesOf(found.no)]);

/** Whether an error says that operators and types do not fit. */
export const isTypeError = (error: unknown): error is DiagnosticError => error instanceof DiagnosticError && error.code.startsWith("OF3");
