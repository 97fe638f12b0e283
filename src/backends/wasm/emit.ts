/**
 * A scheduled, legal program and its memory plan as WebAssembly modules. The plain one exports `memory` and, for every
 * segment (kernel/segments.ts), `run_<index>`, which calls the segment's kernels in order with addresses and sizes:
 * constants where the plan fixes them, else read from its table; and `warm_up` (warm-up.ts) where that is worth it. The one
 * for threads shares its kernels (emit-threads.ts).
 * Phases of kernels that compile to the same code are one function. Same program, same bytes.
 */
import { sameBytes } from "../../core/tensor.ts";
import type { Kernel, Phase } from "../../kernel/kernel.ts";
import { phasesOf } from "../../kernel/phases.ts";
import type { Program } from "../../kernel/program.ts";
import { segment } from "../../kernel/segments.ts";
import type { MemoryPlan } from "../../memory/plan.ts";
import { encodeBody, encodeModule, FunctionBuilder, type EncodedBody, type ModuleSpec, type WasmFunction } from "./assembler.ts";
import { CallArguments } from "./call-arguments.ts";
import type { EmitOptions } from "./emit-context.ts";
import { emitPhase } from "./emit-kernel.ts";
import { emitThreads, mayBeWorthSharing } from "./emit-threads.ts";
import { plainSegment, type KernelCall } from "./plain-segment.ts";
import { instructionSet } from "./opcodes.ts";
import { printModule } from "./print.ts";
import { relaxationOf } from "./relax.ts";
import { packParts } from "./splice.ts";
import { emitWarmUp } from "./warm-up.ts";

export type { EmitOptions } from "./emit-context.ts";

export interface WasmCode {
  readonly code: Uint8Array<ArrayBuffer>;
  /** What to change in the code for relaxed SIMD (relax.ts). */
  readonly relaxation: Uint8Array;
  /** What the module for threads has of its own (splice.ts); empty where there is no work for two. */
  readonly threads: Uint8Array;
  /** Exported functions `run_0` … */
  readonly segments: number;
  /** Distinct kernel functions: the first phase that compiled to it, how many calls share it, and its bytes. */
  readonly kernels: readonly { readonly name: string; readonly calls: number; readonly bytes: number }[];
  /** The module as WAT. */
  readonly text: () => string;
}

const pageBytes = 65536;

/**
 * Emits the modules. Every kernel must be legal (schedule/legal/legalize.ts); `plan` must have a slot for every size its kernels
 * read and for every symbolic offset of a placement. Memory starts large enough for the plan's fixed part.
 */
export function emitModule(program: Program, plan: MemoryPlan, options: EmitOptions = {}): WasmCode {
  const set = instructionSet();
  const shared = new SharedKernels();
  const { segments } = segment(program.steps, options.separateSteps);
  const calls = segments.map((steps) => steps.map((step) => shared.find(step.kernel)));
  const args = new CallArguments(program, plan);
  const runs = calls.map((list, index) => {
    const f = new FunctionBuilder(`run_${index}`, { params: [], results: [] }, set);
    plainSegment(f, list, args);
    return f;
  });
  const kernels = shared.functions.map((k) => k.function);
  const memoryPages = Math.max(1, Math.ceil(plan.fixedEnd / pageBytes));
  const warmUp = emitWarmUp(calls.flat(), (index) => shared.functions[index]?.body.bytes.length ?? 1, set);
  const own = [...runs, ...(warmUp ? [warmUp] : [])];
  const spec: ModuleSpec = { functions: [...kernels, ...own], memoryPages, exports: own.map((f, index) => ({ name: f.name, function: kernels.length + index })) };
  const bodies = [...shared.functions.map((k) => k.body), ...own.map(encodeBody)];
  const code = encodeModule(spec, bodies.map((b) => b.bytes));
  return {
    code,
    relaxation: relaxationOf(code, relaxableIn(code, bodies)),
    threads: calls.some(mayBeWorthSharing) ? threadParts(code, bodies, kernels.length, emitThreads(kernels, calls, program, plan, memoryPages, args).own) : new Uint8Array(),
    segments: segments.length,
    kernels: shared.functions.map((k) => ({ name: k.function.name, calls: k.calls, bytes: k.body.bytes.length })),
    text: () => printModule(spec),
  };
}

const lengthOf = (bodies: readonly EncodedBody[]): number => bodies.reduce((n, b) => n + b.bytes.length, 0);

/** Bodies are the last in a module. */
function relaxableIn(code: Uint8Array, bodies: readonly EncodedBody[]): number[] {
  let start = code.length - lengthOf(bodies);
  return bodies.flatMap(({ bytes, relaxable }) => {
    const from = start;
    start += bytes.length;
    return relaxable.map((at) => from + at);
  });
}

function threadParts(code: Uint8Array, bodies: readonly EncodedBody[], kernels: number, own: ReturnType<typeof emitThreads>["own"]): Uint8Array {
  const to = code.length - lengthOf(bodies.slice(kernels));
  return packParts({ ...own, kernels: { from: to - lengthOf(bodies.slice(0, kernels)), to } });
}

interface SharedFunction { readonly index: number; readonly function: WasmFunction; readonly body: EncodedBody; calls: number }

type EmittedPhase = KernelCall["phases"][number];

/** Functions of kernels' phases; equal code and type is one function. */
class SharedKernels {
  readonly functions: SharedFunction[] = [];
  private readonly set = instructionSet();
  private readonly byLength = new Map<number, SharedFunction[]>();
  private readonly byPhase = new Map<Phase, EmittedPhase>();
  private readonly byKernel = new Map<Kernel, KernelCall>();

  find(kernel: Kernel): KernelCall {
    let call = this.byKernel.get(kernel);
    if (!call) this.byKernel.set(kernel, (call = this.emit(kernel)));
    for (const { index } of call.phases) { const f = this.functions[index]; if (f) f.calls++; }
    return call;
  }
  private emit(kernel: Kernel): KernelCall {
    return { kernel, phases: phasesOf(kernel).map((phase, i) => this.phase(phase, i === 0 ? kernel.name : `${kernel.name}_${i + 1}`)) };
  }
  private phase(phase: Phase, name: string): EmittedPhase {
    const like = phase.like && this.byPhase.get(phase.like);
    if (like) return { call: { ...like.call, phase, pointers: [...phase.touched] }, index: like.index };
    const call = emitPhase(phase, name, this.set), emitted = { call, index: this.shared(call.function).index };
    this.byPhase.set(phase, emitted);
    return emitted;
  }
  private shared(f: WasmFunction): SharedFunction {
    const body = encodeBody(f), { length } = body.bytes, alike = this.byLength.get(length) ?? [];
    const known = alike.find((other) => isSame(other, f, body));
    if (known) return known;
    const own: SharedFunction = { index: this.functions.length, function: f, body, calls: 0 };
    this.functions.push(own);
    this.byLength.set(length, [...alike, own]);
    return own;
  }
}

/** Equal code, for relaxed SIMD too, and equal parameters. */
const isSame = (a: SharedFunction, f: WasmFunction, body: EncodedBody): boolean =>
  a.function.type.params.length === f.type.params.length && sameBytes(a.body.bytes, body.bytes) && a.body.relaxable.length === body.relaxable.length && a.body.relaxable.every((at, i) => at === body.relaxable[i]);
