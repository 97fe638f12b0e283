/** Sizes that operators need to agree, looked at as soon as they are known. */
import type { CheckJson, Manifest } from "../artifact/manifest.ts";
import { evaluateDimJson, formatDimJson, type DimJson } from "../core/dim-json.ts";
import { fail } from "../core/diagnostic.ts";

/** Fails with OF7005 where two sizes are known and do not fit each other. */
export function checkSizes(checks: readonly CheckJson[], symbols: ReadonlyMap<string, number>): void {
  for (const { a, b, broadcast, node, where } of checks) {
    if (where?.some((p) => evaluateDimJson(p, symbols) === 0)) continue;
    const x = evaluateDimJson(a, symbols), y = evaluateDimJson(b, symbols);
    if (x === y || x === undefined || y === undefined || (broadcast && (x === 1 || y === 1))) continue;
    fail("OF7005", `'${node}' needs ${formatDimJson(a)} and ${formatDimJson(b)} to ${broadcast ? "broadcast" : "be equal"}, but they are ${x} and ${y}`, { hint: "check the shapes that are fed" });
  }
}

/** The program's checks of sizes that only its run tells: inputs do not bind all they need. */
export function lateChecks({ inputs, checks = [] }: Pick<Manifest, "inputs" | "checks">): readonly CheckJson[] {
  const bound = new Map(inputs.flatMap((i) => i.dims.flatMap(symbolsIn)).map((name) => [name, 1]));
  return checks.filter(({ a, b }) => evaluateDimJson(a, bound) === undefined || evaluateDimJson(b, bound) === undefined);
}

/** The symbols that a size mentions. */
export const symbolsIn = (d: DimJson): readonly string[] => (typeof d === "string" ? [d] : typeof d === "number" ? [] : d.slice(1).flatMap(symbolsIn));
