/**
 * Arithmetic on broadcast operands. Integers wrap; integer division truncates, and dividing an integer by zero gives 0.
 */
import { dimAdd, dimExactDiv, dimMax, dimMin, dimMul, dimSub, isStatic, shapeEqual } from "../core/dim.ts";
import { isFloat } from "../core/dtype.ts";
import { fromNumbers } from "../core/tensor.ts";
import * as evaluate from "../evaluate/arithmetic.ts";
import { defineOp, optional, type Guard, type OpDef, type TypeInfo } from "../graph/op.ts";
import { add, and, binary, cast, div, lift, lt, max, min, mul, rem, select, sub, type Expr } from "../kernel/expr.ts";
import { combineElements, elementsOf, numbersKnown, remainder, truncatedDiv, typeWith } from "./element-values.ts";
import { binaryOp, broadcastOf, checkSameType, checkType, narrow, outputOf, readBroadcast, variadicOp } from "./element-wise.ts";
import { Expansion } from "./expansion.ts";
import { typeOfInput } from "./spelling.ts";

export const Add: OpDef = binaryOp({ type: "Add", since: 7, allowed: "numeric", evaluate: evaluate.Add, lower: add, elements: dimAdd });
export const Sub: OpDef = binaryOp({ type: "Sub", since: 7, allowed: "numeric", evaluate: evaluate.Sub, lower: sub, elements: dimSub });
export const Mul: OpDef = binaryOp({ type: "Mul", since: 7, allowed: "numeric", evaluate: evaluate.Mul, lower: mul, elements: dimMul });
/** An integer that divides: kernels give 0 where it is 0, and runs say so. */
const divisor = ({ A }: { readonly A: TypeInfo }): readonly Guard[] => (isFloat(A.dtype) ? [] : [{ input: 1 }]);
export const Div: OpDef = binaryOp({ type: "Div", since: 7, allowed: "numeric", evaluate: evaluate.Div, lower: div, guards: divisor, elements: (a, b, dtype) => (isFloat(dtype) ? dimExactDiv(a, b) : truncatedDiv(a, b)) });

/** The remainder has the sign of the divisor, with fmod that of the dividend; floats need fmod, and run on the host. */
export const Mod = defineOp({
  type: "Mod", domain: "", since: 10,
  inputs: { A: "required", B: "required" },
  attributes: { fmod: optional("int") },
  fusionKind: "broadcast",
  evaluate: (inputs, attributes, context) => evaluate.Mod(inputs, { fmod: 0, ...attributes }, context),
  infer: ({ A, B }, { fmod }, context) => {
    checkType(context, A, "A", "numeric");
    checkSameType(context, [A, B]);
    if (isFloat(A.dtype) && !fmod) context.fail("OF3012", "floats need attribute fmod = 1");
    const shape = broadcastOf(context, [A, B]);
    return [typeWith(A.dtype, shape, combineElements(shape, [A, B], (a, b) => remainder(a ?? 0, b ?? 0, Boolean(fmod))))];
  },
  lowerable: ({ A }) => !isFloat(A.dtype),
  guards: divisor,
  lower: ({ A, B }, { fmod }, context) => {
    const { shape, dtype } = outputOf(context);
    return [(...indices) => {
      const a = readBroadcast(A, shape, indices), b = readBroadcast(B, shape, indices), r = rem(a, b);
      if (fmod || dtype.startsWith("uint")) return narrow(r, dtype);
      return narrow(select(and(binary("ne", r, 0), lt(binary("xor", r, b), 0)), add(r, b), r), dtype);
    }];
  },
});

/** Exponents up to this are said as products. */
const longestChain = 16;
/** The exponent, where it is one known small natural number. */
function naturalExponent(t: TypeInfo): number | undefined {
  const values = elementsOf(t) ?? numbersKnown(t);
  const [first] = values ?? [];
  return typeof first === "number" && Number.isInteger(first) && first >= 0 && first <= longestChain && values?.every((v) => v === first) ? first : undefined;
}
/** The result has the base's type; an integer base to a power that is not a known small natural number runs on the host. */
export const Pow = defineOp({
  type: "Pow", domain: "", since: 12,
  inputs: { X: "required", Y: "required" },
  attributes: {},
  fusionKind: "broadcast",
  evaluate: evaluate.Pow,
  infer: ({ X, Y }, _, context) => {
    checkType(context, X, "X", "numeric");
    checkType(context, Y, "Y", "numeric");
    const shape = broadcastOf(context, [X, Y]), n = naturalExponent(Y);
    return [typeWith(X.dtype, shape, n === undefined ? undefined : combineElements(shape, [X], (x) => Array.from({ length: n }).reduce<typeof x>((p) => dimMul(p ?? 1, x ?? 1), 1)))];
  },
  lowerable: ({ X, Y }) => isFloat(X.dtype) || naturalExponent(Y) !== undefined,
  lower: ({ X, Y }, _, context) => {
    const { shape, dtype } = outputOf(context), n = naturalExponent(Y);
    return [(...indices) => {
      const x = readBroadcast(X, shape, indices);
      if (n !== undefined && (n <= 3 || !isFloat(dtype))) return narrow(power(x, n), dtype);
      return binary("pow", x, cast(readBroadcast(Y, shape, indices), x.type.scalar));
    }];
  },
});
/** xⁿ by squaring. */
function power(x: Expr, n: number): Expr {
  if (n === 0) return lift(1, x.type);
  if (n === 1) return x;
  const half = power(x, Math.floor(n / 2)), square = mul(half, half);
  return n % 2 === 1 ? mul(square, x) : square;
}

/** Constants larger than this are not written to say that an operand is broadcast. */
const largestOnes = 2 ** 16;
/** Before opset 8 these take operands of one shape: others are multiplied by ones of that shape, where it is known. */
function equalShapesBefore8(op: OpDef): OpDef {
  const own: OpDef = {
    ...op,
    write: (node, opset) => {
      const [first, ...rest] = node.inputs.map((i) => typeOfInput(i)?.shape);
      return opset >= 8 || rest.every((shape) => first && shape && shapeEqual(first, shape)) ? node : undefined;
    },
    expand: ({ inputs, inputTypes, outputs, outputTypes }) => {
      const { shape, dtype } = outputTypes[0] ?? { shape: [], dtype: "float32" as const };
      if (!isStatic(shape) || shape.reduce((n, d) => n * d, 1) > largestOnes || inputTypes.every((t) => t && shapeEqual(t.shape, shape))) return undefined;
      const to = new Expansion(), ones = fromNumbers(dtype, shape, new Array<number>(shape.reduce((n, d) => n * d, 1)).fill(1));
      to.add(own, inputs.map((x, i) => (shapeEqual(inputTypes[i]?.shape ?? [], shape) ? x : to.add(Mul, [x, ones]))), {}, outputs[0]);
      return to.nodes;
    },
  };
  return own;
}

export const Sum: OpDef = equalShapesBefore8(variadicOp({ type: "Sum", since: 8, allowed: "float", evaluate: evaluate.Sum, lower: add, elements: dimAdd }));
export const Mean: OpDef = equalShapesBefore8(variadicOp({ type: "Mean", since: 8, allowed: "float", evaluate: evaluate.Mean, lower: add, finish: (x, count) => div(x, count) }));
/** NaN wins; +0 is above −0. */
export const Max: OpDef = equalShapesBefore8(variadicOp({ type: "Max", since: 8, allowed: "numeric", evaluate: evaluate.Max, lower: max, elements: dimMax }));
export const Min: OpDef = equalShapesBefore8(variadicOp({ type: "Min", since: 8, allowed: "numeric", evaluate: evaluate.Min, lower: min, elements: dimMin }));
