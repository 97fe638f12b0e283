/**
 * Repeated blocks of a sequence: at each place the period is taken that covers most when it is repeated at once. What a
 * model is built of as layers shows as such repeats, whatever its nodes are called.
 */
import type { PageBlock } from "./page-data.ts";

const longest = 200;
/** Shorter stretches than this many nodes in all are clearer when they are not collapsed. */
const worthwhile = 12;

/** Every repetition of every block, in order. */
export function repeatsOf(types: readonly string[]): PageBlock[] {
  const blocks: PageBlock[] = [];
  for (let at = 0; at < types.length;) {
    const best = bestAt(types, at);
    if (!best) { at++; continue; }
    for (let k = 0; k < best.times; k++) blocks.push({ label: `block ${k + 1} of ${best.times}: ${best.period} nodes`, first: at + k * best.period, last: at + (k + 1) * best.period - 1 });
    at += best.period * best.times;
  }
  return blocks;
}

function bestAt(types: readonly string[], at: number): { readonly period: number; readonly times: number } | undefined {
  let best: { period: number; times: number } | undefined;
  for (let period = 2; period <= Math.min(longest, (types.length - at) / 2); period++) {
    let end = at + period;
    while (end < types.length && types[end] === types[end - period]) end++;
    const times = Math.floor((end - at) / period);
    if (times < 2 || period * times < worthwhile || (best && period * times <= best.period * best.times)) continue;
    best = { period, times };
  }
  return best;
}
