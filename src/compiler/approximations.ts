/** The budget of numerics: which of the rules that approximate may fire, and which did. */
import { fail } from "../core/diagnostic.ts";
import type { Rule } from "../rewrite/rule.ts";
import type { Site } from "../rewrite/site.ts";
import type { CompileOptions } from "./options.ts";
import type { Report } from "./accounts/report.ts";

/** Rules that approximate, by how often they fired. */
export function approximated(sites: readonly Site[], rules: readonly Rule[]): Report["approximations"] {
  const loose = new Set(rules.filter((r) => r.numerics.kind === "approximates").map((r) => r.name));
  const fired = sites.filter((s) => s.kind === "rule" && s.outcome === "fired" && loose.has(s.name)).map((s) => s.name);
  return [...new Set(fired)].sort().map((rule) => ({ rule, times: fired.filter((f) => f === rule).length }));
}

/** Which rules may approximate. Fails with OF4014 where what is allowed contradicts the precision mode, or is no rule that approximates. */
export function approximations({ allowApproximate = false, precisionMode }: CompileOptions, rules: readonly Rule[]): (rule: Rule) => boolean {
  if (precisionMode === "must_keep_origin_dtype" && (allowApproximate === true || (allowApproximate !== false && allowApproximate.length > 0)))
    fail("OF4014", "approximations are allowed, and precision mode must_keep_origin_dtype forbids them", { hint: "leave one of the two out" });
  if (typeof allowApproximate === "boolean") return () => allowApproximate;
  const names = rules.filter((r) => r.numerics.kind === "approximates").map((r) => r.name);
  const stranger = allowApproximate.find((n) => !names.includes(n));
  if (stranger !== undefined) fail("OF4014", `there is no rule '${stranger}' that approximates`, { hint: `those that do are ${names.join(", ")}` });
  return (rule) => allowApproximate.includes(rule.name);
}
