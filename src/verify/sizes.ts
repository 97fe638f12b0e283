/** Sizes to try for symbolic dimensions. Models accept few of them, and do not say which: the smallest that run are used. */
import type { DimJson } from "../core/dim-json.ts";

/** Candidates, smallest first: every symbol gets the next number of a row, so that different symbols differ. The first is often a batch. */
const rows: readonly (readonly number[])[] = [[2, 3, 5, 7], [1, 1, 1, 1], [3, 4, 6, 8], [1, 32, 64, 96], [2, 64, 32, 48], [8, 12, 16, 20], [32, 64, 96, 128], [48, 320, 64, 256], [160, 160, 160, 160], [320, 320, 320, 320]];

/** Bindings of the symbols in order of promise; one empty binding when there are none. */
export function sizeCandidates(symbols: readonly string[]): ReadonlyMap<string, number>[] {
  if (symbols.length === 0) return [new Map()];
  return rows.map((row) => new Map(symbols.map((s, i) => [s, row[i % row.length] ?? 1])));
}

/** Symbols of declared sizes, in order of appearance. */
export function symbolsIn(dims: readonly DimJson[], into: Set<string> = new Set()): Set<string> {
  for (const d of dims) {
    if (typeof d === "string") into.add(d);
    else if (typeof d === "object") symbolsIn(d.slice(1) as readonly DimJson[], into);
  }
  return into;
}
