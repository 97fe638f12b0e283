/** Runs one kernel in the interpreter and as WebAssembly on the same memory contents, for tests of scheduling and emission. */
import { invariant, present } from "../../src/core/assert.ts";
import { evaluateDim, type DimBinding } from "../../src/core/dim.ts";
import { byteSize } from "../../src/core/dtype.ts";
import { emitModule, type WasmCode } from "../../src/backends/wasm/emit.ts";
import { relax } from "../../src/backends/wasm/relax.ts";
import { programDims } from "../../src/backends/wasm/program-dims.ts";
import type { Buffer } from "../../src/kernel/expr.ts";
import { interpret, type BufferPlace } from "../../src/kernel/interpret.ts";
import type { Kernel, Layout } from "../../src/kernel/kernel.ts";
import type { Placement, Program, Storage } from "../../src/kernel/program.ts";
import type { MemoryPlan } from "../../src/memory/plan.ts";

export interface KernelRun {
  readonly placements: ReadonlyMap<Buffer, Placement>;
  readonly places: ReadonlyMap<Buffer, BufferPlace>;
  readonly plan: MemoryPlan;
  readonly bytes: number;
  readonly binding: DimBinding;
}

/** Gives every buffer of a kernel a storage of its own, at addresses that leave no room between them. */
export function layOut(kernel: Kernel, layoutOf: (b: Buffer) => Layout, binding: DimBinding, dims: MemoryPlan["dims"] = []): KernelRun {
  const placements = new Map<Buffer, Placement>(), places = new Map<Buffer, BufferPlace>();
  const addresses: Map<Storage, MemoryPlan["addresses"] extends ReadonlyMap<Storage, infer A> ? A : never> = new Map();
  const tableAddress = 64;
  let end = tableAddress + 64 * Math.ceil((4 * dims.length) / 64);
  for (const buffer of [...kernel.inputs, ...kernel.outputs, ...kernel.scratch]) {
    const layout = layoutOf(buffer), size = byteSize(buffer.dtype);
    const strides = layout.strides.map((s) => evaluateDim(s, binding)), offset = evaluateDim(layout.offset, binding);
    const shape = buffer.shape.map((d) => evaluateDim(d, binding));
    const last = shape.some((d) => d === 0) ? 0 : shape.reduce((n, d, i) => n + (d - 1) * (strides[i] ?? 0), offset) + 1;
    const storage: Storage = { name: buffer.name, kind: "arena", bytes: last * size };
    placements.set(buffer, { storage, layout });
    places.set(buffer, { address: end + offset * size, strides });
    addresses.set(storage, { kind: "fixed", address: end });
    end += Math.ceil((last * size) / 8) * 8;
  }
  const plan: MemoryPlan = { tableAddress, dims, slots: dims.length, addresses, fixedEnd: end, arena: [], weightBytes: 0 };
  return { placements, places, plan, bytes: end, binding };
}

const programOf = (kernel: Kernel, run: KernelRun): Program => ({
  inputs: [], outputs: [], weights: [], placements: run.placements, steps: [{ kind: "call", kernel, origin: { label: kernel.name, nodes: [] } }],
});

/** Sizes a legal kernel reads. */
export const dimsOf = (kernel: Kernel, placements: ReadonlyMap<Buffer, Placement>): MemoryPlan["dims"] =>
  programDims({ inputs: [], outputs: [], weights: [], placements, steps: [{ kind: "call", kernel, origin: { label: kernel.name, nodes: [] } }] });

/** Memory after the interpreter ran the kernel. */
export function runInterpreted(kernel: Kernel, run: KernelRun, memory: Uint8Array): Uint8Array<ArrayBuffer> {
  const copy = memory.slice();
  interpret(kernel, copy.buffer, run.places, run.binding);
  return copy;
}

/** Memory after WebAssembly ran a legal kernel, or with `relaxed` its code for relaxed SIMD. */
export function runCompiled(kernel: Kernel, run: KernelRun, memory: Uint8Array, relaxed = false): { memory: Uint8Array<ArrayBuffer>; code: WasmCode } {
  const code = emitModule(programOf(kernel, run), run.plan), module = relaxed ? present(relax(code.code, code.relaxation), "relaxed code") as Uint8Array<ArrayBuffer> : code.code;
  invariant(WebAssembly.validate(module), `${kernel.name} is not valid WebAssembly:\n${code.text()}`);
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(module));
  const wasm = exports["memory"];
  invariant(wasm instanceof WebAssembly.Memory, "exported memory");
  const view = new Uint8Array(wasm.buffer);
  view.set(memory);
  const table = new Int32Array(wasm.buffer);
  run.plan.dims.forEach((d, i) => { table[run.plan.tableAddress / 4 + i] = evaluateDim(d, run.binding); });
  const entry = present(exports["run_0"], "run_0");
  invariant(typeof entry === "function", "run_0 is a function");
  entry();
  return { memory: view.slice(0, run.bytes), code };
}
