/** Program, plan and code → artifact. Everything the runtime needs goes into the manifest; nothing else does. */
import { externalWeights } from "../artifact/external-weights.ts";
import { writeArtifact, type ArtifactParts } from "../artifact/artifact.ts";
import { dimToJson, type DimJson } from "../core/dim-json.ts";
import type { AddressJson, AttributeValueJson, BufferJson, CheckJson, HeldConstantJson, InputJson, Manifest, PortJson, StateJson, StepJson, WeightJson } from "../artifact/manifest.ts";
import { invariant, present } from "../core/assert.ts";
import { isHeld, withoutSymbols } from "../core/container.ts";
import { dimEqual, dimMul } from "../core/dim.ts";
import { fail } from "../core/diagnostic.ts";
import type { Buffer } from "../kernel/expr.ts";
import { rowMajor } from "../kernel/kernel.ts";
import type { AttributeJson, Program, Storage } from "../kernel/program.ts";
import { phasesOf } from "../kernel/phases.ts";
import { allSteps, segment, type CallStep, type SegmentedStep } from "../kernel/segments.ts";
import type { MemoryPlan } from "../memory/plan.ts";
import { threadScratch } from "../memory/thread-scratch.ts";
import { sizeChecks } from "./size-checks.ts";
import { WeightsSection } from "./weights-section.ts";

export interface PackageInfo {
  readonly tool: string;
  readonly options: Readonly<Record<string, unknown>>;
  readonly model: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly modelChecksum: number;
  readonly checks?: readonly CheckJson[];
}

export interface PackageOptions {
  /** Anything JSON can hold; left out of stripped artifacts. */
  readonly report?: unknown;
  /** Weights in files beside the artifact: one for `each` tensor, or all `combined`. */
  readonly externalWeights?: "each" | "combined";
  /** As the code was emitted. */
  readonly separateSteps?: boolean;
}
export interface Packaged {
  readonly artifact: Uint8Array;
  /** Weights in files of their own, by path relative to the artifact. */
  readonly externalData: Readonly<Record<string, Uint8Array>>;
}

/** One file from a planned and compiled program, and those of its weights where they are to lie outside. */
export function packageProgram(program: Program, plan: MemoryPlan, code: Pick<ArtifactParts, "code" | "relaxation" | "threads">, info: PackageInfo, options: PackageOptions = {}): Packaged {
  const section = new WeightsSection();
  const buffers = new BufferTable(program, plan);
  const inputs = program.inputs.map((i): InputJson => ({ ...portOf(i.name, i.buffer, buffers), ...(i.default ? { default: section.add(i.default) } : {}) }));
  const outputs = program.outputs.map((o): PortJson => ({ ...portOf(o.name, o.buffer, buffers), ...(o.rank === undefined ? {} : { rank: dimToJson(o.rank) }) }));
  const states = program.states?.map(({ input, output, grows }): StateJson => ({ input, output, ...(grows ? { grows: { axis: grows.axis, capacity: grows.capacity, bytes: dimToJson(grows.storage.bytes), at: addressOf(grows.storage, plan) } } : {}) }));
  const weights = weightsOf(program, plan, section);
  const steps = segment(program.steps, options.separateSteps).steps.map((s) => stepOf(s, buffers, section));
  const held = heldConstants(program, buffers, section);
  const manifest: Omit<Manifest, "code"> = { ...info, inputs, outputs, ...(states ? { states } : {}), memory: { ...memoryOf(plan), ...(code.threads?.length ? { threadScratch: threadScratchOf(program) } : {}) }, buffers: buffers.list, steps, weights, ...(held.length ? { held } : {}) };
  const report = options.report === undefined ? {} : { report: options.report };
  if (options.externalWeights === undefined) return { artifact: writeArtifact({ manifest, ...code, weights: section.bytes(), ...report }), externalData: {} };
  const { pieces, files } = externalWeights(options.externalWeights === "each" ? section.pieces : [{ offset: 0, bytes: section.bytes() }]);
  return { artifact: writeArtifact({ manifest: { ...manifest, external: pieces }, ...code, weights: new Uint8Array(), ...report }), externalData: files };
}

/** Buffers that the runtime touches, each with its number. */
class BufferTable {
  readonly list: BufferJson[] = [];
  readonly #numbers = new Map<Buffer, number>();
  readonly #program: Program;
  readonly #plan: MemoryPlan;

  constructor(program: Program, plan: MemoryPlan) {
    this.#program = program;
    this.#plan = plan;
  }

  number(buffer: Buffer): number {
    const known = this.#numbers.get(buffer);
    if (known !== undefined) return known;
    const index = this.list.length;
    this.#numbers.set(buffer, index);
    this.list.push(this.#describe(buffer));
    return index;
  }

  #describe(buffer: Buffer): BufferJson {
    const { name, dtype } = buffer;
    const dims = buffer.shape.map(dimToJson);
    if (isHeld(buffer)) return { name, dtype, dims, ...(buffer.container ? { container: withoutSymbols(buffer.container) } : {}) };
    const { storage, layout } = present(this.#program.placements.get(buffer), `placement of ${name}`);
    const dense = rowMajor(buffer.shape, dimMul).strides;
    const plain = layout.strides.every((s, d) => dimEqual(s, dense[d] ?? -1) || buffer.shape[d] === 1);
    return {
      name, dtype, dims, at: addressOf(storage, this.#plan),
      ...(layout.offset === 0 ? {} : { offset: dimToJson(layout.offset) }),
      ...(plain ? {} : { strides: layout.strides.map(dimToJson) }),
    };
  }
}

function addressOf(storage: Storage, plan: MemoryPlan): AddressJson {
  const address = present(plan.addresses.get(storage), `address of ${storage.name}`);
  return address.kind === "fixed" ? address.address : { slot: address.slot };
}

const portOf = (name: string, buffer: Buffer, buffers: BufferTable): PortJson =>
  ({ name, dtype: buffer.dtype, dims: buffer.shape.map(dimToJson), ...(buffer.container ? { container: withoutSymbols(buffer.container) } : {}), buffer: buffers.number(buffer) });

function memoryOf(plan: MemoryPlan): Manifest["memory"] {
  return {
    table: plan.tableAddress, sizes: plan.dims.map(dimToJson), slots: plan.slots, fixedEnd: plan.fixedEnd,
    arena: plan.arena.map((b) => ({ bytes: dimToJson(b.storage.bytes), ...(b.where.length ? { where: b.where.map(dimToJson) } : {}), first: b.first, last: b.last, at: addressOf(b.storage, plan) })),
    weightBytes: plan.weightBytes, ...(plan.peak ? { peak: plan.peak } : {}),
  };
}

/** The distinct needs of kernels. */
function threadScratchOf(program: Program): DimJson[] {
  const needs = new Map<string, DimJson>();
  for (const s of allSteps(program.steps)) {
    if (s.kind !== "call") continue;
    const json = dimToJson(threadScratch(s.kernel).bytes);
    if (json !== 0) needs.set(JSON.stringify(json), json);
  }
  return [...needs.values()];
}

function weightsOf(program: Program, plan: MemoryPlan, section: WeightsSection): WeightJson[] {
  const done = new Set<Storage>();
  const out: WeightJson[] = [];
  for (const w of program.weights) {
    const { storage } = present(program.placements.get(w.buffer), `placement of ${w.buffer.name}`);
    if (done.has(storage)) continue;
    done.add(storage);
    if (storage.kind === "held") continue;
    const at = addressOf(storage, plan), bytes = storage.bytes;
    if (typeof at !== "number" || typeof bytes !== "number") fail("OF5102", `the size of weight '${storage.name}' is not known`);
    if (bytes === 0) continue;
    if ("input" in w.source) out.push({ at, bytes, source: w.source, ...(w.pack.kind === "copy" ? {} : { pack: w.pack }) });
    else out.push({ at, bytes, ...(w.stored ? section.addNarrow(w.source, w.pack, w.stored) : section.addPacked(w.source, w.pack)), ...(w.pack.kind === "panels" && w.pack.quads ? { quads: 8 * w.pack.k } : {}) });
  }
  return out;
}

/** Constants that have no place in memory. */
function heldConstants(program: Program, buffers: BufferTable, section: WeightsSection): HeldConstantJson[] {
  return program.weights.filter((w) => isHeld(w.buffer)).map(({ buffer, source }) => {
    invariant(!("input" in source), `${buffer.name} is held and overridable`);
    return { buffer: buffers.number(buffer), data: section.add(source) };
  });
}

function callOf({ kernel, origin }: CallStep): readonly [string, string, number?] {
  const functions = phasesOf(kernel).length;
  return functions === 1 ? [kernel.name, origin.label] : [kernel.name, origin.label, functions];
}

function stepOf(step: SegmentedStep, buffers: BufferTable, section: WeightsSection): StepJson {
  const number = (b: Buffer | undefined): number | null => (b ? buffers.number(b) : null);
  switch (step.kind) {
    case "segment": return { run: step.index, calls: step.calls.map(callOf) };
    case "host": return {
      host: step.op, domain: step.domain, label: step.origin.label,
      attributes: Object.fromEntries(Object.entries(step.attributes).map(([k, v]) => [k, attributeOf(v, section)])),
      inputs: step.inputs.map(number), outputs: step.outputs.map(number),
    };
    case "check": return { check: [buffers.number(step.low), buffers.number(step.high)], sizes: step.sizes.map(dimToJson), node: step.node, value: step.value };
    case "move": return { move: step.moves.map((m) => [buffers.number(m.from), buffers.number(m.to)] as const) };
    case "if": {
      const { condition } = step.step;
      const branch = (list: readonly SegmentedStep[]): StepJson[] => list.map((s) => stepOf(s, buffers, section));
      const { agreements } = step.step, checks = [sizeChecks(agreements?.then ?? []), sizeChecks(agreements?.else ?? [])] as const;
      return {
        if: "predicate" in condition ? { predicate: dimToJson(condition.predicate) } : buffers.number(condition), then: branch(step.then), else: branch(step.else),
        ...(checks.some((c) => c.length) ? { checks } : {}),
      };
    }
    case "loop": {
      const { count, condition, next, iteration, carry, stack } = step.step, checks = sizeChecks(step.step.agreements ?? []);
      return {
        loop: step.body.map((s) => stepOf(s, buffers, section)),
        count: count && "size" in count ? { size: dimToJson(count.size) } : number(count),
        condition: number(condition), next: number(next), iteration: number(iteration),
        carry: carry.map((c) => [buffers.number(c.initial), buffers.number(c.input), buffers.number(c.next), number(c.result)] as const),
        stack: stack.map((s) => [buffers.number(s.from), buffers.number(s.to)] as const),
        ...(checks.length ? { checks } : {}),
      };
    }
  }
}

/** JSON has no NaN, infinities or negative zero. */
const isPlain = (n: number): boolean => Number.isFinite(n) && !Object.is(n, -0);
const spell = (n: number): string => (Object.is(n, -0) ? "-0" : String(n));

function attributeOf(value: AttributeJson, section: WeightsSection): AttributeValueJson {
  if (typeof value === "number") return isPlain(value) ? value : { float: spell(value) };
  if (typeof value !== "object") return value;
  if ("tensor" in value) return { tensor: section.add(value.tensor) };
  const numbers = value.filter((v): v is number => typeof v === "number");
  return numbers.length === value.length && !numbers.every(isPlain) ? { floats: numbers.map(spell) } : (value as readonly number[] | readonly string[]);
}
