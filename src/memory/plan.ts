/**
 * The memory plan: where every storage lies. A static program has fixed addresses; a symbolic one reads them, and the
 * sizes its kernels take, from a table of i32 that the runtime fills once per set of sizes.
 *
 * Memory is: 64 unused bytes, the table, the weights, then the arena; states lie where the runtime keeps them. Guarantees that storages in use at the same time
 * do not overlap, except an output that a kernel declares computable in the place of an input which dies there.
 */
import { dimEqual, dimProduct, evaluateDim, isSymbolic, type Dim, type SymbolicDim } from "../core/dim.ts";
import { fail } from "../core/diagnostic.ts";
import { byteSize } from "../core/dtype.ts";
import { present } from "../core/assert.ts";
import type { Buffer } from "../kernel/expr.ts";
import type { Kernel, Layout } from "../kernel/kernel.ts";
import type { Program, Storage } from "../kernel/program.ts";
import { allSteps } from "../kernel/segments.ts";
import { liveness, type Liveness } from "./liveness.ts";
import { align, alignment, lowerBound, place } from "./place.ts";
import { joinPresences, presences, type Presence } from "./presence.ts";

export type Address =
  | { readonly kind: "fixed"; readonly address: number }
  /** The i32 at tableAddress + 4·slot. */
  | { readonly kind: "slot"; readonly slot: number };

/** A block of the arena: storages that share one address, with their lifetime (first and last step). */
export interface ArenaBlock {
  /** The storage whose size the block has. */
  readonly storage: Storage;
  /** All storages of the block, `storage` first; more than one where a kernel computes in place. */
  readonly storages: readonly Storage[];
  readonly first: number;
  readonly last: number;
  /** It needs memory only where these hold. */
  readonly where: Presence;
}

export interface MemoryPlan {
  /** Byte address of the table; a multiple of 16. */
  readonly tableAddress: number;
  /** Slot i holds dims[i]; later slots hold addresses. */
  readonly dims: readonly SymbolicDim[];
  readonly slots: number;
  /** Every storage of the program that has memory; addresses are multiples of 64. */
  readonly addresses: ReadonlyMap<Storage, Address>;
  /** First byte after table, weights and fixed storages. */
  readonly fixedEnd: number;
  /** The arena's blocks, for `place`; static programs list them for reports only. */
  readonly arena: readonly ArenaBlock[];
  /** Bytes of weights, each rounded up to the alignment. */
  readonly weightBytes: number;
  /** Bytes of the arena, and what no placement could go below; absent where sizes are known only at run time. */
  readonly peak?: { readonly bytes: number; readonly lowerBound: number };
}

export interface PlanOptions {
  /** Sizes that kernels read from the table. */
  readonly dims: readonly SymbolicDim[];
  /** False gives every storage memory of its own. */
  readonly reuse: boolean;
}

const tableAddress = alignment;
/** WebAssembly's 32-bit memories end here. */
const memoryLimit = 2 ** 32;

/** Plans the memory of a program. Fails with OF5101 where it cannot fit into 4 GiB: a static one as a whole, another where one value does not with all open sizes 1. */
export function planMemory(program: Program, options: PlanOptions): MemoryPlan {
  const storages = new Set<Storage>();
  for (const placement of program.placements.values()) storages.add(placement.storage);
  const live = liveness(program);
  const blocks = arenaBlocks(program, live, options.reuse);
  const symbolic = blocks.some((b) => isSymbolic(b.storage.bytes));
  const states = [...storages].filter((s) => s.kind === "state"), firstState = options.dims.length + (symbolic ? blocks.length : 0);
  const slots = firstState + states.length;
  const addresses = new Map<Storage, Address>();
  states.forEach((s, i) => addresses.set(s, { kind: "slot", slot: firstState + i }));
  let end = tableAddress + align(4 * slots);
  const tableEnd = end;
  for (const s of storages) {
    if (s.kind !== "weight") continue;
    addresses.set(s, { kind: "fixed", address: end });
    end += align(staticBytes(s));
  }
  const weightBytes = end - tableEnd;
  const common = { tableAddress, dims: options.dims, slots, addresses, arena: blocks, weightBytes };
  if (symbolic) {
    blocks.forEach((b, i) => b.storages.forEach((s) => addresses.set(s, { kind: "slot", slot: options.dims.length + i })));
    const least = Math.max(0, ...blocks.map((b) => evaluateDim(b.storage.bytes, () => 1)));
    refuseTooLarge(end + least, weightBytes, least);
    return { ...common, fixedEnd: end };
  }
  const sized = blocks.map((b) => ({ bytes: staticBytes(b.storage), first: b.first, last: b.last }));
  const { offsets, total } = place(sized);
  refuseTooLarge(end + total, weightBytes, total);
  blocks.forEach((b, i) => b.storages.forEach((s) => addresses.set(s, { kind: "fixed", address: end + (offsets[i] ?? 0) })));
  return { ...common, fixedEnd: end + total, peak: { bytes: total, lowerBound: lowerBound(sized) } };
}

function refuseTooLarge(total: number, weights: number, arena: number): void {
  if (total <= memoryLimit) return;
  const mib = (n: number): string => `${(n / 2 ** 20).toFixed(0)} MiB`;
  fail("OF5101", `the program needs ${mib(total)} of memory (weights ${mib(weights)}, arena ${mib(arena)}); WebAssembly has 4096 MiB`, { hint: "compile for smaller input shapes" });
}

function staticBytes(storage: Storage): number {
  return isSymbolic(storage.bytes) ? fail("OF5102", `the size of weight '${storage.name}' is not known`) : storage.bytes;
}

/** Arena, input and output storages with lifetimes, in order of their first use, joined where a kernel works in place. */
function arenaBlocks(program: Program, live: Liveness, reuse: boolean): ArenaBlock[] {
  const all: Storage[] = [...live.lifetimes.keys()];
  const always = { first: -1, last: live.steps };
  const range = (s: Storage): { first: number; last: number } => (reuse ? present(live.lifetimes.get(s), s.name) : always);
  const groups = new Map<Storage, { storages: Storage[]; first: number; last: number }>();
  for (const s of all) groups.set(s, { storages: [s], ...range(s) });
  if (reuse) joinInPlace(program, live, groups);
  const where = presences(program);
  const blocks = [...new Set(groups.values())].map((g): ArenaBlock => {
    const { storages, first, last } = g;
    return { storage: present(storages[0], "storage"), storages, first, last, where: storages.map((s) => where.get(s) ?? []).reduce(joinPresences) };
  });
  return blocks.sort((a, b) => a.first - b.first);
}

function joinInPlace(program: Program, live: Liveness, groups: Map<Storage, { storages: Storage[]; first: number; last: number }>): void {
  for (const step of allSteps(program.steps)) {
    if (step.kind !== "call") continue;
    const at = present(live.numbers.get(step), "step number");
    for (const pair of step.kernel.inPlace ?? []) {
      const from = present(program.placements.get(pair.input), pair.input.name).storage;
      const to = present(program.placements.get(pair.output), pair.output.name).storage;
      const source = groups.get(from), result = groups.get(to);
      if (!source || !result || source === result || source.last !== at || result.first !== at) continue;
      if (from.kind !== "arena" || !mayShare(program, step.kernel, pair.input, pair.output)) continue;
      source.storages.push(...result.storages);
      source.last = result.last;
      for (const s of result.storages) groups.set(s, source);
    }
  }
}

/** Whether input and output cover equal storages element by element, and the kernel sees the input's storage in no other way. */
function mayShare(program: Program, kernel: Kernel, input: Buffer, output: Buffer): boolean {
  const a = present(program.placements.get(input), input.name), b = present(program.placements.get(output), output.name);
  if (!dimEqual(a.storage.bytes, b.storage.bytes) || byteSize(input.dtype) !== byteSize(output.dtype)) return false;
  if (!dimEqual(a.storage.bytes, bytesOfBuffer(input)) || !sameLayout(a.layout, b.layout)) return false;
  const others = [...kernel.inputs, ...kernel.outputs, ...kernel.scratch].filter((x) => x !== input && x !== output);
  return others.every((x) => { const s = program.placements.get(x)?.storage; return s !== a.storage && s !== b.storage; });
}
const bytesOfBuffer = (b: Buffer): Dim => dimProduct([...b.shape, byteSize(b.dtype)]);
const sameLayout = (a: Layout, b: Layout): boolean =>
  dimEqual(a.offset, b.offset) && a.strides.length === b.strides.length && a.strides.every((s, i) => dimEqual(s, b.strides[i] ?? -1));
