/**
 * LSTM, GRU and RNN: the inputs of all steps are one matrix product; each step then multiplies the state by packed
 * recurrent weights and updates the cell in vectors. Rows of a batch go together unless they have lengths of their own.
 * Threads share the products of the inputs, and then the directions: a step needs all of the one before.
 */
import { activationOf } from "../../kernel/activation.ts";
import { dimProduct, isSymbolic, type Dim } from "../../core/dim.ts";
import { add, axisOf, cast, constant, eq, f32, f32x4, i32, load, local, max, min, mul, sub, type Axis, type Buffer, type Expr } from "../../kernel/expr.ts";
import { block, type Stmt } from "../../kernel/stmt.ts";
import type { Activation, EpilogueStore, MatMulStructure, RecurrenceStructure } from "../../kernel/structure.ts";
import { affineAccess, bytesAlong, foldIndex, plus, times, toIndex } from "../loops/affine.ts";
import { addressOf, loadAt, storeAt, type KernelBuilder } from "../builder.ts";
import { emitFill } from "../fill.ts";
import { emitZero, isDistance, overRun } from "../loops/runs.ts";
import { scheduleMatMul } from "./matmul.ts";
import { laneOf } from "./tile.ts";

const gateCount = { lstm: 4, gru: 3, rnn: 1 } as const;

/** Loops for a float32 recurrence of any batch and length; undefined for other types. */
export function scheduleRecurrence(b: KernelBuilder, s: RecurrenceStructure): Stmt | undefined {
  if (s.x.dtype !== "float32" || isSymbolic(s.inputSize)) return undefined;
  const into: Stmt[] = [], work = new Workspace(b, s), directions = s.directions.map((_, d) => new Direction(b, s, work, d));
  for (const d of directions) {
    const product = d.inputProduct();
    if (!product) return undefined;
    into.push(product);
  }
  let fits = true;
  b.parallel(into, "direction", directions.length, 1, stepsWork(s), (at, inner) => {
    const bodies = directions.map((d) => {
      const body: Stmt[] = [];
      fits = b.serially(() => d.steps(body)) && fits;
      return block(...body);
    });
    inner.push(bodies.reduceRight((rest, body, d): Stmt => ({ kind: "if", condition: eq(at, d), then: body, else: rest })));
  });
  return fits ? block(...into) : undefined;
}

/** Instructions of a direction's steps: products of vectors of 4, and some dozens for a vector of gates. */
function stepsWork({ cell, sequence, batch, hidden }: RecurrenceStructure): Dim {
  const gates = gateCount[cell];
  return dimProduct([sequence, batch, Math.ceil((gates * hidden * hidden) / 3 + gates * hidden * 8)]);
}

/** Scratch that the directions of a thread share. */
class Workspace {
  /** Σ state·R, [batch, gates·hidden]. */
  readonly sums: Buffer;
  readonly state: Buffer;
  readonly cell: Buffer | undefined;
  /** Reset gate times state. */
  readonly reset: Buffer | undefined;

  constructor(b: KernelBuilder, s: RecurrenceStructure) {
    const width = gateCount[s.cell] * s.hidden;
    const rows: Dim = s.sequenceLengths ? 1 : s.batch;
    this.sums = b.temporary("sums", "float32", [rows, width]);
    this.state = b.temporary("state", "float32", [rows, s.hidden]);
    this.cell = s.cell === "lstm" ? b.temporary("cell", "float32", [rows, s.hidden]) : undefined;
    this.reset = s.cell === "gru" && !s.linearBeforeReset ? b.temporary("reset", "float32", [rows, s.hidden]) : undefined;
  }
}

/** What a cell update reads and writes at one row. */
interface Row { readonly batch: Expr; readonly slot: Expr; readonly time: Expr }

class Direction {
  private readonly b: KernelBuilder;
  private readonly s: RecurrenceStructure;
  private readonly work: Workspace;
  private readonly d: number;
  private readonly width: number;
  /** Σ x·W, [sequence, batch, gates·hidden]. */
  private readonly inputs: Buffer;

  constructor(b: KernelBuilder, s: RecurrenceStructure, work: Workspace, d: number) {
    this.b = b;
    this.s = s;
    this.work = work;
    this.d = d;
    this.width = gateCount[s.cell] * s.hidden;
    this.inputs = b.shared("inputs", "float32", [s.sequence, s.batch, this.width]);
  }

  /** All steps; false when a product has no schedule. */
  steps(into: Stmt[]): boolean {
    const { b, s } = this;
    let fits = true;
    if (s.sequenceLengths) {
      const lengths = s.sequenceLengths;
      b.loop(into, "b", 0, toIndex(s.batch), 1, s.batch, (row, body) => {
        const length = b.let(body, "length", cast(load(lengths, [row]), "i32"));
        fits = this.run(body, row, 1, length);
        if (s.y) b.loop(body, "t", length, toIndex(s.sequence), 1, s.sequence, (t, inner) => this.clear(inner, t, row));
      });
    } else fits = this.run(into, constant(0, i32), s.batch, toIndex(s.sequence));
    return fits;
  }

  /** All steps of `rows` rows of the batch from `first` on. */
  private run(into: Stmt[], first: Expr, rows: Dim, length: Expr): boolean {
    const { b, s, work } = this;
    const each = (body: Stmt[], visit: (row: Row, inner: Stmt[]) => void, time: Expr): void =>
      b.loop(body, "row", 0, toIndex(rows), 1, rows, (slot, inner) => visit({ slot, batch: plus(first, slot), time }, inner));
    const zero = constant(0, i32);
    each(into, (row, body) => {
      this.initialise(body, s.initialH, work.state, row);
      if (work.cell) this.initialise(body, s.initialC, work.cell, row);
    }, zero);
    const hidden = s.hidden;
    const recurrent = this.stateProduct(work.state, rows, 0, work.reset ? 2 * hidden : this.width);
    const reset = work.reset && this.stateProduct(work.reset, rows, 2 * hidden, hidden);
    if (!recurrent || (work.reset && !reset)) return false;
    b.loop(into, "step", 0, length, 1, s.sequence, (step, body) => {
      const time = s.directions[this.d] === "reverse" ? b.let(body, "t", sub(plus(length, -1), step)) : step;
      body.push(recurrent);
      if (reset && work.reset) {
        const target = work.reset;
        each(body, (row, inner) => this.resetState(inner, row, target), time);
        body.push(reset);
      }
      each(body, (row, inner) => this.update(inner, row), time);
    });
    if (s.yH || s.yC) each(into, (row, body) => {
      this.finish(body, s.yH, work.state, row);
      if (work.cell) this.finish(body, s.yC, work.cell, row);
    }, zero);
    return true;
  }

  /** inputs[t, b, n] = Σ x·W. */
  inputProduct(): Stmt | undefined {
    const { s, d, width } = this;
    const t: Axis = { name: "t", extent: s.sequence }, row: Axis = { name: "b", extent: s.batch }, n: Axis = { name: "n", extent: width }, k: Axis = { name: "k", extent: s.inputSize };
    const direction = constant(d, i32);
    const out: EpilogueStore = { buffer: this.inputs, indices: [axisOf(t), axisOf(row), axisOf(n)], value: local("acc", f32) };
    return scheduleMatMul(this.b, {
      kind: "matmul", batch: [t], m: row, n, k, a: load(s.x, [axisOf(t), axisOf(row), axisOf(k)]), b: load(s.w, [direction, axisOf(n), axisOf(k)]),
      accumulator: { name: "acc", type: f32 }, stores: [out],
    });
  }

  /** sums[b, from + n] = Σ state·R for `count` columns. */
  private stateProduct(state: Buffer, rows: Dim, from: number, count: number): Stmt | undefined {
    const { s, d } = this;
    const m: Axis = { name: "b", extent: rows }, n: Axis = { name: "n", extent: count }, k: Axis = { name: "k", extent: s.hidden };
    const column = foldIndex(add(axisOf(n), from));
    const structure: MatMulStructure = {
      kind: "matmul", batch: [], m, n, k, a: load(state, [axisOf(m), axisOf(k)]), b: load(s.r, [constant(d, i32), column, axisOf(k)]),
      accumulator: { name: "acc", type: f32 }, stores: [{ buffer: this.work.sums, indices: [axisOf(m), column], value: local("acc", f32) }],
    };
    return scheduleMatMul(this.b, structure);
  }

  private initialise(into: Stmt[], from: Buffer | undefined, state: Buffer, row: Row): void {
    const { b, s } = this;
    const to = b.let(into, "to", plus(addressOf(state), times(row.slot, s.hidden * 4)));
    if (!from) return emitZero(b, into, to, s.hidden);
    const j: Axis = { name: "j", extent: s.hidden };
    emitFill(b, into, { to, dtype: "float32", value: load(from, [constant(this.d, i32), row.batch, axisOf(j)]), along: j, count: s.hidden, positions: new Map() });
  }

  private finish(into: Stmt[], to: Buffer | undefined, state: Buffer, row: Row): void {
    if (!to) return;
    const { b, s } = this;
    const from = b.let(into, "from", plus(addressOf(state), times(row.slot, s.hidden * 4)));
    const target = this.vectorAt(into, to, [constant(this.d, i32), row.batch]);
    overRun(b, into, constant(s.hidden, i32), (body, j, lanes) => target.store(body, j, loadAt(plus(from, times(j, 4)), 0, "float32", lanes === 4 ? f32x4 : f32)));
  }

  /** y past the end of a sequence. */
  private clear(into: Stmt[], time: Expr, batch: Expr): void {
    const { b, s } = this;
    if (!s.y) return;
    const target = this.vectorAt(into, s.y, [time, constant(this.d, i32), batch]);
    overRun(b, into, constant(s.hidden, i32), (body, j, lanes) => target.store(body, j, constant(0, lanes === 4 ? f32x4 : f32)));
  }

  /** Elements of a buffer along its last axis. */
  private vectorAt(into: Stmt[], buffer: Buffer, indices: readonly Expr[]): { readonly load: (j: Expr, lanes: 1 | 4) => Expr; readonly store: (into: Stmt[], j: Expr, value: Expr) => void } {
    const { b } = this;
    const axis: Axis = { name: "j", extent: buffer.shape[buffer.shape.length - 1] ?? 1 };
    const access = affineAccess(buffer, [...indices, axisOf(axis)], new Set([axis]), b.layout(buffer));
    const step = access ? bytesAlong(access, axis) : 0;
    const base = b.let(into, "base", access?.base ?? addressOf(buffer));
    const at = (j: Expr, lane = 0): Expr => plus(base, times(plus(j, lane), toIndex(step)));
    return {
      load: (j, lanes) => (lanes === 1 ? loadAt(at(j), 0, "float32", f32)
        : isDistance(step, 4) ? loadAt(at(j), 0, "float32", f32x4)
          : { kind: "lanes", elements: [0, 1, 2, 3].map((lane) => loadAt(at(j, lane), 0, "float32", f32)), type: f32x4 }),
      store: (body, j, value) => {
        if (value.type.lanes === 1 || isDistance(step, 4)) { body.push(storeAt(at(j), 0, "float32", value)); return; }
        const v = b.let(body, "v", value);
        for (let lane = 0; lane < 4; lane++) body.push(storeAt(at(j, lane), 0, "float32", laneOf(v, lane)));
      },
    };
  }

  /** reset[j] = r·state for a GRU that resets before the product. */
  private resetState(into: Stmt[], row: Row, reset: Buffer): void {
    const c = this.cellAt(into, row);
    const target = this.b.let(into, "reset", plus(addressOf(reset), times(row.slot, this.s.hidden * 4)));
    overRun(this.b, into, constant(this.s.hidden, i32), (body, j, lanes) => {
      const r = this.activate(body, 0, c.gate(1, j, lanes));
      body.push(storeAt(plus(target, times(j, 4)), 0, "float32", mul(r, c.state(j, lanes))));
    });
  }

  private update(into: Stmt[], row: Row): void {
    const { b, s } = this;
    const c = this.cellAt(into, row);
    const y = s.y && this.vectorAt(into, s.y, [row.time, constant(this.d, i32), row.batch]);
    overRun(b, into, constant(s.hidden, i32), (body, j, lanes) => {
      const h = s.cell === "lstm" ? this.lstm(body, c, j, lanes) : s.cell === "gru" ? this.gru(body, c, j, lanes) : this.activate(body, 0, c.gate(0, j, lanes));
      const value = b.let(body, "h", h);
      body.push(storeAt(c.statePointer(j), 0, "float32", value));
      y?.store(body, j, value);
    });
  }

  private lstm(body: Stmt[], c: CellAccess, j: Expr, lanes: 1 | 4): Expr {
    const { b, s } = this;
    const old = b.let(body, "c", c.cell(j, lanes));
    const peep = (which: number, x: Expr, by: Expr): Expr => { const p = c.peephole(which, j, lanes); return p ? add(x, mul(p, by)) : x; };
    const i = this.activate(body, 0, peep(0, c.gate(0, j, lanes), old));
    const f = s.inputForget ? sub(constant(1, i.type), i) : this.activate(body, 0, peep(2, c.gate(2, j, lanes), old));
    const g = this.activate(body, 1, c.gate(3, j, lanes));
    const next = b.let(body, "c", add(mul(f, old), mul(i, g)));
    const o = this.activate(body, 0, peep(1, c.gate(1, j, lanes), next));
    body.push(storeAt(c.cellPointer(j), 0, "float32", next));
    return mul(o, this.activate(body, 2, next, false));
  }

  private gru(body: Stmt[], c: CellAccess, j: Expr, lanes: 1 | 4): Expr {
    const { s } = this;
    const z = this.activate(body, 0, c.gate(0, j, lanes));
    const recurrent = add(c.sum(2, j, lanes), c.bias(5, j, lanes));
    const inner = s.linearBeforeReset ? mul(this.activate(body, 0, c.gate(1, j, lanes)), recurrent) : recurrent;
    const n = this.activate(body, 1, add(add(c.input(2, j, lanes), c.bias(2, j, lanes)), inner));
    return add(mul(sub(constant(1, z.type), z), n), mul(z, c.state(j, lanes)));
  }

  private activate(body: Stmt[], which: number, x: Expr, clipped = true): Expr {
    const { clip } = this.s;
    const limited = clip === undefined || !clipped ? x : max(min(x, constant(clip, x.type)), constant(-clip, x.type));
    const f: Activation = this.s.activations[this.d]?.[which] ?? { kind: "tanh" };
    return this.b.let(body, "a", activationOf(f, this.b.let(body, "x", limited)));
  }

  private cellAt(into: Stmt[], row: Row): CellAccess {
    const { b, s, work, width, d } = this;
    const { hidden } = s, half = gateCount[s.cell];
    const pointer = (hint: string, buffer: Buffer, index: Expr, bytes: number): Expr => b.let(into, hint, plus(addressOf(buffer), times(index, bytes)));
    const sums = pointer("sums", work.sums, row.slot, width * 4), state = pointer("state", work.state, row.slot, hidden * 4);
    const inputs = pointer("inputs", this.inputs, plus(times(row.time, toIndex(s.batch)), row.batch), width * 4);
    const cell = work.cell ? pointer("cell", work.cell, row.slot, hidden * 4) : state;
    const biases = s.b && this.vectorAt(into, s.b, [constant(d, i32)]), peepholes = s.peepholes && this.vectorAt(into, s.peepholes, [constant(d, i32)]);
    const type = (lanes: 1 | 4) => (lanes === 4 ? f32x4 : f32);
    const read = (p: Expr, gate: number, j: Expr, lanes: 1 | 4): Expr => loadAt(plus(p, times(j, 4)), gate * hidden * 4, "float32", type(lanes));
    const bias = (gate: number, j: Expr, lanes: 1 | 4): Expr => (biases ? biases.load(plus(j, gate * hidden), lanes) : constant(0, type(lanes)));
    return {
      gate: (gate, j, lanes) => {
        const product = add(read(inputs, gate, j, lanes), read(sums, gate, j, lanes));
        return biases ? add(product, add(bias(gate, j, lanes), bias(gate + half, j, lanes))) : product;
      },
      input: (gate, j, lanes) => read(inputs, gate, j, lanes),
      sum: (gate, j, lanes) => read(sums, gate, j, lanes),
      bias,
      state: (j, lanes) => read(state, 0, j, lanes),
      cell: (j, lanes) => read(cell, 0, j, lanes),
      statePointer: (j) => plus(state, times(j, 4)),
      cellPointer: (j) => plus(cell, times(j, 4)),
      peephole: (which, j, lanes) => peepholes?.load(plus(j, which * hidden), lanes),
    };
  }
}

/** Vectors of one row, at hidden unit j. */
interface CellAccess {
  /** Everything that goes into a gate's activation, peepholes apart. */
  gate(gate: number, j: Expr, lanes: 1 | 4): Expr;
  input(gate: number, j: Expr, lanes: 1 | 4): Expr;
  sum(gate: number, j: Expr, lanes: 1 | 4): Expr;
  bias(which: number, j: Expr, lanes: 1 | 4): Expr;
  state(j: Expr, lanes: 1 | 4): Expr;
  cell(j: Expr, lanes: 1 | 4): Expr;
  statePointer(j: Expr): Expr;
  cellPointer(j: Expr): Expr;
  peephole(which: number, j: Expr, lanes: 1 | 4): Expr | undefined;
}
