/**
 * Weights that hold the same bits in the same arrangement lie in memory once: those that were computed apart (folded in
 * two variants of a model, or two branches) among them.
 */
import { checksum, Checksum } from "../artifact/checksum.ts";
import { present } from "../core/assert.ts";
import { isHeld } from "../core/container.ts";
import { bytesOf, sameTensor, type Tensor } from "../core/tensor.ts";
import type { Placement, Program, Storage, Weight } from "../kernel/program.ts";

/** The program with one storage for equal weights. Weights are only read, so nothing else changes. */
export function shareWeights(program: Program): Program {
  const shared = new Map<Storage, Storage>();
  const sum = new Checksum();
  for (const alike of groupsOf(program.weights, shapeKey)) {
    for (const equal of groupsOf(alike, (w) => contentKey(w, sum))) {
      const kept: Weight[] = [];
      for (const weight of equal) {
        const same = kept.find((k) => sameContent(k, weight));
        if (!same) kept.push(weight);
        else shared.set(storageOf(weight, program), storageOf(same, program));
      }
    }
  }
  if (shared.size === 0) return program;
  const moved = (placement: Placement): Placement => { const storage = shared.get(placement.storage); return storage ? { ...placement, storage } : placement; };
  return {
    ...program,
    weights: program.weights.filter((w) => !shared.has(storageOf(w, program))),
    placements: new Map([...program.placements].map(([buffer, placement]) => [buffer, moved(placement)])),
  };
}

const storageOf = ({ buffer }: Weight, program: Program): Storage => present(program.placements.get(buffer), `placement of ${buffer.name}`).storage;

/** Those that have company under their key; undefined has none. */
function groupsOf(weights: readonly Weight[], key: (w: Weight) => string | undefined): Weight[][] {
  const groups = new Map<string, Weight[]>();
  for (const w of weights) {
    const k = key(w);
    if (k !== undefined) groups.set(k, [...(groups.get(k) ?? []), w]);
  }
  return [...groups.values()].filter((g) => g.length > 1);
}

const tensorOf = ({ source }: Weight): Tensor | undefined => ("input" in source ? undefined : source);

function shapeKey(w: Weight): string | undefined {
  const t = tensorOf(w);
  return t && !isHeld(w.buffer) ? JSON.stringify([t.dtype, t.dims, w.pack]) : undefined;
}
function contentKey(w: Weight, sum: Checksum): string | undefined {
  const t = tensorOf(w);
  return t && String(checksum(bytesOf(t), sum));
}
function sameContent(a: Weight, b: Weight): boolean {
  const x = tensorOf(a), y = tensorOf(b);
  return x !== undefined && y !== undefined && (x === y || sameTensor(x, y));
}
