/** The engines that benchmarks compare, each opened as its own users would, one thread each: returns a function that runs once. */
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

/** Feeds that `writeFeeds` of bench/fresh.ts stored: JSON of names, types and sizes, and the elements behind it. */
export function readFeeds(file) {
  const bytes = readFileSync(file), length = bytes.readUInt32LE(0), start = 4 + length;
  return JSON.parse(bytes.toString("utf8", 4, start)).map(({ name, type, dims, offset, size }) => {
    const data = new arrays[type](bytes.buffer.slice(bytes.byteOffset + start + offset, bytes.byteOffset + start + offset + size));
    return { name, type, dims, data };
  });
}
const arrays = { float32: Float32Array, float64: Float64Array, int64: BigInt64Array, int32: Int32Array, uint8: Uint8Array, int8: Int8Array, bool: Uint8Array, float16: Uint16Array };

const tensors = (feeds, Tensor) => Object.fromEntries(feeds.map(({ name, type, dims, data }) => [name, new Tensor(type, data, dims)]));

/** @type {Record<string, (file: string, feeds: ReturnType<typeof readFeeds>) => Promise<() => Promise<unknown>>>} */
export const engines = {
  async onnxfuse(file, feeds) {
    const { load, Tensor } = await import("../dist/runtime/index.js");
    const session = await load(pathToFileURL(file));
    const inputs = tensors(feeds, Tensor);
    return () => session.run(inputs);
  },
  async "onnxruntime-web"(file, feeds) {
    const ort = await import("onnxruntime-web");
    ort.env.wasm.numThreads = 1;
    ort.env.logLevel = "error";
    const session = await ort.InferenceSession.create(readFileSync(file), { executionProviders: ["wasm"], graphOptimizationLevel: "all" });
    const inputs = tensors(feeds, ort.Tensor);
    return () => session.run(inputs);
  },
  async "onnxruntime-node"(file, feeds) {
    const { default: ort } = await import("onnxruntime-node");
    const session = await ort.InferenceSession.create(file, { graphOptimizationLevel: "all", intraOpNumThreads: 1, interOpNumThreads: 1, logSeverityLevel: 3 });
    const inputs = tensors(feeds, ort.Tensor);
    return () => session.run(inputs);
  },
};
