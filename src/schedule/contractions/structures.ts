/**
 * Rebuilds structured kernels (contractions, convolutions, attention, recurrences) as register-tiled loops, and packs
 * the weights they read. The new loops compute what the naive ones do, up to the order of float additions.
 */
import { assertNever, present } from "../../core/assert.ts";
import { byteSize, type DType } from "../../core/dtype.ts";
import { mapNested, touchedBy } from "../../kernel/accesses.ts";
import { AlikeKernels } from "../../kernel/alike.ts";
import type { Buffer } from "../../kernel/expr.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { PackSpec, Placement, Program, Step, Storage, Weight } from "../../kernel/program.ts";
import { allSteps } from "../../kernel/segments.ts";
import { block, type Stmt } from "../../kernel/stmt.ts";
import type { ConvStructure } from "../../kernel/structure.ts";
import { visitExpr, visitExprsOf, visitStmt } from "../../kernel/traverse.ts";
import { signatureOf } from "../choices.ts";
import { denseLayout, KernelBuilder, type ScheduleContext, type ScheduleTarget } from "../builder.ts";
import { Asked } from "./asked.ts";
import { scheduleAttention } from "./attention.ts";
import { convWithTables, matMulWithTables } from "./column-tables.ts";
import { scheduleConvolution } from "./convolution.ts";
import { scheduleMatMul } from "./matmul.ts";
import { schedulePoolStrips } from "./pool-strips.ts";
import { scheduleRecurrence } from "./recurrence.ts";

/**
 * The kernel with its loops rebuilt and its structure gone; undefined where its structure has no schedule (the naive
 * loops are then scheduled like any others).
 */
export function scheduleStructure(kernel: Kernel, context: ScheduleContext): Kernel | undefined {
  const b = new KernelBuilder(kernel.name, context, context.target.choices?.[signatureOf(kernel) ?? ""]);
  const loops = structureLoops(b, kernel);
  if (!loops) return undefined;
  const body = b.asShared(loops);
  const used = buffersOf(body);
  const { structure: _, inPlace, shared: _shared, ...rest } = kernel;
  const operands = mainOperands(kernel);
  const kept = inPlace?.filter((pair) => !operands.has(pair.input));
  return {
    ...rest, body,
    inputs: [...kernel.inputs, ...b.addedInputs].filter((x) => used.has(x)),
    scratch: b.scratch.filter((x) => used.has(x)),
    ...(b.sharedScratch.length > 0 ? { shared: b.sharedScratch } : {}),
    ...(kept && kept.length > 0 ? { inPlace: kept } : {}),
  };
}

function structureLoops(b: KernelBuilder, kernel: Kernel): Stmt | undefined {
  const { structure } = kernel, before: Stmt[] = [];
  const behind = (body: Stmt | undefined): Stmt | undefined => (body && before.length > 0 ? block(...before, body) : body);
  switch (structure?.kind) {
    case undefined: return undefined;
    case "matmul": return behind(scheduleMatMul(b, matMulWithTables(b, before, structure)));
    case "conv": {
      const conv = convWithTables(b, before, structure);
      return behind(conv.pooled ? schedulePoolStrips(b, conv, conv.pooled) : scheduleConvolution(b, conv));
    }
    case "attention": return scheduleAttention(b, structure);
    case "recurrence": return scheduleRecurrence(b, structure);
    default: return assertNever(structure);
  }
}

/** Buffers a tile reads as a whole: an output in the same memory would be overwritten while they are still needed. */
function mainOperands(kernel: Kernel): ReadonlySet<Buffer> {
  const { structure } = kernel;
  const out = new Set<Buffer>();
  const note = (...expressions: readonly Parameters<typeof visitExpr>[0][]): void => {
    for (const e of expressions) visitExpr(e, (x) => { if (x.kind === "load") out.add(x.buffer); });
  };
  // Rows of what is read above are written while others are still to be computed: nothing that goes in there may be overwritten.
  const noteConvolution = ({ input, weight, inputFrom, pooled, stores }: ConvStructure): void => {
    out.add(input).add(weight);
    if (pooled) note(...stores.map((x) => x.value));
    if (!inputFrom) return;
    noteConvolution(inputFrom);
    note(...inputFrom.stores.map((x) => x.value));
  };
  switch (structure?.kind) {
    case undefined: break;
    case "matmul": note(structure.a, structure.b, ...(structure.others ?? []).map((o) => o.b)); break;
    case "conv": noteConvolution(structure); break;
    case "attention": note(structure.q, structure.k, structure.v, structure.score, ...[structure.keysFrom, structure.keysTo, structure.sink].filter((e) => e !== undefined)); break;
    case "recurrence": for (const x of kernel.inputs) out.add(x); break;
    default: assertNever(structure);
  }
  return out;
}

/** Every buffer that statements read or write. */
function buffersOf(body: Stmt): ReadonlySet<Buffer> {
  const out = new Set<Buffer>();
  visitStmt(body, (s) => { if (s.kind === "store") out.add(s.buffer); });
  visitExprsOf(body, (x) => { if (x.kind === "load" || x.kind === "address") out.add(x.buffer); });
  return out;
}

/** Schedules every structured kernel of a program (one without a schedule keeps its structure); weights that are no longer read as they were go. */
export function scheduleStructures(program: Program, target: ScheduleTarget): Program {
  const weights = new ProgramWeights(program);
  const context: ScheduleContext = {
    target,
    layout: (buffer) => program.placements.get(buffer)?.layout ?? denseLayout(buffer.shape),
    weight: (buffer) => weights.of(buffer),
    contents: (weight, ask) => ("input" in weight.source ? undefined : ask(weight.source)),
    packed: (weight, spec, dtype, length) => weights.packed(weight, spec, dtype, length),
  };
  const structures = new AlikeKernels((b) => context.layout(b), (k) => {
    const asked = new Asked(context);
    return { kernel: scheduleStructure(k, asked) ?? k, again: (to) => asked.again(to) };
  });
  const done = new Map<Kernel, Kernel>();
  const kernel = (k: Kernel): Kernel => {
    const before = done.get(k);
    if (before) return before;
    const after = k.structure ? structures.changed(k) : k;
    done.set(k, after);
    return after;
  };
  const step = (s: Step): Step => (s.kind === "call" ? { ...s, kernel: kernel(s.kernel) } : mapNested(s, step));
  return weights.finish({ ...program, steps: program.steps.map(step) });
}

class ProgramWeights {
  private readonly program: Program;
  private readonly byStorage = new Map<Storage, Weight>();
  private readonly requests = new Map<Weight, Map<string, Weight>>();
  private readonly placements: Map<Buffer, Placement>;

  constructor(program: Program) {
    this.program = program;
    this.placements = new Map(program.placements);
    for (const w of program.weights) if (w.pack.kind === "copy") this.byStorage.set(present(program.placements.get(w.buffer), `place of ${w.buffer.name}`).storage, w);
  }

  of(buffer: Buffer): Weight | undefined {
    const storage = this.program.placements.get(buffer)?.storage;
    return storage && this.byStorage.get(storage);
  }

  packed(weight: Weight, spec: PackSpec, dtype: DType, length: number): Buffer {
    const known = this.requests.get(weight) ?? new Map<string, Weight>();
    this.requests.set(weight, known);
    const key = JSON.stringify(spec);
    const before = known.get(key);
    if (before) return before.buffer;
    const name = `${weight.buffer.name}_packed${known.size > 0 ? known.size + 1 : ""}`;
    const buffer: Buffer = { name, dtype, shape: [length] };
    known.set(key, { buffer, source: weight.source, pack: spec, ...(weight.stored ? { stored: weight.stored } : {}) });
    this.placements.set(buffer, { storage: { name, kind: "weight", bytes: length * byteSize(dtype) }, layout: denseLayout(buffer.shape) });
    return buffer;
  }

  /** The program with the packed weights, and without those nothing reads any more. */
  finish(program: Program): Program {
    const used = usedStorages(program, this.placements);
    const all = this.program.weights.flatMap((w) => [w, ...(this.requests.get(w)?.values() ?? [])]);
    const weights = all.filter((w) => used.has(present(this.placements.get(w.buffer), `place of ${w.buffer.name}`).storage));
    const placements = new Map([...this.placements].filter(([, p]) => p.storage.kind !== "weight" || used.has(p.storage)));
    return { ...program, weights, placements };
  }
}

function usedStorages(program: Program, placements: ReadonlyMap<Buffer, Placement>): ReadonlySet<Storage> {
  const used = new Set<Storage>();
  const note = (buffer: Buffer | undefined): void => {
    const storage = buffer && placements.get(buffer)?.storage;
    if (storage) used.add(storage);
  };
  for (const s of allSteps(program.steps)) touchedBy(s).forEach(note);
  [...program.inputs, ...program.outputs].forEach((p) => note(p.buffer));
  return used;
}
