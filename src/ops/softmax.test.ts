/** Compiled softmax against its evaluation, on every tail and on values that are no numbers. */
import { describe, expect, it } from "vitest";
import { modelBytes } from "../../test/support/model-spec.ts";
import { compileModel } from "../compiler/compile.ts";
import { fromNumbers, toNumbers, type Tensor as CoreTensor } from "../core/tensor.ts";
import { LogSoftmax, Softmax } from "../evaluate/softmax.ts";
import { named, type ElementFunction } from "../graph/op.ts";
import { constant, i32, load as loadElement, type Expr } from "../kernel/expr.ts";
import { ExprTable } from "../kernel/share.ts";
import { readModel } from "../onnx/read.ts";
import { writeModel } from "../onnx/write.ts";
import { operators } from "./index.ts";
import { Softmax as SoftmaxOp } from "./softmax.ts";
import { load } from "../runtime/load.ts";
import { Tensor } from "../runtime/tensor.ts";

async function compiled(type: "Softmax" | "LogSoftmax", x: CoreTensor, axis: number, symbolic: boolean): Promise<CoreTensor> {
  const dims = symbolic ? ["a", "b"] : x.dims;
  const { artifact } = compileModel(modelBytes({ opset: 20, inputs: { x: { dtype: x.dtype, dims } }, outputs: { y: { dtype: x.dtype, dims } }, initializers: {}, nodes: [{ type, inputs: ["x"], outputs: ["y"], attributes: { axis } }] }));
  const { y } = await (await load(artifact)).run({ x: Tensor.of(x) });
  if (!y) throw new Error("no y");
  return y.unpacked();
}

/** The largest error in units of what is allowed: of the value, and of 1. */
function worst(actual: CoreTensor, expected: CoreTensor, relative: number, absolute: number): number {
  const a = toNumbers(actual), e = toNumbers(expected);
  return Math.max(...Array.from(a, (v, i) => {
    const wanted = e[i] ?? NaN;
    if (Number.isNaN(wanted) || !Number.isFinite(wanted)) return Object.is(v, wanted) ? 0 : Infinity;
    return Math.abs(v - wanted) / (relative * Math.abs(wanted) + absolute);
  }));
}

const special = [NaN, Infinity, -Infinity, 0, -0, 1e-40, 88, -88, 3e38, -3e38];
const values = (count: number, scale: number): number[] => Array.from({ length: count }, (_, i) => Math.sin(i * 12.9898) * scale);

describe("softmax", () => {
  it.each([[0, false], [1, false], [0, true], [1, true]] as const)("along axis %i, symbolic %s", async (axis, symbolic) => {
    for (const [a, b] of [[1, 1], [3, 5], [5, 4], [4, 33], [17, 16], [2, 1000]] as const) for (const scale of [1, 40]) {
      const x = fromNumbers("float32", [a, b], values(a * b, scale)), [expected] = Softmax([x], { axis }, { outputCount: 1, outputDTypes: ["float32"] });
      const y = await compiled("Softmax", x, axis, symbolic);
      // Weights are within 2 ulp of 1, and of themselves in proportion to their exponent, at most 80 here.
      expect(worst(y, expected as CoreTensor, 84 * 2 ** -23, 2 ** -126), `${a}x${b}`).toBeLessThan(1);
      expect(worst(y, expected as CoreTensor, 2 ** -30, 4 * 2 ** -23)).toBeLessThan(1);
    }
  });

  it.each(["Softmax", "LogSoftmax"] as const)("%s of values that are no numbers", async (type) => {
    const evaluate = type === "Softmax" ? Softmax : LogSoftmax;
    for (const at of [0, 3, 6]) for (const one of special) for (const rest of [0.5, -Infinity]) {
      const row = new Array<number>(7).fill(rest);
      row[at] = one;
      const x = fromNumbers("float32", [1, 7], row), [expected] = evaluate([x], { axis: 1 }, { outputCount: 1, outputDTypes: ["float32"] });
      expect(worst(await compiled(type, x, 1, false), expected as CoreTensor, 1e-6, 1e-7), `${one} at ${at} among ${rest}`).toBeLessThan(1);
    }
  });

  it.each(["float16", "bfloat16", "float64"] as const)("of %s", async (dtype) => {
    const x = fromNumbers(dtype, [3, 9], values(27, 6)), [expected] = Softmax([x], { axis: 1 }, { outputCount: 1, outputDTypes: [dtype] });
    const unit = { float16: 2 ** -10, bfloat16: 2 ** -7, float64: 2 ** -51 }[dtype];
    expect(worst(await compiled("Softmax", x, 1, false), expected as CoreTensor, unit, unit / 2 ** 10)).toBeLessThan(1);
  });

  it("would show an error", () => {
    const right = fromNumbers("float32", [2], [0.25, 0.75]);
    expect(worst(fromNumbers("float32", [2], [0.25, 0.7501]), right, 1e-5, 1e-7)).toBeGreaterThan(1);
    expect(worst(fromNumbers("float32", [2], [0.25, NaN]), right, 1e-5, 1e-7)).toBeNaN();
  });

  it.each([["over all axes from one on", 1], ["over the last, counted from the front", 2], ["over everything", 0]] as const)("of an opset before 13, %s, is said in a newer one", async (_, axis) => {
    for (const dims of [[2, 3, 4], ["a", "b", "c"]]) for (const type of ["Softmax", "LogSoftmax", "Hardmax"]) {
      const old = modelBytes({ opset: 11, inputs: { x: { dtype: "float32", dims } }, outputs: { y: { dtype: "float32", dims } }, initializers: {}, nodes: [{ type, inputs: ["x"], outputs: ["y"], attributes: { axis } }] });
      const { graph, info } = readModel(old, operators, {});
      const renewed = writeModel(graph, { ...info, opsets: new Map([["", 21]]) });
      const x = new Tensor("float32", Float32Array.from(values(24, 3)), [2, 3, 4]);
      const results = await Promise.all([old, renewed].map(async (model) => (await (await load(compileModel(model).artifact)).run({ x }))["y"]));
      expect(Array.from(results[1]?.data as Float32Array), `${type} ${dims}`).toEqual(Array.from(results[0]?.data as Float32Array));
    }
  });
});

it.each([["float64", 11], ["int64", 7]] as const)("what it gives is stored as %s, which has no four lanes", async (dtype, to) => {
  const dims = [2, 19], x = fromNumbers("float32", dims, Array.from({ length: 38 }, (_, i) => ((i * 7) % 13) / 2));
  const { artifact } = compileModel(modelBytes({ opset: 20, inputs: { x: { dtype: "float32", dims } }, outputs: { y: { dtype, dims } }, initializers: { k: fromNumbers("float32", [], [100]) }, nodes: [{ type: "Softmax", inputs: ["x"], outputs: ["s"] }, { type: "Mul", inputs: ["s", "k"], outputs: ["p"] }, { type: "Cast", inputs: ["p"], outputs: ["y"], attributes: { to } }] }));
  const { y } = await (await load(artifact)).run({ x: Tensor.of(x) }), [expected] = Softmax([x], { axis: -1 }, { outputCount: 1 });
  if (!y || !expected) throw new Error("no y");
  const whole = (v: number): number => (dtype === "int64" ? Math.trunc(v) : v);
  expect(Math.max(...Array.from(toNumbers(y.unpacked()), (v, i) => Math.abs(v - whole(100 * (toNumbers(expected)[i] ?? NaN)))))).toBeLessThan(1e-4);
});

it("a chain of them is lowered in work that grows with its length, not with powers of it", () => {
  const type = { dtype: "float32", shape: [3] } as const, table = new ExprTable();
  let reads = 0;
  const input = (...indices: readonly Expr[]): Expr => { reads++; return loadElement({ name: "x", ...type }, indices); };
  /** As Elements has it: an element that is known is not asked for again. */
  const softmaxOf = (of: ElementFunction): ElementFunction => {
    const known = new Map<number, Expr>(), [element = of] = SoftmaxOp.lower?.(named(SoftmaxOp, [{ ...type, at: of }]), { axis: -1, flatten: 0 }, { outputs: [type] }) ?? [];
    return (i = constant(0, i32)) => {
      const key = table.id(i), e = known.get(key) ?? element(i);
      known.set(key, e);
      return e;
    };
  };
  const readsOf = (length: number): number => {
    reads = 0;
    Array.from({ length }).reduce<ElementFunction>(softmaxOf, input)(constant(0, i32));
    return reads;
  };
  expect(readsOf(4)).toBeGreaterThan(4);
  expect(readsOf(8)).toBeLessThanOrEqual(4 * readsOf(4));
});
