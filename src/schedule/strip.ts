/**
 * A strip of finished rows: where an epilogue is costly, a block's accumulators go to scratch as they are, and the
 * epilogue then runs along whole rows of it, in long loops, while the strip is still in the first-level cache.
 */
import { isSymbolic, type Dim } from "../core/dim.ts";
import type { DType } from "../core/dtype.ts";
import type { Expr } from "../kernel/expr.ts";
import type { Stmt } from "../kernel/stmt.ts";
import { plus, times } from "./affine.ts";
import { addressOf, storeAt, type KernelBuilder } from "./builder.ts";
import type { Epilogue } from "./epilogue.ts";
import type { Accumulators } from "./tile.ts";

/** Bytes of a strip that leave room for the rest in a first-level cache of 32 KB. */
const stripBytes = 16 * 1024;
/** Bytes beyond which a strip is not worth having, where the least rows ask for more. */
const mostBytes = 256 * 1024;
/** Below this many columns the loops along a row are too short to gain. */
const leastColumns = 16;

export interface Strip {
  /** Rows a strip holds; a multiple of `multiple`. */
  readonly rows: number;
  /** Keeps a tile whose first element is at row `m` of the strip and column `column`. */
  keep(into: Stmt[], m: Expr, column: Expr, accumulators: Accumulators): void;
  /** Applies the epilogue to the strip's first `count` rows, which are rows `firstRow` … of the result. */
  finish(into: Stmt[], firstRow: Expr, count: Expr): void;
}

/**
 * A strip for an epilogue that is worth one; `begin` of the epilogue must have run. `least` rows it holds at
 * least (a multiple of `multiple`). Undefined: store tile by tile.
 */
export function stripFor(b: KernelBuilder, epilogue: Epilogue, dtype: DType, columns: Dim, multiple: number, least = multiple): Strip | undefined {
  if (!epilogue.costly || isSymbolic(columns) || columns < leastColumns) return undefined;
  const width = Math.ceil(columns / 8) * 8, rowBytes = width * 4;
  const rows = Math.max(least, Math.floor(stripBytes / rowBytes / multiple) * multiple);
  if (rows * rowBytes > mostBytes) return undefined;
  const buffer = b.temporary("strip", dtype, [rows, width]);
  return {
    rows,
    keep(into, m, column, accumulators) {
      const to = b.letIndex(into, "strip", plus(plus(addressOf(buffer), times(m, rowBytes)), times(column, 4)));
      accumulators.forEach((row, i) => row.forEach((acc, j) => into.push(storeAt(to, i * rowBytes + j * acc.type.lanes * 4, dtype, acc))));
    },
    finish(into, firstRow, count) {
      b.loop(into, "m", 0, count, 1, rows, (m, body) =>
        epilogue.storeRow(body, b.let(body, "row", plus(firstRow, m)), b.let(body, "from", plus(addressOf(buffer), times(m, rowBytes))), dtype, columns));
    },
  };
}
