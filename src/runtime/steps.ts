/** Walks a program's steps: compiled segments, host operators, branches and loops. */
import type { DimJson } from "../core/dim-json.ts";
import type { AttributeValueJson, Manifest, StepJson } from "../artifact/manifest.ts";
import { present } from "../core/assert.ts";
import { fail } from "../core/diagnostic.ts";
import type { Evaluate, EvaluateAttribute, EvaluateAttributes } from "../core/evaluate.ts";
import { numericData, type Tensor } from "../core/tensor.ts";
import type { Instance } from "../backends/wasm/load.ts";
import type { Arena } from "./arena.ts";
import type { Buffers } from "./buffers.ts";
import { hostOperators } from "./host-operators.ts";
import { readData } from "./weights.ts";

/** Told of each step after it ran. */
export type StepObserver = (label: string, kind: "segment" | "host", milliseconds: number) => void;
type Run = (observer: StepObserver | undefined) => void;

interface Machine {
  readonly arena: Arena;
  readonly buffers: Buffers;
  readonly instance: Instance;
  readonly weights: Uint8Array;
}

/** Prepares all steps; loads the host operators they name. */
export async function prepareSteps(manifest: Manifest, machine: Machine): Promise<Run> {
  return sequence(await Promise.all(manifest.steps.map((s) => prepare(s, machine))));
}

const sequence = (runs: readonly Run[]): Run => {
  const only = runs[0];
  return only && runs.length === 1 ? only : (observer) => { for (const run of runs) run(observer); };
};

async function prepare(step: StepJson, machine: Machine): Promise<Run> {
  const { buffers, arena } = machine;
  if ("run" in step) {
    const run = machine.instance.segment(step.run);
    const label = step.calls.map(([, l]) => l).join(", ");
    return (observer) => (observer ? timed(observer, label, "segment", run) : run());
  }
  if ("host" in step) {
    const run = await prepareHost(step, machine);
    return (observer) => (observer ? timed(observer, step.label, "host", run) : run());
  }
  const list = async (steps: readonly StepJson[]): Promise<Run> => sequence(await Promise.all(steps.map((s) => prepare(s, machine))));
  if ("if" in step) {
    const { if: condition } = step;
    const then = await list(step.then), otherwise = await list(step.else);
    return (observer) => {
      const chosen = typeof condition === "number" ? readScalar(buffers, condition) !== 0 : arena.size(condition.predicate) !== 0;
      (chosen ? then : otherwise)(observer);
    };
  }
  const body = await list(step.loop);
  return (observer) => {
    const count = step.count === null ? Infinity : readScalar(buffers, step.count);
    for (let i = 0; i < count && (step.condition === null || readScalar(buffers, step.condition) !== 0); i++) {
      buffers.write(step.iteration, { dtype: "int64", dims: [], data: BigInt64Array.of(BigInt(i)) });
      body(observer);
      for (const [from, to] of step.carry) buffers.copy(from, to);
    }
  };
}

function timed(observer: StepObserver, label: string, kind: "segment" | "host", run: () => void): void {
  const start = performance.now();
  run();
  observer(label, kind, performance.now() - start);
}

const readScalar = (buffers: Buffers, index: number): number => Number(numericData(buffers.read(index))[0] ?? 0);

async function prepareHost(step: Extract<StepJson, { host: string }>, machine: Machine): Promise<() => void> {
  const find = hostOperators[`${step.domain}:${step.host}`] ?? fail("OF6005", `the artifact needs the host operator ${step.host}, which this runtime does not have`, { hint: "use the onnxfuse version that compiled it, or a newer one" });
  const evaluate: Evaluate = await find();
  const attributes: EvaluateAttributes = Object.fromEntries(Object.entries(step.attributes).map(([name, value]) => [name, attribute(value, machine.weights)]));
  const { buffers, arena } = machine;
  return () => {
    const inputs = step.inputs.map((i) => (i === null ? undefined : buffers.read(i)));
    const results = evaluate(inputs, attributes, { outputCount: step.outputs.length });
    const found = new Map<string, number>();
    step.outputs.forEach((o, n) => { if (o !== null) learn(buffers.of(o).dims, present(results[n], step.host), arena, found, step.label); });
    arena.extend(found);
    step.outputs.forEach((o, n) => { if (o !== null) buffers.write(o, present(results[n], step.host)); });
  };
}

/** Takes the sizes that a result tells, and checks those that were known. */
function learn(declared: readonly DimJson[], result: Tensor, arena: Arena, found: Map<string, number>, label: string): void {
  const told = result.dims.length === declared.length && declared.every((d, axis) => {
    const actual = result.dims[axis] ?? 0;
    if (typeof d !== "string" || arena.symbols.has(d)) return arena.size(d) === actual || typeof d === "object";
    const before = found.get(d);
    found.set(d, actual);
    return before === undefined || before === actual;
  });
  if (!told) fail("OF7013", `'${label}' gave a result of [${result.dims.join(", ")}], which its inputs do not allow`, { hint: "check the shapes and values that are fed" });
}

function attribute(value: AttributeValueJson, section: Uint8Array): EvaluateAttribute {
  if (typeof value === "boolean") return value ? 1 : 0;
  if (typeof value !== "object") return value;
  if ("tensor" in value) return readData(value.tensor, section);
  if ("float" in value) return Number(value.float);
  if ("floats" in value) return value.floats.map(Number);
  return value;
}
