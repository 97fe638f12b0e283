/**
 * How far results of a graph may be apart where every step is rounded as it may be. The graph is run again by the
 * reference interpreter with each float, fed, constant or computed, moved by a few units in its last place (Monte Carlo
 * arithmetic, Parker 1997): what an element then moves by is what rounding can do to it. An element that changes between
 * finite and not, and an integer that changes at all, hang on rounding and are not compared.
 */
import { isFloat } from "../src/core/dtype.ts";
import { fromNumbers, toNumbers, type Tensor } from "../src/core/tensor.ts";
import { randomFrom, type Random } from "../test/support/random.ts";
import { evaluateNode } from "./graph-builder.ts";
import { isNumeric, ulpOf, type GraphCase, type Tensors } from "./graph-case.ts";

const trials = 6, units = 4, margin = 16;

/** For each result and element, the difference that rounding explains. */
export function allowances(c: GraphCase, expected: Tensors): Readonly<Record<string, Float64Array>> {
  const most = Object.fromEntries(Object.entries(expected).map(([name, t]) => [name, new Float64Array(t.data.length)]));
  for (let trial = 0; trial < trials; trial++) {
    const moved = runMoved(c, randomFrom(trial + 1));
    for (const [name, t] of Object.entries(expected)) widen(most[name] ?? new Float64Array(), t, moved?.[name]);
  }
  return most;
}

function widen(most: Float64Array, expected: Tensor, moved: Tensor | undefined): void {
  if (!moved || moved.dims.join() !== expected.dims.join()) { most.fill(Infinity); return; }
  if (!isNumeric(expected)) return;
  const x = toNumbers(moved), y = toNumbers(expected), exact = !isFloat(expected.dtype);
  for (let i = 0; i < most.length; i++) {
    const a = x[i] ?? NaN, e = y[i] ?? NaN;
    if (Object.is(a, e) || a === e) continue;
    most[i] = Math.max(most[i] ?? 0, exact || !Number.isFinite(a - e) ? Infinity : margin * Math.abs(a - e));
  }
}

/** The graph's results with all floats moved; undefined where a node then refuses. */
function runMoved(c: GraphCase, random: Random): Tensors | undefined {
  const values: Record<string, Tensor> = {}, constants: Record<string, Tensor> = {};
  for (const [name, t] of Object.entries(c.feeds)) values[name] = move(t, random);
  for (const [name, t] of Object.entries(c.constants)) constants[name] = move(t, random);
  try {
    for (const node of c.nodes) for (const [name, t] of Object.entries(evaluateNode({ constants }, node, { ...values, ...constants }))) values[name] = move(t, random);
  } catch {
    return undefined;
  }
  return values;
}

function move(t: Tensor, random: Random): Tensor {
  if (!isNumeric(t) || !isFloat(t.dtype)) return t;
  const by = units * ulpOf(t.dtype);
  return fromNumbers(t.dtype, t.dims, Array.from(toNumbers(t), (x) => x * (1 + random.pick([-by, -by / 4, 0, by / 4, by]))));
}
