import { describe, expect, it } from "vitest";
import type { DType } from "../core/dtype.ts";
import { bitsOf, dtypes, isFloat, isStorageOnly } from "../core/dtype.ts";
import { fromNumbers, sizeOf, type Tensor } from "../core/tensor.ts";
import type { Attributes, OpDef } from "../graph/op.ts";
import { distance, runOp } from "../../test/support/lowered-op.ts";
import { randomFrom } from "../../test/support/random.ts";
import * as activation from "./activation.ts";
import * as arithmetic from "./arithmetic.ts";
import { Cast } from "./cast.ts";
import { Clip } from "./clip.ts";
import * as logic from "./logic.ts";
import * as math from "./unary-math.ts";
import { Where } from "./where.ts";

const special = [0, -0, 1, -1, 0.5, -0.5, 2.5, -2.5, 1e-40, -1e-40, 3.4e38, -3.4e38, Infinity, -Infinity, NaN, 20.5, -20.5, 88, -88, 104, -104, 65520, 1e-7];
const random = randomFrom(11);

/** Special values first, then normal ones; integers cover their range. */
function values(dtype: DType, dims: readonly number[], scale = 3): Tensor {
  const n = sizeOf(dims), bits = bitsOf(dtype);
  const whole = (i: number): number => {
    if (dtype === "bool") return random.int(2);
    const edge = 2 ** (Math.min(bits, 53) - 1);
    const pickFrom = dtypes[dtype].kind === "uint" ? [0, 1, 2, edge, 2 * edge - 1] : [0, 1, -1, -edge, edge - 1, 7, -7];
    return i < pickFrom.length ? pickFrom[i] ?? 0 : Math.round(random.normal() * 9) * (dtypes[dtype].kind === "uint" ? 0 : 1) + (dtypes[dtype].kind === "uint" ? random.int(30) : 0);
  };
  return fromNumbers(dtype, dims, Array.from({ length: n }, (_, i) => (isFloat(dtype) ? (n > special.length && i < special.length ? special[i] ?? 0 : random.normal() * scale) : whole(i))));
}

/** Half types are rounded once to 8 or 11 bits. */
const tolerance = (dtype: DType): number => (dtype === "bfloat16" ? 2 ** -7 : dtype === "float16" ? 2 ** -10 : dtype === "float64" ? 1e-13 : 6e-7);

function agree(op: OpDef, inputs: readonly Tensor[], attributes: Attributes = {}, known: readonly number[] = [], allowed?: number): void {
  for (const symbolic of [[], inputs.map((_, i) => i)]) {
    const { evaluated: [expected], lowered } = runOp({ op, inputs, attributes, known, symbolic });
    const actual = lowered?.[0];
    if (!expected || !actual) throw new Error(`${op.type} is not lowered`);
    expect(distance(expected, actual), `${op.type} of ${inputs.map((t) => `${t.dtype}[${t.dims}]`).join(", ")}`).toBeLessThanOrEqual(allowed ?? (isFloat(expected.dtype) ? tolerance(expected.dtype) : 0));
  }
}

const floats: readonly DType[] = ["float32", "float64", "float16", "bfloat16"];
const integers: readonly DType[] = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"];

describe("unary operators", () => {
  const exact = [math.Sqrt, math.Reciprocal, math.Floor, math.Ceil, math.Round, math.Neg, math.Abs, math.Sign, activation.Relu, math.Exp, math.Log, math.Erf, math.Sin, math.Cos, math.Tan, math.Asin, math.Acos, math.Atan, math.Sinh, math.Cosh, math.Asinh, math.Acosh, math.Atanh, math.Tanh];
  const angles = [math.Sin, math.Cos, math.Tan];
  for (const op of exact) it(`${op.type} is its evaluation, rounded once`, () => {
    for (const dtype of floats) if (dtype !== "float64" || !angles.includes(op)) agree(op, [values(dtype, [5, 7])], {}, [], dtype === "float64" ? 1e-13 : dtype === "float32" ? 0 : undefined);
  });
  for (const op of angles) it(`${op.type} of float64 runs on the host`, () => expect(runOp({ op, inputs: [values("float64", [3])] }).lowered).toBeUndefined());
  for (const op of [math.Neg, math.Abs, math.Sign, activation.Relu]) it(`${op.type} wraps integers`, () => {
    for (const dtype of integers) if (op !== math.Neg || dtype.startsWith("int")) agree(op, [values(dtype, [17])]);
  });
  const composed = [activation.Sigmoid, activation.HardSigmoid, activation.HardSwish, activation.Elu, activation.Selu, activation.Celu, activation.ThresholdedRelu, activation.Softplus, activation.Softsign, activation.Mish, activation.Swish, activation.Shrink, activation.Gelu, activation.LeakyRelu];
  for (const op of composed) it(`${op.type} agrees within a few ulp`, () => {
    for (const dtype of floats) agree(op, [values(dtype, [5, 7])]);
  });
  it("take attributes", () => {
    agree(activation.Gelu, [values("float32", [40])], { approximate: "tanh" });
    agree(activation.Elu, [values("float32", [40])], { alpha: 0.3 });
    agree(activation.Celu, [values("float32", [40])], { alpha: 2.5 });
    agree(activation.LeakyRelu, [values("float32", [40])], { alpha: -0.2 });
    agree(activation.HardSigmoid, [values("float32", [40])], { alpha: 0.5, beta: 0.25 });
    agree(activation.Shrink, [values("float32", [40])], { lambd: 1.5, bias: 1.5 });
    agree(activation.Swish, [values("float32", [40])], { alpha: 1.702 });
    agree(logic.IsInf, [values("float32", [40])], { detect_negative: 0 });
    agree(logic.IsInf, [values("float32", [40])], { detect_positive: 0 });
  });
  it("tell NaN and infinities", () => { for (const dtype of floats) { agree(logic.IsNaN, [values(dtype, [40])]); agree(logic.IsInf, [values(dtype, [40])]); } });
  it("agree on scalars and on nothing", () => { agree(math.Exp, [values("float32", [])]); agree(activation.Relu, [values("float32", [2, 0, 3])]); });
  it("a wrong function is found", () => {
    const { evaluated: [expected] } = runOp({ op: math.Exp, inputs: [values("float32", [4])] });
    const { lowered } = runOp({ op: math.Log, inputs: [values("float32", [4])] });
    expect(distance(expected as Tensor, lowered?.[0] as Tensor)).toBeGreaterThan(1e-3);
  });
});

const shapes: readonly (readonly [readonly number[], readonly number[]])[] = [
  [[5, 7], [5, 7]], [[5, 7], [7]], [[1, 7], [5, 1]], [[], [3]], [[3], []], [[2, 1, 3, 1], [5, 1, 4]], [[0, 3], [1, 3]], [[1], [1, 1]], [[31], [31]],
];
describe("binary operators", () => {
  for (const op of [arithmetic.Add, arithmetic.Sub, arithmetic.Mul, arithmetic.Div]) it(`${op.type} broadcasts, rounds once and wraps`, () => {
    for (const [a, b] of shapes) for (const dtype of [...floats, ...integers]) agree(op, [values(dtype, a), values(dtype, b)], {}, [], dtype === "float32" ? 0 : undefined);
  });
  for (const op of [logic.Equal, logic.Less, logic.LessOrEqual, logic.Greater, logic.GreaterOrEqual]) it(`${op.type} compares every type`, () => {
    for (const dtype of [...floats, ...integers]) { const a = values(dtype, [33]); agree(op, [a, values(dtype, [33])]); agree(op, [a, a]); }
  });
  for (const op of [logic.And, logic.Or, logic.Xor, logic.Equal]) it(`${op.type} on bools`, () => { agree(op, [values("bool", [3, 5]), values("bool", [5])]); });
  it("Not", () => { agree(logic.Not, [values("bool", [9])]); });
  for (const op of [logic.BitwiseAnd, logic.BitwiseOr, logic.BitwiseXor]) it(`${op.type} on every width`, () => { for (const dtype of integers) agree(op, [values(dtype, [19]), values(dtype, [19])]); });
  it("BitwiseNot wraps", () => { for (const dtype of integers) agree(logic.BitwiseNot, [values(dtype, [19])]); });
  it("BitShift drops what leaves the type", () => {
    for (const dtype of ["uint8", "uint16", "uint32", "uint64"] as const) for (const direction of ["LEFT", "RIGHT"]) {
      agree(logic.BitShift, [values(dtype, [70]), fromNumbers(dtype, [70], Array.from({ length: 70 }, (_, i) => i))], { direction });
    }
  });
  it("Mod takes the sign of the divisor, with fmod of the dividend", () => {
    for (const dtype of integers) for (const fmod of [0, 1]) agree(arithmetic.Mod, [values(dtype, [25]), values(dtype, [25])], { fmod });
    const signs = fromNumbers("int32", [4], [7, -7, 7, -7]), by = fromNumbers("int32", [4], [3, 3, -3, -3]);
    expect([...runOp({ op: arithmetic.Mod, inputs: [signs, by] }).evaluated[0]?.data ?? []]).toEqual([1, 2, -2, -1]);
    expect([...runOp({ op: arithmetic.Mod, inputs: [signs, by], attributes: { fmod: 1 } }).evaluated[0]?.data ?? []]).toEqual([1, -1, 1, -1]);
    expect(runOp({ op: arithmetic.Mod, inputs: [values("float32", [3]), values("float32", [3])], attributes: { fmod: 1 } }).lowered).toBeUndefined();
  });
  it("Pow", () => {
    for (const exponent of [0, 1, 2, 3, 0.5, -1, 7]) agree(arithmetic.Pow, [values("float32", [30]), fromNumbers("float32", [], [exponent])], {}, [1]);
    agree(arithmetic.Pow, [values("float32", [30]), values("float32", [30])]);
    agree(arithmetic.Pow, [values("float32", [30]), fromNumbers("int64", [], [3])]);
    for (const dtype of integers) agree(arithmetic.Pow, [values(dtype, [30]), fromNumbers("int64", [1], [5])], {}, [1]);
    expect(runOp({ op: arithmetic.Pow, inputs: [values("int32", [3]), values("int32", [3])] }).lowered).toBeUndefined();
  });
  it("PRelu broadcasts its slope", () => {
    for (const dtype of ["float32", "int32", "int8", "uint8"] as const) agree(activation.PRelu, [values(dtype, [2, 3, 5]), values(dtype, [3, 1])]);
  });
});

describe("variadic operators", () => {
  for (const op of [arithmetic.Sum, arithmetic.Mean, arithmetic.Max, arithmetic.Min]) it(`${op.type} of one, two and three`, () => {
    const [a, b, c] = [values("float32", [3, 40], 1), values("float32", [40], 1), values("float32", [3, 1], 1)];
    agree(op, [a]);
    if (op !== arithmetic.Mean) agree(op, [a, b]);
    if (op === arithmetic.Max || op === arithmetic.Min) agree(op, [b, a, c], {}, [], 0);
    else agree(op, [values("float32", [3]), values("float32", [2, 3]), values("float32", [2, 1])], {}, [], 1e-6);
  });
  it("Max and Min of integers", () => { for (const dtype of integers) { agree(arithmetic.Max, [values(dtype, [9]), values(dtype, [9])]); agree(arithmetic.Min, [values(dtype, [9]), values(dtype, [9])]); } });
});

describe("Clip and Where", () => {
  it("Clip bounds from either side, above first", () => {
    const x = values("float32", [40]), low = fromNumbers("float32", [], [-1]), high = fromNumbers("float32", [], [1.5]);
    agree(Clip, [x, low, high], {}, [], 0);
    agree(Clip, [x, high, low], {}, [], 0);
    for (const dtype of integers) agree(Clip, [values(dtype, [20]), fromNumbers(dtype, [], [1]), fromNumbers(dtype, [], [5])]);
  });
  it("Clip with one bound", () => {
    const x = values("float32", [40]), bound = fromNumbers("float32", [], [0.25]);
    for (const inputs of [[x, bound], [x, undefined, bound], [x]]) {
      const { evaluated, lowered } = runOp({ op: Clip, inputs });
      expect(distance(evaluated[0] as Tensor, lowered?.[0] as Tensor)).toBe(0);
    }
  });
  it("Clip reads and writes attributes before opset 11", () => {
    const old = { type: "Clip", domain: "", inputs: [{ value: "x" }], attributes: { min: 0, max: 6 } };
    const read = Clip.read?.(old, 9);
    expect(read?.inputs.length).toBe(3);
    expect(read && Clip.write?.(read, 9)).toEqual(old);
    expect(read && Clip.write?.(read, 11)).toEqual(read);
  });
  it("Where chooses among broadcast operands", () => {
    for (const dtype of [...floats, ...integers, "bool" as const]) agree(Where, [values("bool", [3, 1]), values(dtype, [5]), values(dtype, [3, 5])], {}, [], 0);
  });
});

describe("Cast", () => {
  const stored = (Object.keys(dtypes) as DType[]).filter(isStorageOnly), all: readonly DType[] = [...floats, ...integers, "bool", ...stored];
  for (const from of all) it(`from ${from}`, () => {
    for (const to of all) {
      if (from === "float64" && isFloat(to) && dtypes[to].size < 4) continue;
      agree(Cast, [values(from, [41], 300)], { to: dtypes[to].onnx }, [], 0);
      if (stored.includes(to)) agree(Cast, [values(from, [41], 3e4)], { to: dtypes[to].onnx, saturate: 0 }, [], 0);
    }
  });
  it("float64 to the half types, and strings, run on the host", () => {
    expect(runOp({ op: Cast, inputs: [values("float64", [3])], attributes: { to: dtypes.float16.onnx } }).lowered).toBeUndefined();
    const text = runOp({ op: Cast, inputs: [fromNumbers("float32", [4], [0.1, -Infinity, NaN, 3])], attributes: { to: dtypes.string.onnx } }).evaluated[0];
    expect(text?.data).toEqual(["0.1", "-INF", "NaN", "3"]);
    expect(runOp({ op: Cast, inputs: [text], attributes: { to: dtypes.float32.onnx } }).evaluated[0]?.data).toEqual(Float32Array.of(0.1, -Infinity, NaN, 3));
  });
  it("saturates floats and wraps integers", () => {
    const of = (t: Tensor, to: DType): unknown[] => [...runOp({ op: Cast, inputs: [t], attributes: { to: dtypes[to].onnx } }).evaluated[0]?.data ?? []];
    expect(of(fromNumbers("float32", [4], [300, -300, 1.9, NaN]), "int8")).toEqual([127, -128, 1, 0]);
    expect(of(fromNumbers("int32", [2], [300, -300]), "int8")).toEqual([44, -44]);
    expect(of(fromNumbers("float32", [2], [1e30, -1e30]), "int64")).toEqual([2n ** 63n - 1n, -(2n ** 63n)]);
  });
});
