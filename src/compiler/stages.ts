/**
 * The representations a compilation passes through, for whoever wants to look: `CompileOptions.onStage` is told of each
 * as it is reached, in the order of this file, and `stageText` prints any of them. Looking changes nothing.
 */
import type { WasmCode } from "../backends/wasm/emit.ts";
import { formatDim } from "../core/dim.ts";
import type { Graph } from "../graph/graph.ts";
import type { Region } from "../graph/region.ts";
import { graphText } from "../graph/text.ts";
import { printKernel } from "../kernel/print.ts";
import type { Program, Step } from "../kernel/program.ts";
import type { ModelInfo } from "../onnx/model-info.ts";
import type { MemoryPlan } from "../memory/plan.ts";

export const graphStages = ["read", "simplified", "rewritten"] as const;
export const programStages = ["lowered", "laid-out", "scheduled", "legal"] as const;

export type Stage =
  | { readonly name: (typeof graphStages)[number]; readonly graph: Graph; readonly info: ModelInfo }
  | { readonly name: "partitioned"; readonly regions: readonly Region[]; readonly graph: Graph; readonly info: ModelInfo }
  | { readonly name: (typeof programStages)[number]; readonly program: Program }
  | { readonly name: "planned"; readonly plan: MemoryPlan }
  | { readonly name: "emitted"; readonly code: WasmCode };

/** Told of a stage while its representation is current: graphs change afterwards, so what is needed of them is taken at once. */
export type StageObserver = (stage: Stage) => void;

/** The stage for people: graphs in ONNX's textual syntax, kernels as loops, code as WAT. */
export function stageText(stage: Stage): string {
  switch (stage.name) {
    case "read": case "simplified": case "rewritten": return graphText(stage.graph);
    case "partitioned": return `${regionLines(stage.regions, "").join("\n")}\n`;
    case "lowered": case "laid-out": case "scheduled": case "legal": return `${stepLines(stage.program.steps, "").join("\n")}\n`;
    case "planned": return planText(stage.plan);
    case "emitted": return stage.code.text();
  }
}

function regionLines(regions: readonly Region[], indent: string): string[] {
  return regions.flatMap((r) => [
    `${indent}${r.kind} (${r.execution}): ${r.nodes.map((n) => n.name).join(", ")}`,
    ...(r.branches ?? []).flatMap((branch, i) => [`${indent}  subgraph ${i}:`, ...regionLines(branch, `${indent}    `)]),
  ]);
}

function stepLines(steps: readonly Step[], indent: string): string[] {
  return steps.flatMap((s): string[] => {
    const from = `${indent}# ${s.origin.label}: ${s.origin.nodes.join(", ")}`;
    switch (s.kind) {
      case "call": return [from, ...printKernel(s.kernel).split("\n").map((l) => indent + l), ""];
      case "host": return [from, `${indent}host ${s.op}(${names(s.inputs)}) -> (${names(s.outputs)})`, ""];
      case "check": return [from, `${indent}check ${s.value}`, ""];
      case "move": return [from, ...s.moves.map((m) => `${indent}move ${m.from.name} -> ${m.to.name}`), ""];
      case "if": return [from, `${indent}if`, ...stepLines(s.then, `${indent}  `), `${indent}else`, ...stepLines(s.else, `${indent}  `)];
      case "loop": return [from, `${indent}loop`, ...stepLines(s.body, `${indent}  `)];
    }
  });
}
const names = (buffers: readonly ({ readonly name: string } | undefined)[]): string => buffers.map((b) => b?.name ?? "").join(", ");

function planText(plan: MemoryPlan): string {
  const address = (storage: MemoryPlan["arena"][number]["storage"]): string => {
    const a = plan.addresses.get(storage);
    return a === undefined ? "" : a.kind === "fixed" ? `at ${a.address}` : `at slot ${a.slot}`;
  };
  const blocks = plan.arena.map((b) => `${b.storages.map((s) => s.name).join(" = ")}: ${formatDim(b.storage.bytes)} bytes, steps ${b.first} to ${b.last}, ${address(b.storage)}`);
  const peak = plan.peak ? [`arena ${plan.peak.bytes} bytes, at least ${plan.peak.lowerBound}`] : [];
  return `${[`weights ${plan.weightBytes} bytes`, ...peak, ...blocks].join("\n")}\n`;
}
