/**
 * Conditions over sizes while a model is read. Exporters write `if the size is 1: Squeeze`, so that the rank of a value
 * hangs on a size; a graph has fixed ranks. Such a model, or the branch of an If that holds such a condition, is read for
 * each answer; where only one answer leads to types that fit, the graph is that one, and requires it when it runs.
 */
import { DiagnosticError, fail } from "../core/diagnostic.ts";
import { formatDim } from "../core/dim.ts";
import type { Graph, Value } from "../graph/graph.ts";
import { typeWithConstant } from "../graph/infer-node.ts";
import { knownCondition } from "../ops/if.ts";

/** Answers by predicate (its text). */
type Answers = ReadonlyMap<string, boolean>;

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
    const taken = this.#answers.get(predicate);
    if (taken === undefined) return this.#around ? this.#around.#assumed(predicate) : undefined;
    const required = !this.#required.has(predicate);
    this.#required.add(predicate);
    return { taken, required };
  }

  /** Asks for an assumption where two branches give results of different ranks by a condition over sizes. */
  checkRanks(condition: Value, branches: readonly Graph[], node: string): void {
    const predicate = condition.type.elements?.[0];
    const [yes, no] = branches;
    if (predicate !== undefined && yes && no && yes.outputs.some((v, i) => v.type.shape.length !== no.outputs[i]?.type.shape.length))
      throw new Undecided(formatDim(predicate), node);
  }
}

/** Asks that reading start again with an answer. */
class Undecided extends Error {
  readonly predicate: string;
  readonly node: string;
  constructor(predicate: string, node: string) {
    super(`the rank at ${node} hangs on ${predicate}`);
    this.predicate = predicate;
    this.node = node;
  }
}

/** More combinations than this ask for shapes. */
const maxReadings = 64;

/**
 * What `read` gives under the one combination of answers for which it succeeds. Fails with OF2090 where there are more
 * (what they gave is passed to `discard`), and with the first type error where there are none.
 */
export function explore<T>(around: Assumptions | undefined, read: (assumptions: Assumptions) => T, discard: (unused: T) => void): T {
  const found: T[] = [];
  const open: Answers[] = [new Map()];
  let refusal: DiagnosticError | undefined, asked = "";
  for (let count = 0, answers = open.pop(); answers; answers = open.pop(), count++) {
    if (count === maxReadings) fail("OF2090", "the model takes too many different paths for different sizes", { place: { node: asked }, hint: "give the shapes of its inputs when compiling" });
    try {
      found.push(read(new Assumptions(answers, around)));
    } catch (error) {
      if (error instanceof Undecided) {
        asked = error.node;
        open.push(new Map([...answers, [error.predicate, false]]), new Map([...answers, [error.predicate, true]]));
      } else if (isTypeError(error)) refusal ??= error;
      else throw error;
    }
  }
  const [only, ...others] = found;
  if (only === undefined) throw refusal ?? new Error("no reading was tried");
  if (others.length === 0) return only;
  found.forEach(discard);
  return fail("OF2090", "the model takes different paths for different sizes", { place: { node: asked }, hint: "give the shapes of its inputs when compiling" });
}

/** Whether an error says that operators and types do not fit. */
export const isTypeError = (error: unknown): error is DiagnosticError => error instanceof DiagnosticError && error.code.startsWith("OF3");
