/**
 * Regular expressions in RE2's syntax, matched in time linear in the text: the pattern becomes a nondeterministic
 * automaton (Thompson's construction) whose states are followed all at once. Only whether a whole text matches is told,
 * so that captures and greediness make no difference. Back references and looking around are not in RE2.
 */
import { parsePattern, type Matcher, type PatternNode } from "./regular-expression-parser.ts";

/** Where to go on: through a character, both ways, or only where a condition on the neighbouring characters holds. */
type State =
  | { readonly kind: "character"; readonly accepts: Matcher; next: number }
  | { readonly kind: "split"; a: number; b: number }
  | { readonly kind: "assert"; readonly holds: (before: string | undefined, after: string | undefined) => boolean; next: number }
  | { readonly kind: "end" };

/** Patterns may not need more states than this. */
const mostStates = 100_000;

/** Says of texts whether they match from their first to their last character. Throws a SyntaxError for what is no pattern. */
export function fullMatcher(pattern: string): (text: string) => boolean {
  const states: State[] = [{ kind: "end" }];
  const start = build(parsePattern(pattern), 0, states);
  return (text) => runs([...text], states, start);
}

function add(state: State, states: State[]): number {
  if (states.length >= mostStates) throw new SyntaxError("the pattern is too large");
  return states.push(state) - 1;
}

/** States for the node that go on at `next`; returns the first. */
function build(node: PatternNode, next: number, states: State[]): number {
  switch (node.kind) {
    case "character": return add({ kind: "character", accepts: node.accepts, next }, states);
    case "assert": return add({ kind: "assert", holds: node.holds, next }, states);
    case "sequence": return node.parts.reduceRight((after, part) => build(part, after, states), next);
    case "either": return node.options.map((o) => build(o, next, states)).reduceRight((b, a) => add({ kind: "split", a, b }, states));
    case "repeat": {
      let after = next;
      if (node.most === Infinity) {
        const loop: State = { kind: "split", a: 0, b: next };
        after = add(loop, states);
        loop.a = build(node.body, after, states);
      } else for (let i = node.least; i < node.most; i++) after = add({ kind: "split", a: build(node.body, after, states), b: next }, states);
      for (let i = 0; i < node.least; i++) after = build(node.body, after, states);
      return after;
    }
  }
}

function runs(text: readonly string[], states: readonly State[], start: number): boolean {
  let current = closure([start], undefined, text[0], states);
  text.forEach((c, i) => {
    const reached: number[] = [];
    for (const s of current) { const state = states[s]; if (state?.kind === "character" && state.accepts(c)) reached.push(state.next); }
    current = closure(reached, c, text[i + 1], states);
  });
  return current.has(0);
}

/** The states reached without reading a character, between these two. */
function closure(from: readonly number[], before: string | undefined, after: string | undefined, states: readonly State[]): Set<number> {
  const seen = new Set<number>(), open = [...from];
  for (let s = open.pop(); s !== undefined; s = open.pop()) {
    if (seen.has(s)) continue;
    seen.add(s);
    const state = states[s];
    if (state?.kind === "split") open.push(state.a, state.b);
    else if (state?.kind === "assert" && state.holds(before, after)) open.push(state.next);
  }
  return seen;
}
