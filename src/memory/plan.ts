/**
 * The memory plan: where every storage lies. A static program has fixed addresses; a symbolic one reads them, and the
 * sizes its kernels take, from a table of i32 that the runtime fills once per set of sizes.
 */
import type { SymbolicDim } from "../core/dim.ts";
import type { Storage } from "../kernel/program.ts";

export type Address =
  | { readonly kind: "fixed"; readonly address: number }
  /** The i32 at tableAddress + 4·slot. */
  | { readonly kind: "slot"; readonly slot: number };

export interface MemoryPlan {
  /** Byte address of the table; a multiple of 16. */
  readonly tableAddress: number;
  /** Slot i holds dims[i]; later slots hold addresses. */
  readonly dims: readonly SymbolicDim[];
  readonly slots: number;
  /** Every storage of the program; addresses are multiples of 64. */
  readonly addresses: ReadonlyMap<Storage, Address>;
  /** First byte after weights and fixed storages. */
  readonly fixedEnd: number;
  /** The arena's storages in placement order with their lifetimes (first and last step index), for `place`. */
  readonly arena: readonly { readonly storage: Storage; readonly first: number; readonly last: number }[];
}
