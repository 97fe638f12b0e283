/** The list of passes, in their order. */
import type { Graph } from "../graph/graph.ts";
import type { Region } from "../graph/region.ts";
import { emitModule, type WasmCode } from "../backends/wasm/emit.ts";
import { programDims } from "../backends/wasm/program-dims.ts";
import { AlikeKernels } from "../kernel/alike.ts";
import { inPhases } from "../kernel/phases.ts";
import type { Program } from "../kernel/program.ts";
import { allSteps } from "../kernel/segments.ts";
import { lowerProgram } from "../lower/program.ts";
import { planMemory, type MemoryPlan } from "../memory/plan.ts";
import { chooseLayouts } from "../schedule/layout.ts";
import { legalize } from "../schedule/legal/legalize.ts";
import { scheduleLoops } from "../schedule/loops/loops.ts";
import type { Choices } from "../schedule/choices.ts";
import { narrowWeights, type NarrowedWeight, type WeightForm } from "../schedule/contractions/narrow-weights.ts";
import { integerNarrowing } from "../schedule/legal/narrow-integers.ts";
import { splitWork } from "../schedule/threads/split-work.ts";
import { scheduleStructures } from "../schedule/contractions/structures.ts";
import { kernelWork, type KernelWork } from "./accounts/kernel-work.ts";
import { layoutsOf, mapKernels, placeScratch } from "./kernels.ts";
import { shareWeights } from "./share-weights.ts";
import type { StageObserver } from "./stages.ts";

export interface Built {
  readonly program: Program;
  readonly plan: MemoryPlan;
  readonly code: WasmCode;
  /** Original nodes of each step that is an attention kernel with an online softmax. */
  readonly attention: readonly (readonly string[])[];
  /** What each kernel has to do. */
  readonly work: readonly KernelWork[];
  /** Weights that were asked to be in fewer bits. */
  readonly narrowed: readonly NarrowedWeight[];
}

export interface BuildOptions {
  /** Storages may share memory. */
  readonly reuse?: boolean;
  /** 3x3 convolutions may be computed by F(4x4,3x3). */
  readonly winograd?: boolean;
  /** What was measured to be best, by kernel. */
  readonly choices?: Choices;
  /** Weights of contractions in fewer bits, but those of nodes that are kept. */
  readonly weights?: { readonly form: WeightForm; readonly keeps: (nodes: readonly string[]) => boolean };
  /** Every kernel call is a function of its own for the runtime, so that each can be timed. */
  readonly separateSteps?: boolean;
  /** Instructions that a thread's part of a kernel has at least; tests make it small. */
  readonly threadWork?: number;
  readonly onStage?: StageObserver;
}

/** Graph and regions → program → plan → code. */
export function build(graph: Graph, regions: readonly Region[], { reuse = true, winograd = true, separateSteps = false, weights, choices, threadWork, onStage = () => undefined }: BuildOptions = {}): Built {
  const lowered = lowerProgram(graph, regions);
  onStage({ name: "lowered", program: lowered });
  const attention = [...allSteps(lowered.steps)].flatMap((s) => (s.kind === "call" && s.kernel.structure?.kind === "attention" ? [s.origin.nodes] : []));
  const { program: narrow, narrowed } = weights ? narrowWeights(lowered, weights.form, weights.keeps) : { program: lowered, narrowed: [] };
  const laidOut = placeScratch(chooseLayouts(narrow));
  onStage({ name: "laid-out", program: laidOut });
  const narrowIntegers = integerNarrowing(laidOut);
  const loops = new AlikeKernels(layoutsOf(laidOut), (kernel) => ({ kernel: scheduleLoops(kernel, laidOut.placements) }));
  const looped = mapKernels(laidOut, (kernel) => (kernel.structure ? kernel : loops.changed(narrowIntegers(kernel))));
  const { placements, ...structured } = placeScratch(scheduleStructures(looped, { relaxedSimd: true, winograd, ...(choices ? { choices } : {}) }));
  const scheduled = mapKernels({ placements, ...structured }, (kernel) => (kernel.structure ? scheduleLoops(kernel, placements) : kernel));
  onStage({ name: "scheduled", program: scheduled });
  const legal = new AlikeKernels(layoutsOf(scheduled), (kernel) => ({ kernel: inPhases(legalize(splitWork(kernel, threadWork), placements)) }));
  const program = shareWeights(mapKernels(scheduled, (kernel) => legal.changed(kernel)));
  onStage({ name: "legal", program });
  const plan = planMemory(program, { dims: programDims(program), reuse });
  onStage({ name: "planned", plan });
  const code = emitModule(program, plan, { separateSteps });
  onStage({ name: "emitted", code });
  return { program, plan, code, attention, work: kernelWork(laidOut), narrowed };
}
