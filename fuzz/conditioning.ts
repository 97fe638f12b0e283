/**
 * How far results of a graph may be apart where every step is rounded as it may be. The graph is run again by the
 * reference interpreter with each float, fed, constant or computed, moved by a few units in its last place (Monte Carlo
 * arithmetic, Parker 1997), never by none, for what stays in its place in all trials would be allowed nothing: what an
 * element then moves by is what rounding can do to it. Floats of 16 bits are also kept
 * in 32, as they are between the operators of one kernel. Sums whose terms come near the largest number may overflow on
 * the way in one order and not in another: what hangs on them is found by putting other numbers in their place. An element that changes between finite and not, and an integer
 * that changes at all, hang on rounding and are not compared.
 */
import { dtypes, isFloat, type DType } from "../src/core/dtype.ts";
import { fromNumbers, toNumbers, type Tensor } from "../src/core/tensor.ts";
import { randomFrom, type Random } from "../test/support/random.ts";
import { evaluateNode } from "./graph-builder.ts";
import { isNumeric, ulpOf, type GraphCase, type GraphNode, type Tensors } from "./graph-case.ts";

const trials = 6, units = 4, margin = 16;

/** For each result and element, the difference that rounding explains. Feeds that were `computed` may have been kept in more bits. */
export function allowances(c: GraphCase, expected: Tensors, computed: ReadonlySet<string> = new Set()): Readonly<Record<string, Float64Array>> {
  const most = Object.fromEntries(Object.entries(expected).map(([name, t]) => [name, new Float64Array(t.data.length)]));
  for (let trial = 0; trial < trials; trial++) {
    const random = randomFrom(trial + 1), moved = run(c, (t) => move(t, random), (node) => node, (node, results) => (absolute.has(node.type) ? mapTensors(results, (t) => shift(t, random)) : transforms.has(node.type) ? mapTensors(results, (t) => shift(t, random, largestOf(t))) : results));
    for (const [name, t] of Object.entries(expected)) widen(most[name] ?? new Float64Array(), t, moved?.[name]);
  }
  for (const filler of mayOverflow(c) ? [NaN, 0, Infinity, -Infinity] : []) {
    const moved = run(c, (t) => t, (node) => node, (node, results, values) => (sumsHuge(node, values) ? mapTensors(results, (t) => filled(t, filler)) : results));
    for (const [name, t] of Object.entries(expected)) widen(most[name] ?? new Float64Array(), t, moved?.[name]);
  }
  if (c.nodes.some((n) => n.type in flushing || transforms.has(n.type))) {
    const least = (t: Tensor, type: string): number => flushing[type] ?? (transforms.has(type) ? units * ulpOf(t.dtype) * largestOf(t) : 0);
    const moved = run(c, (t) => t, (node) => node, (node, results) => mapTensors(results, (t) => flushed(t, least(t, node.type))));
    for (const [name, t] of Object.entries(expected)) widen(most[name] ?? new Float64Array(), t, moved?.[name]);
  }
  const kept = Object.fromEntries(Object.entries(c.feeds).map(([name, t]) => [name, computed.has(name) ? beforeOverflow(t) : t]));
  for (const feeds of usesHalf(c) ? [c.feeds, kept] : []) {
    const wide = run({ ...c, feeds }, inSingle, nodeInSingle);
    if (wide) for (const [name, t] of Object.entries(expected)) widen(most[name] ?? new Float64Array(), t, wide[name]);
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

/** The graph's results with all tensors changed on the way; undefined where a node then refuses. */
function run(c: GraphCase, change: (t: Tensor) => Tensor, changeNode: (node: GraphNode) => GraphNode, changeResults = (_: GraphNode, results: Tensors, __: Tensors): Tensors => results): Tensors | undefined {
  const values: Record<string, Tensor> = {}, constants: Record<string, Tensor> = {};
  for (const [name, t] of Object.entries(c.feeds)) values[name] = change(t);
  for (const [name, t] of Object.entries(c.constants)) constants[name] = change(t);
  try {
    for (const node of c.nodes) {
      const given = { ...values, ...constants }, results = changeResults(node, evaluateNode({ constants }, changeNode(node), given), given);
      for (const [name, t] of Object.entries(results)) values[name] = change(t);
    }
  } catch {
    return undefined;
  }
  return values;
}

const halves: readonly DType[] = ["float16", "bfloat16"], isHalf = (t: Tensor): boolean => halves.includes(t.dtype);
const halfCodes = halves.map((h) => dtypes[h].onnx);
const usesHalf = ({ feeds, constants, nodes }: GraphCase): boolean =>
  [...Object.values(feeds), ...Object.values(constants)].some(isHalf) || nodes.some(({ attributes = {} }) => Object.values(attributes).some((a) => typeof a === "number" && halfCodes.includes(a)));
const inSingle = (t: Tensor): Tensor => (isHalf(t) ? fromNumbers("float32", t.dims, toNumbers(t)) : t);
/** An infinity of 16 bits may be a number of 32. */
const beforeOverflow = (t: Tensor): Tensor => (t.dtype === "float16" ? fromNumbers("float32", t.dims, Array.from(toNumbers(t), (x) => (Math.abs(x) === Infinity ? Math.sign(x) * 2 ** 17 : x))) : t);
/** The node as it is among floats of 32 bits: what it casts to is one of these as well. */
const nodeInSingle = (node: GraphNode): GraphNode => {
  const own = node.attributes ?? {};
  const changed = Object.entries(own).map(([name, a]): [string, typeof a] => [name, (name === "to" || name === "dtype") && typeof a === "number" && halfCodes.includes(a) ? dtypes.float32.onnx : typeof a === "object" && "dtype" in a ? inSingle(a) : a]);
  return { ...node, attributes: Object.fromEntries(changed) };
};

/** Functions whose kernels are exact to the last place of 1, not of what they give. */
const absolute: ReadonlySet<string> = new Set(["Softplus", "Mish", "Sigmoid", "Tanh", "Erf", "Gelu", "FastGelu", "BiasGelu", "QuickGelu", "Swish", "Celu", "Elu", "Selu", "Sin", "Cos", "Log", "LogSoftmax", "ReduceLogSum", "ReduceLogSumExp"]);
/** Sums that cancel, of terms that are as large as any of the results and have factors of their own rounding. */
const transforms: ReadonlySet<string> = new Set(["STFT", "DFT"]);
const shift = (t: Tensor, random: Random, by = 1): Tensor =>
  isNumeric(t) && isFloat(t.dtype) ? fromNumbers(t.dtype, t.dims, Array.from(toNumbers(t), (x) => x + random.pick([-1, 1]) * units * ulpOf(t.dtype) * by)) : t;
const largestOf = (t: Tensor): number => (isNumeric(t) ? Array.from(toNumbers(t)).reduce((most, x) => (Number.isFinite(x) ? Math.max(most, Math.abs(x)) : most), 1) : 1);

/** Operators whose kernels give 0 below some number: for what a float32 has no normal number for, and for roots of squares that it has none for. */
const flushing: Readonly<Record<string, number>> = { Softmax: 2 ** -126, ReduceL2: 2 ** -63, LpPool: 2 ** -63, GlobalLpPool: 2 ** -63 };
const flushed = (t: Tensor, below: number): Tensor => (t.dtype === "float32" && below > 0 ? fromNumbers(t.dtype, t.dims, Array.from(toNumbers(t), (x) => (Math.abs(x) < below ? 0 : x))) : t);

/** Operators that add many terms, or squares of them. */
const sums: ReadonlySet<string> = new Set(["MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum", "ReduceSum", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSum", "CumSum", "AveragePool", "LpPool", "GlobalAveragePool", "LayerNormalization", "BatchNormalization", "InstanceNormalization", "LpNormalization", "LRN", "Sum", "Mean"]);
const isHuge = (t: Tensor): boolean => {
  const from = t.dtype === "float64" ? 1e150 : 1e15;
  return isNumeric(t) && isFloat(t.dtype) && !isHalf(t) && Array.from(toNumbers(t)).some((x) => Math.abs(x) >= from && Number.isFinite(x));
};
const mayOverflow = (c: GraphCase): boolean => c.nodes.some((n) => sums.has(n.type));
const sumsHuge = (node: GraphNode, values: Tensors): boolean => sums.has(node.type) && node.inputs.some((name) => { const t = values[name]; return t !== undefined && isHuge(t); });
const mapTensors = (of: Tensors, f: (t: Tensor) => Tensor): Tensors => Object.fromEntries(Object.entries(of).map(([name, t]) => [name, f(t)]));
const filled = (t: Tensor, value: number): Tensor => (isFloat(t.dtype) ? fromNumbers(t.dtype, t.dims, new Array<number>(t.data.length).fill(value)) : t);

/** The least number above 0: numbers near it are rounded to its multiples. */
const leastOf: Partial<Record<DType, number>> = { float64: 2 ** -1074, float32: 2 ** -149, float16: 2 ** -24, bfloat16: 2 ** -133 };
function move(t: Tensor, random: Random): Tensor {
  if (!isNumeric(t) || !isFloat(t.dtype)) return t;
  const by = units * ulpOf(t.dtype), least = leastOf[t.dtype] ?? 0;
  return fromNumbers(t.dtype, t.dims, Array.from(toNumbers(t), (x) => { const step = random.pick([-1, -0.25, 0.25, 1]); return x * (1 + step * by) + (x !== 0 && Math.abs(x * by) < least ? step * units * least : 0); }));
}
