/**
 * Sizes repeat each other's parts: in a manifest as it is written, an expression that occurs more than once stands in a
 * list of terms, and `["#", n]` in its place. Reading puts the terms back, as one object each.
 */
import { inconsistent } from "./inconsistent.ts";

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

const operators: ReadonlySet<Json> = new Set(["+", "*", "/", "%", "min", "max", "broadcast"]);
/** Parts of a manifest that hold sizes. */
const parts = ["inputs", "outputs", "states", "memory", "buffers", "steps", "checks"] as const;
const isExpression = (j: Json): j is readonly Json[] => Array.isArray(j) && j.length > 1 && operators.has(j[0] ?? null);
/** A shorter expression is no longer than its number. */
const shortest = 12;

/** The manifest with its `terms` apart. */
export function shareTerms(manifest: object): object {
  const given = JSON.parse(JSON.stringify(manifest)) as Record<string, Json>;
  const counts = new Map<string, number>();
  const count = (j: Json): void => {
    if (isExpression(j)) {
      const key = JSON.stringify(j), n = (counts.get(key) ?? 0) + 1;
      counts.set(key, n);
      if (n > 1) return;
    }
    if (typeof j === "object" && j !== null) Object.values(j).forEach(count);
  };
  for (const p of parts) count(given[p] ?? null);
  if (![...counts.values()].some((n) => n > 1)) return given;
  const terms: Json[] = [], numbers = new Map<string, number>();
  const share = (j: Json): Json => {
    if (typeof j !== "object" || j === null) return j;
    const key = isExpression(j) ? JSON.stringify(j) : undefined;
    const shared = key !== undefined && key.length > shortest && (counts.get(key) ?? 0) > 1 ? key : undefined;
    const known = shared === undefined ? undefined : numbers.get(shared);
    if (known !== undefined) return ["#", known];
    const inner: Json = Array.isArray(j) ? j.map(share) : Object.fromEntries(Object.entries(j).map(([k, v]) => [k, share(v)]));
    if (shared === undefined) return inner;
    numbers.set(shared, terms.length);
    return ["#", terms.push(inner) - 1];
  };
  const out: Record<string, Json> = {};
  for (const [key, value] of Object.entries(given)) out[key] = (parts as readonly string[]).includes(key) ? share(value) : value;
  return terms.length > 0 ? { ...out, terms } : out;
}

/** What `shareTerms` was given; changes `json`. Fails with OF6004 where a term is missing, and with a TypeError where there is no list of them. */
export function restoreTerms({ terms = [], ...manifest }: Record<string, Json>): object {
  const done: Json[] = [];
  const restore = (j: Json): Json => {
    if (typeof j !== "object" || j === null) return j;
    const holder = j as Record<string, Json>, number = holder[1];
    if (holder[0] === "#" && typeof number === "number") return done[number] ?? inconsistent("a term is missing");
    for (const key in holder) holder[key] = restore(holder[key] ?? null);
    return j;
  };
  // A term is made of those before it.
  for (const t of terms as readonly Json[]) done.push(restore(t));
  for (const p of parts) if (p in manifest) manifest[p] = restore(manifest[p] ?? null);
  return manifest;
}
