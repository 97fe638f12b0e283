/** One operator as a model of its own, run by onnxruntime and by us three ways. */
import { compileModel } from "../../src/compiler/compile.ts";
import { dtypes, isFloat, isStorageOnly, type DType } from "../../src/core/dtype.ts";
import { fromNumbers, toNumbers, type Tensor } from "../../src/core/tensor.ts";
import { readModel } from "../../src/onnx/read.ts";
import { operators } from "../../src/ops/index.ts";
import { interpret } from "../../src/reference/interpret.ts";
import { load, Tensor as RuntimeTensor } from "../../src/runtime/index.ts";
import { modelBytes, type AttributeSpec, type ModelSpec } from "./model-spec.ts";
import { runOnnxruntime } from "./onnxruntime.ts";

export interface OracleCase {
  readonly type: string;
  readonly domain?: string;
  readonly version?: number;
  readonly opset?: number;
  readonly inputs: readonly (Tensor | undefined)[];
  readonly attributes?: Readonly<Record<string, AttributeSpec>>;
  /** Types of the results, in order, or how many there are; dims are left to whoever runs the model. */
  readonly outputs: readonly { readonly dtype: Tensor["dtype"]; readonly rank: number }[] | number;
  /** Inputs that are constants of the model. */
  readonly constants?: readonly number[];
  /** For types that onnxruntime has within a model only: inputs of such are cast from what it takes, and the results to this. */
  readonly through?: DType;
}

/** What a type of less than 8 bits, or a float of 8, is fed as. */
const widerOf = (dtype: DType): DType => (dtypes[dtype].kind === "float" ? "float32" : dtypes[dtype].kind === "int" ? "int8" : "uint8");
const isSmall = (dtype: DType): boolean => isStorageOnly(dtype);

export function specOf(c: OracleCase): { readonly spec: ModelSpec; readonly feeds: Readonly<Record<string, Tensor>> } {
  const given = c.inputs.flatMap((t, i): [string, Tensor, boolean][] => (t ? [[`x${i}`, t, c.constants?.includes(i) ?? false]] : []));
  const outputs = typeof c.outputs === "number" ? Array.from({ length: c.outputs }, () => undefined) : c.outputs;
  const isCast = (t: Tensor): boolean => c.through !== undefined && isSmall(t.dtype), name = (n: string, t: Tensor): string => (isCast(t) ? `${n}_wide` : n);
  const named = given.map(([n, t, constant]) => [name(n, t), isCast(t) ? fromNumbers(widerOf(t.dtype), t.dims, toNumbers(t)) : t, constant] as const);
  const casts = given.flatMap(([n, t]) => (isCast(t) ? [{ type: "Cast", inputs: [`${n}_wide`], outputs: [n], attributes: { to: dtypes[t.dtype].onnx } }] : []));
  const made = (i: number): string => (c.through === undefined ? `y${i}` : `y${i}_small`);
  const spec: ModelSpec = {
    opset: c.opset ?? 21, ir: 10, ...(c.domain === undefined ? {} : { versions: { [c.domain]: c.version ?? 1 } }),
    inputs: Object.fromEntries(named.filter(([, , constant]) => !constant).map(([n, t]) => [n, { dtype: t.dtype, dims: t.dims }])),
    initializers: Object.fromEntries(named.filter(([, , constant]) => constant).map(([n, t]) => [n, t])),
    outputs: Object.fromEntries(outputs.map((t, i) => [`y${i}`, t && { dtype: t.dtype, dims: Array.from({ length: t.rank }, (_, d) => `d${i}_${d}`) }])),
    nodes: [
      ...casts,
      { type: c.type, ...(c.domain === undefined ? {} : { domain: c.domain }), inputs: c.inputs.map((t, i) => (t ? `x${i}` : "")), outputs: outputs.map((_, i) => made(i)), attributes: c.attributes ?? {} },
      ...(c.through === undefined ? [] : outputs.map((_, i) => ({ type: "Cast", inputs: [made(i)], outputs: [`y${i}`], attributes: { to: dtypes[c.through ?? "float32"].onnx } }))),
    ],
  };
  return { spec, feeds: Object.fromEntries(named.filter(([, , constant]) => !constant).map(([n, t]) => [n, t])) };
}

type Tensors = Readonly<Record<string, Tensor>>;
export type Way = "reference" | "unfused" | "fused";
export type Ways = { readonly onnxruntime: Tensors } & Readonly<Partial<Record<Way, Tensors>>>;

export const runWay = async (bytes: Uint8Array, feeds: Tensors, way: Way): Promise<Tensors> =>
  way === "reference" ? interpret(readModel(bytes, operators).graph, feeds) : runCompiled(bytes, feeds, way === "fused");

/** Results by onnxruntime, and by us in each of the ways. */
export async function runWays(c: OracleCase, ways: readonly Way[] = ["reference", "unfused", "fused"]): Promise<Ways> {
  const { spec, feeds } = specOf(c), bytes = modelBytes(spec);
  const ours: Partial<Record<Way, Tensors>> = {};
  for (const way of ways) ours[way] = await runWay(bytes, feeds, way);
  return { ...ours, onnxruntime: await runOnnxruntime(bytes, feeds) };
}

export async function runCompiled(bytes: Uint8Array, feeds: Tensors, enableFusion: boolean): Promise<Record<string, Tensor>> {
  const session = await load(compileModel(bytes, { enableFusion }).artifact);
  try {
    const results = await session.run(Object.fromEntries(Object.entries(feeds).map(([k, t]) => [k, RuntimeTensor.of(t)])));
    return Object.fromEntries(Object.entries(results).map(([k, t]) => [k, t.unpacked()]));
  } finally {
    session.dispose();
  }
}

/** What differs between two results; floats may differ by `relative` of themselves, or by `absolute`. */
export function differenceOf(actual: Tensor | undefined, expected: Tensor, relative: number, absolute = relative): string | undefined {
  if (!actual) return "no such result";
  if (actual.dtype !== expected.dtype || actual.dims.join() !== expected.dims.join()) return `${actual.dtype}[${actual.dims}], expected ${expected.dtype}[${expected.dims}]`;
  const exact = !isFloat(expected.dtype), x: ArrayLike<unknown> = exact ? actual.data : toNumbers(actual), y: ArrayLike<unknown> = exact ? expected.data : toNumbers(expected);
  for (let i = 0; i < y.length; i++) {
    if (x[i] === y[i] || (Number.isNaN(x[i]) && Number.isNaN(y[i]))) continue;
    if (exact || !(Math.abs(Number(x[i]) - Number(y[i])) <= absolute + relative * Math.abs(Number(y[i])))) return `element ${i} is ${String(x[i])}, expected ${String(y[i])}`;
  }
  return undefined;
}
