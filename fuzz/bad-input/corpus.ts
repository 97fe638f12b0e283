/**
 * What is damaged: the feature models, random graphs, the ONNX node tests and the real models at hand. A large model
 * costs seconds to compile, so it is drawn as much less often than small ones as it is larger.
 */
import { readFileSync } from "node:fs";
import { caseIds, loadCase, ocrModels } from "../../test/support/cases.ts";
import { modelBytes } from "../../test/support/model-spec.ts";
import { loadNodeCase, nodeCaseNames } from "../../test/support/node-cases.ts";
import { randomModel } from "../../test/support/random-graph.ts";
import type { Random } from "../../test/support/random.ts";
import { featureModels } from "./feature-models.ts";

export interface Original { readonly name: string; readonly bytes: Uint8Array }
/** A source of originals, drawn by weight. */
interface Source { readonly weight: number; readonly draw: (random: Random) => Original }

/** Names every original by where it came from; the same on every machine that has the same data. */
export class Corpus {
  readonly #sources: readonly Source[];
  readonly #bytes = new Map<string, Uint8Array>();

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

function drawBySize(models: readonly Original[], random: Random): Original {
  const weights = models.map((m) => 1 / (1 + m.bytes.length / 2e5));
  let left = random() * weights.reduce((a, b) => a + b, 0);
  return models.find((_, i) => (left -= weights[i] ?? 0) < 0) ?? random.pick(models);
}
