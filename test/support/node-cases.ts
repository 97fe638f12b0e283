/**
 * The node tests of the ONNX standard (`conformance/onnx-node-tests-*.tar.xz` in the test data): one small model each,
 * with inputs and expected outputs. Unpacked once into the temporary folder.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import type { Tensor } from "../../src/core/tensor.ts";
import { ModelProtoSchema } from "../../src/onnx/schema/onnx_pb.ts";
import { writeTensor } from "../../src/onnx/tensor-proto.ts";
import { dataFolder, readTensorFile } from "./cases.ts";

export interface NodeCase {
  readonly name: string;
  readonly bytes: Uint8Array;
  /** Whether all inputs and outputs are tensors; the data sets of others cannot be read. */
  readonly tensorsOnly: boolean;
  /** Inputs and expected outputs by name, one pair for each data set. */
  readonly dataSets: () => { readonly feeds: Record<string, Tensor>; readonly expected: Record<string, Tensor> }[];
}

/** The unpacked cases, sorted by name; empty without test data. */
export function nodeCaseNames(): string[] {
  const folder = nodeCasesFolder();
  return folder === undefined ? [] : readdirSync(folder).filter((name) => existsSync(join(folder, name, "model.onnx"))).sort();
}

/** A case of a folder, of the test data's unless another is given. */
export function loadNodeCase(name: string, folder = nodeCasesFolder()): NodeCase {
  if (folder === undefined) throw new Error("set ONNXFUSE_TEST_DATA");
  const at = join(folder, name);
  const bytes = readFileSync(join(at, "model.onnx"));
  const { graph } = fromBinary(ModelProtoSchema, bytes);
  return {
    name, bytes, tensorsOnly: [...(graph?.input ?? []), ...(graph?.output ?? [])].every((v) => v.type?.value.case === "tensorType"),
    dataSets: () => {
      const read = (set: string, kind: string, names: readonly string[]): Record<string, Tensor> =>
        Object.fromEntries(names.flatMap((n, i): [string, Tensor][] => { const file = join(at, set, `${kind}_${i}.pb`); return n !== "" && existsSync(file) ? [[n, readTensorFile(file)]] : []; }));
      return readdirSync(at).filter((f) => f.startsWith("test_data_set_")).sort().map((set) => ({
        feeds: read(set, "input", (graph?.input ?? []).map((v) => v.name)), expected: read(set, "output", (graph?.output ?? []).map((v) => v.name)),
      }));
    },
  };
}

/** The folder of the unpacked cases; undefined without test data. */
export const nodeCasesFolder = (): string | undefined => {
  const folder = unpackedArchive(/^onnx-node-tests-.*\.tar\.xz$/);
  return folder === undefined ? undefined : join(folder, "node");
};

/** The folder into which an archive of the conformance data is unpacked; undefined where there is none. */
export function unpackedArchive(named: RegExp): string | undefined {
  const folder = dataFolder === undefined ? undefined : join(dataFolder, "conformance");
  const archive = folder !== undefined && existsSync(folder) ? readdirSync(folder).find((f) => named.test(f)) : undefined;
  if (folder === undefined || archive === undefined) return undefined;
  const source = join(folder, archive);
  const target = join(tmpdir(), `onnxfuse-${archive.replace(/\.tar\.xz$/, "")}-${statSync(source).size}`);
  if (!existsSync(target)) {
    mkdirSync(tmpdir(), { recursive: true });
    const fresh = mkdtempSync(join(tmpdir(), "onnxfuse-unpack-"));
    execFileSync("tar", ["-xf", source, "-C", fresh]);
    try { renameSync(fresh, target); } catch { rmSync(fresh, { recursive: true }); }
  }
  return target;
}

/** The model with its integer inputs fixed: some operators need theirs (axes, shapes, repeats) before running. */
export function fixIntegers(bytes: Uint8Array, feeds: Record<string, Tensor>): { bytes: Uint8Array; feeds: Record<string, Tensor> } {
  const model = fromBinary(ModelProtoSchema, bytes);
  const fixed = Object.entries(feeds).filter(([, t]) => t.dtype === "int64");
  const { graph } = model;
  if (!graph) throw new Error("no graph");
  graph.initializer.push(...fixed.map(([name, t]) => writeTensor(t, name)));
  graph.input = graph.input.filter((v) => !fixed.some(([name]) => name === v.name));
  return { bytes: toBinary(ModelProtoSchema, model), feeds: Object.fromEntries(Object.entries(feeds).filter(([name]) => !fixed.some(([n]) => n === name))) };
}
