/** Milliseconds of each step of a program: the least of several runs of an artifact whose steps are separate. */
import type { Session } from "../runtime/index.ts";
import type { FeedPlan } from "./feeds.ts";

const runs = 5;

/**
 * By index in `steps`, whose kernels stand in the order of the program. Steps that did not run have none. What the
 * program adds, such as copies between layouts, counts for no step.
 */
export async function profile(session: Session, { feeds }: FeedPlan, steps: readonly { readonly kind: string }[]): Promise<ReadonlyMap<number, number>> {
  await session.run(feeds);
  const least = new Map<number, number>();
  for (let run = 0; run < runs; run++) {
    let next = 0;
    await session.run(feeds, {
      onStep: (label, _, ms) => {
        const step = steps.findIndex((s, i) => i >= next && s.kind === label);
        if (step < 0) return;
        next = step + 1;
        least.set(step, Math.min(least.get(step) ?? Infinity, ms));
      },
    });
  }
  return least;
}
