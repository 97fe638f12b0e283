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
  test("pairs of small comparisons, against trying every size: exact for one size, sound for two", () => {
    const ofOne = [0, 1, 3].flatMap((c) => [equalDim(n, c), lessDim(n, c + 1), lessDim(c, n), equalDim(dimMul(2, n), c)]);
    const ofTwo = [0, 1, 3].flatMap((c) => [lessDim(c, m), equalDim(n, m), lessDim(dimMul(2, n), dimMul(c + 1, m))]);
    const given = (requirements: readonly Requirement[]): boolean => {
      for (let a = 0; a < 12; a++) for (let b = 0; b < 12; b++) {
        if (requirements.every(({ predicate, taken }) => (evaluateDim(predicate, (name) => (name === "n" ? a : b)) !== 0) === taken)) return true;
      }
      return false;
    };
    const pairs = (predicates: readonly Dim[]): Requirement[][] => predicates.flatMap((p, i) => predicates.slice(0, i).flatMap((q) => [0, 1, 2, 3].map((answers) => [is(p, (answers & 1) !== 0), is(q, (answers & 2) !== 0)])));
    for (const pair of pairs(ofOne)) expect(possible(pair), JSON.stringify(pair)).toBe(given(pair));
    for (const pair of pairs([...ofOne, ...ofTwo])) if (!possible(pair)) expect(given(pair), JSON.stringify(pair)).toBe(false);
  });
});
