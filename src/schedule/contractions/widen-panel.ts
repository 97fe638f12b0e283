/**
 * Quantised weights against many rows: a panel is widened to float32 once for a block of rows, and stays in the first-level
 * cache while the rows' tiles pass over it.
 */
import { constant, i32, mul, type Buffer, type Expr } from "../../kernel/expr.ts";
import type { Stmt } from "../../kernel/stmt.ts";
import { addressOf, storeAt, type KernelBuilder } from "../builder.ts";
import { advance, forBlocks, panelWidth, type BlockWeights } from "./block-weights.ts";
import type { BColumns } from "./tile.ts";

/** From so many rows on widening once pays for writing and reading the wide panel. */
export const rowsToWiden = ({ bits }: BlockWeights): number => (bits === 16 ? 8 : 16);

/** Room for one wide panel. */
export const widePanel = (b: KernelBuilder, kind: BlockWeights): Buffer => b.temporary("wide", "float32", [kind.depth, panelWidth]);

/** Fills `wide` with the panel that starts at `column` and whose integers lie from `start` on. */
export function widenPanel(b: KernelBuilder, into: Stmt[], kind: BlockWeights, wide: Buffer, column: Expr, start: Expr): BColumns {
  const to = b.let(into, "to", addressOf(wide));
  forBlocks(b, into, kind, 1, column, start, (body, block) => {
    block.steps(body, (inner, step) => step.halves.forEach((half, j) => {
      const scale = block.scales[j];
      inner.push(storeAt(to, step.index * panelWidth * 4 + j * 16, "float32", scale ? mul(half, scale) : half));
    }),
    (inner, count) => advance(inner, to, constant(count * panelWidth * 4, i32)));
  });
  return { pointer: addressOf(wide), offsets: [0, 16], stepBytes: panelWidth * 4 };
}
