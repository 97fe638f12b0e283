/** Walks a program's steps: compiled segments, host operators, branches and loops. */
import type { AttributeValueJson, CheckJson, Manifest, StepJson } from "../artifact/manifest.ts";
import { atRank } from "../core/datum.ts";
import { fail } from "../core/diagnostic.ts";
import type { EvaluateAttribute, EvaluateAttributes, EvaluateData } from "../core/evaluate.ts";
import type { CheckJson as ValueCheckJson } from "./checks.ts";
import type { Constants } from "./constants.ts";
import { checkSizes } from "./size-checks.ts";
import { readScalar, receive, type Machine } from "./values.ts";
import { checkTime, type Run, type StepObserver } from "./watch.ts";

/** Prepares all steps; loads the host operators they name. */
export async function prepareSteps(manifest: Manifest, machine: Machine): Promise<Run> {
  const run = sequence(await Promise.all(manifest.steps.map((s) => prepare(s, machine)))), checks = valueChecks(manifest.steps);
  return checks.length ? (await import("./checks.ts")).guarded(checks, run, machine) : run;
}

const valueChecks = (steps: readonly StepJson[]): ValueCheckJson[] =>
  steps.flatMap((s) => ("check" in s ? [s] : valueChecks("if" in s ? [...s.then, ...s.else] : "loop" in s ? s.loop : [])));

const sequence = (runs: readonly Run[]): Run => {
  const only = runs[0];
  return only && runs.length === 1 ? only : (watch) => { for (const run of runs) { checkTime(watch); run(watch); } };
};

async function prepare(step: StepJson, machine: Machine): Promise<Run> {
  const { buffers, arena } = machine;
  if ("run" in step) {
    const run = machine.instance.segment(step.run);
    const label = step.calls.map(([, l]) => l).join(", ");
    return ({ observer }) => (observer ? timed(observer, label, "segment", run) : run());
  }
  if ("host" in step) {
    const run = await prepareHost(step, machine);
    return ({ observer }) => (observer ? timed(observer, step.label, "host", run) : run());
  }
  /** Steps that need sizes to agree: those that are known before them, and those that they tell. */
  const list = async (steps: readonly StepJson[], checks: readonly CheckJson[] = []): Promise<Run> => {
    const run = sequence(await Promise.all(steps.map((s) => prepare(s, machine)))), agree = (): void => checkSizes(checks, arena.symbols);
    return (watch) => { agree(); run(watch); agree(); };
  };
  if ("if" in step) {
    const { if: condition } = step;
    const then = await list(step.then, step.checks?.[0]), otherwise = await list(step.else, step.checks?.[1]);
    return (watch) => ((typeof condition === "number" ? readScalar(buffers, condition) : arena.size(condition.predicate)) ? then : otherwise)(watch);
  }
  if ("check" in step) return (await import("./checks.ts")).check(step, machine);
  if ("move" in step) {
    return () => {
      const values = step.move.map(([from, to]) => atRank(buffers.readDatum(from), buffers.of(to).container ? undefined : buffers.of(to).dims.length));
      receive(step.move.map(([, to]) => to), values, machine, "a branch");
    };
  }
  return (await import("./loop.ts")).loop(step, await list(step.loop, step.checks), machine, { readScalar, receive, checkTime });
}

function timed(observer: StepObserver, label: string, kind: "segment" | "host", run: () => void): void {
  const start = performance.now();
  run();
  observer(label, kind, performance.now() - start);
}

async function prepareHost(step: Extract<StepJson, { host: string }>, machine: Machine): Promise<() => void> {
  const { hostOperators } = await import("./host-operators.ts");
  const find = hostOperators[`${step.domain}:${step.host}`] ?? fail("OF6005", `the artifact needs the host operator ${step.host}, which this runtime does not have`, { hint: "use the onnxfuse version that compiled it, or a newer one" });
  // What inference said holds: an operator on tensors is given tensors.
  const evaluate = (await find()) as EvaluateData;
  const attributes: EvaluateAttributes = Object.fromEntries(Object.entries(step.attributes).map(([name, value]) => [name, attribute(value, machine.constants)]));
  const { buffers } = machine;
  const outputDTypes = step.outputs.map((o) => (o === null ? "float32" : buffers.of(o).dtype));
  return () => {
    const inputs = step.inputs.map((i) => (i === null ? undefined : buffers.readDatum(i)));
    const results = within(step.label, () => evaluate(inputs, attributes, { outputCount: step.outputs.length, outputDTypes }));
    receive(step.outputs, results, machine, step.label);
  };
}

/** A result that this engine has no array for is refused with OF7010. */
function within<T>(label: string, work: () => T): T {
  try {
    return work();
  } catch (e) {
    if (e instanceof RangeError && /array (buffer )?(length|allocation)|allocation failed|string length/i.test(e.message)) fail("OF7010", `'${label}' has a result that is too large for this engine (${e.message})`, { hint: "check the sizes and values that are fed" });
    throw e;
  }
}

function attribute(value: AttributeValueJson, constants: Constants): EvaluateAttribute {
  if (typeof value === "boolean") return value ? 1 : 0;
  if (typeof value !== "object") return value;
  if ("tensor" in value) return constants.read(value.tensor);
  if ("float" in value) return Number(value.float);
  if ("floats" in value) return value.floats.map(Number);
  return value;
}
