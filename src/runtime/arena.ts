/**
 * The table of sizes and addresses that compiled code reads, filled for one set of sizes at a time. Sizes that only a
 * host operator's result tells are bound while the program runs; what depends on them is placed then, around what is
 * alive. Programs with static sizes have nothing here to do. Where sizes keep changing, as with every token of a decoder,
 * places are found for sizes somewhat larger, and serve all that fit into them.
 */
import { evaluateDimJson, type DimJson } from "../core/dim-json.ts";
import type { AddressJson, MemoryJson } from "../artifact/manifest.ts";
import { align, place } from "../memory/place.ts";
import type { Heap } from "./heap.ts";
import type { Threads } from "./threads.ts";

interface Places {
  /** By block; undefined while its size is not known. */
  readonly offsets: readonly (number | undefined)[];
  /** Bytes that each block may have. */
  readonly bytes: readonly (number | undefined)[];
  readonly total: number;
}
interface Placement extends Places {
  readonly sizes: readonly (number | undefined)[];
}

/** What an arena can come back to. */
export interface ArenaState {
  readonly symbols: ReadonlyMap<string, number>;
  readonly placement: Placement | undefined;
}

/** Placements remembered at a time. */
const remembered = 32;
/** Different sizes whose places are found as well as can be; with more, finding them must be quick. */
const settled = 4;
/** A size rounded up by at most an eighth. */
const roomFor = (n: number): number => { const step = 2 ** Math.max(0, 28 - Math.clz32(n)); return Math.ceil(n / step) * step; };

export class Arena {
  readonly #plan: MemoryJson;
  readonly #heap: Heap;
  readonly #dynamic: boolean;
  readonly #threads: Threads | undefined;
  #base = 0;
  #capacity = 0;
  #symbols = new Map<string, number>();
  #key: string | undefined;
  #placement: Placement | undefined;
  #cache = new Map<string, Placement>();
  #rooms = new Map<string, Places>();
  #met = 0;

  /** `threads` are given the working memory that they need under the sizes at hand. */
  constructor(plan: MemoryJson, heap: Heap, threads?: Threads) {
    this.#threads = threads;
    this.#plan = plan;
    this.#heap = heap;
    this.#dynamic = plan.slots > 0;
    if (!this.#dynamic) this.#serveThreads();
  }

  get symbols(): ReadonlyMap<string, number> { return this.#symbols; }

  /** Starts a run with these sizes. */
  begin(symbols: Map<string, number>): void {
    this.#symbols = symbols;
    this.#threads?.meet(symbols.values());
    if (!this.#dynamic) return;
    const key = [...symbols.values()].join();
    if (key === this.#key) return;
    this.#key = key;
    let placement = this.#cache.get(key);
    if (!placement) {
      placement = ++this.#met > settled ? this.#within() : this.#place(undefined);
      if (this.#cache.size >= remembered) this.#cache.clear();
      this.#cache.set(key, placement);
    }
    this.#use(placement);
  }

  /** Binds sizes that a step has just told, and places what depends on them. What is alive keeps its contents. */
  extend(found: ReadonlyMap<string, number>): void {
    if (found.size === 0) return;
    for (const [name, value] of found) this.#symbols.set(name, value);
    this.#key = undefined;
    this.#threads?.meet(undefined);
    this.#use(this.#place(this.#placement));
  }

  /** What is known and placed now. */
  mark(): ArenaState { return { symbols: new Map(this.#symbols), placement: this.#placement }; }
  /** Takes back the sizes bound since `mark`, and the places of what depends on them; what had a place then keeps it. */
  rewind({ symbols, placement }: ArenaState): void {
    if (this.#symbols.size === symbols.size) return;
    this.#symbols = new Map(symbols);
    this.#placement = placement;
  }

  /** The value of a size; 0 while it is not known. */
  size(d: DimJson): number { return evaluateDimJson(d, this.#symbols) ?? 0; }
  sizes(dims: readonly DimJson[]): number[] { return dims.map((d) => this.size(d)); }

  address(at: AddressJson): number {
    if (typeof at === "number") return at;
    return new DataView(this.#heap.memory.buffer).getUint32(this.#plan.table + 4 * at.slot, true);
  }

  #place(before: Placement | undefined): Placement {
    return { ...this.#places(this.#blocks(this.#symbols), before, this.#met <= settled), sizes: this.#sizes() };
  }
  /** Places that were found for sizes somewhat larger, where these blocks fit. */
  #within(): Placement {
    const symbols = new Map([...this.#symbols].map(([name, n]) => [name, roomFor(n)])), key = [...symbols.values()].join();
    let places = this.#rooms.get(key);
    if (!places) {
      places = this.#places(this.#blocks(symbols), undefined, false);
      if (this.#rooms.size >= remembered) this.#rooms.clear();
      this.#rooms.set(key, places);
    }
    const { bytes } = places, fits = this.#blocks(this.#symbols).every((n, i) => { const room = bytes[i]; return n === undefined || room === undefined ? n === room : n <= room; });
    return fits ? { ...places, sizes: this.#sizes() } : this.#place(undefined);
  }

  #sizes(): (number | undefined)[] { return this.#plan.sizes.map((d) => evaluateDimJson(d, this.#symbols)); }
  /** Bytes of each block: none where its sizes would be negative, in a branch that is not taken or that says so. */
  #blocks(symbols: ReadonlyMap<string, number>): (number | undefined)[] {
    return this.#plan.arena.map((b) => { const bytes = b.where?.some((p) => evaluateDimJson(p, symbols) === 0) ? 0 : evaluateDimJson(b.bytes, symbols); return bytes && Math.max(0, bytes); });
  }
  #places(blocks: readonly (number | undefined)[], before: Places | undefined, thorough: boolean): Places {
    const { arena } = this.#plan;
    const known = arena.flatMap((b, i) => { const bytes = blocks[i]; return bytes === undefined ? [] : [{ i, bytes, first: b.first, last: b.last }]; });
    const placed = place(known, known.map((k) => before?.offsets[k.i]), thorough);
    const offsets: (number | undefined)[] = arena.map(() => undefined);
    known.forEach((k, n) => { offsets[k.i] = placed.offsets[n]; });
    return { offsets, bytes: blocks, total: placed.total };
  }

  #use(placement: Placement): void {
    this.#placement = placement;
    this.#reserve(placement.total);
    this.#serveThreads();
    const table = new DataView(this.#heap.memory.buffer);
    const write = (slot: number, value: number): void => table.setInt32(this.#plan.table + 4 * slot, value | 0, true);
    placement.sizes.forEach((value, slot) => { if (value !== undefined) write(slot, value); });
    this.#plan.arena.forEach((block, i) => {
      const offset = placement.offsets[i];
      if (typeof block.at === "object" && offset !== undefined) write(block.at.slot, this.#base + offset);
    });
  }

  #serveThreads(): void {
    this.#threads?.reserve(this.#heap, Math.max(0, ...(this.#plan.threadScratch ?? []).map((d) => this.size(d))));
  }

  /** Makes room for `total` bytes, moving what is there. */
  #reserve(total: number): void {
    if (total <= this.#capacity) return;
    const base = this.#heap.allocate(total);
    if (this.#capacity > 0) {
      this.#heap.bytes.copyWithin(base, this.#base, this.#base + this.#capacity);
      this.#heap.free(this.#base);
    }
    this.#base = base;
    this.#capacity = align(total);
  }
}
