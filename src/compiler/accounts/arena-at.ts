/** An artifact's arena at given sizes: placed as a session places it, beside what no placement could go below. */
import type { MemoryJson } from "../../artifact/manifest.ts";
import { evaluateDimJson } from "../../core/dim-json.ts";
import { lowerBound, place } from "../../memory/place.ts";

export interface ArenaSize {
  readonly bytes: number;
  readonly lowerBound: number;
  /** Blocks whose sizes only running tells, and which are in neither figure. */
  readonly unknown: number;
  /** Working memory of each thread besides the first. */
  readonly thread: number;
}

/** The arena under the symbols' values. */
export function arenaAt({ arena, threadScratch = [] }: MemoryJson, symbols: ReadonlyMap<string, number>): ArenaSize {
  const sized = arena.flatMap((b) => {
    const bytes = b.where?.some((p) => evaluateDimJson(p, symbols) === 0) ? 0 : evaluateDimJson(b.bytes, symbols);
    return bytes === undefined ? [] : [{ bytes: Math.max(0, bytes), first: b.first, last: b.last }];
  });
  return { bytes: place(sized).total, lowerBound: lowerBound(sized), unknown: arena.length - sized.length, thread: Math.max(0, ...threadScratch.map((d) => evaluateDimJson(d, symbols) ?? 0)) };
}
