/**
 * Times every kernel of a program by itself: each call becomes a segment of its own, so that a run's observer is told
 * of it. Times are the least of many runs, which is what a loaded machine leaves comparable.
 */
import { emitModule } from "../src/backends/wasm/emit.ts";
import { programDims } from "../src/backends/wasm/program-dims.ts";
import { fuseModel } from "../src/compiler/compile.ts";
import { packageProgram } from "../src/compiler/package.ts";
import { build } from "../src/compiler/pipeline.ts";
import type { Step } from "../src/kernel/program.ts";
import { allSteps } from "../src/kernel/segments.ts";
import { lowerProgram } from "../src/lower/program.ts";
import { planMemory } from "../src/memory/plan.ts";
import { load, Tensor, type Session } from "../src/runtime/index.ts";
import type { ModelCase } from "../test/support/cases.ts";

export interface KernelTime {
  readonly label: string;
  readonly kernel: string;
  /** Original nodes it computes. */
  readonly nodes: readonly string[];
  /** The kernel's structure before scheduling: `matmul`, `conv`, `attention`, `recurrence`; `host`, or `loops`. */
  readonly kind: string;
  /** Types and sizes of what it writes. */
  readonly writes: string;
  readonly milliseconds: number;
}

export interface TimedProgram {
  /** Runs once, noting each step's time where it is the least so far. */
  run(): Promise<void>;
  times(): readonly KernelTime[];
}

/** A model compiled with every kernel a step of its own. */
export async function timedProgram(model: ModelCase, enableFusion: boolean): Promise<TimedProgram> {
  const fused = fuseModel(model.bytes, { enableFusion }, true);
  const { graph } = fused.graph;
  const kinds = new Map([...allSteps(lowerProgram(graph, fused.regions).steps)].flatMap((s) => (s.kind === "call" ? [[s.kernel.name, s.kernel.structure?.kind ?? "loops"] as const] : [])));
  const { program } = build(graph, fused.regions);
  const separate = { ...program, steps: program.steps.map(alone) };
  const plan = planMemory(separate, { dims: programDims(separate), reuse: true });
  const { code, relaxation } = emitModule(separate, plan);
  const { artifact } = packageProgram(separate, plan, { code, relaxation }, { tool: "bench", options: {}, model: "bench", metadata: {}, modelChecksum: 0 });
  const session: Session = await load(artifact);
  const feeds = Object.fromEntries(Object.entries(model.feeds).map(([k, t]) => [k, new Tensor(t.dtype, t.data, t.dims)]));
  // Branches and loops run what they run: the observer's n-th report of a run is the n-th step executed.
  const least: { label: string; milliseconds: number }[] = [];
  const steps = [...allSteps(program.steps)];
  const straight = steps.every((s) => s.kind === "call" || s.kind === "host");
  return {
    async run() {
      let n = 0;
      await session.run(feeds, { onStep: (label, _kind, milliseconds) => {
        const known = least[n];
        if (!known) least.push({ label, milliseconds });
        else if (known.label === label) known.milliseconds = Math.min(known.milliseconds, milliseconds);
        n++;
      } });
    },
    times: () => least.map(({ label, milliseconds }, i): KernelTime => {
      const s = straight ? steps[i] : steps.find((x) => "origin" in x && x.origin.label === label);
      if (s?.kind !== "call") return { label, kernel: label, nodes: s && "origin" in s ? s.origin.nodes : [], kind: "host", writes: "", milliseconds };
      const writes = s.kernel.outputs.map((o) => `${o.dtype}[${o.shape.map((d) => (typeof d === "number" ? d : d.key)).join(",")}]`).join(" ");
      return { label, kernel: s.kernel.name, nodes: s.origin.nodes, kind: kinds.get(s.kernel.name) ?? "loops", writes, milliseconds };
    }),
  };
}

/** A branch that is always taken ends a segment before and after the call. */
function alone(s: Step): Step {
  if (s.kind === "if") return { ...s, then: s.then.map(alone), else: s.else.map(alone) };
  if (s.kind === "loop") return { ...s, body: s.body.map(alone) };
  return s.kind === "call" ? { kind: "if", condition: { predicate: 1 }, then: [s], else: [], origin: s.origin } : s;
}
