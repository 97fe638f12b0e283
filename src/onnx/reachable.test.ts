/** What is called impossible is: no size gives the answers. What sizes give is called possible. */
import { describe, expect, test } from "vitest";
import { dimMul, evaluateDim, symbol, type Dim } from "../core/dim.ts";
import { equalDim, lessDim, notDim } from "../ops/element-values.ts";
import { possible, type Requirement } from "./reachable.ts";

const n = symbol("n"), m = symbol("m");
const is = (predicate: Dim, taken = true): Requirement => ({ predicate, taken });

describe("combinations of answers", () => {
  test("that no size gives", () => {
    expect(possible([is(equalDim(n, 1)), is(equalDim(n, 2))])).toBe(false);
    expect(possible([is(lessDim(n, 4)), is(lessDim(8, n))])).toBe(false);
    expect(possible([is(equalDim(n, 1)), is(lessDim(n, 4), false)])).toBe(false);
    expect(possible([is(equalDim(dimMul(n, m), 6)), is(equalDim(n, 2)), is(equalDim(m, 2))])).toBe(false);
    expect(possible([is(notDim(equalDim(n, 1))), is(equalDim(n, 1))])).toBe(false);
  });
  test("that some size gives", () => {
    expect(possible([is(equalDim(n, 1)), is(equalDim(m, 2))])).toBe(true);
    expect(possible([is(lessDim(n, 4)), is(lessDim(2, n))])).toBe(true);
    expect(possible([is(equalDim(n, 1), false), is(equalDim(n, 2), false)])).toBe(true);
    expect(possible([is(equalDim(n, m)), is(equalDim(n, 700)), is(lessDim(m, 900))])).toBe(true);
  });
  test("all pairs of small comparisons, against trying every size", () => {
    const predicates = [0, 1, 3].flatMap((c) => [equalDim(n, c), lessDim(n, c + 1), lessDim(c, m), equalDim(n, m), lessDim(dimMul(2, n), dimMul(c + 1, m))]);
    const given = (requirements: readonly Requirement[]): boolean => {
      for (let a = 0; a < 12; a++) for (let b = 0; b < 12; b++) {
        if (requirements.every(({ predicate, taken }) => (evaluateDim(predicate, (name) => (name === "n" ? a : b)) !== 0) === taken)) return true;
      }
      return false;
    };
    let refuted = 0;
    for (let i = 0; i < predicates.length; i++) for (let j = 0; j < i; j++) for (let answers = 0; answers < 4; answers++) {
      const requirements = [is(predicates[i] ?? 0, (answers & 1) !== 0), is(predicates[j] ?? 0, (answers & 2) !== 0)];
      if (possible(requirements)) continue;
      refuted++;
      expect(given(requirements), JSON.stringify(requirements)).toBe(false);
    }
    expect(refuted).toBeGreaterThan(50);
  });
});
