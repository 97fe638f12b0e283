/**
 * Compiles, loads and runs what may be damaged: it works, is refused with a diagnostic, or shows a fault of ours. That
 * an artifact's parts do not fit together (OF6008) is an answer only where it was damaged, not where we have made it.
 */
import { compile, optimise, type CompileOptions } from "../../src/api/index.ts";
import { DiagnosticError } from "../../src/core/diagnostic.ts";
import { leafDType, type Container, type ItemType } from "../../src/core/container.ts";
import type { DType } from "../../src/core/dtype.ts";
import { load, Tensor, type Feed, type Session } from "../../src/runtime/index.ts";
import { generateTensor, inputKinds } from "../../src/verify/inputs.ts";
import { randomFrom, type Random } from "../../test/support/random.ts";
import { externalFile } from "./feature-models.ts";
import type { Mutant } from "./mutant.ts";

export type Stage = "compile" | "optimise" | "load" | "run";
export interface Verdict {
  readonly outcome: "ran" | "refused" | "fault";
  readonly stage: Stage;
  /** The diagnostic's code, or the error with its stack. */
  readonly said: string;
}

/** Elements that feeds are generated with; larger inputs are left out, which is refused. */
const mostElements = 1e6;
/** A run that takes longer than this is given up, as a service would. */
const patience = 3000;

export async function attempt(mutant: Mutant): Promise<Verdict> {
  const random = randomFrom(mutant.seed);
  let stage: Stage = "compile";
  try {
    let artifact = mutant.bytes;
    if (mutant.kind === "model") {
      const source = { model: mutant.bytes, externalData: (location: string) => (location === externalFile.location ? externalFile.bytes : undefined) };
      if (random() < 0.15) { stage = "optimise"; optimise(source); return { outcome: "ran", stage, said: "" }; }
      stage = "compile";
      ({ artifact } = await compile(source, optionsOf(random)));
    }
    stage = "load";
    const session = await load(artifact, { externalData: () => undefined });
    stage = "run";
    for (let n = mutant.bytes.length > 1e6 ? 1 : random.pick([1, 2]); n > 0; n--) await session.run(feedsOf(session, random), { timeLimit: patience });
    session.dispose();
    return { outcome: "ran", stage, said: "" };
  } catch (e) {
    if (e instanceof DiagnosticError && /^OF[1-7]\d{3}$/.test(e.code) && e.message.length < 20_000 && !(mutant.kind === "model" && e.code === "OF6008")) return { outcome: "refused", stage, said: e.code };
    return { outcome: "fault", stage, said: e instanceof DiagnosticError && e.cause instanceof Error ? (e.cause.stack ?? e.cause.message).slice(0, 4000) : e instanceof DiagnosticError ? `a diagnostic of ${e.message.length} characters: ${e.message.slice(0, 200)}` : e instanceof Error ? (e.stack ?? e.message).slice(0, 4000) : String(e) };
  }
}

function optionsOf(random: Random): CompileOptions {
  return random.pick<CompileOptions>([{}, {}, {}, {}, { enableFusion: false }, { freezeInitializers: true }, { dims: { N: random.int(4) } }, { reuseMemory: false }, { outputTypes: "float16" }, { allowApproximate: true }, { externalWeights: "each" }, { strip: true, winograd: false }]);
}

/** Something for each input, mostly of the right kind. */
function feedsOf(session: Session, random: Random): Record<string, Feed> {
  const sizes = new Map<string, number>();
  const size = (d: number | string): number => {
    if (typeof d === "number") return d;
    const known = sizes.get(d) ?? random.pick([1, 1, 2, 3, 5, 0]);
    sizes.set(d, known);
    return known;
  };
  const tensor = (dtype: DType, dims: readonly (number | string)[]): Tensor | null => {
    const shape = dims.map(size), kind = random.pick(inputKinds);
    return shape.reduce((a, b) => a * b, 1) > mostElements ? null : Tensor.of(generateTensor(dtype, shape, kind, random.int(1e6)));
  };
  const item = (type: ItemType): Feed => (type.container ? container(type.container) : tensor(type.dtype, (type.shape ?? []).map((d) => (typeof d === "number" ? d : 2))));
  const container = (c: Container): Feed => {
    if (c.kind === "optional") return random() < 0.5 ? null : item(c.item);
    if (c.kind === "map") return new Map([[c.key === "string" ? "a" : 1n, leafDType(c) === "string" ? "b" : 1]]);
    return Array.from({ length: random.int(4) }, () => item(c.item));
  };
  return Object.fromEntries(session.inputs.map((port) => [port.name, port.container ? container(port.container) : tensor(port.dtype, port.dims)]));
}
