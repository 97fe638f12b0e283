/**
 * How much a kernel computes and moves, counted on its naive loops: what any schedule of it has to do, whatever it does
 * besides. Winograd's convolutions do fewer products than are counted here; padding and tails do more.
 */
import { dimAdd, dimMul, dimProduct, isSymbolic, type Dim } from "../core/dim.ts";
import { byteSize } from "../core/dtype.ts";
import type { Buffer, Expr } from "../kernel/expr.ts";
import type { Kernel } from "../kernel/kernel.ts";
import type { Stmt } from "../kernel/stmt.ts";
import { bodiesOf, expressionsOf, operandsOf, visitStmt } from "../kernel/traverse.ts";
import { operationCost } from "./loops/cost.ts";

export interface Work {
  /** Additions, products, comparisons for a maximum; a function such as exp counts as the operations of its polynomial. Indices are not counted. */
  readonly operations: Dim;
  /** Bytes read that are no weights: each input once, or what is picked of it where that is less. */
  readonly read: Dim;
  readonly weights: Dim;
  readonly written: Dim;
}

const arithmetic: ReadonlySet<string> = new Set(["add", "sub", "mul", "div", "rem", "min", "max", "pmin", "pmax", "pow"]);

/** The work of a kernel that is not scheduled yet. */
export function workOf(kernel: Kernel, isWeight: (b: Buffer) => boolean): Work {
  const values = valuesIn(kernel.body), loads = new Map<Buffer, Dim>();
  const operations = countStmt(kernel.body, 1, values, (b, times) => loads.set(b, dimAdd(loads.get(b) ?? 0, times)));
  const moved = (list: readonly Buffer[]): Dim => list.reduce<Dim>((n, b) => dimAdd(n, atMost(b, loads.get(b))), 0);
  return {
    operations,
    read: moved(kernel.inputs.filter((b) => !isWeight(b))),
    weights: moved(kernel.inputs.filter(isWeight)),
    written: kernel.outputs.reduce<Dim>((n, b) => dimAdd(n, bytesOf(b)), 0),
  };
}

const bytesOf = (b: Buffer): Dim => dimProduct([...b.shape, byteSize(b.dtype)]);

/** Bytes of a buffer of which `loads` elements are read; all of them where sizes do not tell. */
function atMost(b: Buffer, loads: Dim | undefined): Dim {
  const whole = bytesOf(b), picked = dimMul(loads ?? 0, byteSize(b.dtype));
  return isSymbolic(whole) || isSymbolic(picked) ? whole : Math.min(whole, picked);
}

/** Operands that a value is computed from: not what it is picked by. */
const valueOperands = (e: Expr): readonly Expr[] => (e.kind === "load" || e.kind === "loadAt" || e.kind === "address" ? [] : e.kind === "select" ? [e.a, e.b] : operandsOf(e));

/** Names of locals that hold values, as opposed to indices and conditions. */
function valuesIn(body: Stmt): ReadonlySet<string> {
  const names = new Set<string>(), lets = new Map<string, Expr[]>(), seen = new Set<Expr>();
  const note = (e: Expr): void => {
    if (seen.has(e)) return;
    seen.add(e);
    if (e.kind === "local" && !names.has(e.name)) {
      names.add(e.name);
      lets.get(e.name)?.forEach(note);
    }
    valueOperands(e).forEach(note);
  };
  visitStmt(body, (s) => { if (s.kind === "let" || s.kind === "assign" || s.kind === "accumulate") lets.set(s.name, [...(lets.get(s.name) ?? []), s.value]); });
  visitStmt(body, (s) => { if (s.kind === "store" || s.kind === "storeAt") note(s.value); });
  return names;
}

type NoteLoads = (b: Buffer, times: Dim) => void;

/** Operations of a statement that runs `times` times. */
function countStmt(s: Stmt, times: Dim, values: ReadonlySet<string>, note: NoteLoads): Dim {
  const seen = new Set<Expr>();
  for (const e of expressionsOf(s)) loadsIn(e, times, note, seen);
  if (s.kind === "for") return countStmt(s.body, dimMul(times, iterations(s)), values, note);
  const inner = bodiesOf(s).reduce<Dim>((n, b) => dimAdd(n, countStmt(b, times, values, note)), 0);
  switch (s.kind) {
    case "store": case "storeAt": return dimMul(operationsOf(s.value), times);
    case "let": case "assign": return values.has(s.name) ? dimMul(operationsOf(s.value), times) : 0;
    case "accumulate": return values.has(s.name) ? dimMul(dimAdd(operationsOf(s.value), s.value.type.lanes), times) : 0;
    default: return inner;
  }
}

function iterations({ begin, end, step, axis }: Extract<Stmt, { kind: "for" }>): Dim {
  if (begin.kind === "const" && end.kind === "const") return Math.max(0, Math.ceil((Number(end.value) - Number(begin.value)) / step));
  return axis.extent;
}

/** Each distinct operation once; those of a reduction as often as it runs. */
function operationsOf(root: Expr, seen: Set<Expr> = new Set()): Dim {
  if (seen.has(root)) return 0;
  seen.add(root);
  if (root.kind === "reduce") return dimMul(dimAdd(operationsOf(root.body), 1), dimProduct(root.axes.map((a) => a.extent)));
  const own = root.kind === "madd" ? 2 : root.kind === "unary" && root.op !== "not" ? operationCost(root) : root.kind === "binary" && arithmetic.has(root.op) ? operationCost(root) : 0;
  return valueOperands(root).reduce<Dim>((n, e) => dimAdd(n, operationsOf(e, seen)), own * root.type.lanes);
}

function loadsIn(e: Expr, times: Dim, note: NoteLoads, seen: Set<Expr>): void {
  if (seen.has(e)) return;
  seen.add(e);
  if (e.kind === "load") note(e.buffer, dimMul(times, e.type.lanes));
  const inner = e.kind === "reduce" ? dimMul(times, dimProduct(e.axes.map((a) => a.extent))) : times;
  for (const x of operandsOf(e)) loadsIn(x, inner, note, seen);
}
