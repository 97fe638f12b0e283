/**
 * The node tests of the ONNX standard (`conformance/onnx-node-tests-*.tar.xz` in the test data): one small model each,
 * with inputs and expected outputs. Unpacked once into the temporary folder.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { dtypes } from "../../src/core/dtype.ts";
import { isTensor, type Datum } from "../../src/core/datum.ts";
import { ModelProtoSchema, type ValueInfoProto, type TypeProto } from "../../src/onnx/schema/onnx_pb.ts";
import type { Tensor } from "../../src/core/tensor.ts";
import { writeTensor } from "../../src/onnx/tensor-proto.ts";
import { readItem } from "../../src/onnx/type-proto.ts";
import { dataFolder } from "./cases.ts";
import { readDatumFile } from "./datum-file.ts";

export interface NodeCase {
  readonly name: string;
  readonly bytes: Uint8Array;
  /** Inputs and expected outputs by name, one pair for each data set. */
  readonly dataSets: () => { readonly feeds: Record<string, Datum>; readonly expected: Record<string, Datum> }[];
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
    name, bytes,
    dataSets: () => {
      const read = (set: string, kind: string, values: readonly ValueInfoProto[]): Record<string, Datum> =>
        Object.fromEntries(values.flatMap(({ name: n, type }, i): [string, Datum][] => {
          const file = join(at, set, `${kind}_${i}.pb`);
          return n !== "" && type && existsSync(file) ? [[n, asDeclared(readDatumFile(file, readItem(type, { value: n })), type)]] : [];
        }));
      return readdirSync(at).filter((f) => f.startsWith("test_data_set_")).sort().map((set) => ({
        feeds: read(set, "input", graph?.input ?? []), expected: read(set, "output", graph?.output ?? []),
      }));
    },
  };
}

/** Releases of the standard before 1.13 store elements of bfloat16 as uint16: the same bits. */
function asDeclared(d: Datum, type: TypeProto): Datum {
  const isBrain = type.value.case === "tensorType" && type.value.value.elemType === dtypes.bfloat16.onnx;
  return isBrain && isTensor(d) && d.dtype === "uint16" ? { ...d, dtype: "bfloat16" } : d;
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

/** Shapes to compile for: those of the tensors that are fed otherwise than the model declares its inputs. */
export function fedOtherwise(bytes: Uint8Array, feeds: Record<string, Datum>): Record<string, readonly number[]> {
  const { graph } = fromBinary(ModelProtoSchema, bytes);
  return Object.fromEntries((graph?.input ?? []).flatMap(({ name, type }): [string, readonly number[]][] => {
    const fed = feeds[name], declared = type?.value.case === "tensorType" ? type.value.value.shape?.dim : undefined;
    if (!fed || !isTensor(fed) || !declared) return [];
    const differs = declared.length !== fed.dims.length || declared.some(({ value }, axis) => value.case === "dimValue" && value.value > 0n && Number(value.value) !== fed.dims[axis]);
    return differs ? [[name, fed.dims]] : [];
  }));
}

/** The model with its integer inputs fixed: some operators need theirs (axes, shapes, repeats) before running. */
export function fixIntegers(bytes: Uint8Array, feeds: Record<string, Datum>): { bytes: Uint8Array; feeds: Record<string, Datum> } {
  const model = fromBinary(ModelProtoSchema, bytes);
  const fixed = Object.entries(feeds).flatMap(([name, t]): [string, Tensor][] => (isTensor(t) && t.dtype === "int64" ? [[name, t]] : []));
  const { graph } = model;
  if (!graph) throw new Error("no graph");
  graph.initializer.push(...fixed.map(([name, t]) => writeTensor(t, name)));
  graph.input = graph.input.filter((v) => !fixed.some(([name]) => name === v.name));
  return { bytes: toBinary(ModelProtoSchema, model), feeds: Object.fromEntries(Object.entries(feeds).filter(([name]) => !fixed.some(([n]) => n === name))) };
}
