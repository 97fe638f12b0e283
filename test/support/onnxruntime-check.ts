/** One operator of onnxruntime's own, with onnxruntime as the judge of its evaluation and of what it is compiled to. */
import type { DType } from "../../src/core/dtype.ts";
import type { Tensor } from "../../src/core/tensor.ts";
import { readModel } from "../../src/onnx/read.ts";
import { operators } from "../../src/ops/index.ts";
import { interpret } from "../../src/reference/interpret.ts";
import { mismatch, runCompiled } from "./differential.ts";
import { modelBytes, type AttributeSpec, type ModelSpec } from "./model-spec.ts";
import { runOnnxruntime } from "./onnxruntime.ts";

export interface JudgedCase {
  readonly type: string;
  readonly domain?: string;
  /** The standard's version; by default the newest that onnxruntime has most kernels for. */
  readonly opset?: number;
  /** An empty name leaves an output out; the rest have these ranks. */
  readonly outputs: readonly (readonly [dtype: DType, rank: number] | undefined)[];
  readonly inputs: readonly (JudgedInput | undefined)[];
  readonly attributes?: Readonly<Record<string, AttributeSpec>>;
}
/** A fed tensor, or one that is a constant of the model; `dims` names sizes that stay symbolic. */
export interface JudgedInput { readonly tensor: Tensor; readonly constant?: boolean; readonly dims?: readonly (number | string)[] }

/** What the reference interpreter and the compiled model, unfused and fused, give that onnxruntime does not; undefined where all agree. */
export async function judge(c: JudgedCase): Promise<string | undefined> {
  const { bytes, feeds } = modelOf(c), expected = await runOnnxruntime(bytes, feeds);
  const found = mismatch(interpret(readModel(bytes, operators).graph, feeds), expected);
  if (found !== undefined) return `evaluated: ${found}`;
  for (const fusion of [false, true]) {
    const wrong = mismatch(await runCompiled(bytes, feeds, fusion), expected);
    if (wrong !== undefined) return `fusion ${fusion ? "on" : "off"}: ${wrong}`;
  }
  return undefined;
}

/** The case as a model of one node, with what it is fed. */
export function modelOf({ type, domain = "com.microsoft", opset = domain === "" ? 24 : 21, outputs, inputs, attributes = {} }: JudgedCase): { readonly bytes: Uint8Array; readonly feeds: Readonly<Record<string, Tensor>> } {
  const given = inputs.flatMap((input, i) => (input ? [{ name: `x${i}`, ...input }] : []));
  const spec: ModelSpec = {
    opset, ir: 10,
    inputs: Object.fromEntries(given.filter((g) => !g.constant).map(({ name, tensor, dims }) => [name, { dtype: tensor.dtype, dims: dims ?? tensor.dims }])),
    initializers: Object.fromEntries(given.filter((g) => g.constant).map(({ name, tensor }) => [name, tensor])),
    outputs: Object.fromEntries(outputs.flatMap((o, i) => (o ? [[`y${i}`, { dtype: o[0], dims: Array.from({ length: o[1] }, (_, d) => `y${i}_${d}`) }]] : []))),
    nodes: [{ type, domain, inputs: inputs.map((input, i) => (input ? `x${i}` : "")), outputs: outputs.map((o, i) => (o ? `y${i}` : "")), attributes }],
  };
  return { bytes: modelBytes(spec), feeds: Object.fromEntries(given.filter((g) => !g.constant).map(({ name, tensor }) => [name, tensor])) };
}
