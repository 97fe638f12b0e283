/**
 * A scheduled, legal program and its memory plan as WebAssembly modules. The plain one exports `memory` and, for every
 * segment (kernel/segments.ts), `run_<index>`, which calls the segment's kernels in order with addresses and sizes:
 * constants where the plan fixes them, else read from its table. The one for threads shares its kernels (emit-threads.ts).
 * Phases of kernels that compile to the same code are one function. Same program, same bytes.
 */
import type { Kernel } from "../../kernel/kernel.ts";
import type { Program } from "../../kernel/program.ts";
import { segment } from "../../kernel/segments.ts";
import type { MemoryPlan } from "../../memory/plan.ts";
import { encodeFunction, encodeModule, FunctionBuilder, type ModuleSpec, type WasmFunction } from "./assembler.ts";
import { CallArguments } from "./call-arguments.ts";
import type { EmitOptions } from "./emit-context.ts";
import { emitKernel } from "./emit-kernel.ts";
import { emitThreads, mayBeWorthSharing } from "./emit-threads.ts";
import { plainSegment, type KernelCall } from "./plain-segment.ts";
import { instructionSet } from "./opcodes.ts";
import { printModule } from "./print.ts";
import { packParts } from "./splice.ts";

export type { EmitOptions } from "./emit-context.ts";

export interface WasmCode {
  readonly code: Uint8Array<ArrayBuffer>;
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
 * Emits the modules. Every kernel must be legal (schedule/legalize.ts); `plan` must have a slot for every size its kernels
 * read and for every symbolic offset of a placement. Memory starts large enough for the plan's fixed part.
 */
export function emitModule(program: Program, plan: MemoryPlan, options: EmitOptions): WasmCode {
  const set = instructionSet();
  const shared = new SharedKernels(options);
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
  const spec: ModuleSpec = { functions: [...kernels, ...runs], memoryPages, exports: runs.map((_, index) => ({ name: `run_${index}`, function: kernels.length + index })) };
  const code = encodeModule(spec);
  return {
    code,
    threads: calls.some(mayBeWorthSharing) ? threadParts(code, shared, runs, emitThreads(kernels, calls, program, plan, memoryPages, args).own) : new Uint8Array(),
    segments: segments.length,
    kernels: shared.functions.map((k) => ({ name: k.function.name, calls: k.calls, bytes: k.bytes })),
    text: () => printModule(spec),
  };
}

function threadParts(code: Uint8Array, shared: SharedKernels, runs: readonly WasmFunction[], own: ReturnType<typeof emitThreads>["own"]): Uint8Array {
  const to = code.length - runs.reduce((n, f) => n + encodeFunction(f).length, 0);
  return packParts({ ...own, kernels: { from: to - shared.functions.reduce((n, k) => n + k.bytes, 0), to } });
}

interface SharedFunction { readonly index: number; readonly function: WasmFunction; readonly bytes: number; calls: number }

/** Functions of kernels' phases; equal code and type is one function. */
class SharedKernels {
  readonly functions: SharedFunction[] = [];
  private readonly options: EmitOptions;
  private readonly set = instructionSet();
  private readonly byCode = new Map<string, SharedFunction>();
  private readonly byKernel = new Map<Kernel, KernelCall>();

  constructor(options: EmitOptions) {
    this.options = options;
  }

  find(kernel: Kernel): KernelCall {
    let call = this.byKernel.get(kernel);
    if (!call) this.byKernel.set(kernel, (call = this.emit(kernel)));
    for (const { index } of call.phases) { const f = this.functions[index]; if (f) f.calls++; }
    return call;
  }
  private emit(kernel: Kernel): KernelCall {
    const phases = emitKernel(kernel, this.set, this.options).map((call) => {
      const code = encodeFunction(call.function);
      const key = `${call.function.type.params.length}:${code.join()}`;
      let shared = this.byCode.get(key);
      if (!shared) {
        shared = { index: this.functions.length, function: call.function, bytes: code.length, calls: 0 };
        this.functions.push(shared);
        this.byCode.set(key, shared);
      }
      return { call, index: shared.index };
    });
    return { kernel, phases };
  }
}
