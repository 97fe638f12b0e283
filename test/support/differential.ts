/** One random model held against the reference interpreter, compiled with and without fusion. */
import fc from "fast-check";
import { compile, type CompileOptions } from "../../src/api/index.ts";
import { toNumbers, type Tensor } from "../../src/core/tensor.ts";
import { readModel } from "../../src/onnx/read.ts";
import { operators } from "../../src/ops/index.ts";
import { interpret } from "../../src/reference/interpret.ts";
import { load, Tensor as RuntimeTensor } from "../../src/runtime/index.ts";
import { modelBytes } from "./model-spec.ts";
import { randomModel, type RandomModel } from "./random-graph.ts";

type Tensors = Readonly<Record<string, Tensor>>;

/** What a compiled model gives. */
export async function runCompiled(model: Uint8Array, feeds: Tensors, enableFusion: boolean, options: CompileOptions = {}): Promise<Record<string, Tensor>> {
  const { artifact } = await compile(model, { ...options, enableFusion });
  const session = await load(artifact);
  try {
    const results = await session.run(Object.fromEntries(Object.entries(feeds).map(([k, t]) => [k, RuntimeTensor.of(t)])));
    return Object.fromEntries(Object.entries(results).map(([k, t]) => [k, t.unpacked()]));
  } finally {
    session.dispose();
  }
}

/** Undefined when equal within `tolerance` of the largest value; 2e-4 is for up to 40 chained float32 operators, each within a few ulp. */
export function mismatch(actual: Tensors, expected: Tensors, tolerance = 2e-4): string | undefined {
  for (const [name, e] of Object.entries(expected)) {
    const a = actual[name];
    if (!a) return `${name} is missing`;
    if (a.dtype !== e.dtype || a.dims.join() !== e.dims.join()) return `${name} is ${a.dtype}[${a.dims}], not ${e.dtype}[${e.dims}]`;
    if (a.dtype === "string" || e.dtype === "string") {
      const at = Array.from({ length: e.data.length }, (_, i) => e.data[i] === a.data[i]).indexOf(false);
      if (at >= 0) return `${name}[${at}] is '${a.data[at]}', not '${e.data[at]}'`;
      continue;
    }
    const x = toNumbers(a), y = toNumbers(e);
    let largest = 1e-3;
    for (let i = 0; i < y.length; i++) largest = Math.max(largest, Math.abs(y[i] ?? 0));
    for (let i = 0; i < y.length; i++) {
      const d = Math.abs((x[i] ?? NaN) - (y[i] ?? NaN));
      if (!(d <= tolerance * largest) && !(Number.isNaN(x[i]) && Number.isNaN(y[i]))) return `${name}[${i}] is ${x[i]}, not ${y[i]} (largest ${largest})`;
    }
  }
  return undefined;
}

/** What the model compiled gives wrong, if anything; `fusion` says which builds are tried. */
export async function checkModel({ spec, feeds }: RandomModel, fusion: readonly boolean[] = [true, false]): Promise<string | undefined> {
  const model = modelBytes(spec);
  const expected = interpret(readModel(model, operators).graph, feeds);
  for (const enableFusion of fusion) {
    let found: string | undefined;
    try {
      found = mismatch(await runCompiled(model, feeds, enableFusion), expected);
    } catch (error) {
      found = error instanceof Error ? error.message : String(error);
    }
    if (found !== undefined) return `fusion ${enableFusion ? "on" : "off"}: ${found}`;
  }
  return undefined;
}

/** Models of 5 to 40 nodes. */
export const models = fc.record({ seed: fc.nat(), size: fc.integer({ min: 5, max: 40 }) });
export interface ModelKey { readonly seed: number; readonly size: number }
export const modelOf = ({ seed, size }: ModelKey): RandomModel => randomModel(seed, size);
