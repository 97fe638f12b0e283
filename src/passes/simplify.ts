/** Simplification: the exact passes in turn, until none finds anything to do. */
import type { Graph } from "../graph/graph.ts";
import { canonicalise } from "./canonicalise.ts";
import { mergeCommonSubexpressions, type ConstantKeys } from "./common-subexpressions.ts";
import { eliminateDeadCode } from "./dead-code.ts";
import { unrollLoops } from "./unroll-loop.ts";
import { eliminate } from "./eliminate.ts";
import { expandComposites } from "./expand.ts";
import { fold, type FoldOptions } from "./fold.ts";
import { infer, InferredNodes } from "./infer.ts";
import { inlineKnownIfs } from "./inline-if.ts";
import { normaliseLoops } from "./loops.ts";
import type { Ledger } from "./ledger.ts";

/** Rounds are bounded: each finds less than the one before, and shape arithmetic is rarely more than a few deep. */
const maxRounds = 16;

export interface SimplifyOptions extends FoldOptions {
  /** Leaves operators whole that have no kernel of their own. Default false. */
  readonly keepComposites?: boolean;
}

/** Returns whether the graph changed. What was done is recorded in the ledger. */
export function simplify(graph: Graph, ledger: Ledger, options: SimplifyOptions = {}): boolean {
  const inferred = new InferredNodes(), keys: ConstantKeys = new Map();
  let changed = false;
  for (let round = 0; round < maxRounds; round++) {
    const did = [
      infer(graph, inferred),
      normaliseLoops(graph, ledger, options),
      fold(graph, ledger, options),
      inlineKnownIfs(graph, ledger),
      unrollLoops(graph, ledger),
      eliminate(graph, ledger, options),
      canonicalise(graph, ledger),
      mergeCommonSubexpressions(graph, ledger, keys),
      eliminateDeadCode(graph, ledger),
    ];
    // Composites last: what has become constant by then may give them a kernel of their own.
    if (!did.some(Boolean) && (options.keepComposites || !expandComposites(graph, ledger, options.symbolic === false))) return changed;
    changed = true;
  }
  return changed;
}
