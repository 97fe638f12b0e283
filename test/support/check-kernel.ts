/** Holds a kernel's schedule, legal form and WebAssembly against its naive loops, element by element. */
import { expect } from "vitest";
import { dimMul, evaluateDim, type Dim } from "../../src/core/dim.ts";
import { byteSize, type DType } from "../../src/core/dtype.ts";
import { axisOf, constant, dimExpr, i32, type Axis, type Buffer, type Expr } from "../../src/kernel/expr.ts";
import { rowMajor, type Kernel, type Layout } from "../../src/kernel/kernel.ts";
import { printKernel } from "../../src/kernel/print.ts";
import { loop, type Stmt } from "../../src/kernel/stmt.ts";
import { visitStmt } from "../../src/kernel/traverse.ts";
import { legalize } from "../../src/schedule/legal/legalize.ts";
import { scheduleLoops } from "../../src/schedule/loops/loops.ts";
import { dimsOf, layOut, runCompiled, runInterpreted, type KernelRun } from "./run-kernel.ts";

export const dense = (b: Buffer): Layout => rowMajor(b.shape, dimMul);
export const over = (axes: readonly Axis[], body: Stmt): Stmt => axes.reduceRight<Stmt>((s, a) => loop(a, constant(0, i32), dimExpr(a.extent), 1, s), body);
export const axesOf = (shape: readonly Dim[]): Axis[] => shape.map((extent, d) => ({ name: `i${d}`, extent }));
export const buffer = (name: string, dtype: DType, shape: readonly Dim[]): Buffer => ({ name, dtype, shape });

/** out[axes] = value(axes) */
export function mapKernel(inputs: Buffer[], out: Buffer, value: (...at: Expr[]) => Expr): Kernel {
  const axes = axesOf(out.shape), at = axes.map(axisOf);
  return { name: "map", inputs, outputs: [out], scratch: [], body: over(axes, { kind: "store", buffer: out, indices: at, value: value(...at) }) };
}

export interface Setup { readonly layoutOf?: (b: Buffer) => Layout; readonly sizes?: Readonly<Record<string, number>>; readonly fill?: (b: Buffer, i: number) => number }

/** Fills inputs with values that include what is awkward. */
export function memoryFor(kernel: Kernel, run: KernelRun, setup: Setup): Uint8Array {
  const memory = new Uint8Array(run.bytes).fill(0xff);
  const view = new DataView(memory.buffer);
  for (const b of kernel.inputs) {
    const place = run.places.get(b);
    if (!place) continue;
    const shape = b.shape.map((d) => evaluateDim(d, run.binding));
    const total = shape.reduce((n, d) => n * d, 1);
    for (let flat = 0; flat < total; flat++) {
      let rest = flat, offset = 0;
      for (let d = shape.length - 1; d >= 0; d--) { offset += (rest % (shape[d] ?? 1)) * (place.strides[d] ?? 0); rest = Math.floor(rest / (shape[d] ?? 1)); }
      write(view, b.dtype, place.address, offset, setup.fill ? setup.fill(b, flat) : awkward(b.dtype, flat));
    }
  }
  return memory;
}
const awkward = (dtype: DType, i: number): number => {
  const x = Math.sin(i * 12.9898) * 43758.5453, fraction = x - Math.floor(x);
  if (dtype === "bool") return fraction < 0.5 ? 0 : 1;
  if (!dtype.startsWith("float") && dtype !== "bfloat16") return Math.floor(fraction * 256) - 128;
  if (i % 97 === 13) return [NaN, Infinity, -Infinity, -0, 1e-40, 3e38][Math.floor(i / 97) % 6] ?? 0;
  return (fraction - 0.5) * 8;
};
function write(view: DataView, dtype: DType, base: number, at: number, x: number): void {
  switch (dtype) {
    case "float32": view.setFloat32(base + 4 * at, x, true); return;
    case "float64": view.setFloat64(base + 8 * at, x, true); return;
    case "int64": case "uint64": view.setBigInt64(base + 8 * at, BigInt(Math.trunc(x)), true); return;
    case "int32": case "uint32": view.setInt32(base + 4 * at, x, true); return;
    case "float16": case "bfloat16": case "int16": case "uint16": view.setInt16(base + 2 * at, dtype.endsWith("t16") ? x * 1000 : x, true); return;
    default: view.setInt8(base + at, x);
  }
}

/** Elements of the outputs, NaNs as one. */
export function outputsOf(kernel: Kernel, run: KernelRun, memory: Uint8Array): number[] {
  const view = new DataView(memory.buffer, memory.byteOffset);
  return kernel.outputs.flatMap((b) => {
    const place = run.places.get(b);
    const shape = b.shape.map((d) => evaluateDim(d, run.binding));
    const total = shape.reduce((n, d) => n * d, 1);
    return Array.from({ length: total }, (_, flat) => {
      let rest = flat, offset = 0;
      for (let d = shape.length - 1; d >= 0; d--) { offset += (rest % (shape[d] ?? 1)) * (place?.strides[d] ?? 0); rest = Math.floor(rest / (shape[d] ?? 1)); }
      const base = place?.address ?? 0;
      switch (b.dtype) {
        case "float32": return view.getFloat32(base + 4 * offset, true);
        case "float64": return view.getFloat64(base + 8 * offset, true);
        case "int64": case "uint64": return Number(view.getBigInt64(base + 8 * offset, true));
        case "int32": case "uint32": return view.getInt32(base + 4 * offset, true);
        case "float16": case "bfloat16": case "int16": case "uint16": return view.getUint16(base + 2 * offset, true);
        default: return view.getUint8(base + offset);
      }
    });
  });
}

export /** The same run with an output in an input's memory, where their layouts agree. */
function inPlaceOf(run: KernelRun, input: Buffer, output: Buffer): KernelRun | undefined {
  const from = run.placements.get(input), to = run.placements.get(output), place = run.places.get(input);
  const address = from && run.plan.addresses.get(from.storage);
  if (!from || !to || !place || !address || from.layout.offset !== to.layout.offset) return undefined;
  if (place.strides.some((s, d) => s !== run.places.get(output)?.strides[d])) return undefined;
  return { ...run, places: new Map([...run.places, [output, place]]), plan: { ...run.plan, addresses: new Map([...run.plan.addresses, [to.storage, address]]) } };
}

/** Bytes that belong to outputs. */
function outputBytes(kernel: Kernel, run: KernelRun): Uint8Array {
  const owned = new Uint8Array(run.bytes);
  for (const b of kernel.outputs) {
    const place = run.places.get(b), size = byteSize(b.dtype);
    const shape = b.shape.map((d) => evaluateDim(d, run.binding));
    const total = shape.reduce((n, d) => n * d, 1);
    for (let flat = 0; flat < total; flat++) {
      let rest = flat, offset = 0;
      for (let d = shape.length - 1; d >= 0; d--) { offset += (rest % (shape[d] ?? 1)) * (place?.strides[d] ?? 0); rest = Math.floor(rest / (shape[d] ?? 1)); }
      owned.fill(1, (place?.address ?? 0) + offset * size, (place?.address ?? 0) + (offset + 1) * size);
    }
  }
  return owned;
}

interface Outcome { readonly scheduled: Kernel; readonly vectors: boolean; readonly loops: number }

/** naive = scheduled, naive legal = scheduled legal = WebAssembly; `tolerance` is relative, for reductions of floats. */
export function check(kernel: Kernel, setup: Setup = {}, tolerance = 0): Outcome {
  const layoutOf = setup.layoutOf ?? dense;
  const binding = (s: string): number => setup.sizes?.[s] ?? 0;
  const placed = layOut(kernel, layoutOf, binding);
  const scheduled = scheduleLoops(kernel, placed.placements);
  const legal = legalize(scheduled, placed.placements);
  const run = layOut(kernel, layoutOf, binding, dimsOf(legal, placed.placements));
  const memory = memoryFor(kernel, run, setup);
  const naive = outputsOf(kernel, run, runInterpreted(kernel, run, memory));
  const interpreted = outputsOf(kernel, run, runInterpreted(scheduled, run, memory));
  const same = (got: number[], want: number[], exact: boolean): void => {
    got.forEach((g, i) => {
      const w = want[i] ?? NaN;
      if (Object.is(g, w) || (!exact && Math.abs(g - w) <= tolerance * Math.max(1, Math.abs(w)))) return;
      expect(g, `element ${i} of\n${printKernel(kernel)}\nscheduled as\n${printKernel(scheduled)}\nlegal\n${printKernel(legal)}`).toBe(w);
    });
  };
  same(interpreted, naive, tolerance === 0);
  // Functions are polynomials from here on: the naive loops with the same ones say what is right.
  const legalMemory = runInterpreted(legal, run, memory);
  same(outputsOf(kernel, run, legalMemory), outputsOf(kernel, run, runInterpreted(legalize(kernel, placed.placements), run, memory)), tolerance === 0);
  const compiled = runCompiled(legal, run, memory).memory;
  same(outputsOf(kernel, run, compiled), outputsOf(kernel, run, legalMemory), true);
  const owned = outputBytes(kernel, run);
  // The table of sizes is the runner's own.
  const start = run.plan.tableAddress + 4 * run.plan.slots;
  const stray = compiled.findIndex((byte, i) => i >= start && owned[i] === 0 && byte !== memory[i]);
  expect(stray, `a stray write of\n${printKernel(scheduled)}`).toBe(-1);
  for (const pair of kernel.inPlace ?? []) {
    const shared = inPlaceOf(run, pair.input, pair.output);
    if (shared) same(outputsOf(kernel, shared, runCompiled(legal, shared, memory).memory), outputsOf(kernel, run, compiled), true);
  }
  let vectors = false, loops = 0;
  visitStmt(scheduled.body, (s) => { if (s.kind === "storeAt" && s.value.type.lanes > 1) vectors = true; if (s.kind === "for") loops++; });
  return { scheduled, vectors, loops };
}

