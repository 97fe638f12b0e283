/**
 * How threads share a segment's phases: functions of the module for threads, on the words of memory/control.ts.
 *
 * Every thread runs the same segment. A phase is cut into chunks, numbered through the segment; who takes the next number
 * does that chunk, and a phase whose numbers are taken is passed by. Waiting is for chunks, not for threads: a thread that
 * comes late finds phases done and passes them too, so none waits for one that sleeps. The first thread opens the region
 * when there is work for more than one, and closes it when all chunks are done: then it waits for those who joined to leave.
 * Waiting spins for about the time that waking takes, then sleeps.
 */
import { control } from "../../memory/control.ts";
import { FunctionBuilder, type ValueType } from "./assembler.ts";
import type { Opcode } from "./opcodes.ts";

/** Turns of a waiting loop before a thread sleeps: within a segment, and between segments. */
const spinning = 20_000, idling = 50_000;
/** Smallest pieces of work, of some microseconds each, that are worth waking a thread for. */
const worthWaking = 16;
/** Nanoseconds after which a thread that waits looks again, whatever it was told. */
const lookAgain = 1_000_000n;

/** Variables of each thread, by number. */
export const variable = { limit: 0, first: 1, size: 2, group: 3, perGroup: 4, from: 5, to: 6, opened: 7, work: 8 } as const;
export const variables = 9;

/** Functions, by their distance from the first. */
export const protocol = { begin: 0, take: 1, single: 2, finish: 3, pause: 4, barrier: 5, close: 6 } as const;

/** The functions, the first of which will have number `at`. */
export function protocolFunctions(set: ReadonlyMap<string, Opcode>, at: number): FunctionBuilder[] {
  const make = (name: keyof typeof protocol, params: number, results: readonly ValueType[], write: (p: Writer) => void): FunctionBuilder => {
    const f = new FunctionBuilder(name, { params: Array.from({ length: params }, (): ValueType => "i32"), results }, set);
    write(new Writer(f, at));
    return f;
  };
  return [make("begin", 5, [], begin), make("take", 0, ["i32"], take), make("single", 0, ["i32"], single), make("finish", 0, [], finish), make("pause", 4, [], pause), make("barrier", 1, [], barrier), make("close", 0, [], close)];
}

/** Shorthand for what these functions are made of. */
export class Writer {
  readonly f: FunctionBuilder;
  readonly #at: number;
  constructor(f: FunctionBuilder, at: number) { this.f = f; this.#at = at; }

  call(name: keyof typeof protocol): void { this.f.call(this.#at + protocol[name]); }
  load(word: number): void { this.f.constant("i32", 0); this.f.memory("i32.atomic.load", word); }
  store(word: number, value: number): void { this.f.constant("i32", 0); this.f.constant("i32", value); this.f.memory("i32.atomic.store", word); }
  /** Adds to a word; nothing is left on the stack. */
  add(word: number, by: number): void {
    this.f.constant("i32", 0);
    this.f.constant("i32", by);
    this.f.memory("i32.atomic.rmw.add", word);
    this.f.op("drop");
  }
  notify(word: number): void {
    this.f.constant("i32", 0);
    this.f.constant("i32", -1);
    this.f.memory("memory.atomic.notify", word);
    this.f.op("drop");
  }
  when(body: () => void): void { this.f.begin("if"); body(); this.f.end(); }
  /** Repeats `body`, which leaves by returning or branches to 0 to go on. */
  forever(body: () => void): void { this.f.begin("loop"); body(); this.f.end(); }
  /** ⌈a / b⌉ of locals. */
  ceil(a: number, b: number): void {
    const { f } = this;
    f.get(a); f.get(b); f.op("i32.add"); f.constant("i32", 1); f.op("i32.sub"); f.get(b); f.op("i32.div_u");
  }
  larger(a: number, b: number): void {
    const { f } = this;
    f.get(a); f.get(b); f.get(a); f.get(b); f.op("i32.gt_s"); f.op("select");
  }
  addTo(global: number, value: () => void): void { this.f.getGlobal(global); value(); this.f.op("i32.add"); this.f.setGlobal(global); }
}

/** begin(outer, inner, grain, weight, thread): cuts outer·inner iterations into chunks that respect groups of `inner`; `grain` iterations are `weight` smallest pieces. */
function begin(w: Writer): void {
  const { f } = w, [outer, inner, grain, weight, thread] = [0, 1, 2, 3, 4];
  const total = f.local("i32"), size = f.local("i32"), parts = f.local("i32"), group = f.local("i32"), chunks = f.local("i32");
  f.getGlobal(variable.limit); f.setGlobal(variable.first);
  f.get(outer); f.get(inner); f.op("i32.mul"); f.tee(total);
  f.constant("i32", 1); f.op("i32.lt_s");
  w.when(() => f.op("return"));
  // At least four chunks for each thread, none below the grain.
  f.constant("i32", 1); f.setLocal(size);
  w.larger(grain, size); f.setLocal(grain);
  w.load(control.threads); f.constant("i32", 2); f.op("i32.shl"); f.setLocal(parts);
  w.ceil(total, parts); f.setLocal(size);
  w.larger(size, grain); f.setLocal(size);
  // Whole groups where there are three for each thread.
  f.get(size); f.get(inner); f.op("i32.ge_s");
  f.get(outer); f.constant("i32", 2); f.op("i32.shl"); f.get(parts); f.constant("i32", 3); f.op("i32.mul"); f.op("i32.ge_s");
  f.op("i32.or");
  f.begin("if");
  w.ceil(size, inner); f.get(inner); f.op("i32.mul"); f.setLocal(size);
  f.get(total); f.setLocal(group);
  f.else();
  f.get(inner); f.setLocal(group);
  w.ceil(inner, size); f.setLocal(parts);
  w.ceil(inner, parts); f.setLocal(size);
  f.end();
  w.ceil(group, size); f.tee(parts); f.setGlobal(variable.perGroup);
  f.get(size); f.setGlobal(variable.size);
  f.get(group); f.setGlobal(variable.group);
  f.get(total); f.get(group); f.op("i32.div_u"); f.get(parts); f.op("i32.mul"); f.setLocal(chunks);
  w.addTo(variable.limit, () => f.get(chunks));
  f.get(thread); f.op("i32.eqz"); f.get(chunks); f.constant("i32", 1); f.op("i32.gt_s"); f.op("i32.and");
  w.when(() => {
    f.getGlobal(variable.opened); f.op("i32.eqz");
    w.when(() => {
      f.constant("i32", 1); f.setGlobal(variable.opened);
      w.store(control.open, 1);
      w.add(control.epoch, 1);
    });
    w.addTo(variable.work, () => { f.get(total); f.get(grain); f.op("i32.div_u"); f.get(weight); f.op("i32.mul"); });
    f.getGlobal(variable.work); f.constant("i32", worthWaking); f.op("i32.ge_s"); w.load(control.asleep); f.constant("i32", 0); f.op("i32.gt_s"); f.op("i32.and");
    w.when(() => { f.constant("i32", 0); f.setGlobal(variable.work); w.notify(control.epoch); });
  });
}

/** Takes the next number below the limit into local `v`; returns 0 from the function where there is none. */
function takeNumber(w: Writer, v: number): void {
  const { f } = w;
  w.forever(() => {
    w.load(control.taken); f.tee(v); f.getGlobal(variable.limit); f.op("i32.sub"); f.constant("i32", 0); f.op("i32.ge_s");
    w.when(() => { f.constant("i32", 0); f.op("return"); });
    f.constant("i32", 0); f.get(v); f.get(v); f.constant("i32", 1); f.op("i32.add"); f.memory("i32.atomic.rmw.cmpxchg", control.taken);
    f.get(v); f.op("i32.ne"); f.branch("br_if", 0);
  });
}

/** take(): 1 and a range in `from` and `to`, or 0 when the phase's chunks are taken. */
function take(w: Writer): void {
  const { f } = w, v = f.local("i32"), start = f.local("i32"), end = f.local("i32"), most = f.local("i32");
  takeNumber(w, v);
  f.get(v); f.getGlobal(variable.first); f.op("i32.sub"); f.setLocal(v);
  f.get(v); f.getGlobal(variable.perGroup); f.op("i32.div_u"); f.getGlobal(variable.group); f.op("i32.mul"); f.tee(start);
  f.getGlobal(variable.group); f.op("i32.add"); f.setLocal(most);
  f.get(start); f.get(v); f.getGlobal(variable.perGroup); f.op("i32.rem_u"); f.getGlobal(variable.size); f.op("i32.mul"); f.op("i32.add"); f.tee(start);
  f.setGlobal(variable.from);
  f.get(start); f.getGlobal(variable.size); f.op("i32.add"); f.setLocal(end);
  f.get(end); f.get(most); f.get(end); f.get(most); f.op("i32.lt_s"); f.op("select"); f.setGlobal(variable.to);
  f.constant("i32", 1);
}

/** single(): a phase of one chunk; 1 for the thread that is to do it. */
function single(w: Writer): void {
  const { f } = w, v = f.local("i32");
  w.addTo(variable.limit, () => f.constant("i32", 1));
  takeNumber(w, v);
  f.constant("i32", 1);
}

/** finish(): the chunk at hand is done. */
function finish(w: Writer): void {
  w.add(control.done, 1);
  w.load(control.waiting);
  w.when(() => w.notify(control.done));
}

/** pause(address, seen, turns, thread): one turn of waiting for a word to be another than `seen`; fails where a thread has. */
function pause(w: Writer): void {
  const { f } = w, [address, seen, turns, thread] = [0, 1, 2, 3];
  w.load(control.failed);
  w.when(() => f.op("unreachable"));
  f.get(turns); f.constant("i32", spinning); f.op("i32.lt_s");
  w.when(() => f.op("return"));
  f.get(thread); w.load(control.mayWait); f.op("i32.or"); f.op("i32.eqz");
  w.when(() => f.op("return"));
  w.add(control.waiting, 1);
  f.get(address); f.get(seen); f.constant("i64", lookAgain); f.memory("memory.atomic.wait32", 0); f.op("drop");
  w.add(control.waiting, -1);
}

/** barrier(thread): returns when all chunks so far are done. */
function barrier(w: Writer): void {
  const { f } = w, v = f.local("i32"), turns = f.local("i32");
  w.forever(() => {
    w.load(control.done); f.tee(v); f.getGlobal(variable.limit); f.op("i32.sub"); f.constant("i32", 0); f.op("i32.ge_s");
    w.when(() => f.op("return"));
    waitFor(w, control.done, v, turns, () => f.get(0));
    f.branch("br", 0);
  });
}

function waitFor(w: Writer, word: number, seen: number, turns: number, thread: () => void): void {
  const { f } = w;
  f.get(turns); f.constant("i32", 1); f.op("i32.add"); f.setLocal(turns);
  f.constant("i32", word); f.get(seen); f.get(turns); thread();
  w.call("pause");
}

/** close(): returns when all chunks are done and nobody else is in the region. */
function close(w: Writer): void {
  const { f } = w, v = f.local("i32"), turns = f.local("i32");
  f.constant("i32", 0);
  w.call("barrier");
  f.getGlobal(variable.opened); f.op("i32.eqz");
  w.when(() => f.op("return"));
  w.store(control.open, 0);
  w.forever(() => {
    w.load(control.joined); f.tee(v); f.op("i32.eqz");
    w.when(() => f.op("return"));
    waitFor(w, control.joined, v, turns, () => f.constant("i32", 0));
    f.branch("br", 0);
  });
}

/** work(thread): takes part in every region that opens, by `dispatch` of the segment in local `job`, until threads are to end. */
export function writeWork(w: Writer, dispatch: (job: number) => void): void {
  const { f } = w, seen = f.local("i32"), now = f.local("i32"), turns = f.local("i32"), job = f.local("i32");
  w.forever(() => {
    w.load(control.stop);
    w.when(() => f.op("return"));
    w.load(control.epoch); f.tee(now); f.get(seen); f.op("i32.eq");
    w.when(() => {
      f.get(turns); f.constant("i32", 1); f.op("i32.add"); f.tee(turns); f.constant("i32", idling); f.op("i32.lt_s"); f.branch("br_if", 1);
      w.add(control.asleep, 1);
      f.constant("i32", control.epoch); f.get(seen); f.constant("i64", -1n); f.memory("memory.atomic.wait32", 0); f.op("drop");
      w.add(control.asleep, -1);
      f.constant("i32", 0); f.setLocal(turns);
      f.branch("br", 1);
    });
    f.get(now); f.setLocal(seen);
    f.constant("i32", 0); f.setLocal(turns);
    w.add(control.joined, 1);
    w.load(control.open); w.load(control.failed); f.op("i32.eqz"); f.op("i32.and");
    w.when(() => { w.load(control.job); f.setLocal(job); dispatch(job); });
    w.add(control.joined, -1);
    w.load(control.waiting);
    w.when(() => w.notify(control.joined));
    f.branch("br", 0);
  });
}
