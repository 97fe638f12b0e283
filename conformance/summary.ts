/** What a run of the cases comes to: totals, and by operator; the form of conformance/results.json. */
import { ways, type Way } from "./run-case.ts";
import type { CaseInfo } from "./cases.ts";

export type Outcome = Readonly<Record<Way, string | undefined>>;
export interface Count { readonly cases: number; readonly reference: number; readonly unfused: number; readonly fused: number }
export interface Results {
  readonly total: Count;
  /** Of the cases with opset up to 26 and plain tensors. */
  readonly plain: Count;
  /** By `domain:type`. */
  readonly operators: Readonly<Record<string, Count>>;
  /** By `domain:type`, the element types that an operator's first input takes. */
  readonly elementTypes: Readonly<Record<string, readonly string[]>>;
  /** Cases that do not pass: one reason where all ways have the same, or the reasons of those that fail. */
  readonly notPassed: Readonly<Record<string, string | Readonly<Partial<Record<Way, string>>>>>;
}

function countOf(outcomes: readonly Outcome[]): Count {
  const passed = (way: Way): number => outcomes.filter((o) => o[way] === undefined).length;
  return { cases: outcomes.length, reference: passed("reference"), unfused: passed("unfused"), fused: passed("fused") };
}

export function summarise(runs: readonly { readonly info: CaseInfo; readonly outcome: Outcome }[], elementTypes: Results["elementTypes"] = {}): Results {
  const tested = [...new Set(runs.map((r) => r.info.operator))].sort();
  return {
    total: countOf(runs.map((r) => r.outcome)),
    plain: countOf(runs.filter((r) => r.info.plain).map((r) => r.outcome)),
    operators: Object.fromEntries(tested.map((operator) => [operator, countOf(runs.filter((r) => r.info.operator === operator).map((r) => r.outcome))])),
    elementTypes,
    notPassed: Object.fromEntries(runs.filter(({ outcome }) => ways.some((w) => outcome[w] !== undefined)).map(({ info, outcome }) => [info.name, reasonsOf(outcome)])),
  };
}

function reasonsOf(outcome: Outcome): string | Partial<Record<Way, string>> {
  const { reference, unfused, fused } = outcome;
  if (reference !== undefined && reference === unfused && unfused === fused) return reference;
  return Object.fromEntries(ways.flatMap((w) => { const reason = outcome[w]; return reason === undefined ? [] : [[w, reason]]; }));
}

const share = (passed: number, cases: number): string => `${passed} (${cases ? ((100 * passed) / cases).toFixed(1) : "0.0"} %)`;
export const countLine = (title: string, c: Count): string =>
  `${title}: ${c.cases} cases; passed by the reference interpreter ${share(c.reference, c.cases)}, compiled unfused ${share(c.unfused, c.cases)}, compiled fused ${share(c.fused, c.cases)}`;
