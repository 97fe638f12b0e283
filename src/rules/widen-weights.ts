/** A product with a dequantised constant matrix keeps the matrix as integers, which its kernel widens. */
import { GraphBuilder } from "../graph/build.ts";
import type { DType } from "../core/dtype.ts";
import { fromNumbers, sizeOf, toNumbers, type Tensor } from "../core/tensor.ts";
import type { Node, Value } from "../graph/graph.ts";
import { Add, DequantizedMatMul, DequantizeLinear, Gemm, MatMul, Mul, Transpose } from "../ops/index.ts";
import { anyOf, constant, op, optionalInput, value, type ConstantValue } from "../rewrite/pattern.ts";
import { defineRule, reassociates, refuse } from "../rewrite/rule.ts";
import type { Refusal } from "../rewrite/site.ts";
import { floatScale, isPerTensor, scaleAxis } from "./quantized-operands.ts";

/** Matrices smaller than this gain nothing by staying integers. */
const leastElements = 256;
const narrow: readonly DType[] = ["int8", "uint8", "int4", "uint4", "int2", "uint2"];

const weights = op(DequantizeLinear, [constant("w"), constant("wScale"), optionalInput(constant("wZero"))], { as: "wNode", shared: true });
const right = anyOf(weights, op(Transpose, [weights], { as: "turn", shared: true }));

interface Case { readonly axis?: number; readonly block?: number; readonly scales?: readonly number[]; readonly zero?: boolean; readonly type?: DType; readonly float?: DType; readonly turned?: boolean; readonly dims?: readonly [number, number]; readonly range?: number }
const build = (c: Case, finish = (b: GraphBuilder, w: Value): Value => b.add(MatMul, [b.input("x", ["n", 20], c.float), w], {}, "product")) => () => {
  const b = new GraphBuilder(), type = c.type ?? "int8", high = c.range ?? 99;
  const w = b.random(c.dims ?? (c.turned ? [16, 20] : [20, 16]), { low: type === "uint8" ? 0 : -high, high, dtype: type });
  const scale = b.random(c.scales ?? [], { low: 0.01, high: 0.1, dtype: c.float ?? "float32" }), zero = c.zero ? b.random(c.scales ?? [], { low: type === "uint8" ? 0 : -3, high: 4, dtype: type }) : undefined;
  const q = b.add(DequantizeLinear, [w, scale, zero], { axis: c.axis ?? 1, block_size: c.block ?? 0 });
  return b.build(finish(b, c.turned ? b.add(Transpose, [q]) : q));
};

interface Laid { readonly scales: Tensor; readonly zeros: Tensor | undefined; readonly block: number }

/** The same integers in bytes. */
function inBytes(t: Tensor): Tensor {
  if (t.dtype === "int8" || t.dtype === "uint8") return t;
  return fromNumbers(t.dtype.startsWith("u") ? "uint8" : "int8", t.dims, toNumbers(t));
}

/** Scales and zero points as [blocks, N] (transposed: [N, blocks]). */
function laidOut(node: Node, w: ConstantValue, scale: ConstantValue, zero: ConstantValue | undefined, transposed: boolean): Laid | Refusal {
  const [rows = 1, columns = 1] = w.constant.dims, k = transposed ? columns : rows, n = transposed ? rows : columns;
  const size = Number(node.attributes["block_size"]), along = scaleAxis(node), blockAxis = transposed ? 1 : 0;
  if (size > 0) {
    if (along !== blockAxis) return refuse("blocked", `'${node.name}' has its blocks along axis ${along}, which is not summed over`, `quantise it in blocks along axis ${blockAxis}`);
    return { scales: scale.constant, zeros: zero?.constant, block: size };
  }
  if (!isPerTensor(scale) && along === blockAxis) return refuse("per-axis", `'${node.name}' has its scales along axis ${along}, which is summed over`, `quantise it along axis ${1 - blockAxis}`);
  const dims = transposed ? [n, 1] : [1, n];
  const spread = (t: Tensor): Tensor => { const v = toNumbers(t); return fromNumbers(t.dtype, dims, Array.from({ length: n }, (_, i) => v[v.length === 1 ? 0 : i] ?? 0)); };
  return { scales: spread(scale.constant), zeros: zero && spread(zero.constant), block: k };
}

export const widenWeights = defineRule({
  name: "widen-weights",
  doc: "MatMul or Gemm with a constant matrix that is dequantised (one scale, one a column, or one every block of a column) keeps the integers, which its kernel widens and scales in registers: the weights stay small.",
  stage: "decompose",
  match: anyOf(op(MatMul, [value("x"), right], { as: "product" }), op(Gemm, [value("x"), right, optionalInput(value("summand"))], { as: "product" })),
  where: [
    ({ wNode, wScale }) => floatScale(wNode, wScale),
    ({ w, wNode }) => narrow.includes(w.constant.dtype) || refuse("quantized-type", `'${wNode.name}' dequantises ${w.constant.dtype}`, "quantise to 8 bits or fewer"),
    ({ w, product }) => (w.constant.dims.length === 2 && sizeOf(w.constant.dims) >= leastElements) || refuse("small", `the weights of '${product.name}' are [${w.constant.dims.join(", ")}]`, `none: it pays for matrices of ${leastElements} elements or more`),
    ({ product }) => !product.attributes["transA"] || refuse("transposed", `'${product.name}' transposes its left operand`, "transpose it before"),
    ({ turn }) => {
      const perm = turn?.attributes["perm"];
      return !Array.isArray(perm) || perm[0] === 1 || refuse("transposed", `'${turn?.name ?? ""}' does not transpose`, "leave it out");
    },
  ],
  numerics: reassociates(),
  rewrite({ x, w, wScale, wZero, wNode, turn, product, summand }, edit) {
    const transposed = (turn !== undefined) !== Boolean(product.attributes["transB"]);
    const laid = laidOut(wNode, w, wScale, wZero, transposed);
    if ("code" in laid) return laid;
    const given = [edit.constant(laid.scales, `${wScale.name}_blocks`), laid.zeros && edit.constant(inBytes(laid.zeros), `${wNode.name}_zeros`)];
    const integers = inBytes(w.constant) === w.constant ? w : edit.constant(inBytes(w.constant), `${w.name}_bytes`);
    const y = edit.insert(DequantizedMatMul, [x, integers, ...given], { block_size: laid.block, transB: transposed ? 1 : 0 }, { name: product.name });
    const times = (v: Value, name: string): Value => {
      const factor = Number(product.attributes[name] ?? 1);
      return factor === 1 ? v : edit.insert(Mul, [v, edit.constant(fromNumbers("float32", [], [factor]), name)]);
    };
    const scaled = times(y, "alpha");
    return summand ? edit.insert(Add, [scaled, times(summand, "beta")]) : scaled;
  },
  example: build({}),
  examples: [
    build({ scales: [16], zero: true }), build({ type: "uint8", scales: [16, 5], axis: 1, block: 4, turned: true, zero: true }), build({ axis: 0, block: 8, scales: [3, 16], range: 7 }), build({ axis: 0, block: 8, scales: [3, 16], range: 7, type: "int4", zero: true }),
    build({ scales: [16], axis: 0, turned: true }, (b, w) => b.add(Gemm, [b.input("x", ["n", 20]), w, b.random([16])], { alpha: 0.5, beta: 2 })),
    build({ dims: [16, 20], scales: [16], axis: 0 }, (b, w) => b.add(Gemm, [b.input("x", ["n", 20]), w], { transB: 1 })),
  ],
  refuses: {
    "scale-type": build({ float: "float16" }),
    "quantized-type": build({ type: "int16" }),
    small: build({ dims: [20, 8] }),
    blocked: build({ axis: 1, block: 8, scales: [20, 2] }),
    "per-axis": build({ axis: 0, scales: [20] }),
    transposed: build({}, (b, w) => b.add(Gemm, [b.input("x", [20, "n"]), w], { transA: 1 })),
    "not-constant": () => {
      const b = new GraphBuilder();
      return b.build(b.add(MatMul, [b.input("x", ["n", 20]), b.add(DequantizeLinear, [b.input("w", [20, 16], "int8"), b.scalar(0.1)])]));
    },
  },
});
