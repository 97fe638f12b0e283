/**
 * Offsets for blocks of memory from their sizes and lifetimes. Guarantees that blocks whose lifetimes overlap do not
 * overlap in memory, that offsets are multiples of `alignment`, and that the same input gives the same offsets.
 * Greedy by size with best fit (Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020).
 * Shared by the compiler and the runtime.
 */

export const alignment = 64;
export const align = (bytes: number): number => Math.ceil(bytes / alignment) * alignment;

/** A block that is alive from step `first` to step `last`, both included. */
export interface PlacedBlock { readonly bytes: number; readonly first: number; readonly last: number }

export interface Placed {
  /** Byte offset of each block. */
  readonly offsets: readonly number[];
  /** One past the last byte used. */
  readonly total: number;
}

interface Taken { readonly from: number; readonly to: number; readonly first: number; readonly last: number }

/**
 * Places blocks. A block whose entry in `placedBefore` is a number stays there, so that a plan can be completed when more
 * sizes become known.
 */
export function place(blocks: readonly PlacedBlock[], placedBefore: readonly (number | undefined)[] = []): Placed {
  const offsets = blocks.map((_, i) => placedBefore[i] ?? 0);
  const taken: Taken[] = [];
  let total = 0;
  const take = (i: number, block: PlacedBlock): void => {
    const from = offsets[i] ?? 0;
    if (block.bytes === 0) return;
    taken.push({ from, to: from + align(block.bytes), first: block.first, last: block.last });
    total = Math.max(total, from + align(block.bytes));
  };
  const open: number[] = [];
  blocks.forEach((block, i) => { if (placedBefore[i] === undefined) open.push(i); else take(i, block); });
  const bytes = (i: number): number => blocks[i]?.bytes ?? 0;
  open.sort((a, b) => bytes(b) - bytes(a) || a - b);
  for (const i of open) {
    const block = blocks[i];
    if (!block) continue;
    offsets[i] = bestFit(align(block.bytes), taken.filter((t) => t.first <= block.last && block.first <= t.last));
    take(i, block);
  }
  return { offsets, total };
}

/** The lowest offset of the smallest gap between `obstacles` that holds `bytes`; after the last obstacle where none does. */
function bestFit(bytes: number, obstacles: Taken[]): number {
  obstacles.sort((a, b) => a.from - b.from || a.to - b.to);
  let best = -1, bestGap = Infinity, end = 0;
  for (const o of obstacles) {
    const gap = o.from - end;
    if (gap >= bytes && gap < bestGap) [best, bestGap] = [end, gap];
    end = Math.max(end, o.to);
  }
  return best >= 0 ? best : end;
}

/** The most bytes that are alive at one step: no placement can need fewer. */
export function lowerBound(blocks: readonly PlacedBlock[]): number {
  const change = new Map<number, number>();
  const add = (step: number, bytes: number): void => { change.set(step, (change.get(step) ?? 0) + bytes); };
  for (const b of blocks) { add(b.first, align(b.bytes)); add(b.last + 1, -align(b.bytes)); }
  let live = 0, most = 0;
  for (const [, bytes] of [...change].sort(([a], [b]) => a - b)) { live += bytes; most = Math.max(most, live); }
  return most;
}
