/** Elements of 8 and fewer bits through whole artifacts and at the API; onnxruntime judges where it has them. */
import { describe, expect, test } from "vitest";
import { Tensor as OrtTensor } from "onnxruntime-common";
import { compile } from "../src/api/index.ts";
import { dtypes, isFloat, isStorageOnly, type DType } from "../src/core/dtype.ts";
import { isPacked } from "../src/core/packed.ts";
import { fromNumbers, sizeOf, toNumbers, type Tensor as CoreTensor } from "../src/core/tensor.ts";
import { readModel } from "../src/onnx/read.ts";
import { operators } from "../src/ops/index.ts";
import { interpret } from "../src/reference/interpret.ts";
import { fromOnnxruntime, load, Tensor, toOnnxruntime } from "../src/runtime/index.ts";
import { mismatch, runCompiled } from "./support/differential.ts";
import { modelBytes, type ModelSpec } from "./support/model-spec.ts";
import { runOnnxruntime } from "./support/onnxruntime.ts";
import { randomFrom, randomTensor } from "./support/random.ts";

const stored = (Object.keys(dtypes) as DType[]).filter(isStorageOnly);
const integersOf = (dtype: DType, dims: readonly number[]): CoreTensor => fromNumbers(dtype, dims, Array.from({ length: sizeOf(dims) }, (_, i) => (i * 5) % 11));

describe.each(stored)("%s", (dtype) => {
  const spec: ModelSpec = {
    opset: 25, ir: 13,
    inputs: { x: { dtype, dims: [3, "n"] } }, outputs: { y: { dtype, dims: ["n", 3] }, c: { dtype, dims: [5] }, f: { dtype: "float32", dims: [3, "n"] } },
    initializers: { w: fromNumbers(dtype, [5], [1, 0.5, 2, 3, 1]) },
    nodes: [{ type: "Transpose", inputs: ["x"], outputs: ["y"] }, { type: "Identity", inputs: ["w"], outputs: ["c"] }, { type: "Cast", inputs: ["x"], outputs: ["f"], attributes: { to: 1 } }],
  };
  test("goes in and out of a session, packed where it is in files", async () => {
    const { artifact } = await compile(modelBytes(spec)), session = await load(artifact);
    const x = fromNumbers(dtype, [3, 5], Array.from({ length: 15 }, (_, i) => i / 2 - 2));
    const { y, c, f } = await session.run({ x: Tensor.of(x) }, { keep: ["y"] });
    if (!y || !c || !f) throw new Error("no result");
    const expected = interpret(readModel(modelBytes(spec), operators).graph, { x });
    expect([y, c, f].map((t) => t.unpacked())).toEqual([expected["y"], expected["c"], expected["f"]]);
    expect(y.data.length).toBe(isPacked(dtype) ? Math.ceil(15 / (dtype.endsWith("2") ? 4 : 2)) : 15);
    session.dispose();
  });
});

describe("weights of four bits", () => {
  const spec = (dtype: "int4" | "uint4"): ModelSpec => ({
    opset: 21, ir: 10, inputs: { x: { dtype: "float32", dims: ["m", 64] } }, outputs: { y: { dtype: "float32", dims: ["m", 24] } },
    initializers: {
      w: integersOf(dtype, [64, 24]), z: integersOf(dtype, [4, 24]),
      s: fromNumbers("float32", [4, 24], Array.from({ length: 96 }, (_, i) => 2 ** -(i % 5))),
    },
    nodes: [{ type: "DequantizeLinear", inputs: ["w", "s", "z"], outputs: ["d"], attributes: { axis: 0, block_size: 16 } }, { type: "MatMul", inputs: ["x", "d"], outputs: ["y"] }],
  });
  test.each(["int4", "uint4"] as const)("%s in blocks before a matrix product, as onnxruntime computes it", async (dtype) => {
    const model = modelBytes(spec(dtype)), feeds = { x: randomTensor([3, 64], randomFrom(2)) }, expected = await runOnnxruntime(model, feeds);
    for (const fusion of [true, false]) expect(mismatch(await runCompiled(model, feeds, fusion), expected)).toBeUndefined();
  });
});

/** Without 61440, halfway beyond float8e5m2's largest value: rounding to even makes it an infinity, onnxruntime NaN. */
test("casts to floats of 8 bits round as onnxruntime's", async () => {
  const values = [0, -0, 1, 1.0625, 1.1875, 447, 448, 464, 465, 1e5, -1e5, 57344, 1e-3, 2 ** -9, 3 * 2 ** -11, 2 ** -16, 2 ** -17, 0.3, -0.7, Infinity, -Infinity, NaN];
  const x = fromNumbers("float32", [values.length], values);
  for (const to of ["float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"] as const) for (const saturate of [1, 0]) {
    const model = modelBytes({
      opset: 19, ir: 9, inputs: { x: { dtype: "float32", dims: ["n"] } }, outputs: { y: { dtype: "float32", dims: ["n"] } }, initializers: {},
      nodes: [{ type: "Cast", inputs: ["x"], outputs: ["c"], attributes: { to: dtypes[to].onnx, saturate } }, { type: "Cast", inputs: ["c"], outputs: ["y"], attributes: { to: 1 } }],
    });
    const expected = (await runOnnxruntime(model, { x }))["y"], actual = (await runCompiled(model, { x }, true))["y"];
    expect([to, saturate, actual && Array.from(toNumbers(actual))]).toEqual([to, saturate, expected && Array.from(toNumbers(expected))]);
  }
});

describe("tensors at the API", () => {
  test("lists of values are packed, and what does not fit is refused", () => {
    expect(new Tensor("int4", [1, -2, 7], [3]).data).toEqual(Uint8Array.of(0xe1, 0x07));
    expect(new Tensor("uint2", [1, 2, 3]).dims).toEqual([3]);
    expect(new Tensor("float8e4m3fn", [448, -1.5]).data).toEqual(Uint8Array.of(0x7e, 0xbc));
    expect(() => new Tensor("int4", [8])).toThrow(/OF7003.*'8'/);
    expect(() => new Tensor("int4", [1, 2, 3], [4])).toThrow(/OF7006/);
    expect(() => new Tensor("int4", new Uint8Array(3), [4])).toThrow(/OF7006.*2 bytes/);
    expect(() => new Tensor("int4", new Int16Array(2), [4])).toThrow(/OF7003.*Uint8Array of packed/);
  });
  test("are onnxruntime's without a copy", () => {
    const data: Partial<Record<DType, Tensor["data"]>> = {
      float32: new Float32Array(4), float64: new Float64Array(4), int8: new Int8Array(4), int16: new Int16Array(4), int32: new Int32Array(4), int64: new BigInt64Array(4),
      uint8: new Uint8Array(4), uint16: new Uint16Array(4), uint32: new Uint32Array(4), uint64: new BigUint64Array(4), bool: new Uint8Array(4), int4: new Uint8Array(2), uint4: new Uint8Array(2),
    };
    for (const [type, elements] of Object.entries(data)) {
      const theirs = toOnnxruntime(new Tensor(type as DType, elements as Float32Array, [2, 2]), OrtTensor);
      expect([theirs.type, theirs.dims, theirs.data === (elements as unknown)]).toEqual([type, [2, 2], true]);
      expect(fromOnnxruntime(theirs).data).toBe(elements);
    }
    expect(fromOnnxruntime(new OrtTensor("string", ["a"], [1])).data).toEqual(["a"]);
    expect(() => toOnnxruntime(new Tensor("bfloat16", new Uint16Array(1)), OrtTensor)).toThrow(/OF7003.*bfloat16/);
    expect(() => fromOnnxruntime({ type: "float32", data: undefined, dims: [1], location: "gpu-buffer" })).toThrow(/OF7003.*gpu-buffer/);
  });
});

test("arithmetic on types that are only stored is refused", () => {
  for (const dtype of stored) {
    const model = modelBytes({ opset: 25, ir: 13, inputs: { x: { dtype, dims: [2] } }, outputs: { y: { dtype, dims: [2] } }, initializers: {}, nodes: [{ type: isFloat(dtype) ? "Exp" : "Add", inputs: isFloat(dtype) ? ["x"] : ["x", "x"], outputs: ["y"] }] });
    expect(() => readModel(model, operators)).toThrow(/OF3013/);
  }
});
