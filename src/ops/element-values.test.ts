import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { dimAdd, dimFloorDiv, dimMul, formatShape, symbol, type Dim } from "../core/dim.ts";
import { dtypes, type DType } from "../core/dtype.ts";
import { fromNumbers, type Tensor } from "../core/tensor.ts";
import { inferTypes } from "../graph/infer-node.ts";
import type { Attributes, OpDef, TypeInfo } from "../graph/op.ts";
import { runOp } from "../../test/support/lowered-op.ts";
import { Add, Div, Max, Min, Mod, Mul, Pow, Sub, Sum } from "./arithmetic.ts";
import { Cast } from "./cast.ts";
import { Clip } from "./clip.ts";
import { Concat, Split } from "./concat.ts";
import { chooseDim, equalDim, lessDim, remainder, truncatedDiv } from "./element-values.ts";
import { ConstantOfShape, Expand, Range, Tile } from "./fill.ts";
import { Gather } from "./gather.ts";
import { And, Equal, Greater, GreaterOrEqual, Less, LessOrEqual, Not, Or, Xor } from "./logic.ts";
import { Reshape, Squeeze, Unsqueeze } from "./reshape.ts";
import { Shape, Size } from "./shape.ts";
import { Slice } from "./slice.ts";
import { Abs, Floor, Neg } from "./unary-math.ts";
import { Where } from "./where.ts";

const ints = (values: readonly number[], dtype: DType = "int64"): Tensor => fromNumbers(dtype, [values.length], values);
const n = symbol("n"), m = symbol("m");

/** One node on types, as the passes infer it. */
function infer(op: OpDef, inputs: readonly (TypeInfo | undefined)[], attributes: Attributes = {}, outputs = 1): readonly TypeInfo[] {
  return inferTypes(op, inputs, attributes, outputs, { place: {}, fresh: (hint) => symbol(`?${hint}`) });
}
const list = (...elements: readonly Dim[]): TypeInfo => ({ dtype: "int64", shape: [elements.length], elements });
const scalar = (element: Dim): TypeInfo => ({ dtype: "int64", shape: [], elements: [element] });
const constant = (...values: readonly number[]): TypeInfo => ({ dtype: "int64", shape: [values.length], constant: ints(values) });
const floats = (dims: readonly number[], ...values: readonly number[]): TypeInfo => ({ dtype: "float32", shape: dims, constant: fromNumbers("float32", dims, values) });
const elementsOf = (t: TypeInfo | undefined): string | undefined => t?.elements && formatShape(t.elements);

describe("truth of symbolic elements", () => {
  const value = fc.integer({ min: -9, max: 9 }), size = fc.integer({ min: 0, max: 9 });
  it("binary operators infer what they evaluate to", () => {
    for (const op of [Add, Sub, Mul, Div, Mod, Max, Min, Sum, Equal, Less, LessOrEqual, Greater, GreaterOrEqual]) for (const fmod of op === Mod ? [0, 1] : [0]) {
      fc.assert(fc.property(fc.array(fc.tuple(value, value), { minLength: 1, maxLength: 6 }), (pairs) => {
        const dtype = op === Sum ? "float32" : "int64";
        const a = ints(pairs.map(([x]) => x), dtype), b = ints(pairs.map(([, y]) => y), dtype);
        for (const followed of [[0, 1], [0], [1]]) runOp({ op, inputs: [a, b], followed, known: [0, 1].filter((i) => !followed.includes(i)), attributes: op === Mod ? { fmod } : {} });
      }), { numRuns: 60, seed: 5 });
    }
  });
  it("comparisons, division and choice are said for every sign", () => {
    fc.assert(fc.property(value, size, value, (a, b, c) => {
      expect(lessDim(a, c)).toBe(a < c ? 1 : 0);
      expect(equalDim(a, c)).toBe(a === c ? 1 : 0);
      expect(truncatedDiv(a, b)).toBe(b === 0 ? 0 : Math.trunc(a / b));
      expect(remainder(a, c, true)).toBe(c === 0 ? 0 : (a % c) + 0);
      expect(chooseDim(a < c ? 1 : 0, a, c)).toBe(Math.min(a, c));
    }), { seed: 6 });
  });
  it("logic", () => {
    for (const op of [And, Or, Xor]) for (const a of [0, 1]) for (const b of [0, 1]) runOp({ op, inputs: [ints([a], "bool"), ints([b], "bool")], followed: [0, 1] });
    for (const a of [0, 1]) runOp({ op: Not, inputs: [ints([a], "bool")], followed: [0] });
    runOp({ op: Where, inputs: [ints([1, 0, 1], "bool"), ints([1, 2, 3]), ints([-4, 5, 6])], followed: [0, 1, 2] });
  });
  it("movement carries elements along", () => {
    const x = ints([4, 7, 0, -2, 5]);
    const result = (op: OpDef, inputs: readonly (Tensor | undefined)[], attributes: Attributes = {}, outputCount = 1): void => {
      const { types } = runOp({ op, inputs, attributes, followed: [0], known: inputs.map((_, i) => i).slice(1), outputCount });
      expect(types[0]?.elements, op.type).toBeDefined();
    };
    result(Gather, [x, ints([-1, 0])]);
    result(Slice, [x, ints([4]), ints([-9]), ints([0]), ints([-2])]);
    result(Split, [x, ints([2, 3])], { axis: 0 }, 2);
    result(Concat, [x, ints([9])], { axis: 0 });
    result(Reshape, [x, ints([5, 1])]);
    result(Unsqueeze, [x, ints([0])]);
    result(Expand, [x, ints([2, 5])]);
    result(Tile, [x, ints([2])]);
    result(Neg, [x]);
    result(Abs, [x]);
    result(Clip, [x, fromNumbers("int64", [], [0]), fromNumbers("int64", [], [5])]);
    result(Cast, [x], { to: dtypes.float32.onnx });
    result(Cast, [x], { to: dtypes.bool.onnx });
    result(Pow, [x, fromNumbers("int64", [], [2])]);
    result(Squeeze, [fromNumbers("int64", [1, 2], [3, 4]), ints([0])]);
  });
  it("numbers that wrap are not followed", () => {
    const wraps = (op: OpDef, dtype: DType, x: number, ...others: number[]): boolean => {
      const inputs = [x, ...others].map((v) => fromNumbers(dtype, [1], [v]));
      return runOp({ op, inputs, known: inputs.map((_, i) => i) }).types[0]?.elements === undefined;
    };
    expect([wraps(Abs, "int8", -128), wraps(Neg, "int16", -32768), wraps(Add, "uint8", 200, 56), wraps(Sub, "uint32", 1, 2), wraps(Mul, "int32", 65536, 32768)]).toEqual([true, true, true, true, true]);
    expect([wraps(Abs, "int8", -127), wraps(Add, "uint8", 200, 55), wraps(Mul, "int32", 65535, 32768)]).toEqual([false, false, false]);
  });
  it("a wrong element is found", () => {
    const lying: OpDef = { ...Add, infer: (inputs, attributes, context) => Sub.infer(inputs, attributes, context) };
    expect(() => runOp({ op: lying, inputs: [ints([3]), ints([2])], followed: [0, 1] })).toThrow(/inferred element/);
  });
});

describe("exporters' shape arithmetic", () => {
  const image: TypeInfo = { dtype: "float32", shape: [n, 3, m, 8] };
  it("Shape → Gather → Unsqueeze → Concat → Reshape", () => {
    const [shape] = infer(Shape, [image]);
    const [batch] = infer(Gather, [shape, { dtype: "int64", shape: [], constant: fromNumbers("int64", [], [0]) }]);
    const [axis] = infer(Unsqueeze, [batch, constant(0)]);
    const [target] = infer(Concat, [axis, constant(-1)], { axis: 0 });
    expect(elementsOf(target)).toBe("[n, -1]");
    const [reshaped] = infer(Reshape, [image, target]);
    expect(reshaped && formatShape(reshaped.shape)).toBe("[n, 24*m]");
  });
  it("−1 takes what is left, exactly where it divides", () => {
    const shapes = (from: readonly Dim[], ...target: readonly Dim[]): string => formatShape(infer(Reshape, [{ dtype: "float32", shape: from }, list(...target)])[0]?.shape ?? []);
    expect(shapes([n, m, 64], n, -1, 4, 16)).toBe("[n, m, 4, 16]");
    expect(shapes([n, 6], -1, 3)).toBe("[2*n, 3]");
    expect(shapes([n, m], -1)).toBe("[m*n]");
    expect(shapes([dimAdd(n, 1), m], dimAdd(n, 1), -1)).toBe("[1+n, m]");
    expect(shapes([n, 2], -1, 4)).toBe(formatShape([dimFloorDiv(dimMul(2, n), 4), 4]));
    expect(shapes([n, m], 0, -1, 1)).toBe("[n, m, 1]");
  });
  it("Equal and Where on a size that is never −1 choose the size", () => {
    const target = list(n, 1, m);
    const [isOpen] = infer(Equal, [target, constant(-1)]);
    expect(elementsOf(isOpen)).toBe("[0, 0, 0]");
    const [ones] = infer(ConstantOfShape, [constant(3)], { value: fromNumbers("int64", [1], [1]) });
    const [chosen] = infer(Where, [isOpen, ones, target]);
    expect(elementsOf(chosen)).toBe("[n, 1, m]");
    expect(formatShape(infer(Expand, [{ dtype: "float32", shape: [1, 1] }, chosen])[0]?.shape ?? [])).toBe("[n, 1, m]");
  });
  it("a cast to float, a whole factor, Floor and back", () => {
    const [float] = infer(Cast, [list(n, m)], { to: dtypes.float32.onnx });
    const [twice] = infer(Mul, [float, floats([2], 2, 3)]);
    const [floor] = infer(Floor, [twice]);
    const [size] = infer(Cast, [floor], { to: dtypes.int64.onnx });
    expect(elementsOf(size)).toBe("[2*n, 3*m]");
    expect(infer(Mul, [float, floats([], 0.5)])[0]?.elements).toBeUndefined();
    expect(elementsOf(infer(Div, [infer(Mul, [float, floats([], 4)])[0], floats([], 2)])[0])).toBe("[2*n, 2*m]");
    expect(infer(Div, [float, floats([], 2)])[0]?.elements).toBeUndefined();
  });
  it("Range and Slice over a cache", () => {
    const total = dimAdd(n, m);
    expect(formatShape(infer(Range, [scalar(n), scalar(total), scalar(1)])[0]?.shape ?? [])).toBe("[m]");
    const cache: TypeInfo = { dtype: "float32", shape: [1, 4, total, 8] };
    expect(formatShape(infer(Slice, [cache, list(n), list(total), constant(2)])[0]?.shape ?? [])).toBe("[1, 4, m, 8]");
    expect(formatShape(infer(Slice, [cache, constant(-1), constant(2 ** 31), constant(2)])[0]?.shape ?? [])).not.toContain("?");
    expect(elementsOf(infer(Size, [cache])[0])).toBe("[32*m+32*n]");
  });
  it("an unknown size has a symbol of its own, and a slice of it is unknown", () => {
    const unknown: TypeInfo = { dtype: "int64", shape: [2] };
    expect(formatShape(infer(Reshape, [image, unknown])[0]?.shape ?? [])).toBe("[?d0, ?d1]");
    expect(infer(Add, [unknown, list(n, m)])[0]?.elements).toBeUndefined();
  });
  it("large tensors are not followed", () => {
    expect(infer(Range, [scalar(0), scalar(65), scalar(1)])[0]?.elements).toBeUndefined();
    expect(infer(Range, [scalar(0), scalar(64), scalar(1)])[0]?.elements).toHaveLength(64);
  });
});
