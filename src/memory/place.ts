/**
 * Offsets for blocks of memory from their sizes and lifetimes. Guarantees that blocks whose lifetimes overlap do not
 * overlap in memory, that offsets are multiples of `alignment`, and that the same input gives the same offsets.
 * Greedy with best fit, in the best of a few orders (Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020); where
 * none reaches the lower bound, again with the block first that stood highest.
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

/** Orders in which blocks are placed; the one that needs least memory is taken, the first of equals. */
const orders: readonly ((a: PlacedBlock, b: PlacedBlock) => number)[] = [
  (a, b) => b.bytes - a.bytes,
  (a, b) => (b.last - b.first + 1) * b.bytes - (a.last - a.first + 1) * a.bytes,
  (a, b) => b.last - b.first - (a.last - a.first) || b.bytes - a.bytes,
  (a, b) => a.first - b.first || b.bytes - a.bytes,
];

/** How often a placement is tried again with the block placed first that stood highest. */
const retries = 16;
/** Up to how many blocks; with more, a placement takes longer than what it may save is worth. */
const mostRetried = 512;

/**
 * Places blocks. A block whose entry in `placedBefore` is a number stays there, so that a plan can be completed when more
 * sizes become known. What is not `thorough` takes a twentieth of the time, and the best of the orders as they are.
 */
export function place(blocks: readonly PlacedBlock[], placedBefore: readonly (number | undefined)[] = [], thorough = true): Placed {
  const least = lowerBound(blocks);
  let best: Placed | undefined;
  const attempt = (sequence: readonly number[]): Placed => {
    const placed = placeInSequence(blocks, placedBefore, sequence);
    if (!best || placed.total < best.total) best = placed;
    return placed;
  };
  const open = blocks.flatMap((_, i) => (placedBefore[i] === undefined ? [i] : []));
  const sequences = orders.map((order) => [...open].sort((a, b) => order(blocks[a] ?? none, blocks[b] ?? none) || a - b));
  for (const sequence of sequences) {
    attempt(sequence);
    if (best && best.total <= least) return best;
  }
  for (const given of thorough && open.length <= mostRetried ? sequences : []) {
    let sequence = given;
    for (let i = 0; i < retries; i++) {
      const placed = attempt(sequence), highest = sequence.findIndex((b) => (placed.offsets[b] ?? 0) + align(blocks[b]?.bytes ?? 0) === placed.total);
      if (placed.total <= least) return placed;
      if (highest <= 0) break;
      sequence = [sequence[highest] ?? 0, ...sequence.slice(0, highest), ...sequence.slice(highest + 1)];
    }
  }
  return best ?? { offsets: [], total: 0 };
}

const none: PlacedBlock = { bytes: 0, first: 0, last: 0 };

function placeInSequence(blocks: readonly PlacedBlock[], placedBefore: readonly (number | undefined)[], sequence: readonly number[]): Placed {
  const offsets = blocks.map((_, i) => placedBefore[i] ?? 0);
  const taken: Taken[] = [];
  let total = 0;
  const take = (i: number, { bytes, first, last }: PlacedBlock): void => {
    const from = offsets[i] ?? 0, to = from + align(bytes);
    if (bytes === 0) return;
    taken.push({ from, to, first, last });
    total = Math.max(total, to);
  };
  blocks.forEach((b, i) => { if (placedBefore[i] !== undefined) take(i, b); });
  for (const i of sequence) {
    const next = blocks[i] ?? none;
    offsets[i] = bestFit(align(next.bytes), taken.filter((t) => t.first <= next.last && next.first <= t.last));
    take(i, next);
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
