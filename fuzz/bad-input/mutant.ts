/** One damaged file: the same for the same seed, index and data. */
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { ModelProtoSchema } from "../../src/onnx/schema/onnx_pb.ts";
import { randomFrom, type Random } from "../../test/support/random.ts";
import { mutateArtifact } from "./artifact-mutations.ts";
import { mutateBytes } from "./byte-mutations.ts";
import type { Corpus } from "./corpus.ts";
import { mutateModel } from "./model-mutations.ts";

export interface Mutant {
  readonly kind: "model" | "artifact";
  readonly bytes: Uint8Array;
  /** What it came from, and what was done to it. */
  readonly story: string;
  /** Seed of what is asked of it. */
  readonly seed: number;
  /** Whether its machine code was changed: WebAssembly confines that to its memory, but it may never end. */
  readonly otherCode: boolean;
}

const seedOf = (seed: number, index: number): number => (Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(index + 1, 0x85ebca6b)) >>> 0;

export async function mutantOf(corpus: Corpus, seed: number, index: number, kind: "models" | "artifacts" | "all"): Promise<Mutant> {
  const random = randomFrom(seedOf(seed, index)), original = corpus.draw(random), asked = random.int(2 ** 31);
  const told = (done: string): string => `${original.name}: ${done}`;
  if (kind === "artifacts" || (kind === "all" && random() < 0.2)) {
    const artifact = await corpus.artifactOf(original);
    if (artifact) { const { bytes, done, otherCode } = mutateArtifact(artifact, random); return { kind: "artifact", bytes, story: told(done), seed: asked, otherCode }; }
  }
  const { bytes, done } = random() < 0.2 ? mutateBytes(original.bytes, random) : restated(original.bytes, random);
  return { kind: "model", bytes, story: told(done), seed: asked, otherCode: false };
}

function restated(bytes: Uint8Array, random: Random): { readonly bytes: Uint8Array; readonly done: string } {
  const model = fromBinary(ModelProtoSchema, bytes), done = mutateModel(model, random);
  return { bytes: toBinary(ModelProtoSchema, model), done };
}
