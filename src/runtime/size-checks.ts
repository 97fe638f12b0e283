/** Sizes that operators need to agree, looked at as soon as they are known. */
import type { CheckJson } from "../artifact/manifest.ts";
import { evaluateDimJson, formatDimJson, type DimJson } from "../core/dim-json.ts";
import { fail } from "../core/diagnostic.ts";

/** Fails with OF7005 where two sizes are known and do not fit each other. */
export function checkSizes(checks: readonly CheckJson[], symbols: ReadonlyMap<string, number>): void {
  for (const { a, b, broadcast, node, where } of checks) {
    if (where?.some((p) => evaluateDimJson(p, symbols) === 0)) continue;
    const x = evaluateDimJson(a, symbols), y = evaluateDimJson(b, symbols);
    if (x === y || x === undefined || y === undefined || (broadcast && (x === 1 || y === 1))) continue;
    const size = formatDimJson(a);
    fail("OF7005", x < 0 ? `'${node}' has too little to read: its result would have a size of ${size}, which is ${x}` : `'${node}' needs ${size} and ${formatDimJson(b)} to agree, not ${x} and ${y}`);
  }
}

/** The symbols that a size mentions. */
export const symbolsIn = (d: DimJson): readonly string[] => (typeof d === "string" ? [d] : typeof d === "number" ? [] : d.slice(1).flatMap(symbolsIn));
