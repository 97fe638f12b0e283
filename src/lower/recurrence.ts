/** Naive loops of LSTM, GRU and RNN, as ONNX defines them: one step after the other, every gate a sum. */
import { invariant } from "../core/assert.ts";
import type { Dim } from "../core/dim.ts";
import { add, axisOf, cast, computeScalar, constant, dimExpr, i32, index, load, local, lt, max, min, mul, reduceIdentity, scalarType, sub, type Axis, type Buffer, type Expr } from "../kernel/expr.ts";
import { block, letLocal, loop, type Stmt } from "../kernel/stmt.ts";
import { activationOf } from "../kernel/activation.ts";
import type { RecurrenceStructure } from "../kernel/structure.ts";

/** The kernel's body and its working memory: the state and its successor, for one row of the batch. */
export function recurrenceLoops(s: RecurrenceStructure): { readonly body: Stmt; readonly scratch: readonly Buffer[] } {
  const loops = new RecurrenceLoops(s);
  return { body: block(...s.directions.map((_, d) => loops.direction(d))), scratch: loops.scratch };
}

const gateCount = (cell: RecurrenceStructure["cell"]): number => (cell === "lstm" ? 4 : cell === "gru" ? 3 : 1);

class RecurrenceLoops {
  readonly #s: RecurrenceStructure;
  readonly #h: Buffer;
  readonly #next: Buffer;
  readonly #c: Buffer;
  readonly #reset: Buffer;
  readonly scratch: readonly Buffer[];
  #names = 0;

  constructor(s: RecurrenceStructure) {
    this.#s = s;
    const state = (name: string): Buffer => ({ name, dtype: s.x.dtype, shape: [s.hidden] });
    this.#h = state("state");
    this.#next = state("next_state");
    this.#c = state("cell_state");
    this.#reset = state("reset_gate");
    this.scratch = [this.#h, this.#next, ...(s.cell === "lstm" ? [this.#c] : s.cell === "gru" ? [this.#reset] : [])];
  }

  #axis(name: string, extent: Dim): Axis { return { name: `${name}${this.#names++}`, extent }; }
  #over(name: string, extent: Dim, body: (i: Expr) => Stmt): Stmt {
    const axis = this.#axis(name, extent);
    return loop(axis, constant(0, i32), dimExpr(extent), 1, body(axisOf(axis)));
  }
  #store(buffer: Buffer | undefined, indices: readonly Expr[], value: Expr): readonly Stmt[] {
    return buffer ? [{ kind: "store", buffer, indices, value }] : [];
  }
  get #type() { return scalarType(computeScalar(this.#s.x.dtype)); }
  #initial(buffer: Buffer | undefined, d: number, b: Expr, j: Expr): Expr {
    return buffer ? load(buffer, [index(d), b, j]) : constant(0, this.#type);
  }

  direction(d: number): Stmt {
    const s = this.#s;
    return this.#over("b", s.batch, (b) => {
      const length = s.sequenceLengths ? cast(load(s.sequenceLengths, [b]), "i32") : dimExpr(s.sequence);
      const start = this.#over("j", s.hidden, (j) => block(
        ...this.#store(this.#h, [j], this.#initial(s.initialH, d, b, j)),
        ...(s.cell === "lstm" ? this.#store(this.#c, [j], this.#initial(s.initialC, d, b, j)) : []),
      ));
      const steps = this.#over("s", s.sequence, (step) => {
        const run = this.#step(d, b, step, length);
        return s.sequenceLengths ? { kind: "if", condition: lt(step, length), then: run, else: this.#padding(d, b, step) } : run;
      });
      const end = this.#over("j", s.hidden, (j) => block(
        ...this.#store(s.yH, [index(d), b, j], load(this.#h, [j])),
        ...(s.cell === "lstm" ? this.#store(s.yC, [index(d), b, j], load(this.#c, [j])) : []),
      ));
      return block(start, steps, ...(s.yH || (s.yC && s.cell === "lstm") ? [end] : []));
    });
  }
  /** Past the end of a sequence the output is 0. */
  #padding(d: number, b: Expr, step: Expr): Stmt {
    return this.#over("j", this.#s.hidden, (j) => block(...this.#store(this.#s.y, [step, index(d), b, j], constant(0, this.#type))));
  }

  #step(d: number, b: Expr, step: Expr, length: Expr): Stmt {
    const s = this.#s;
    const t = s.directions[d] === "reverse" ? sub(sub(length, 1), step) : step;
    const cell = s.cell === "lstm" ? this.#lstm(d, b, t) : s.cell === "gru" ? this.#gru(d, b, t) : this.#rnn(d, b, t);
    const keep = this.#over("j", s.hidden, (j) => block(
      ...this.#store(this.#h, [j], load(this.#next, [j])),
      ...this.#store(s.y, [t, index(d), b, j], load(this.#next, [j])),
    ));
    return block(...cell, keep);
  }

  /** Σ x·W for one gate, as statements and the local they fill. */
  #input(d: number, gate: number, b: Expr, t: Expr, j: Expr): { readonly statements: readonly Stmt[]; readonly value: Expr } {
    const s = this.#s;
    return this.#sum(s.inputSize, (k) => mul(load(s.x, [t, b, k]), load(s.w, [index(d), add(j, gate * s.hidden), k])));
  }
  /** Σ state·R for one gate; `scale` is applied to each element of the state. */
  #recurrent(d: number, gate: number, j: Expr, scale?: (k: Expr) => Expr): { readonly statements: readonly Stmt[]; readonly value: Expr } {
    const s = this.#s;
    return this.#sum(s.hidden, (k) => {
      const h = load(this.#h, [k]);
      return mul(scale ? mul(scale(k), h) : h, load(s.r, [index(d), add(j, gate * s.hidden), k]));
    });
  }
  #sum(extent: Dim, term: (k: Expr) => Expr): { readonly statements: readonly Stmt[]; readonly value: Expr } {
    const name = `sum${this.#names++}`;
    const body = this.#over("k", extent, (k) => ({ kind: "accumulate", name, op: "add", value: term(k) }));
    return { statements: [letLocal(name, reduceIdentity("add", this.#type)), body], value: local(name, this.#type) };
  }
  #bias(d: number, gate: number, j: Expr): Expr {
    return this.#s.b ? load(this.#s.b, [index(d), add(j, gate * this.#s.hidden)]) : constant(0, this.#type);
  }
  /** Input and recurrent bias of a gate. */
  #biases(d: number, gate: number, j: Expr): Expr { return add(this.#bias(d, gate, j), this.#bias(d, gate + gateCount(this.#s.cell), j)); }
  /** `clipped`: clip limits what gates are made from, not the cell state on its way out. */
  #activate(d: number, which: number, x: Expr, clipped = true): { readonly statements: readonly Stmt[]; readonly value: Expr } {
    const activation = this.#s.activations[d]?.[which];
    invariant(activation, `activation ${which} of direction ${d}`);
    const name = `x${this.#names++}`, result = `a${this.#names++}`;
    const statements = [letLocal(name, clipped ? this.#clip(x) : x), letLocal(result, activationOf(activation, local(name, x.type)))];
    return { statements, value: local(result, x.type) };
  }
  #clip(x: Expr): Expr {
    const { clip } = this.#s;
    return clip === undefined ? x : max(min(x, constant(clip, x.type)), constant(-clip, x.type));
  }
  #peephole(d: number, which: number, j: Expr, c: Expr): Expr | undefined {
    const p = this.#s.peepholes;
    return p && mul(load(p, [index(d), add(j, which * this.#s.hidden)]), c);
  }

  #lstm(d: number, b: Expr, t: Expr): readonly Stmt[] {
    const s = this.#s;
    return [this.#over("j", s.hidden, (j) => {
      const statements: Stmt[] = [];
      const gate = (which: number, activation: number, extra: Expr | undefined): Expr => {
        const x = this.#input(d, which, b, t, j), h = this.#recurrent(d, which, j);
        const total = add(add(x.value, h.value), this.#biases(d, which, j));
        const a = this.#activate(d, activation, extra ? add(total, extra) : total);
        statements.push(...x.statements, ...h.statements, ...a.statements);
        return a.value;
      };
      const old = load(this.#c, [j]);
      const i = gate(0, 0, this.#peephole(d, 0, j, old));
      const f = s.inputForget ? sub(constant(1, this.#type), i) : gate(2, 0, this.#peephole(d, 2, j, old));
      const g = gate(3, 1, undefined);
      const name = `cell${this.#names++}`;
      statements.push(letLocal(name, add(mul(f, old), mul(i, g))));
      const c = local(name, this.#type);
      const o = gate(1, 0, this.#peephole(d, 1, j, c));
      const out = this.#activate(d, 2, c, false);
      statements.push(...out.statements, ...this.#store(this.#c, [j], c), ...this.#store(this.#next, [j], mul(o, out.value)));
      return block(...statements);
    })];
  }

  #gru(d: number, b: Expr, t: Expr): readonly Stmt[] {
    const s = this.#s;
    const gate = (which: number, j: Expr): { statements: readonly Stmt[]; value: Expr } => {
      const x = this.#input(d, which, b, t, j), h = this.#recurrent(d, which, j);
      const a = this.#activate(d, 0, add(add(x.value, h.value), this.#biases(d, which, j)));
      return { statements: [...x.statements, ...h.statements, ...a.statements], value: a.value };
    };
    const reset = this.#over("j", s.hidden, (j) => {
      const r = gate(1, j);
      return block(...r.statements, ...this.#store(this.#reset, [j], r.value));
    });
    const rest = this.#over("j", s.hidden, (j) => {
      const z = gate(0, j);
      const x = this.#input(d, 2, b, t, j);
      const scale = s.linearBeforeReset ? undefined : (k: Expr): Expr => load(this.#reset, [k]);
      const h = this.#recurrent(d, 2, j, scale);
      const inner = add(h.value, this.#bias(d, 5, j));
      const recurrent = s.linearBeforeReset ? mul(load(this.#reset, [j]), inner) : inner;
      const a = this.#activate(d, 1, add(add(x.value, this.#bias(d, 2, j)), recurrent));
      const one = constant(1, this.#type);
      const value = add(mul(sub(one, z.value), a.value), mul(z.value, load(this.#h, [j])));
      return block(...z.statements, ...x.statements, ...h.statements, ...a.statements, ...this.#store(this.#next, [j], value));
    });
    return [reset, rest];
  }

  #rnn(d: number, b: Expr, t: Expr): readonly Stmt[] {
    return [this.#over("j", this.#s.hidden, (j) => {
      const x = this.#input(d, 0, b, t, j), h = this.#recurrent(d, 0, j);
      const a = this.#activate(d, 0, add(add(x.value, h.value), this.#biases(d, 0, j)));
      return block(...x.statements, ...h.statements, ...a.statements, ...this.#store(this.#next, [j], a.value));
    })];
  }
}
