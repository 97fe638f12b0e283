/** Rows of a convolution that are computed when something asks for them, as a pool does. */
import type { Dim } from "../../core/dim.ts";
import type { Expr } from "../../kernel/expr.ts";
import type { Stmt } from "../../kernel/stmt.ts";
import type { EpilogueStore } from "../../kernel/structure.ts";

/** Rows of output that are written as they are asked for, `rows` at a time at most, by whatever stores over the structure's axes. */
export interface RowBlocks {
  readonly rows: number;
  /** How many rows are asked for is a multiple of this; those past the last are not stored. */
  readonly multiple: number;
  /** Instructions of a block, roughly. */
  readonly work: Dim;
  write(into: Stmt[], first: Expr, count: Expr, stores: readonly EpilogueStore[]): void;
}
