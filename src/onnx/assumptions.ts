/**
 * Conditions over sizes while a model is read. Exporters write `if the size is 1: Squeeze`, so that the rank of a value
 * hangs on a size; a graph has fixed ranks, so the model is read once for each answer that leads anywhere. All other
 * branches stay what they are.
 */
import { DiagnosticError, fail } from "../core/diagnostic.ts";
import { formatDim, type Dim } from "../core/dim.ts";
import type { Graph, Value } from "../graph/graph.ts";
import { typeWithConstant } from "../graph/infer-node.ts";
import { knownCondition } from "../ops/if.ts";

/** `predicate` is 1 or 0 for any sizes; the graph stands for those where it is 1 exactly if `holds`. */
export interface SizeCondition {
  readonly predicate: Dim;
  readonly holds: boolean;
  /** The If that asks. */
  readonly node: string;
}

export class Assumptions {
  readonly #given: ReadonlyMap<string, SizeCondition>;
  readonly #used = new Map<string, SizeCondition>();
  constructor(given: readonly SizeCondition[]) { this.#given = new Map(given.map((c) => [formatDim(c.predicate), c])); }

  /** Those that decided a branch. */
  get used(): readonly SizeCondition[] { return [...this.#used.values()]; }

  /** Whether the condition is true, where that is known or assumed. */
  decide(condition: Value): boolean | undefined {
    const type = typeWithConstant(condition);
    const known = knownCondition(type);
    const predicate = type.elements?.[0];
    if (known !== undefined || predicate === undefined) return known;
    const key = formatDim(predicate);
    const assumed = this.#given.get(key);
    if (assumed) this.#used.set(key, assumed);
    return assumed?.holds;
  }

  /** Asks for an assumption where two branches give results of different ranks by a condition over sizes. */
  checkRanks(condition: Value, branches: readonly Graph[], node: string): void {
    const predicate = condition.type.elements?.[0];
    const [yes, no] = branches;
    if (predicate !== undefined && yes && no && yes.outputs.some((v, i) => v.type.shape.length !== no.outputs[i]?.type.shape.length)) throw new Undecided(predicate, node);
  }
}

class Undecided extends Error {
  readonly predicate: Dim;
  readonly node: string;
  constructor(predicate: Dim, node: string) {
    super(`the rank at ${node} hangs on ${formatDim(predicate)}`);
    this.predicate = predicate;
    this.node = node;
  }
}

/** More combinations than this ask for shapes. */
const maxReadings = 64;

/** What `read` gives under each combination of the assumptions it asks for. Type errors rule a combination out, unless all are. */
export function explore<T>(read: (assumptions: Assumptions) => T): readonly T[] {
  const found: T[] = [];
  const open: (readonly SizeCondition[])[] = [[]];
  let refusal: DiagnosticError | undefined;
  for (let count = 0, given = open.pop(); given; given = open.pop(), count++) {
    if (count === maxReadings) fail("OF2090", "the model takes too many different paths for different sizes", { hint: "give the shapes of its inputs when compiling" });
    try {
      found.push(read(new Assumptions(given)));
    } catch (error) {
      if (error instanceof Undecided) {
        const { predicate, node } = error;
        open.push([...given, { predicate, holds: false, node }], [...given, { predicate, holds: true, node }]);
      } else if (error instanceof DiagnosticError && given.length > 0) refusal ??= error;
      else throw error;
    }
  }
  if (found.length === 0 && refusal) throw refusal;
  return found;
}
