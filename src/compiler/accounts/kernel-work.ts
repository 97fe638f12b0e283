/** What each kernel of a program has to compute and move, for reports and profiles. */
import { isStatic } from "../../core/dim.ts";
import { dimToJson, formatDimJson, type DimJson } from "../../core/dim-json.ts";
import type { Buffer } from "../../kernel/expr.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Program } from "../../kernel/program.ts";
import { allSteps } from "../../kernel/segments.ts";
import { workOf } from "../../schedule/work.ts";

/** A kernel's work; sizes are numbers, or expressions over symbolic sizes. */
export interface KernelWork {
  /** Its name in the program. */
  readonly kernel: string;
  /** `matmul`, `conv`, `attention`, `recurrence`, or `loops`. */
  readonly kind: string;
  /** Original ONNX nodes; none for what the program adds. */
  readonly nodes: readonly string[];
  /** Arithmetic on values; a function such as exp counts as the operations of its polynomial. */
  readonly operations: DimJson;
  /** Bytes: activations read, weights read, results written, each once. */
  readonly read: DimJson;
  readonly weights: DimJson;
  readonly written: DimJson;
  /** Types and sizes, such as `float32[1,64,56,56]`. */
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  /** The same sizes to be evaluated; absent where all are numbers. */
  readonly shapes?: { readonly inputs: readonly (readonly DimJson[])[]; readonly outputs: readonly (readonly DimJson[])[] };
  /** Present where its products are of integers, of which a vector holds more. */
  readonly integer?: true;
}

/** One entry per kernel, in the order of the steps. `program` is laid out but not scheduled. */
export function kernelWork(program: Program): KernelWork[] {
  const isWeight = (b: Buffer): boolean => program.placements.get(b)?.storage.kind === "weight";
  const done = new Set<string>();
  return [...allSteps(program.steps)].flatMap((s): KernelWork[] => {
    if (s.kind !== "call" || done.has(s.kernel.name)) return [];
    done.add(s.kernel.name);
    const { kernel, origin } = s, { operations, read, weights, written } = workOf(kernel, isWeight);
    return [{
      kernel: kernel.name, kind: kernel.structure?.kind ?? "loops", nodes: origin.nodes,
      operations: dimToJson(operations), read: dimToJson(read), weights: dimToJson(weights), written: dimToJson(written),
      inputs: kernel.inputs.map(typeText), outputs: kernel.outputs.map(typeText),
      ...([...kernel.inputs, ...kernel.outputs].every((b) => isStatic(b.shape)) ? {} : { shapes: { inputs: kernel.inputs.map(shapeJson), outputs: kernel.outputs.map(shapeJson) } }),
      ...(multipliesIntegers(kernel) ? { integer: true as const } : {}),
    }];
  });
}

const shapeJson = ({ shape }: Buffer): DimJson[] => shape.map(dimToJson);
const multipliesIntegers = ({ structure: s }: Kernel): boolean => (s?.kind === "matmul" || s?.kind === "conv") && s.accumulator.type.scalar === "i32";
const typeText = ({ dtype, shape }: Buffer): string => `${dtype}[${shape.map((d) => formatDimJson(dimToJson(d))).join(",")}]`;
