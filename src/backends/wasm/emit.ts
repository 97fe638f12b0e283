/**
 * A scheduled, legal program and its memory plan as one WebAssembly module. It exports `memory` and, for every segment
 * (kernel/segments.ts), `run_<index>`, which calls the segment's kernels in order with addresses and sizes: constants
 * where the plan fixes them, else read from its table. Kernels that compile to the same code are one function. Same
 * program, same bytes.
 */
import { invariant, present } from "../../core/assert.ts";
import { dimMul, isSymbolic, type Dim } from "../../core/dim.ts";
import { byteSize } from "../../core/dtype.ts";
import type { Buffer } from "../../kernel/expr.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Program } from "../../kernel/program.ts";
import { segment, type CallStep } from "../../kernel/segments.ts";
import type { MemoryPlan } from "../../memory/plan.ts";
import { encodeFunction, encodeModule, FunctionBuilder, type ModuleSpec, type WasmFunction } from "./assembler.ts";
import type { EmitOptions } from "./emit-context.ts";
import { emitKernel, type KernelFunction } from "./emit-kernel.ts";
import { instructionSet } from "./opcodes.ts";
import { printModule } from "./print.ts";

export type { EmitOptions } from "./emit-context.ts";

export interface WasmCode {
  readonly code: Uint8Array<ArrayBuffer>;
  /** Exported functions `run_0` … */
  readonly segments: number;
  /** Distinct kernel functions: the first kernel that compiled to it, how many calls share it, and its bytes. */
  readonly kernels: readonly { readonly name: string; readonly calls: number; readonly bytes: number }[];
  /** The module as WAT. */
  readonly text: () => string;
}

const pageBytes = 65536;

/**
 * Emits the module. Every kernel must be legal (schedule/legalize.ts); `plan` must have a slot for every size its kernels
 * read and for every symbolic offset of a placement. Memory starts large enough for the plan's fixed part.
 */
export function emitModule(program: Program, plan: MemoryPlan, options: EmitOptions): WasmCode {
  const set = instructionSet();
  const shared = new SharedKernels(options);
  const { segments } = segment(program.steps, options.separateSteps);
  const calls = segments.map((steps) => steps.map((step) => ({ step, target: shared.find(step.kernel) })));
  const runs = calls.map((list, index) => {
    const f = new FunctionBuilder(`run_${index}`, { params: [], results: [] }, set);
    for (const { step, target } of list) emitCall(f, step, target, program, plan);
    return f;
  });
  const kernels = shared.functions;
  const spec: ModuleSpec = {
    functions: [...kernels.map((k) => k.function), ...runs],
    memoryPages: Math.max(1, Math.ceil(plan.fixedEnd / pageBytes)),
    exports: runs.map((_, index) => ({ name: `run_${index}`, function: kernels.length + index })),
  };
  return {
    code: encodeModule(spec),
    segments: segments.length,
    kernels: kernels.map((k) => ({ name: k.function.name, calls: k.calls, bytes: k.bytes })),
    text: () => printModule(spec),
  };
}

interface SharedFunction { readonly index: number; readonly function: WasmFunction; readonly bytes: number; calls: number }
interface Target { readonly shared: SharedFunction; readonly call: KernelFunction }

/** Functions of kernels; equal code and type is one function. */
class SharedKernels {
  readonly functions: SharedFunction[] = [];
  private readonly options: EmitOptions;
  private readonly set = instructionSet();
  private readonly byCode = new Map<string, SharedFunction>();
  private readonly byKernel = new Map<Kernel, Target>();

  constructor(options: EmitOptions) {
    this.options = options;
  }

  find(kernel: Kernel): Target {
    let target = this.byKernel.get(kernel);
    if (!target) this.byKernel.set(kernel, (target = this.emit(kernel)));
    target.shared.calls++;
    return target;
  }
  private emit(kernel: Kernel): Target {
    const call = emitKernel(kernel, this.set, this.options);
    const code = encodeFunction(call.function);
    const key = `${call.function.type.params.length}:${code.join()}`;
    let shared = this.byCode.get(key);
    if (!shared) {
      shared = { index: this.functions.length, function: call.function, bytes: code.length, calls: 0 };
      this.functions.push(shared);
      this.byCode.set(key, shared);
    }
    return { shared, call };
  }
}

function emitCall(f: FunctionBuilder, step: CallStep, target: Target, program: Program, plan: MemoryPlan): void {
  const slots = new Map(plan.dims.map((d, slot) => [d.key, slot]));
  const pushSlot = (slot: number): void => {
    f.constant("i32", plan.tableAddress);
    f.memory("i32.load", 4 * slot);
  };
  const pushDim = (d: Dim): void => {
    if (isSymbolic(d)) pushSlot(present(slots.get(d.key), `slot of size ${d.key} that ${step.kernel.name} reads`));
    else f.constant("i32", d);
  };
  for (const buffer of target.call.pointers) pushAddress(f, buffer, program, plan, pushSlot, pushDim);
  target.call.dims.forEach(pushDim);
  f.call(target.shared.index);
}
function pushAddress(f: FunctionBuilder, buffer: Buffer, program: Program, plan: MemoryPlan, pushSlot: (slot: number) => void, pushDim: (d: Dim) => void): void {
  const { storage, layout } = present(program.placements.get(buffer), `placement of ${buffer.name}`);
  const address = present(plan.addresses.get(storage), `address of ${storage.name}`);
  const size = byteSize(buffer.dtype);
  invariant(size > 0, `${buffer.name} has no bytes`);
  if (address.kind === "fixed" && !isSymbolic(layout.offset)) {
    f.constant("i32", address.address + layout.offset * size);
    return;
  }
  if (address.kind === "fixed") f.constant("i32", address.address);
  else pushSlot(address.slot);
  if (layout.offset === 0) return;
  if (isSymbolic(layout.offset)) {
    pushDim(layout.offset);
    f.constant("i32", size);
    f.op("i32.mul");
  } else f.constant("i32", Number(dimMul(layout.offset, size)));
  f.op("i32.add");
}

