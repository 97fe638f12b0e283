/**
 * The module for threads: the kernels of the plain module, and around them the segments as all threads run them (see
 * thread-protocol.ts). It imports the memory that threads share. `run_<index>` runs a segment as the first thread,
 * `work(thread)` takes part as another one. A segment that has no work for two is run by the first thread alone, and so is
 * every one while the number of threads in memory is 1.
 */
import { isSymbolic } from "../../core/dim.ts";
import type { Buffer } from "../../kernel/expr.ts";
import type { PhaseSplit } from "../../kernel/kernel.ts";
import type { Program } from "../../kernel/program.ts";
import { control } from "../../memory/control.ts";
import type { MemoryPlan } from "../../memory/plan.ts";
import { threadScratch } from "../../memory/thread-scratch.ts";
import { encodeFunction, encodeHead, concatenate, FunctionBuilder, type ModuleSpec, type ValueType, type WasmFunction } from "./assembler.ts";
import { leastWork } from "../../schedule/threads/split-work.ts";
import type { CallArguments } from "./call-arguments.ts";
import { plainSegment, type KernelCall } from "./plain-segment.ts";
import { Hazards } from "./hazards.ts";
import { instructionSet } from "./opcodes.ts";
import type { OwnParts } from "./splice.ts";
import { protocolFunctions, variable, variables, writeWork, Writer } from "./thread-protocol.ts";

export interface ThreadModule {
  readonly spec: ModuleSpec;
  /** What it has of its own; where the kernels' bodies lie is for the plain module to tell. */
  readonly own: Pick<OwnParts, "head" | "tail" | "functions">;
}

/** The most pages that a memory may have. */
const mostPages = 65536;

export function emitThreads(kernels: readonly WasmFunction[], segments: readonly (readonly KernelCall[])[], program: Program, plan: MemoryPlan, memoryPages: number, args: CallArguments): ThreadModule {
  const set = instructionSet(), first = kernels.length;
  const shared = protocolFunctions(set, first);
  const functions: FunctionBuilder[] = [...shared];
  const add = (name: string, params: readonly ValueType[], write: (w: Writer) => void): number => {
    const f = new FunctionBuilder(name, { params, results: [] }, set);
    write(new Writer(f, first));
    functions.push(f);
    return first + functions.length - 1;
  };
  const shareable = segments.map((calls, i) => (mayBeWorthSharing(calls) ? add(`segment_${i}`, ["i32"], (w) => sharedSegment(w, calls, new Hazards(program, plan), args)) : undefined));
  const exports = segments.map((calls, i) => {
    const segment = shareable[i];
    return { name: `run_${i}`, function: add(`run_${i}`, [], (w) => (segment === undefined ? plainSegment(w.f, calls, args) : firstThread(w, i, segment, calls, args))) };
  });
  const work = add("work", ["i32"], (w) => writeWork(w, (job) => shareable.forEach((segment, i) => {
    if (segment === undefined) return;
    w.f.get(job); w.f.constant("i32", i); w.f.op("i32.eq");
    w.when(() => { w.f.get(0); w.f.call(segment); });
  })));
  const spec: ModuleSpec = { functions: [...kernels, ...functions], memoryPages, exports: [...exports, { name: "work", function: work }], globals: variables, sharedPages: mostPages };
  return { spec, own: { head: encodeHead(spec), tail: concatenate(functions.map(encodeFunction)), functions: spec.functions.length } };
}

/** How many phases can be shared in the time of a smallest piece of work. */
const phasesForPiece = 3;
const phasesOf = (calls: readonly KernelCall[]): number => calls.reduce((n, c) => n + c.phases.length, 0);
const splitsOf = (calls: readonly KernelCall[]): readonly PhaseSplit[] => calls.flatMap((c) => c.phases.flatMap((p) => p.call.phase.split ?? []));
/** Smallest pieces that a split's work makes; none where there is not work for two. */
const piecesOf = (total: number, grain: number): number => (total >= 2 * grain ? Math.floor(total / grain) : 0);

/**
 * A segment is worth sharing where its pieces take longer than sharing its phases. False where its sizes are known and too
 * small.
 */
export function mayBeWorthSharing(calls: readonly KernelCall[]): boolean {
  const splits = splitsOf(calls);
  if (splits.some((s) => isSymbolic(s.outer) || isSymbolic(s.inner))) return true;
  return splits.length > 0 && splits.reduce((n, s) => n + piecesOf(Number(s.outer) * Number(s.inner), s.grain), 0) >= phasesOf(calls) / phasesForPiece;
}

/** What the first thread does: it shares the segment where there are others and the sizes of this run make that worthwhile. */
function firstThread(w: Writer, job: number, segment: number, calls: readonly KernelCall[], args: CallArguments): void {
  const { f } = w, open = splitsOf(calls).filter((s) => isSymbolic(s.outer) || isSymbolic(s.inner));
  const others = (): void => { w.load(control.threads); f.constant("i32", 1); f.op("i32.gt_s"); };
  const either = (): void => {
    f.begin("if");
    openSegment(w, job, segment);
    f.else();
    plainSegment(f, calls, args);
    f.end();
  };
  if (open.length === 0) { others(); return either(); }
  const pieces = f.local("i32"), total = f.local("i32");
  f.constant("i32", splitsOf(calls).reduce((n, s) => (open.includes(s) ? n : n + piecesOf(Number(s.outer) * Number(s.inner), s.grain)), 0));
  f.setLocal(pieces);
  for (const { outer, inner, grain } of open) {
    args.size(f, outer); args.size(f, inner); f.op("i32.mul"); f.tee(total);
    f.constant("i32", 2 * grain); f.op("i32.ge_s");
    w.when(() => { f.get(pieces); f.get(total); f.constant("i32", grain); f.op("i32.div_u"); f.op("i32.add"); f.setLocal(pieces); });
  }
  f.get(pieces); f.constant("i32", Math.ceil(phasesOf(calls) / phasesForPiece)); f.op("i32.ge_s");
  others();
  f.op("i32.and");
  either();
}

/** What the first thread does around a segment that all run. */
function openSegment(w: Writer, job: number, segment: number): void {
  const { f } = w;
  for (const [word, value] of [[control.job, job], [control.taken, 0], [control.done, 0]] as const) w.store(word, value);
  for (const global of [variable.opened, variable.work]) { f.constant("i32", 0); f.setGlobal(global); }
  f.constant("i32", 0);
  f.call(segment);
  w.call("close");
}

/** A segment as every thread runs it; its parameter is the thread's number. */
function sharedSegment(w: Writer, calls: readonly KernelCall[], hazards: Hazards, args: CallArguments): void {
  const { f } = w, scratch = f.local("i32");
  f.constant("i32", 0); f.setGlobal(variable.limit);
  w.load(control.scratch); f.get(0); f.constant("i32", 1); f.op("i32.sub"); w.load(control.scratchBytes); f.op("i32.mul"); f.op("i32.add"); f.setLocal(scratch);
  for (const { kernel, phases } of calls) {
    const own = threadScratch(kernel).offsets;
    const address = (buffer: Buffer): void => {
      args.address(f, buffer);
      const offset = own.get(buffer);
      if (offset === undefined) return;
      // The first thread's is in the arena.
      f.get(scratch); args.size(f, offset); f.op("i32.add");
      f.get(0); f.op("i32.eqz"); f.op("select");
    };
    for (const { call, index } of phases) {
      if (hazards.starts(kernel, call.phase)) { f.get(0); w.call("barrier"); }
      const body = (): void => {
        call.pointers.forEach(address);
        for (const d of call.dims) args.size(f, d);
        if (call.phase.split) { f.getGlobal(variable.from); f.getGlobal(variable.to); }
        f.call(index);
        w.call("finish");
      };
      const { split } = call.phase;
      if (!split) { w.call("single"); w.when(body); continue; }
      args.size(f, split.outer); args.size(f, split.inner); f.constant("i32", split.grain); f.constant("i32", Math.max(1, Math.floor(split.work / leastWork))); f.get(0);
      w.call("begin");
      w.forever(() => { w.call("take"); w.when(() => { body(); f.branch("br", 1); }); });
    }
  }
}
