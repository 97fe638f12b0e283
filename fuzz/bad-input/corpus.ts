/**
 * What is damaged: the feature models, random graphs, the ONNX node tests and the real models at hand. A large model
 * costs seconds to compile, so it is drawn as much less often than small ones as it is larger.
 */
import { readFileSync } from "node:fs";
import { compile } from "../../src/api/index.ts";
import { DiagnosticError } from "../../src/core/diagnostic.ts";
import { caseIds, loadCase, ocrModels } from "../../test/support/cases.ts";
import { modelBytes } from "../../test/support/model-spec.ts";
import { loadNodeCase, nodeCaseNames } from "../../test/support/node-cases.ts";
import { randomModel } from "../../test/support/random-graph.ts";
import type { Random } from "../../test/support/random.ts";
import { externalFile, featureModels } from "./feature-models.ts";

export interface Original { readonly name: string; readonly bytes: Uint8Array }
/** A source of originals, drawn by weight. */
interface Source { readonly weight: number; readonly draw: (random: Random) => Original }

/** Bytes of the largest artifact that is kept. */
const mostKept = 1e5;

/** Names every original by where it came from; the same on every machine that has the same data. */
export class Corpus {
  readonly #sources: readonly Source[];
  readonly #bytes = new Map<string, Uint8Array>();
  readonly #artifacts = new Map<string, Uint8Array | undefined>();

  /** `own`: only what needs no data and compiles in milliseconds. */
  constructor(own: boolean) {
    const features = [...featureModels()].map(([name, bytes]): Original => ({ name, bytes }));
    const sources: Source[] = [
      { weight: 40, draw: (r) => r.pick(features) },
      { weight: 15, draw: (r) => { const seed = r.int(1000), size = 3 + r.int(20); return { name: `random ${seed} of ${size}`, bytes: modelBytes(randomModel(seed, size).spec) }; } },
    ];
    if (!own) {
      const cases = nodeCaseNames(), real = this.#realModels();
      if (cases.length) sources.push({ weight: 38, draw: (r) => { const name = r.pick(cases); return { name, bytes: this.#cached(name, () => loadNodeCase(name).bytes) }; } });
      if (real.length) sources.push({ weight: 2, draw: (r) => drawBySize(real, r) });
    }
    this.#sources = sources;
  }

  draw(random: Random): Original {
    let left = random() * this.#sources.reduce((n, s) => n + s.weight, 0);
    for (const s of this.#sources) if ((left -= s.weight) < 0) return s.draw(random);
    throw new Error("a corpus has sources");
  }

  /** What an original compiles to; undefined for one that is refused itself. Small ones are kept. */
  async artifactOf({ name, bytes }: Original): Promise<Uint8Array | undefined> {
    if (this.#artifacts.has(name)) return this.#artifacts.get(name);
    const artifact = await compiled(bytes);
    if ((artifact?.length ?? 0) < mostKept) this.#artifacts.set(name, artifact);
    return artifact;
  }

  #realModels(): Original[] {
    const shared = caseIds().map((id): Original => ({ name: id, bytes: new Uint8Array(loadCase(id).bytes) }));
    return [...shared, ...Object.entries(ocrModels()).map(([name, file]): Original => ({ name, bytes: new Uint8Array(readFileSync(file)) }))];
  }

  #cached(name: string, make: () => Uint8Array): Uint8Array {
    // A copy of its own: slices of Node's Buffers share memory.
    const known = this.#bytes.get(name) ?? new Uint8Array(make());
    this.#bytes.set(name, known);
    return known;
  }
}

async function compiled(model: Uint8Array): Promise<Uint8Array | undefined> {
  try {
    return (await compile({ model, externalData: (location) => (location === externalFile.location ? externalFile.bytes : undefined) })).artifact;
  } catch (e) {
    if (e instanceof DiagnosticError) return undefined;
    throw e;
  }
}

function drawBySize(models: readonly Original[], random: Random): Original {
  const weights = models.map((m) => 1 / (1 + m.bytes.length / 2e5));
  let left = random() * weights.reduce((a, b) => a + b, 0);
  return models.find((_, i) => (left -= weights[i] ?? 0) < 0) ?? random.pick(models);
}
