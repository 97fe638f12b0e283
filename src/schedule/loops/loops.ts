/**
 * Schedules kernels without structure: element-wise and injective maps, broadcasts, rows of reductions, windows. Loops
 * that may run in any order are put in the order of the output's memory, joined where memory is contiguous, split where
 * conditions turn, and the one that most accesses walk along runs in vectors: be it an outer loop around reductions
 * (channels of a pooling in NHWC) or the innermost one. Reductions along contiguous memory are folded in lanes.
 */
import { present } from "../../core/assert.ts";
import { dimMul, isSymbolic, type Dim } from "../../core/dim.ts";
import type { Axis, Buffer } from "../../kernel/expr.ts";
import { rowMajor, type Kernel, type Layout } from "../../kernel/kernel.ts";
import type { Placement } from "../../kernel/program.ts";
import { ExprTable } from "../../kernel/share.ts";
import { block, type LoopMode, type Stmt } from "../../kernel/stmt.ts";
import { mapStmtExprs } from "../../kernel/traverse.ts";
import { clipWindows } from "./clip-windows.ts";
import { bodyCost, hasLoops } from "./cost.ts";
import { freshNames, type Fresh } from "../fresh.ts";
import { canFoldInLanes, foldInLanes, transposingLoops, vectorLoop, type LaneContext } from "./lane-loops.ts";
import { keepValues } from "./kept-values.ts";
import { foldBeforeSpreading, hasOwnRows, loopKind, nestOf, perfectNests, statementsOf, wholeLoop, wholeNest, type Loop, type Nest } from "./nest.ts";
import { foldMaxima } from "./maxima.ts";
import { moveLoops } from "./moves.ts";
import { expandReductions } from "./reductions.ts";
import { joinAxes, splitDividedAxes } from "./reshape-axes.ts";
import { splitRanges } from "./split-ranges.ts";
import { Strides, typical } from "./strides.ts";
import { unrollWindows } from "./unroll.ts";
import { LaneAnalysis, lanes, scalarCopy } from "./vectorize.ts";

/**
 * The kernel with its loops rebuilt for memory as `placements` lays it out. Computes the same bits, but for the order in
 * which reductions of floats add. Kernels that say `loadAt` or `storeAt` already keep their loops.
 */
export function scheduleLoops(kernel: Kernel, placements: ReadonlyMap<Buffer, Placement>): Kernel {
  const scratch = new Map<Buffer, Layout>();
  const layoutOf = (b: Buffer): Layout => scratch.get(b) ?? present(placements.get(b), `placement of ${b.name}`).layout;
  const fresh = freshNames(kernel.body);
  const table = new ExprTable();
  const aliased = new Set(kernel.inPlace?.map((pair) => pair.input));
  const body = perfectNests(mapStmtExprs(expandReductions(kernel.body, fresh), (e) => table.make(e)), table, aliased);
  const used: Buffer[] = [];
  const make = (length: Dim): Buffer => {
    const buffer: Buffer = { name: `${kernel.name}_kept${scratch.size}`, dtype: "float32", shape: [length] };
    scratch.set(buffer, rowMajor(buffer.shape, dimMul));
    return buffer;
  };
  const scheduled = new LoopScheduler({ strides: new Strides(table, layoutOf), fresh }, aliased, { make, use: (buffer) => { used.push(buffer); } }, new Set(kernel.scratch)).top(body);
  return { ...kernel, scratch: [...kernel.scratch, ...used], body: foldMaxima(scheduled, fresh) };
}

/** Most loops that one loop is split into where conditions turn. */
const mostRanges = 5;

interface Working {
  /** Memory for so many float32 numbers. */
  make(length: Dim): Buffer;
  /** Says that a kernel takes it. */
  use(buffer: Buffer): void;
}

class LoopScheduler {
  private readonly context: LaneContext;
  private readonly strides: Strides;
  private readonly table: ExprTable;
  private readonly fresh: Fresh;
  private readonly aliased: ReadonlySet<Buffer>;
  private readonly working: Working;
  /** Buffers that the kernel has for each range of its work. */
  private readonly scratch: ReadonlySet<Buffer>;
  /** That of the loops of the nest at hand: those at the top of the kernel may be shared by threads. */
  private mode: LoopMode = "serial";

  constructor(context: LaneContext, aliased: ReadonlySet<Buffer>, working: Working, scratch: ReadonlySet<Buffer>) {
    this.context = context;
    this.working = working;
    this.scratch = scratch;
    this.aliased = aliased;
    this.strides = context.strides;
    this.table = context.strides.table;
    this.fresh = context.fresh;
  }

  /** The whole kernel. */
  top(s: Stmt): Stmt {
    const one = (x: Stmt): Stmt => (x.kind === "for" ? this.loop(x, "parallel") : this.statement(x));
    return s.kind === "block" ? this.keptValues(s) ?? block(...s.body.map(one)) : one(s);
  }

  statement(s: Stmt): Stmt {
    switch (s.kind) {
      case "block": return this.keptValues(s) ?? block(...s.body.map((b) => this.statement(b)));
      case "if": return { ...s, then: this.statement(s.then), ...(s.else ? { else: this.statement(s.else) } : {}) };
      case "for": return this.loop(s);
      default: return s;
    }
  }

  private loop(s: Loop, mode: LoopMode = "serial"): Stmt {
    const kind = loopKind(s, this.table);
    if (kind === "serial") return hasOwnRows(s, this.scratch) ? this.rows(s, mode) : { ...s, body: this.statement(s.body) };
    const nest = nestOf(s, kind, this.table);
    return kind === "parallel" ? this.as(mode, () => this.parallel(nest)) : this.reduction(nest);
  }
  /** A loop each of whose iterations reads what it has stored itself. */
  private rows(s: Loop, mode: LoopMode): Stmt {
    const [only, ...more] = statementsOf(s.body);
    return { ...s, mode, body: only?.kind === "for" && more.length === 0 ? this.loop(only, mode) : this.statement(s.body) };
  }
  private as(mode: LoopMode, schedule: () => Stmt): Stmt {
    const around = this.mode;
    this.mode = mode;
    const out = schedule();
    this.mode = around;
    return out;
  }

  /** Passes over a contiguous row, the first of which leaves values for the last. */
  private keptValues(s: Stmt): Stmt | undefined {
    const kept = keepValues(s, this.table, this.aliased, this.working.make);
    if (!kept) return undefined;
    const { first, last } = kept;
    const contiguous = this.strides.accesses(last.body).every(({ access }) => { const d = this.strides.along(access, last.axis); return d === 0 || d === 1; });
    if (!contiguous || !canFoldInLanes(first.axis, first.body, this.strides) || !new LaneAnalysis(last.axis, last.body, this.strides).supports(last.body)) return undefined;
    if (kept.scratch) this.working.use(kept.scratch);
    const each = (list: readonly Stmt[]): Stmt[] => list.map((b) => this.statement(b));
    return block(...each(kept.before), foldInLanes([], first.axis, first.body, this.context), ...each(kept.between), vectorLoop(last.axis, last.body, this.context));
  }

  private parallel(given: Nest): Stmt {
    const divided = splitDividedAxes(given, this.strides);
    return this.windows(divided) ?? this.ranges(divided.axes, [], divided.body);
  }

  /** Windows with borders, in vectors along an axis that the borders do not depend on. */
  private windows(given: Nest): Stmt | undefined {
    const clipped = clipWindows(given.body, this.strides);
    if (!clipped) return undefined;
    const axes = this.inMemoryOrder(given);
    const choice = this.choose(axes, clipped.inside);
    if (choice.kind !== "vector") return undefined;
    const outer = axes.filter((a) => a !== choice.axis);
    const inside = vectorLoop(choice.axis, clipped.inside, this.context);
    const whole = unrollWindows(clipped.whole, this.table, this.fresh);
    if (hasLoops(whole)) return wholeNest(outer, inside, this.mode);
    return wholeNest(outer, { kind: "if", condition: clipped.isWhole, then: vectorLoop(choice.axis, whole, this.context), else: inside }, this.mode);
  }

  /** Splits the axes one after another, then runs the nest of every combination. */
  private ranges(pending: readonly Axis[], done: readonly Axis[], body: Stmt): Stmt {
    const [axis, ...rest] = pending;
    if (!axis) return this.nest({ axes: done.filter((a) => a.extent !== 1), body: perfectNests(wholeNest(done.filter((a) => a.extent === 1), body), this.table, this.aliased) });
    const ranges = splitRanges(axis, body, this.strides, mostRanges);
    return block(...ranges.map((r, i) => this.ranges(rest, [...done, r.axis], i === 0 ? r.body : scalarCopy(r.body, new Map(), this.fresh))));
  }

  private nest(whole: Nest): Stmt {
    const given = foldBeforeSpreading(whole);
    if (given.axes.length === 0) return this.mode === "parallel" ? this.top(given.body) : this.statement(given.body);
    const ordered: Nest = { axes: this.inMemoryOrder(given), body: given.body };
    const { axes, body } = joinAxes(ordered, this.strides);
    const moved = moveLoops(axes, body, { ...this.context, aliased: this.aliased }, this.mode);
    if (moved) return moved;
    const choice = this.choose(axes, body);
    switch (choice.kind) {
      case "inner": return wholeNest(axes, this.as("serial", () => this.statement(body)), this.mode);
      case "scalar": return wholeNest(axes, body, this.mode);
      case "vector": {
        const kept = keepValues(body, this.table, this.aliased);
        const once = kept ? block(...kept.before, wholeLoop(kept.first.axis, kept.first.body), ...kept.between, wholeLoop(kept.last.axis, kept.last.body)) : body;
        return wholeNest(axes.filter((a) => a !== choice.axis), vectorLoop(choice.axis, unrollWindows(once, this.table, this.fresh), this.context, this.mode), this.mode);
      }
      case "transpose": return wholeNest(axes.filter((a) => a !== choice.axis && a !== choice.jam), transposingLoops(choice.axis, choice.jam, body, this.context, this.mode), this.mode);
    }
  }

  /** Largest stride of the first store outermost. */
  private inMemoryOrder({ axes, body }: Nest): Axis[] {
    const store = this.strides.accesses(body).find(({ access }) => access.store)?.access;
    const reach = (a: Axis): number => { const d = store && this.strides.along(store, a); return d === undefined ? Infinity : Math.abs(typical(d)); };
    return axes.map((axis, i) => ({ axis, i })).sort((x, y) => (reach(x.axis) === reach(y.axis) ? x.i - y.i : reach(y.axis) - reach(x.axis))).map(({ axis }) => axis);
  }

  /** The cheapest way to run a nest, by counted instructions for one iteration of it. */
  private choose(axes: readonly Axis[], body: Stmt): Choice {
    const loops = hasLoops(body);
    let best: { readonly cost: number; readonly choice: Choice } = { cost: this.cost(body, undefined), choice: { kind: loops ? "inner" : "scalar" } };
    if (loops) best = { cost: this.innerCost(body), choice: { kind: "inner" } };
    const consider = (cost: number, choice: Choice): void => { if (cost < best.cost) best = { cost, choice }; };
    for (const axis of [...axes].reverse()) {
      if (!isSymbolic(axis.extent) && axis.extent < lanes) continue;
      if (!new LaneAnalysis(axis, body, this.strides).supports(body)) continue;
      consider(this.cost(body, axis), { kind: "vector", axis });
      if (loops) continue;
      for (const jam of axes) {
        if (jam === axis || (!isSymbolic(jam.extent) && jam.extent < lanes) || !new LaneAnalysis(jam, body, this.strides).branchesAlike(body)) continue;
        consider(this.cost(body, axis, jam), { kind: "transpose", axis, jam });
      }
    }
    return best.choice;
  }

  /** Instructions of one iteration: scalar, or in lanes of `axis`. */
  private cost(body: Stmt, axis: Axis | undefined, jam?: Axis): number {
    let cost = bodyCost(body) * (axis ? 1 / lanes : 1);
    for (const { access, times } of this.strides.accesses(body)) cost += times * this.accessCost(access, axis, jam);
    // A tie goes to the loop without blocks.
    return jam ? cost + 0.01 : cost;
  }
  private accessCost(access: Parameters<Strides["along"]>[0], axis: Axis | undefined, jam: Axis | undefined): number {
    if (!axis) return 1;
    const stride = this.strides.along(access, axis);
    if (stride === 0) return access.store ? 1 : 0.1;
    if (stride === 1) return 1 / lanes;
    if (stride === 2 && !access.store) return 0.5;
    return !access.store && jam && this.strides.along(access, jam) === 1 ? 0.6 : 1.5;
  }
  /** The same when inner loops are scheduled by themselves. */
  private innerCost(s: Stmt): number {
    if (s.kind === "block") return s.body.reduce((n, b) => n + this.innerCost(b), 0);
    if (s.kind !== "for") return this.cost(s, undefined);
    const kind = loopKind(s, this.table);
    if (kind === "serial") return typical(s.axis.extent) * this.innerCost(s.body);
    const { axes, body } = joinAxes(nestOf(s, kind, this.table), this.strides);
    const times = axes.reduce((n, a) => n * typical(a.extent), 1);
    if (hasLoops(body)) return times * this.innerCost(body);
    const costs = axes.filter((a) => isSymbolic(a.extent) || a.extent >= lanes).map((a) => this.cost(body, a));
    return times * Math.min(this.cost(body, undefined), ...costs) + 4;
  }

  private reduction(given: Nest): Stmt {
    const { axes, body } = joinAxes(given, this.strides);
    if (hasLoops(body)) return wholeNest(axes, this.statement(body));
    const scalar = this.cost(body, undefined);
    const candidates = axes.filter((a) => (isSymbolic(a.extent) || a.extent >= 2 * lanes) && canFoldInLanes(a, body, this.strides)).map((axis) => ({ axis, cost: this.cost(body, axis) }));
    const best = candidates.sort((x, y) => x.cost - y.cost)[0];
    if (!best || best.cost >= 0.75 * scalar) return unrollWindows(wholeNest(axes, body), this.table, this.fresh);
    return foldInLanes(axes.filter((a) => a !== best.axis), best.axis, body, this.context);
  }
}

type Choice =
  /** The nest's loops stay scalar; loops in its body are scheduled for themselves. */
  | { readonly kind: "inner" }
  | { readonly kind: "scalar" }
  | { readonly kind: "vector"; readonly axis: Axis }
  | { readonly kind: "transpose"; readonly axis: Axis; readonly jam: Axis };
