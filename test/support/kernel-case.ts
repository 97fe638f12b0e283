/**
 * Runs a kernel before and after scheduling on the same bytes. Memory around every buffer holds a pattern that reads as
 * NaN, so that a stray read shows in the results and a stray write in the pattern.
 */
import { present } from "../../src/core/assert.ts";
import { evaluateDim, type Dim, type DimBinding } from "../../src/core/dim.ts";
import { byteSize, viewBytes, type DType } from "../../src/core/dtype.ts";
import { bytesOf, rowMajorStrides, sizeOf, type Tensor } from "../../src/core/tensor.ts";
import { axisOf, i32, type Axis, type Buffer, type Expr } from "../../src/kernel/expr.ts";
import { dimExpr, constant } from "../../src/kernel/expr.ts";
import { interpret, type BufferPlace } from "../../src/kernel/interpret.ts";
import type { Kernel, Layout } from "../../src/kernel/kernel.ts";
import { packTensor } from "../../src/memory/pack.ts";
import { toQuads } from "../../src/memory/quads.ts";
import type { Placement, Weight } from "../../src/kernel/program.ts";
import { legalize } from "../../src/schedule/legal/legalize.ts";
import { dimsOf, runCompiled, type KernelRun } from "./run-kernel.ts";
import { block, letLocal, loop, type Stmt } from "../../src/kernel/stmt.ts";
import type { EpilogueStore, Structure } from "../../src/kernel/structure.ts";
import { denseLayout, type ScheduleContext } from "../../src/schedule/builder.ts";

/** The naive loops of a structured kernel: its accumulator, then its stores, over `axes`. */
export function naiveBody(axes: readonly Axis[], accumulator: string, accumulate: Expr, stores: readonly EpilogueStore[]): Stmt {
  const inner = block(letLocal(accumulator, accumulate), ...stores.map((s): Stmt => ({ kind: "store", buffer: s.buffer, indices: s.indices, value: s.value })));
  return axes.reduceRight<Stmt>((body, a) => loop(a, constant(0, i32), typeof a.extent === "number" ? constant(a.extent, i32) : dimExpr(a.extent), 1, body), inner);
}

export interface KernelCase {
  readonly kernel: Kernel;
  /** Contents of inputs. */
  readonly data: ReadonlyMap<Buffer, Tensor>;
  /** Inputs whose contents are known when compiling. */
  readonly weights?: ReadonlySet<Buffer>;
  /** Layouts that are not row-major. */
  readonly layouts?: ReadonlyMap<Buffer, Layout>;
  readonly dims?: DimBinding;
}

const unbound: DimBinding = (s) => { throw new Error(`size ${s} is not bound`); };

/** A schedule context for one kernel, with the weights it packs, and those of them that engines with relaxed SIMD hold as quads. */
export function contextOf(c: KernelCase, relaxedSimd = false): { readonly context: ScheduleContext; readonly packed: ReadonlyMap<Buffer, Tensor>; readonly quads: ReadonlyMap<Buffer, Tensor> } {
  const packed = new Map<Buffer, Tensor>(), quads = new Map<Buffer, Tensor>();
  const known = new Map<string, Buffer>();
  const weights = new Map([...(c.weights ?? [])].map((buffer): [Buffer, Weight] => [buffer, { buffer, source: stored(present(c.data.get(buffer), buffer.name), c.layouts?.get(buffer)), pack: { kind: "copy" } }]));
  return {
    packed, quads,
    context: {
      target: { relaxedSimd },
      layout: (buffer) => c.layouts?.get(buffer) ?? denseLayout(buffer.shape),
      weight: (buffer) => weights.get(buffer),
      contents: (weight, ask) => ("input" in weight.source ? undefined : ask(weight.source)),
      packed: (weight, spec, dtype, length) => {
        const key = weight.buffer.name + JSON.stringify(spec);
        const before = known.get(key);
        if (before) return before;
        const buffer: Buffer = { name: `${weight.buffer.name}_packed${known.size}`, dtype, shape: [length] };
        known.set(key, buffer);
        const tensor = packTensor(weight.source as Tensor, spec);
        if (tensor.data.length !== length || tensor.dtype !== dtype) throw new Error(`packed ${tensor.dtype}[${tensor.data.length}], asked for ${dtype}[${length}]`);
        packed.set(buffer, tensor);
        if (spec.kind === "panels" && spec.quads) {
          const data = Int8Array.from(tensor.data as Int8Array);
          toQuads(data, 8 * spec.k);
          quads.set(buffer, { ...tensor, data });
        }
        return buffer;
      },
    },
  };
}

/** A tensor's elements in the order its layout stores them. */
function stored(t: Tensor, layout: Layout | undefined): Tensor {
  if (!layout) return t;
  const data = Float32Array.from(t.data as Float32Array), logical = rowMajorStrides(t.dims);
  for (let i = 0; i < data.length; i++) data[t.dims.reduce((at, d, axis) => at + (Math.floor(i / (logical[axis] ?? 1)) % d) * Number(layout.strides[axis]), 0)] = Number(t.data[i]);
  return { ...t, data };
}

/** Output bytes of a kernel by buffer, each in logical row-major order, as the interpreter or as WebAssembly runs it. */
export function runKernel(c: KernelCase, kernel: Kernel, extra: ReadonlyMap<Buffer, Tensor> = new Map(), engine: "interpreter" | "wasm" = "interpreter", relaxed = false): Map<Buffer, Uint8Array> {
  const binding = c.dims ?? unbound;
  const value = (d: Dim): number => evaluateDim(d, binding);
  const buffers = [...new Set([...kernel.inputs, ...kernel.outputs, ...kernel.scratch])];
  const places = new Map<Buffer, BufferPlace>(), spans: { readonly from: number; readonly to: number }[] = [];
  const guard = 256;
  let end = guard;
  for (const b of buffers) {
    const layout = c.layouts?.get(b) ?? denseLayout(b.shape);
    const strides = layout.strides.map(value), size = byteSize(b.dtype);
    const extent = b.shape.some((d) => value(d) === 0) ? 0 : strides.reduce((n, s, d) => n + s * (value(present(b.shape[d], "dim")) - 1), 1) * size;
    places.set(b, { address: end, strides });
    spans.push({ from: end, to: end + extent });
    end = Math.ceil((end + extent) / 64) * 64 + guard;
  }
  const memory = new ArrayBuffer(end);
  const words = new Uint32Array(memory).fill(0x7fc0beef);
  for (const b of buffers) {
    const tensor = extra.get(b) ?? c.data.get(b);
    if (tensor) eachElement(tensor.dims.length === b.shape.length ? tensor.dims : [tensor.data.length], present(places.get(b), b.name), byteSize(b.dtype), (at, i, size) => new Uint8Array(memory, at, size).set(bytesOf(tensor).subarray(i * size, (i + 1) * size)));
  }
  if (engine === "interpreter") interpret(kernel, memory, places, binding, relaxed);
  else runWasm(c, kernel, memory, places, binding, relaxed);
  const pattern = new Uint8Array(Uint32Array.of(0x7fc0beef).buffer);
  const bytes = new Uint8Array(words.buffer);
  let inside = 0;
  for (let at = 0; at < end; at++) {
    while (inside < spans.length && at >= (spans[inside]?.to ?? 0)) inside++;
    if (at < (spans[inside]?.from ?? end) && bytes[at] !== pattern[at % 4]) throw new Error(`${kernel.name} wrote to byte ${at}, outside every buffer`);
  }
  return new Map(kernel.outputs.map((b) => {
    const dims = b.shape.map(value), size = byteSize(b.dtype), out = new Uint8Array(sizeOf(dims) * size);
    eachElement(dims, present(places.get(b), b.name), size, (at, i) => out.set(bytes.subarray(at, at + size), i * size));
    return [b, out];
  }));
}

/** Legalises and compiles the kernel, and runs it on these bytes. */
function runWasm(c: KernelCase, kernel: Kernel, memory: ArrayBuffer, places: ReadonlyMap<Buffer, BufferPlace>, binding: DimBinding, relaxed: boolean): void {
  const placements = new Map<Buffer, Placement>([...places.keys()].map((b) => [b, { storage: { name: b.name, kind: "arena", bytes: 0 }, layout: c.layouts?.get(b) ?? denseLayout(b.shape) }]));
  const legal = legalize(kernel, placements);
  const run: KernelRun = {
    placements, places, binding, bytes: memory.byteLength,
    plan: {
      tableAddress: memory.byteLength, dims: dimsOf(legal, placements), slots: 0, arena: [], weightBytes: 0, fixedEnd: memory.byteLength + 4096,
      addresses: new Map([...placements].map(([b, p]) => [p.storage, { kind: "fixed", address: present(places.get(b), b.name).address }])),
    },
  };
  new Uint8Array(memory).set(runCompiled(legal, run, new Uint8Array(memory), relaxed).memory);
}

function eachElement(dims: readonly number[], place: BufferPlace, size: number, visit: (address: number, index: number, size: number) => void): void {
  const logical = rowMajorStrides(dims), count = sizeOf(dims);
  for (let i = 0; i < count; i++) {
    let at = place.address;
    dims.forEach((d, axis) => { at += (Math.floor(i / (logical[axis] ?? 1)) % d) * (place.strides[axis] ?? 0) * size; });
    visit(at, i, size);
  }
}

/** Largest difference of the results, relative to the largest expected value; NaN matches NaN. Integers differ by 0 or Infinity. */
export function difference(dtype: DType, expected: Uint8Array, actual: Uint8Array): number {
  const x = viewBytes(dtype, expected), y = viewBytes(dtype, actual);
  if (dtype !== "float32") return expected.every((v, i) => v === actual[i]) ? 0 : Infinity;
  let worst = 0, largest = 0;
  for (let i = 0; i < x.length; i++) {
    const a = Number(x[i]), b = Number(y[i]);
    if (Object.is(a, b) || (Number.isNaN(a) && Number.isNaN(b))) { largest = Math.max(largest, Number.isFinite(a) ? Math.abs(a) : 0); continue; }
    if (!Number.isFinite(a) || !Number.isFinite(b)) return Infinity;
    largest = Math.max(largest, Math.abs(a));
    worst = Math.max(worst, Math.abs(a - b));
  }
  return worst === 0 ? 0 : worst / (largest || 1);
}

/** A kernel around a structure. */
export function structuredKernel(name: string, structure: Structure, inputs: readonly Buffer[], outputs: readonly Buffer[], body: Stmt): Kernel {
  return { name, inputs, outputs, scratch: [], body, structure };
}

/** Small whole numbers: their float sums are exact in any order. */
export function wholeNumbers(dims: readonly number[], seed: number, dtype: DType = "float32", span = 9): Tensor {
  let state = seed * 2654435761 >>> 0;
  const next = (): number => { state = (Math.imul(state, 1664525) + 1013904223) >>> 0; return Math.floor((state / 2 ** 32) * span) - Math.floor(span / 2); };
  const values = Array.from({ length: sizeOf(dims) }, next);
  if (dtype === "float32") return { dtype, dims, data: Float32Array.from(values) };
  if (dtype === "uint8") return { dtype, dims, data: Uint8Array.from(values.map((v) => v + 128)) };
  if (dtype === "int8") return { dtype, dims, data: Int8Array.from(values) };
  if (dtype === "int32") return { dtype, dims, data: Int32Array.from(values) };
  throw new Error(`no whole numbers of ${dtype}`);
}

export const indexOf = (...axes: readonly Axis[]): Expr[] => axes.map(axisOf);
