/**
 * Splits a scheduled kernel's work for threads: parallel loops at its top, and those nested in them, become a `split`
 * over all their iterations together. A range starts and ends anywhere in the nest; every loop then runs over the part
 * of it that the range touches, so that one range that is everything costs what the plain loops did. Only iterations of
 * parallel loops are split, each of which writes elements of its own, so results have the same bits in any ranges.
 */
import { dimCeilDiv, dimEqual, dimMax, dimMul, dimProduct, dimRange, evaluateDim, isSymbolic, type Dim } from "../../core/dim.ts";
import { axisOf, binary, constant, dimExpr, i32, local, max, min, sub, type Expr } from "../../kernel/expr.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import { block, letLocal, type Stmt } from "../../kernel/stmt.ts";
import { someStmt } from "../../kernel/traverse.ts";
import { plus, times, toIndex } from "../loops/affine.ts";
import { freshNames, type Fresh } from "../fresh.ts";
import { statementsOf, type Loop } from "../loops/nest.ts";
import { groupsOf, isParallel, isRepeatable } from "./split-groups.ts";
import { loopWork } from "./loop-work.ts";

/** Instructions that a range should have: some microseconds, many times what taking one costs. */
export const leastWork = 16384;
/** Ranges that a group is cut into at most, where each must prepare for itself. */
const mostRepeats = 4;
/** Loops of so many iterations need no inner ones to be split too. */
const enough = 32;

/** The kernel with its parallel loops split; those with too little to do stay loops: less than twice `least` instructions. */
export function splitWork(kernel: Kernel, least = leastWork): Kernel {
  const fresh = freshNames(kernel.body);
  const groups = groupsOf(kernel);
  if (!groups) return kernel;
  return { ...kernel, body: block(...groups.flatMap((g) => (g.kind === "plain" ? g.statements : [splitLoop(g.before, g.loop, g.after, fresh, least) ?? block(...g.before, g.loop, ...g.after)]))) };
}

/** A size where only a guess is needed: unknown ones count as 64. */
const nominal = (d: Dim): number => evaluateDim(d, () => 64);

/** A parallel loop within the nest, with what stands around it in its body. */
interface Level {
  readonly before: readonly Stmt[];
  readonly loop: Loop;
  readonly after: readonly Stmt[];
  /** Iterations; at least one where something around them writes, which is done though they are none. */
  readonly count: Dim;
  /** Something around the loop writes, here or further out. */
  readonly writes: boolean;
}

function levelOf(before: readonly Stmt[], loop: Loop, after: readonly Stmt[], outer: Level | undefined): Level {
  const iterations = dimCeilDiv(loop.axis.extent, loop.step), writes = outer?.writes === true || after.length > 0 || before.some((s) => s.kind !== "let");
  return { before, loop, after, writes, count: writes && dimRange(iterations).lower < 1 ? dimMax(1, iterations) : iterations };
}

function splitLoop(before: readonly Stmt[], first: Loop, after: readonly Stmt[], fresh: Fresh, least: number): Stmt | undefined {
  const levels = [levelOf(before, first, after, undefined)];
  for (let next = inside(first, levels); next; next = inside(next.loop, levels)) levels.push(next);
  const innermost = levels[levels.length - 1] ?? levelOf(before, first, after, undefined);
  const work = innermost.loop.work ?? loopWork(innermost.loop.body);
  const outer = dimProduct(levels.slice(0, -1).map((l) => l.count)), inner = innermost.count;
  const all = dimProduct([outer, inner, work]);
  if (!isSymbolic(all) && all < 2 * least) return undefined;
  const from = fresh("from"), to = fresh("to");
  const body = new Ranges(levels, fresh).level(0, local(from, i32), local(to, i32));
  const each = Math.max(1, nominal(work)), grain = Math.floor(least / each);
  // What ranges of one group do again each should be little to what they share.
  const repeats = innermost.before.some((s) => s.kind !== "let");
  return { kind: "split", from, to, outer, inner, grain: Math.max(1, repeats ? Math.ceil(nominal(inner) / mostRepeats) : 1, grain), work: each, body: block(...body) };
}

/** The parallel loop in a parallel loop's body, where splitting it too pays. */
function inside(outer: Loop, levels: readonly Level[]): Level | undefined {
  const all = statementsOf(outer.body);
  const at = all.findIndex(isParallel);
  const loop = all[at], before = all.slice(0, at);
  if (loop?.kind !== "for" || !before.every(isRepeatable)) return undefined;
  const level = levelOf(before, loop, all.slice(at + 1), levels.at(-1));
  if (isStructured(loop)) return level;
  const count = dimProduct(levels.map((l) => l.count));
  if (!isSymbolic(count) && count >= enough) return undefined;
  const work = dimMul(level.count, loopWork(loop.body));
  return !isSymbolic(work) && work < leastWork / 4 ? undefined : level;
}
/** Loops that a structured schedule has marked say what they cost, and are all worth splitting. */
const isStructured = (loop: Loop): boolean => someStmt(loop, (s) => s.kind === "for" && s.work !== undefined);

/** The loops of a nest over the part of it from `from` to `to`, counted in iterations of the innermost one. */
class Ranges {
  readonly #levels: readonly Level[];
  readonly #fresh: Fresh;
  constructor(levels: readonly Level[], fresh: Fresh) {
    this.#levels = levels;
    this.#fresh = fresh;
  }

  level(at: number, from: Expr, to: Expr): Stmt[] {
    const here = this.#levels[at];
    if (!here) return [];
    const { loop, before, after, count } = here;
    const inner = this.#levels.slice(at + 1);
    const unit = dimProduct(inner.map((l) => l.count));
    const iterations = dimCeilDiv(loop.axis.extent, loop.step);
    const end = dimEqual(count, iterations) ? to : min(to, dimExpr(dimMul(iterations, unit)));
    const out: Stmt[] = [...before, { kind: "for", axis: loop.axis, step: loop.step, mode: "serial", ...(inner.length === 0 ? { begin: times(from, loop.step), end: times(end, loop.step), body: loop.body } : this.#around(at, loop, unit, from, end)) }];
    if (after.length > 0) out.push({ kind: "if", condition: binary("ge", to, dimExpr(dimMul(count, unit))), then: block(...after) });
    return out;
  }

  /** The bounds of a loop around others, and its body, where each iteration is `unit` of theirs. */
  #around(at: number, loop: Loop, unit: Dim, from: Expr, to: Expr): Pick<Loop, "begin" | "end" | "body"> {
    const per = toIndex(unit), named = (hint: string, value: Expr, into: Stmt[]): Expr => {
      const name = this.#fresh(hint);
      into.push(letLocal(name, value));
      return local(name, i32);
    };
    const divided = (e: Expr): Expr => (unit === 1 ? e : binary("div", e, per));
    const body: Stmt[] = [];
    const index = loop.step === 1 ? axisOf(loop.axis) : binary("div", axisOf(loop.axis), constant(loop.step, i32));
    const base = named("base", times(index, per), body);
    const first = named("first", max(sub(from, base), constant(0, i32)), body), last = named("last", min(sub(to, base), per), body);
    body.push(...this.level(at + 1, first, last));
    return { begin: times(divided(from), loop.step), end: times(divided(plus(to, plus(per, -1))), loop.step), body: block(...body) };
  }
}
