/** Runs of consecutive 4-byte elements: zeroing, copying, and interleaving planes. */
import { isSymbolic, type Dim } from "../../core/dim.ts";
import { add, binary, constant, f32, f32x4, i32, type Expr } from "../../kernel/expr.ts";
import type { Stmt } from "../../kernel/stmt.ts";
import { plus, times, toIndex } from "./affine.ts";
import { loadAt, storeAt, type KernelBuilder } from "../builder.ts";

/** Runs at most this long are written without a loop. */
const unrolled = 16;

/** Visits a run in vectors of 4, then single elements. `at` is a byte offset: a constant, or added to a moving pointer. */
export function overRun(b: KernelBuilder, into: Stmt[], count: Expr, visit: (into: Stmt[], index: Expr, lanes: 1 | 4) => void): void {
  if (count.kind === "const" && Number(count.value) <= unrolled) {
    const n = Number(count.value), whole = n - (n % 4);
    for (let i = 0; i < whole; i += 4) visit(into, constant(i, i32), 4);
    for (let i = whole; i < n; i++) visit(into, constant(i, i32), 1);
    return;
  }
  const whole = count.kind === "const" ? constant(Number(count.value) - (Number(count.value) % 4), i32) : b.let(into, "whole", binary("and", count, constant(-4, i32)));
  b.loop(into, "i", 0, whole, 4, longRun, (i, body) => visit(body, i, 4));
  if (count.kind !== "const" || Number(count.value) % 4 !== 0) b.loop(into, "i", whole, count, 1, longRun, (i, body) => visit(body, i, 1));
}
const longRun = 2 ** 28;

/** Address of element `index` from `start`, as pointer and constant offset. */
const element = (start: Expr, index: Expr): [Expr, number] => (index.kind === "const" ? [start, Number(index.value) * 4] : [plus(start, times(index, 4)), 0]);

/** Writes `count` zeros of a 4-byte type. */
export function emitZero(b: KernelBuilder, into: Stmt[], to: Expr, count: Expr | Dim): void {
  overRun(b, into, toIndex(count), (body, i, lanes) => {
    const [p, offset] = element(to, i);
    body.push(storeAt(p, offset, "float32", constant(0, lanes === 4 ? f32x4 : f32)));
  });
}

/** Copies `count` float32; the runs do not overlap. */
export function emitCopy(b: KernelBuilder, into: Stmt[], from: Expr, to: Expr, count: Expr | Dim): void {
  overRun(b, into, toIndex(count), (body, i, lanes) => {
    const [source, sourceOffset] = element(from, i), [target, targetOffset] = element(to, i);
    body.push(storeAt(target, targetOffset, "float32", loadAt(source, sourceOffset, "float32", lanes === 4 ? f32x4 : f32)));
  });
}

/**
 * to[x·channels + c] = map(from[c·planeBytes + x·4]) for x < count: planes become interleaved channels. Three channels and
 * multiples of four go through registers as vectors.
 */
export function emitInterleave(b: KernelBuilder, into: Stmt[], from: Expr, to: Expr, count: Expr | Dim, channels: number, planeBytes: Dim, map: (element: Expr) => Expr = (e) => e): void {
  const n = b.letIndex(into, "count", toIndex(count));
  const whole = b.letIndex(into, "whole", n.kind === "const" ? constant(Number(n.value) - (Number(n.value) % 4), i32) : binary("and", n, constant(-4, i32)));
  const plane = (c: number): Expr => b.let(into, "plane", plus(from, times(constant(c, i32), toIndex(planeBytes))));
  const scalars = (first: number, last: number, begin: Expr): void => {
    for (let c = first; c < last; c++) {
      const source = plane(c);
      b.loop(into, "x", begin, n, 1, longRun, (x, body) => body.push(storeAt(plus(to, times(x, channels * 4)), c * 4, "float32", map(loadAt(plus(source, times(x, 4)), 0, "float32", f32)))));
    }
  };
  let done = 0;
  if (channels === 3) {
    const planes = [0, 1, 2].map(plane);
    b.loop(into, "x", 0, whole, 4, longRun, (x, body) => {
      const [r, g, bl] = planes.map((p) => b.let(body, "v", map(loadAt(add(p, times(x, 4)), 0, "float32", f32x4))));
      if (!r || !g || !bl) return;
      const target = b.let(body, "to", plus(to, times(x, 12)));
      const rg = b.let(body, "v", lanesOf(r, g, [0, 4, 1, 5])), hi = b.let(body, "v", lanesOf(r, g, [6, 2, 7, 3]));
      body.push(storeAt(target, 0, "float32", lanesOf(rg, bl, [0, 1, 4, 2])));
      body.push(storeAt(target, 16, "float32", lanesOf(lanesOf(rg, bl, [3, 5, 3, 5]), hi, [0, 1, 5, 4])));
      body.push(storeAt(target, 32, "float32", lanesOf(hi, bl, [6, 3, 2, 7])));
    });
    scalars(0, 3, whole);
    return;
  }
  for (; done + 4 <= channels; done += 4) {
    const planes = [0, 1, 2, 3].map((c) => plane(done + c));
    b.loop(into, "x", 0, whole, 4, longRun, (x, body) => {
      const rows = planes.map((p) => b.let(body, "v", map(loadAt(add(p, times(x, 4)), 0, "float32", f32x4))));
      const target = b.let(body, "to", plus(to, times(x, channels * 4)));
      transpose4(b, body, rows).forEach((v, j) => body.push(storeAt(target, (j * channels + done) * 4, "float32", v)));
    });
    scalars(done, done + 4, whole);
  }
  if (done < channels) scalars(done, channels, constant(0, i32));
}

/** Four lanes out of the eight of a, then b. */
export function lanesOf(a: Expr, b: Expr, lanes: readonly number[]): Expr {
  return { kind: "shuffle", a, b, bytes: lanes.flatMap((l) => [0, 1, 2, 3].map((i) => l * 4 + i)), type: a.type };
}

/** Rows of a 4x4 matrix become its columns. */
export function transpose4(b: KernelBuilder, into: Stmt[], rows: readonly Expr[]): readonly Expr[] {
  const [r0, r1, r2, r3] = rows;
  if (!r0 || !r1 || !r2 || !r3) return [];
  const low01 = b.let(into, "v", lanesOf(r0, r1, [0, 4, 1, 5])), high01 = b.let(into, "v", lanesOf(r0, r1, [2, 6, 3, 7]));
  const low23 = b.let(into, "v", lanesOf(r2, r3, [0, 4, 1, 5])), high23 = b.let(into, "v", lanesOf(r2, r3, [2, 6, 3, 7]));
  return [lanesOf(low01, low23, [0, 1, 4, 5]), lanesOf(low01, low23, [2, 3, 6, 7]), lanesOf(high01, high23, [0, 1, 4, 5]), lanesOf(high01, high23, [2, 3, 6, 7])];
}

/** True when a distance is this constant. */
export const isDistance = (d: Dim, bytes: number): boolean => !isSymbolic(d) && d === bytes;
