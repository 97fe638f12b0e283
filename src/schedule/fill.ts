/** Evaluates an element expression along one axis into memory: how operands that no tile can read directly are gathered. */
import type { Dim } from "../core/dim.ts";
import { byteSize, type DType } from "../core/dtype.ts";
import { constant, i32, type Axis, type Expr } from "../kernel/expr.ts";
import type { Stmt } from "../kernel/stmt.ts";
import type { EpilogueStore } from "../kernel/structure.ts";
import { plus, times, toIndex } from "./loops/affine.ts";
import type { KernelBuilder } from "./builder.ts";
import { Epilogue } from "./contractions/epilogue.ts";

export interface Fill {
  /** Address of the first element written, as `dtype`. */
  readonly to: Expr;
  readonly dtype: DType;
  /** Bytes from one written element to the next; those of one element when absent. */
  readonly step?: number;
  readonly value: Expr;
  /** The axis whose neighbours become lanes: from, from + 1, … */
  readonly along: Axis;
  readonly count: Expr | Dim;
  readonly from?: Expr;
  /** What the other axes that the value mentions stand for; bound where the loop is written. */
  readonly positions: ReadonlyMap<Axis, Expr>;
}

/** Writes the loop: vectors of 4, then what is left. */
export function emitFill(b: KernelBuilder, into: Stmt[], fill: Fill): void {
  const from = fill.from ?? constant(0, i32);
  const step = fill.step ?? byteSize(fill.dtype);
  const store: EpilogueStore = { buffer: { name: "filled", dtype: fill.dtype, shape: [] }, indices: [], value: fill.value };
  const writer = new Epilogue(b, {
    stores: [store], accumulator: "", rows: [{ name: "row", extent: 1 }], column: fill.along, positions: fill.positions,
    destinations: new Map([[store, { address: plus(fill.to, times(from, -step)), rowBytes: 0, columnBytes: step }]]),
  });
  writer.begin(into);
  writer.fill(into, constant(0, i32), from, toIndex(fill.count), fill.along.extent);
}
