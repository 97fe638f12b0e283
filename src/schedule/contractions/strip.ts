/**
 * A strip of finished rows: where an epilogue is costly, a block's accumulators go to scratch as they are, and the
 * epilogue then runs along whole rows of it, in long loops, while the strip is still in the first-level cache.
 */
import { isSymbolic, type Dim } from "../../core/dim.ts";
import { present } from "../../core/assert.ts";
import type { DType } from "../../core/dtype.ts";
import { add, type Buffer, type Expr } from "../../kernel/expr.ts";
import type { Stmt } from "../../kernel/stmt.ts";
import { affineAccess, bytesAlong, plus, substituteAxes, times } from "../loops/affine.ts";
import { addressOf, loadAt, storeAt, type KernelBuilder } from "../builder.ts";
import { columnTerm } from "./column-term.ts";
import { Epilogue } from "./epilogue.ts";
import type { Accumulators } from "./tile.ts";

/** Bytes of a strip that leave room for the rest in a first-level cache of 32 KB. */
const stripBytes = 16 * 1024;
/** Bytes beyond which a strip is not worth having, and the most rows asked for at least. */
const mostBytes = 256 * 1024, mostLeast = 32;
/** Below this many columns the loops along a row are too short to gain. */
const leastColumns = 16;

/** Rows of so many columns are neither too short nor too long for strips. */
export const suitsStrips = (columns: Dim): boolean => !isSymbolic(columns) && columns >= leastColumns && columns <= mostBytes / (4 * mostLeast);

export interface Strip {
  /** Rows a strip holds; a multiple of `multiple`. */
  readonly rows: number;
  /** Keeps a tile whose first element is at row `m` of the strip and column `column`: of the epilogue's accumulator, or of one of its others. */
  keep(into: Stmt[], m: Expr, column: Expr, accumulators: Accumulators, other?: number): void;
  /** Applies the epilogue to the strip's first `count` rows, which are rows `firstRow` … of the result. */
  finish(into: Stmt[], firstRow: Expr, count: Expr): void;
}

/**
 * A strip for an epilogue that is worth one; `begin` of the epilogue must have run. `least` rows it holds at
 * least (a multiple of `multiple`). Undefined: store tile by tile.
 */
export function stripFor(b: KernelBuilder, into: Stmt[], epilogue: Epilogue, dtype: DType, columns: Dim, multiple: number, least = multiple): Strip | undefined {
  if (!b.strips || !epilogue.costly || isSymbolic(columns) || !suitsStrips(columns)) return undefined;
  const flat = flatten(b, into, epilogue, dtype, columns);
  const width = flat ? columns : Math.ceil(columns / 8) * 8, rowBytes = width * 4;
  const rows = Math.max(least, Math.floor(stripBytes / rowBytes / multiple) * multiple);
  const buffer = b.temporary("strip", dtype, [rows, width]), others = (epilogue.spec.others ?? []).map(() => b.temporary("strip", dtype, [rows, width]));
  const rowOf = (into: Stmt[], of: Buffer, m: Expr): Expr => b.let(into, "from", plus(addressOf(of), times(m, rowBytes)));
  return {
    rows,
    keep(body, m, column, accumulators, other) {
      const to = b.letIndex(body, "strip", plus(plus(addressOf(other === undefined ? buffer : present(others[other], "strip")), times(m, rowBytes)), times(column, 4)));
      const terms = other === undefined ? flat?.terms(body, column, accumulators[0] ?? []) : undefined;
      accumulators.forEach((row, i) => row.forEach((acc, j) => body.push(storeAt(to, i * rowBytes + j * acc.type.lanes * 4, dtype, terms?.[j] ? add(acc, terms[j]) : acc))));
    },
    finish(body, firstRow, count) {
      if (flat) { flat.epilogue.storeRun(body, firstRow, addressOf(buffer), dtype, b.letIndex(body, "run", times(count, columns)), rows * columns, others.map(addressOf)); return; }
      b.loop(body, "m", 0, count, 1, rows, (m, inner) =>
        epilogue.storeRow(inner, b.let(inner, "row", plus(firstRow, m)), rowOf(inner, buffer, m), dtype, columns, others.map((o) => rowOf(inner, o, m))));
    },
  };
}

/** An epilogue whose rows run as one, and what is added to a tile's columns before. */
export interface Flat {
  readonly epilogue: Epilogue;
  /** Terms for a row of a tile's vectors from `column` on; undefined: none are added. */
  terms(into: Stmt[], column: Expr, row: readonly Expr[]): readonly Expr[] | undefined;
}

/** An epilogue as one whose rows of `columns` columns run as one; its `begin` must have run. Undefined where there is none. */
export function flatten(b: KernelBuilder, into: Stmt[], epilogue: Epilogue, dtype: DType, columns: number): Flat | undefined {
  if (columns % 4 !== 0) return undefined;
  if (epilogue.rowsFollow(columns)) return { epilogue, terms: () => undefined };
  const { spec } = epilogue, split = columnTerm(spec.stores, spec.accumulator);
  if (!split || split.term.buffer.dtype !== dtype) return undefined;
  const { term } = split, { column, rows, positions } = spec;
  const access = affineAccess(term.buffer, term.indices.map((e) => substituteAxes(e, positions)), new Set([...rows, column]), b.layout(term.buffer));
  if (!access || bytesAlong(access, column) !== 4 || rows.some((r) => bytesAlong(access, r) !== 0)) return undefined;
  const rest = new Epilogue(b, { ...spec, stores: split.stores }), begun: Stmt[] = [];
  rest.begin(begun);
  if (!rest.rowsFollow(columns)) return undefined;
  const base = b.let(into, "term", access.base);
  into.push(...begun);
  return {
    epilogue: rest,
    terms(body, at, row) {
      const pointer = b.letIndex(body, "term", plus(base, times(at, 4)));
      return row.map((acc, j) => b.let(body, "term", loadAt(pointer, j * 16, dtype, acc.type)));
    },
  };
}
