import { describe, expect, it } from "vitest";
import fc from "fast-check";
import { dimMul, dimProduct, symbol, type Dim } from "../core/dim.ts";
import { byteSize } from "../core/dtype.ts";
import { DiagnosticError } from "../core/diagnostic.ts";
import { block } from "../kernel/stmt.ts";
import type { Buffer } from "../kernel/expr.ts";
import { rowMajor, type Kernel } from "../kernel/kernel.ts";
import type { Placement, Program, Step, Storage } from "../kernel/program.ts";
import { liveness } from "./liveness.ts";
import { lowerBound, place, type PlacedBlock } from "./place.ts";
import { planMemory } from "./plan.ts";

const blocks = fc.array(fc.record({ bytes: fc.nat(1000), first: fc.nat(20), length: fc.nat(10) }).map(({ bytes, first, length }) => ({ bytes, first, last: first + length })), { maxLength: 30 });
const overlaps = (list: readonly PlacedBlock[], offsets: readonly number[]): boolean => list.some((a, i) => list.some((b, j) => {
  if (i >= j || a.bytes === 0 || b.bytes === 0 || a.first > b.last || b.first > a.last) return false;
  const x = offsets[i] ?? 0, y = offsets[j] ?? 0;
  return x < y + b.bytes && y < x + a.bytes;
}));

describe("place", () => {
  it("keeps blocks that live together apart, on aligned offsets, at least as large as the lower bound", () => {
    fc.assert(fc.property(blocks, (list) => {
      const { offsets, total } = place(list);
      expect(overlaps(list, offsets)).toBe(false);
      expect(offsets.every((o) => o % 64 === 0)).toBe(true);
      expect(total).toBeGreaterThanOrEqual(lowerBound(list));
      expect(place(list)).toEqual({ offsets, total });
    }), { seed: 3 });
  });
  it("completes a plan around what is placed", () => {
    fc.assert(fc.property(blocks, fc.nat(), (list, pick) => {
      const some = list.map((_, i) => (i * 7 + pick) % 3 !== 0);
      const first = place(list.filter((_, i) => some[i]));
      let n = 0;
      const before = list.map((_, i) => (some[i] ? first.offsets[n++] : undefined));
      const { offsets } = place(list, before);
      expect(overlaps(list, offsets)).toBe(false);
      before.forEach((o, i) => { if (o !== undefined) expect(offsets[i]).toBe(o); });
    }), { seed: 4 });
  });
  it("would be caught overlapping", () => {
    expect(overlaps([{ bytes: 65, first: 0, last: 1 }, { bytes: 1, first: 1, last: 2 }], [0, 64])).toBe(true);
  });
});

/** A program of kernels named by what they read and write: `["a", "b"]` makes b from a. */
class Builder {
  readonly placements = new Map<Buffer, Placement>();
  readonly buffers = new Map<string, Buffer>();
  readonly #shape: readonly Dim[];
  constructor(shape: readonly Dim[]) { this.#shape = shape; }
  buffer(name: string, kind: Storage["kind"] = "arena"): Buffer {
    const known = this.buffers.get(name);
    if (known) return known;
    const buffer: Buffer = { name, dtype: "float32", shape: this.#shape };
    this.buffers.set(name, buffer);
    this.placements.set(buffer, { storage: { name, kind, bytes: dimProduct([...this.#shape, byteSize("float32")]) }, layout: rowMajor(this.#shape, dimMul) });
    return buffer;
  }
  call(from: readonly string[], to: string, inPlace = false): Step {
    const inputs = from.map((n) => this.buffer(n)), output = this.buffer(to), [first] = inputs;
    const kernel: Kernel = { name: to, inputs, outputs: [output], scratch: [], body: block(), ...(inPlace && first ? { inPlace: [{ input: first, output }] } : {}) };
    return { kind: "call", kernel, origin: { label: "Test", nodes: [to] } };
  }
  program(steps: readonly Step[]): Program {
    return { inputs: [{ name: "x", buffer: this.buffer("x") }], outputs: [{ name: "y", buffer: this.buffer("y") }], weights: [], steps, placements: this.placements };
  }
}
const start = (shape: readonly Dim[]): Builder => { const b = new Builder(shape); b.buffer("x", "input"); b.buffer("y", "output"); return b; };

describe("planMemory", () => {
  const chain = (inPlace: boolean): { b: Builder; program: Program } => {
    const b = start([16]);
    return { b, program: b.program([b.call(["x"], "a"), b.call(["a"], "c", inPlace), b.call(["c"], "d", inPlace), b.call(["d"], "y")]) };
  };
  it("reuses memory, and computes in place where a kernel may", () => {
    expect(planMemory(chain(false).program, { dims: [], reuse: true }).peak).toEqual({ bytes: 128, lowerBound: 128 });
    expect(planMemory(chain(false).program, { dims: [], reuse: false }).peak).toEqual({ bytes: 320, lowerBound: 320 });
    const { b, program } = chain(true);
    const plan = planMemory(program, { dims: [], reuse: true });
    const at = (name: string): unknown => { const s = program.placements.get(b.buffer(name))?.storage; return s && plan.addresses.get(s); };
    expect(at("a")).toEqual(at("c"));
    expect(at("c")).toEqual(at("d"));
    expect(at("x")).not.toEqual(at("a"));
  });
  it("does not compute in place of what is read later, or by the same kernel otherwise", () => {
    const b = start([16]);
    const steps = [b.call(["x"], "a"), b.call(["a"], "c", true), b.call(["c", "a"], "y")];
    const plan = planMemory(b.program(steps), { dims: [], reuse: true });
    expect(plan.arena.every((block) => block.storages.length === 1)).toBe(true);
  });
  it("gives branches of an If the same memory, and keeps apart what lives through it", () => {
    const b = start([16]);
    const condition: Buffer = { name: "p", dtype: "bool", shape: [] };
    b.placements.set(condition, { storage: { name: "p", kind: "arena", bytes: 1 }, layout: { strides: [], offset: 0 } });
    const steps: Step[] = [b.call(["x"], "a"), { kind: "if", condition, then: [b.call(["a"], "t"), b.call(["t"], "r")], else: [b.call(["a"], "e"), b.call(["e"], "r")], origin: { label: "If", nodes: [] } }, b.call(["r", "a"], "y")];
    const program = b.program(steps);
    const { lifetimes } = liveness(program);
    const of = (name: string): unknown => { const s = program.placements.get(b.buffer(name))?.storage; return s && lifetimes.get(s); };
    expect(of("t")).toEqual({ first: 2, last: 3 });
    expect(of("e")).toEqual({ first: 4, last: 5 });
    expect(of("r")).toEqual({ first: 3, last: 6 });
    expect(of("a")).toEqual({ first: 0, last: 6 });
  });
  it("keeps what a loop carries for the whole loop", () => {
    const b = start([16]);
    const iteration: Buffer = { name: "i", dtype: "int64", shape: [] };
    b.placements.set(iteration, { storage: { name: "i", kind: "arena", bytes: 8 }, layout: { strides: [], offset: 0 } });
    const body = [b.call(["state"], "tmp"), b.call(["tmp"], "next"), b.call(["outer"], "tmp2")];
    const steps: Step[] = [b.call(["x"], "state"), b.call(["x"], "outer"), { kind: "loop", iteration, body: [...body, b.call(["next"], "state")], carry: [], stack: [], origin: { label: "Loop", nodes: [] } }, b.call(["state"], "y")];
    const program = b.program(steps);
    const { lifetimes } = liveness(program);
    const of = (name: string): unknown => { const s = program.placements.get(b.buffer(name))?.storage; return s && lifetimes.get(s); };
    expect(of("outer")).toEqual({ first: 1, last: 7 });
    expect(of("next")).toEqual({ first: 4, last: 6 });
    expect(of("tmp")).toEqual({ first: 3, last: 4 });
    expect(of("state")).toEqual({ first: 0, last: 8 });
  });
  it("reads addresses of symbolic sizes from the table", () => {
    const n = symbol("N");
    const b = start([n]);
    const plan = planMemory(b.program([b.call(["x"], "a"), b.call(["a"], "y")]), { dims: [n], reuse: true });
    expect(plan.slots).toBe(4);
    expect([...plan.addresses.values()].map((a) => (a.kind === "slot" ? a.slot : -1)).sort()).toEqual([1, 2, 3]);
    expect(plan.peak).toBeUndefined();
  });
  it("refuses what 4 GiB cannot hold", () => {
    const b = start([2 ** 29]);
    const plan = (): unknown => planMemory(b.program([b.call(["x"], "a"), b.call(["a", "x"], "y")]), { dims: [], reuse: true });
    expect(plan).toThrow(DiagnosticError);
    expect(plan).toThrow(/OF5101.*6144 MiB/);
  });
});
