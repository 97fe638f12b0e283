import { describe, expect, test } from "vitest";
import { Pace } from "./pace.ts";

/** Shares of runs alone in the second half of `runs`, each taking what `times` says. */
function shareAlone(times: { alone: (i: number) => number; shared: (i: number) => number }, runs = 400): number {
  const pace = new Pace();
  let alone = 0;
  for (let i = 0; i < runs; i++) {
    const is = pace.alone();
    pace.note(is ? times.alone(i) : times.shared(i));
    if (is && i >= runs / 2) alone++;
  }
  return alone / (runs / 2);
}

describe("a segment", () => {
  test("is shared where that is quicker", () => expect(shareAlone({ alone: () => 1, shared: () => 0.6 })).toBeLessThan(0.1));
  test("runs alone where sharing costs more than it gains", () => expect(shareAlone({ alone: () => 0.9, shared: () => 1.3 })).toBeGreaterThan(0.9));
  test("is judged in spite of single slow runs and of drift", () => {
    expect(shareAlone({ alone: (i) => 1 + i / 100 + (i % 7 === 0 ? 9 : 0), shared: (i) => 0.9 + i / 100 })).toBeLessThan(0.1);
    expect(shareAlone({ alone: (i) => 0.9 + i / 100, shared: (i) => 1 + i / 100 + (i % 7 === 0 ? 9 : 0) })).toBeGreaterThan(0.9);
  });
  test("is judged again when things have changed", () => {
    const later = (i: number): number => (i < 200 ? 0.5 : 2);
    expect(shareAlone({ alone: () => 1, shared: later }, 1200)).toBeGreaterThan(0.6);
    expect(shareAlone({ alone: () => 1, shared: (i) => 2.5 - later(i) }, 1200)).toBeLessThan(0.4);
  });
  test("that takes long is never tried alone", () => {
    const pace = new Pace();
    for (let i = 0; i < 2000; i++) { expect(pace.alone()).toBe(false); pace.note(80); }
  });
});
