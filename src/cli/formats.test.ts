import { describe, expect, it } from "vitest";
import { DiagnosticError } from "../core/diagnostic.ts";
import type { DType } from "../core/dtype.ts";
import { fromNumbers, sameTensor } from "../core/tensor.ts";
import { parseDims } from "./options/dims.ts";
import { joinSwitches, parseSwitchFile, switchesFromEnvironment } from "./options/fusion-switch-file.ts";
import { parseInputShapes } from "./options/input-shapes.ts";
import { readNpy, writeNpy } from "./npy.ts";

const problem = (run: () => unknown): unknown => {
  try { run(); } catch (e) { if (e instanceof DiagnosticError) return e.diagnostics[0]; throw e; }
  return undefined;
};

describe("npy", () => {
  const dtypes: readonly DType[] = ["float32", "float64", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"];
  it.each(dtypes)("%s comes back as it was", (dtype) => {
    for (const dims of [[], [3], [2, 0], [2, 3, 4]]) {
      const t = fromNumbers(dtype, dims, Array.from({ length: dims.reduce((a, b) => a * b, 1) }, (_, i) => i % 2));
      const bytes = writeNpy(t);
      expect(sameTensor(readNpy(bytes, "x.npy"), t)).toBe(true);
      expect((bytes.length - t.data.length * (t.data as Uint8Array).BYTES_PER_ELEMENT) % 64).toBe(0);
    }
  });
  it("reads NumPy's own header, and refuses what it cannot read", () => {
    const header = (text: string): Uint8Array => new TextEncoder().encode(`\u0000NUMPY\u0001\u0000${String.fromCharCode(text.length)}\u0000${text}`).map((b, i) => (i === 0 ? 0x93 : b));
    const file = Uint8Array.from([...header("{'descr': '<i2', 'fortran_order': False, 'shape': (2,), }    \n"), 1, 0, 2, 0]);
    expect(readNpy(file, "x")).toEqual({ dtype: "int16", dims: [2], data: Int16Array.of(1, 2) });
    for (const bad of [Uint8Array.of(1, 2), file.subarray(0, 20), file.subarray(0, file.length - 2), header("{'descr': '<c8', 'fortran_order': False, 'shape': (0,), }\n"), header("{'descr': '<f4', 'fortran_order': True, 'shape': (0,), }\n"), header("{'descr': '>f4', 'fortran_order': False, 'shape': (0,), }\n")])
      expect(problem(() => readNpy(bad, "x"))).toMatchObject({ code: "OF1010" });
  });
});

describe("input shapes", () => {
  it("takes fixed, open and ranged sizes, scalars, and names with colons", () => {
    expect(parseInputShapes('"x:1,3,224,224;y:0:-1,1~8,4~4;c:"', "input_shape")).toEqual({ x: [1, 3, 224, 224], "y:0": [undefined, undefined, 4], c: [] });
    expect(parseInputShapes("", "input_shape")).toEqual({});
  });
  it.each(["x", "x:1,b", "x:1;x:2", ":1", "x:1.5"])("refuses %s", (text) => {
    expect(problem(() => parseInputShapes(text, "input_shape"))).toMatchObject({ code: "OF1006", place: { field: "input_shape" } });
  });
  it("reads named dimensions", () => {
    expect(parseDims(["batch=1,seq=8", "n=2"])).toEqual({ batch: 1, seq: 8, n: 2 });
    expect(problem(() => parseDims(["batch"]))).toMatchObject({ code: "OF1009" });
  });
});

describe("switch files", () => {
  it("reads both formats", () => {
    expect(parseSwitchFile("ConvBatchnormFusionPass:off\n# a remark\n\n SoftmaxFusionPass : on \n", "f")).toEqual({ named: { ConvBatchnormFusionPass: false, SoftmaxFusionPass: true } });
    expect(parseSwitchFile("ALL:off\nConvBNReLU:on", "f")).toEqual({ allRules: false, allRegions: false, named: { ConvBNReLU: true } });
    expect(parseSwitchFile('{"Switch":{"GraphFusion":{"ALL":"off","A":"on"},"UBFusion":{"B":"off"}}}', "f")).toEqual({ allRules: false, named: { A: true, B: false } });
  });
  it("names the line or field that is wrong", () => {
    expect(problem(() => parseSwitchFile("A:on\nB:of", "f"))).toMatchObject({ code: "OF4010", place: { file: "f", line: 2 } });
    expect(problem(() => parseSwitchFile("A:on\nA:off", "f"))).toMatchObject({ place: { line: 2 } });
    expect(problem(() => parseSwitchFile("just words", "f"))).toMatchObject({ place: { line: 1 } });
    expect(problem(() => parseSwitchFile('{\n"Switch": {\n,}}', "f"))).toMatchObject({ code: "OF4010", place: { line: 3 } });
    expect(problem(() => parseSwitchFile('{"Switch":{"UBFusion":{"A":1}}}', "f"))).toMatchObject({ place: { field: "Switch.UBFusion.A" } });
    expect(problem(() => parseSwitchFile('{"Switch":{"Graph":{}}}', "f"))).toMatchObject({ place: { field: "Switch.Graph" } });
    expect(problem(() => parseSwitchFile("{}", "f"))).toMatchObject({ place: { field: "Switch" } });
  });
  it("reads the environment; what is said later wins", () => {
    const fromEnvironment = switchesFromEnvironment({ GE_DISABLE_CONV_BN_RELU_FUSION: "1", GE_DISABLE_GELU_FUSION: "0", GE_DISABLE_X: "1", HOME: "/" });
    expect(fromEnvironment).toEqual({ named: { CONV_BN_RELU: false } });
    expect(joinSwitches({ allRules: false, named: { A: true } }, { named: { A: false } })).toEqual({ allRules: false, named: { A: false } });
  });
});
