/** Inputs for the examples of rules, and how results are held against each other by a rule's numerics. */
import { evaluateDim } from "../../src/core/dim.ts";
import { isFloat, type DType } from "../../src/core/dtype.ts";
import { fromNumbers, sizeOf, stringsOf, toNumbers, type Tensor } from "../../src/core/tensor.ts";
import type { Graph } from "../../src/graph/graph.ts";
import type { Numerics } from "../../src/rewrite/rule.ts";

export type Feeds = Readonly<Record<string, Tensor>>;
export const kinds = ["normal", "negative", "zero", "large", "denormal", "special"] as const;
export type Kind = (typeof kinds)[number];

/** Inputs of one kind; symbolic sizes are `size`, those named `size_N` are N. */
export function feedsFor(graph: Graph, kind: Kind, size: number): Feeds {
  let seed = 7;
  const random = (): number => (seed = (seed * 48271) % 2147483647) / 2147483647;
  const normal = (): number => Math.sqrt(-2 * Math.log(random())) * Math.cos(2 * Math.PI * random());
  const specials = [NaN, Infinity, -Infinity, -0, 0, 1];
  const number: Readonly<Record<Kind, () => number>> = {
    normal, negative: () => -Math.abs(normal()), zero: () => 0, large: () => (random() < 0.5 ? -1e4 : 1e4),
    denormal: () => 1e-40 * normal(), special: () => (random() < 0.2 ? specials[Math.floor(random() * specials.length)] ?? 0 : normal()),
  };
  const element = (dtype: DType): number => (isFloat(dtype) ? number[kind]() : Math.floor(random() * 2));
  return Object.fromEntries(graph.inputs.filter((v) => !v.default).map(({ name, type }) => {
    const dims = type.shape.map((d) => evaluateDim(d, (name) => Number(/^size_(\d+)$/.exec(name)?.[1] ?? size)));
    return [name, fromNumbers(type.dtype, dims, Array.from({ length: sizeOf(dims) }, () => element(type.dtype)))];
  }));
}

/** Why two tensors differ by more than the numerics allow; undefined where they do not. */
export function difference(a: Tensor, b: Tensor, numerics: Numerics): string | undefined {
  if (a.dtype !== b.dtype || a.dims.join() !== b.dims.join()) return `${a.dtype}[${a.dims}] became ${b.dtype}[${b.dims}]`;
  if (a.dtype === "string") {
    const words = stringsOf(a), others = stringsOf(b), at = words.findIndex((w, i) => w !== others[i]);
    return at < 0 ? undefined : `element ${at}: '${words[at]}' became '${others[at]}'`;
  }
  const x = toNumbers(a), y = toNumbers(b);
  if (numerics.kind === "exact") {
    const at = Array.from(x).findIndex((v, i) => !Object.is(v, y[i]));
    return at < 0 ? undefined : `bits differ: element ${at}: ${x[at]} became ${y[at]}`;
  }
  const most = Array.from(x).reduce((m, v) => (Number.isFinite(v) ? Math.max(m, Math.abs(v)) : m), 0);
  const unit = a.dtype === "float16" ? 2 ** 13 : 1;
  for (let i = 0; i < x.length; i++) {
    const p = x[i] ?? NaN, q = y[i] ?? NaN;
    if (Object.is(p, q) || p === q) continue;
    if (!(Math.abs(p - q) <= numerics.bound * unit * most + 1e-38)) return `element ${i}: ${p} became ${q} (largest ${most})`;
  }
  return undefined;
}
