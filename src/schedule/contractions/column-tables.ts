/**
 * What an epilogue computes of its column alone and not cheaply (the factor of a batch normalisation whose parameters only
 * running tells, γ / √(σ² + ε)) is computed once for every column before the loops, to a row that the epilogue reads.
 * The same operations on the same values: the same bits.
 */
import { isSymbolic, type Dim } from "../../core/dim.ts";
import { axisOf, constant, i32, load, type Axis, type Buffer, type Expr } from "../../kernel/expr.ts";
import type { Stmt } from "../../kernel/stmt.ts";
import type { ConvStructure, EpilogueStore, MatMulStructure } from "../../kernel/structure.ts";
import { mapExpr, operandsOf } from "../../kernel/traverse.ts";
import type { KernelBuilder } from "../builder.ts";
import { Epilogue } from "./epilogue.ts";

/** Rows below which a table costs as much as it saves. */
const leastRows = 4;

/** A structure whose stores read tables, which `into` fills. */
export function matMulWithTables(b: KernelBuilder, into: Stmt[], s: MatMulStructure): MatMulStructure {
  const stores = withTables(b, into, s.stores, s.n, [], [...s.batch, s.m].map((a) => a.extent));
  return stores === s.stores ? s : { ...s, stores };
}

/** As `matMulWithTables`; the columns of a depthwise convolution are its groups. */
export function convWithTables(b: KernelBuilder, into: Stmt[], s: ConvStructure): ConvStructure {
  const inputFrom = s.inputFrom && convWithTables(b, into, s.inputFrom);
  const [column, other] = s.group.extent === 1 ? [s.channel, s.group] : [s.group, s.channel];
  const stores = other.extent === 1 ? withTables(b, into, s.stores, column, [other], [s.batch, ...s.output].map((a) => a.extent)) : s.stores;
  return stores === s.stores && inputFrom === s.inputFrom ? s : { ...s, stores, ...(inputFrom ? { inputFrom } : {}) };
}

/** `single`: axes of one position, which count as part of the column. */
function withTables(b: KernelBuilder, into: Stmt[], stores: readonly EpilogueStore[], column: Axis, single: readonly Axis[], rows: readonly Dim[]): readonly EpilogueStore[] {
  if (isSymbolic(column.extent) || column.extent === 1 || !mayPay(rows)) return stores;
  const terms = costlyTerms(stores.map((s) => s.value), new Set([column, ...single]));
  if (terms.length === 0) return stores;
  const count = constant(column.extent, i32), zero = constant(0, i32), row: Axis = { name: b.name("row"), extent: 1 };
  const memo = new Map<Expr, Expr>();
  for (const term of terms) {
    const table: Buffer = b.temporary("columns", "float32", [column.extent]), indices = [axisOf(column)];
    const fill = new Epilogue(b, { stores: [{ buffer: table, indices, value: term }], accumulator: "", rows: [row], column, positions: new Map(single.map((a) => [a, zero])) });
    fill.begin(into);
    fill.fill(into, zero, zero, count, column.extent);
    memo.set(term, load(table, indices));
  }
  return stores.map((s) => ({ ...s, value: mapExpr(s.value, (e) => e, memo) }));
}

const mayPay = (rows: readonly Dim[]): boolean => rows.some(isSymbolic) || rows.reduce<number>((n, d) => n * Number(d), 1) >= leastRows;

/** The largest expressions over `axes` alone with an operation that takes long. What only one side of a choice computes stays there. */
function costlyTerms(values: readonly Expr[], axes: ReadonlySet<Axis>): readonly Expr[] {
  const ofColumn = new Map<Expr, boolean>(), dear = new Map<Expr, boolean>(), found = new Set<Expr>(), seen = new Set<Expr>();
  const isOfColumn = remembered(ofColumn, (e, again) => plainKinds.has(e.kind) && (e.kind !== "axis" || axes.has(e.axis)) && operandsOf(e).every(again));
  const isDear = remembered(dear, (e, again) => takesLong(e) || (e.kind !== "load" && operandsOf(e).some(again)));
  const visit = (e: Expr): void => {
    if (seen.has(e)) return;
    seen.add(e);
    if (e.type.scalar === "f32" && e.type.lanes === 1 && isOfColumn(e) && isDear(e)) { found.add(e); return; }
    if (e.kind !== "select" && e.kind !== "load") operandsOf(e).forEach(visit);
  };
  values.forEach(visit);
  return [...found];
}
const plainKinds: ReadonlySet<Expr["kind"]> = new Set<Expr["kind"]>(["const", "axis", "load", "unary", "binary", "cast", "bitcast", "madd"]);
const cheapFunctions: ReadonlySet<string> = new Set(["neg", "abs", "floor", "ceil", "trunc", "nearest", "not", "isnan", "isinf"]);
const takesLong = (e: Expr): boolean => (e.kind === "unary" && !cheapFunctions.has(e.op)) || (e.kind === "binary" && e.type.scalar === "f32" && (e.op === "div" || e.op === "pow"));

function remembered(memo: Map<Expr, boolean>, ask: (e: Expr, again: (e: Expr) => boolean) => boolean): (e: Expr) => boolean {
  const answer = (e: Expr): boolean => {
    const known = memo.get(e);
    if (known !== undefined) return known;
    const out = ask(e, answer);
    memo.set(e, out);
    return out;
  };
  return answer;
}
