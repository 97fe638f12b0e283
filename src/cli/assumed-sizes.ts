/**
 * Sizes that nobody gave: 1, but for those with which a part of the program would have no elements, as an image of one
 * pixel leaves the deeper layers of a network: they are the least powers of 2 that give every part some.
 */
import { readArtifact } from "../artifact/artifact.ts";
import type { BlockJson } from "../artifact/manifest.ts";
import { evaluateDimJson } from "../core/dim-json.ts";

/** No size is raised above this: where that is not enough, all are 1. */
const most = 512;

/** A size for each of the `open` symbols of inputs, beside those that are `given`; with them, none of the artifacts has such a part. */
export function assumedSizes(artifacts: readonly Uint8Array[], open: readonly string[], given: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  const all = (size: number): Map<string, number> => new Map(open.map((name) => [name, size]));
  if (open.length === 0) return new Map();
  const arena = artifacts.flatMap((bytes) => readArtifact(bytes).manifest.memory.arena);
  const fills = (sizes: ReadonlyMap<string, number>): boolean => { const bound = new Map([...given, ...sizes]); return !arena.some((block) => isEmpty(block, bound)); };
  for (let size = 1; size <= most; size *= 2) {
    const sizes = all(size);
    if (!fills(sizes)) continue;
    for (const name of open) {
      for (let less = 1; less < size; less *= 2) {
        if (!fills(new Map([...sizes, [name, less]]))) continue;
        sizes.set(name, less);
        break;
      }
    }
    return sizes;
  }
  return all(1);
}

/** Whether a block that these sizes use has no bytes; one whose size only running tells is not. */
const isEmpty = ({ bytes, where }: BlockJson, sizes: ReadonlyMap<string, number>): boolean =>
  evaluateDimJson(bytes, sizes) === 0 && !(where ?? []).some((w) => evaluateDimJson(w, sizes) === 0);

/** A line about each size that was assumed. */
export const assumedLines = (assumed: Readonly<Record<string, number>>): readonly string[] =>
  Object.entries(assumed).map(([name, size]) => `size ${name} was not given; ${size} is assumed (--dim ${name}=…)`);
