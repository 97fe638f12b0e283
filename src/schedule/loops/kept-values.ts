/**
 * Values computed twice in a row of passes: where a reduction folds costly values (the exponentials of a softmax) that a
 * later loop over the same elements computes again to store something made of them, the reduction leaves them in the
 * output's memory and the later loop reads them there; in working memory for one row where the output is of another type.
 */
import { dimEqual, type Dim } from "../../core/dim.ts";
import { axisOf, load, type Axis, type Buffer, type Expr } from "../../kernel/expr.ts";
import type { ExprTable } from "../../kernel/share.ts";
import { block, type Stmt } from "../../kernel/stmt.ts";
import { mapExpr, visitExpr, visitStmt } from "../../kernel/traverse.ts";
import { expressionCost } from "./cost.ts";
import { isWhole, statementsOf, type Loop } from "./nest.ts";

/** A block whose statement `first` folds and stores, and whose last statement reads what was stored. */
export interface KeptValues {
  readonly before: readonly Stmt[];
  readonly first: { readonly axis: Axis; readonly body: Stmt };
  readonly between: readonly Stmt[];
  readonly last: { readonly axis: Axis; readonly body: Stmt };
  /** Working memory that they are kept in; absent where that is the output's. */
  readonly scratch?: Buffer;
}

/** Cheaper values are computed again. */
const costly = 16;

/**
 * The block with values kept; undefined where there are none worth it. `aliased` may share memory with an output;
 * `scratch` gives working memory for so many float32 numbers.
 */
export function keepValues(s: Stmt, table: ExprTable, aliased: ReadonlySet<Buffer>, scratch?: (length: Dim) => Buffer): KeptValues | undefined {
  const all = statementsOf(s), last = all.at(-1);
  if (all.length < 2 || last?.kind !== "for" || !isWhole(last)) return undefined;
  const [store, ...more] = resolved(last, table);
  if (store?.kind !== "store" || more.length || (store.buffer.dtype !== "float32" && !scratch)) return undefined;
  const position = all.findLastIndex((x) => x !== last && x.kind === "for");
  const fold = all[position];
  if (fold?.kind !== "for" || !isWhole(fold) || !dimEqual(fold.axis.extent, last.axis.extent)) return undefined;
  const [accumulate, ...others] = resolved(fold, table);
  if (accumulate?.kind !== "accumulate" || others.length || loads(s, store.buffer)) return undefined;
  const value = accumulate.value;
  const again = table.make(mapExpr(value, (e) => (e.kind === "axis" && e.axis === fold.axis ? axisOf(last.axis) : e)));
  if (expressionCost([value]) < costly || !contains(store.value, again)) return undefined;
  if (value.type.scalar !== "f32") return undefined;
  const inOutput = store.buffer.dtype === "float32" || !scratch;
  const buffer = inOutput ? store.buffer : scratch(last.axis.extent), indices = inOutput ? store.indices : [table.make(axisOf(last.axis))];
  const kept = table.make(load(buffer, indices));
  const rest = table.make(mapExpr(store.value, (e) => e, new Map([[again, kept]])));
  if (inOutput && readsAny(rest, aliased)) return undefined;
  const at = indices.map((i) => table.make(mapExpr(i, (e) => (e.kind === "axis" && e.axis === last.axis ? axisOf(fold.axis) : e))));
  if (inOutput && readsElsewhere(value, aliased, at)) return undefined;
  return {
    before: all.slice(0, position), between: all.slice(position + 1, -1),
    first: { axis: fold.axis, body: block(accumulate, { kind: "store", buffer, indices: at, value }) },
    last: { axis: last.axis, body: { ...store, value: rest } },
    ...(inOutput ? {} : { scratch: buffer }),
  };
}

/** A loop's statements with the locals it declares replaced by their values; empty where that is not possible. */
function resolved(s: Loop, table: ExprTable): Stmt[] {
  const values = new Map<string, Expr>();
  const memo = new Map<Expr, Expr>();
  const out: Stmt[] = [];
  for (const x of statementsOf(s.body)) {
    const change = (e: Expr): Expr => table.make(mapExpr(e, (c) => (c.kind === "local" ? values.get(c.name) ?? c : c), memo));
    if (x.kind === "let") { values.set(x.name, change(x.value)); memo.clear(); }
    else if (x.kind === "store") out.push({ ...x, indices: x.indices.map(change), value: change(x.value) });
    else if (x.kind === "accumulate" && !values.has(x.name)) out.push({ ...x, value: change(x.value) });
    else return [];
  }
  return out;
}

function contains(e: Expr, part: Expr): boolean {
  let found = false;
  visitExpr(e, (x) => { if (x === part) found = true; });
  return found;
}
/** True where a load of one of `buffers` is at other indices, and so may come after they were overwritten. */
function readsElsewhere(e: Expr, buffers: ReadonlySet<Buffer>, at: readonly Expr[]): boolean {
  let found = false;
  visitExpr(e, (x) => { if (x.kind === "load" && buffers.has(x.buffer) && (x.indices.length !== at.length || x.indices.some((i, d) => i !== at[d]))) found = true; });
  return found;
}
function readsAny(e: Expr, buffers: ReadonlySet<Buffer>): boolean {
  let found = false;
  visitExpr(e, (x) => { if (x.kind === "load" && buffers.has(x.buffer)) found = true; });
  return found;
}
function loads(s: Stmt, buffer: Buffer): boolean {
  let found = false;
  visitStmt(s, (x) => {
    const roots = x.kind === "store" ? [...x.indices, x.value] : x.kind === "let" || x.kind === "assign" || x.kind === "accumulate" ? [x.value] : [];
    if (roots.some((e) => readsAny(e, new Set([buffer])))) found = true;
  });
  return found;
}
