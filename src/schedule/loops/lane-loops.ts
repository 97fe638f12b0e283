/**
 * Loops over vectors: the main loop takes several vectors a turn where the body is small, what is left goes vector by
 * vector and then element by element. Reductions keep vectors of partial results, so that additions do not wait for
 * each other, and fold the lanes at the end.
 */
import { invariant, present } from "../../core/assert.ts";
import { dimFloorDiv, dimMul, isSymbolic, type Dim } from "../../core/dim.ts";
import { add, axisOf, binary, constant, dimExpr, i32, local, reduceIdentity, type Axis, type Expr, type ReduceOp, type Type } from "../../kernel/expr.ts";
import { block, loop, type LoopMode, type Stmt } from "../../kernel/stmt.ts";
import { expressionsOf, someExprOf, visitExpr, visitStmt } from "../../kernel/traverse.ts";
import { bodyCost, hasLoops, innermostCost, isLaneByLane } from "./cost.ts";
import type { Fresh } from "../fresh.ts";
import { wholeNest } from "./nest.ts";
import type { Strides } from "./strides.ts";
import { LaneAnalysis, LaneBody, lanes, scalarCopy, type Position, type Redirect } from "./vectorize.ts";

export interface LaneContext { readonly strides: Strides; readonly fresh: Fresh }

/** Bodies that cost more are not repeated in a turn; nor are functions that are computed lane by lane, four copies as it is. */
const mostRepeated = 100;
/** Vectors that a turn reads at most: engines read all of them before they compute. */
const mostRead = 12;

/**
 * How many vectors a turn of the main loop takes. Without loops inside, as many as hide the latency of operations and
 * share the reading of constants, but for bodies that are long or read much; with them, whole cache lines where registers
 * allow.
 */
function unrollFor(body: Stmt, extent: Dim): number {
  let unroll = hasLoops(body) ? unrollAround(innermostCost(body)) : bodyCost(body) > mostRepeated || someExprOf(body, isLaneByLane) ? 1 : 4;
  while (unroll > 1 && !hasLoops(body) && unroll * loadsOf(body) > mostRead) unroll /= 2;
  while (unroll > 1 && !isSymbolic(extent) && extent < unroll * lanes) unroll /= 2;
  return unroll;
}
const unrollAround = (cost: number): number => (cost > 6 && cost <= 16 ? 2 : 4);
function loadsOf(body: Stmt): number {
  const seen = new Set<Expr>();
  let loads = 0;
  visitStmt(body, (s) => expressionsOf(s).forEach((root) => visitExpr(root, (e) => { if (e.kind === "load") loads++; }, seen)));
  return loads;
}

/** The iterations of `axis`, independent of each other, in vectors. */
export function vectorLoop(axis: Axis, body: Stmt, context: LaneContext, mode: LoopMode = "serial"): Stmt {
  const analysis = new LaneAnalysis(axis, body, context.strides);
  const vectors = (bases: readonly Expr[]): Stmt => new LaneBody(analysis, context.fresh, bases.map((base): Position => ({ base }))).statement(body);
  return inLanes(axis, unrollFor(body, axis.extent), vectors, (at) => scalarCopy(body, new Map([[axis, at]]), context.fresh), mode);
}

/** Both axes by 4, so that loads contiguous along `jam` are read as blocks and transposed. */
export function transposingLoops(axis: Axis, jam: Axis, body: Stmt, context: LaneContext, mode: LoopMode = "serial"): Stmt {
  const analysis = new LaneAnalysis(axis, body, context.strides);
  const scalar = (at: Expr, jamAt: Expr): Stmt => scalarCopy(body, new Map([[axis, at], [jam, jamAt]]), context.fresh);
  const blocks = (jamBase: Expr): Stmt => {
    const copies = (base: Expr): Stmt => new LaneBody(analysis, context.fresh, [0, 1, 2, 3].map((copy): Position => ({ base, jam: { axis: jam, base: jamBase, copy } }))).statement(body);
    return inLanes(axis, 1, (bases) => copies(present(bases[0], "base")), (at) => block(...[0, 1, 2, 3].map((copy) => scalar(at, add(jamBase, copy)))));
  };
  return inLanes(jam, 1, (bases) => blocks(present(bases[0], "base")), (jamAt) => {
    const rest: Axis = { name: `${axis.name}_s`, extent: axis.extent };
    return loop(rest, constant(0, i32), dimExpr(axis.extent), 1, scalar(axisOf(rest), jamAt));
  }, mode);
}

/** Covers an axis by groups of `unroll` vectors, single vectors, and elements; `mode` is that of the loop over groups. */
function inLanes(axis: Axis, unroll: number, vectors: (bases: readonly Expr[]) => Stmt, scalar: (at: Expr) => Stmt, mode: LoopMode = "serial"): Stmt {
  const { extent } = axis;
  const group = unroll * lanes;
  const variable = (suffix: string, below = extent): Axis => ({ name: `${axis.name}${suffix}`, extent: below });
  const bases = (from: Expr, count: number): Expr[] => Array.from({ length: count }, (_, u) => (u === 0 ? from : add(from, u * lanes)));
  if (isSymbolic(extent)) {
    const size = dimExpr(extent), main = binary("and", size, constant(-group, i32)), whole = binary("and", size, constant(-lanes, i32));
    const v = variable("_v", dimMul(dimFloorDiv(extent, group), group)), w = variable("_w"), t = variable("_t");
    return block(
      loop(v, constant(0, i32), main, group, vectors(bases(axisOf(v), unroll)), mode),
      ...(unroll > 1 ? [loop(w, main, whole, lanes, vectors([axisOf(w)]))] : []),
      loop(t, whole, size, 1, scalar(axisOf(t))),
    );
  }
  const main = extent - (extent % group), whole = extent - (extent % lanes);
  const out: Stmt[] = [];
  if (main > group) { const v = variable("_v", main); out.push(loop(v, constant(0, i32), constant(main, i32), group, vectors(bases(axisOf(v), unroll)), mode)); }
  else if (main === group) out.push(vectors(bases(constant(0, i32), unroll)));
  for (let at = main; at < whole; at += lanes) out.push(vectors([constant(at, i32)]));
  if (extent - whole === 1) out.push(scalar(constant(whole, i32)));
  else if (extent > whole) { const t = variable("_t"); out.push(loop(t, constant(whole, i32), constant(extent, i32), 1, scalar(axisOf(t)))); }
  return block(...out);
}

interface Accumulator { readonly name: string; readonly op: ReduceOp; readonly type: Type }

/** Locals a reduction's body folds into; undefined where one is folded in more than one way, or read. */
function accumulatorsOf(body: Stmt): readonly Accumulator[] | undefined {
  const found = new Map<string, Accumulator>(), declared = new Set<string>();
  let simple = true;
  visitStmt(body, (s) => {
    if (s.kind === "let") declared.add(s.name);
    if (s.kind === "storeAt" || s.kind === "assign") simple = false;
    if (s.kind !== "accumulate" || declared.has(s.name)) return;
    const before = found.get(s.name);
    if (before && before.op !== s.op) simple = false;
    found.set(s.name, { name: s.name, op: s.op, type: s.value.type });
  });
  visitStmt(body, (s) => expressionsOf(s).forEach((root) => visitExpr(root, (e) => { if (e.kind === "local" && found.has(e.name)) simple = false; })));
  return simple ? [...found.values()] : undefined;
}

/** Whether a reduction can be folded in lanes of `axis`. */
export function canFoldInLanes(axis: Axis, body: Stmt, strides: Strides): boolean {
  const accumulators = accumulatorsOf(body);
  if (!accumulators || accumulators.some((a) => a.type.scalar === "bool")) return false;
  return new LaneAnalysis(axis, body, strides, accumulators.map((a) => a.name)).supports(body);
}

/** A reduction over `outer` (outermost first) and `axis`, folded in lanes of `axis`. The folds start from the locals' values; the body may store too. */
export function foldInLanes(outer: readonly Axis[], axis: Axis, body: Stmt, context: LaneContext): Stmt {
  const accumulators = present(accumulatorsOf(body), "accumulators");
  const analysis = new LaneAnalysis(axis, body, context.strides, accumulators.map((a) => a.name));
  const unroll = unrollFor(body, axis.extent);
  const names = new Map(accumulators.map((a) => [a.name, Array.from({ length: unroll }, () => context.fresh(`${a.name}_v`))]));
  const redirect: Redirect = (name, part) => names.get(name)?.[part];
  const vectors = (bases: readonly Expr[]): Stmt => new LaneBody(analysis, context.fresh, bases.map((base): Position => ({ base })), redirect).statement(body);
  const loops = wholeNest(outer, inLanes(axis, unroll, vectors, (at) => scalarCopy(body, new Map([[axis, at]]), context.fresh)));
  const before: Stmt[] = [], after: Stmt[] = [];
  for (const a of accumulators) {
    const type: Type = { scalar: a.type.scalar, lanes };
    const parts = names.get(a.name) ?? [];
    const [first, ...rest] = parts;
    invariant(first !== undefined, "a vector accumulator");
    for (const name of parts) before.push({ kind: "let", name, value: reduceIdentity(a.op, type) });
    for (const name of rest) after.push({ kind: "accumulate", name: first, op: a.op, value: local(name, type) });
    const lane = (l: number): Expr => ({ kind: "extract", a: local(first, type), lane: l, type: a.type });
    after.push({ kind: "accumulate", name: a.name, op: a.op, value: binary(a.op, binary(a.op, lane(0), lane(2)), binary(a.op, lane(1), lane(3))) });
  }
  return block(...before, loops, ...after);
}
