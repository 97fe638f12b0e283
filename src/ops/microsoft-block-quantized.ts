/**
 * Weights of 2, 4 or 8 bits in blocks (com.microsoft): MatMulNBits and GatherBlockQuantized. A product with constant weights
 * is compiled as DequantizedMatMul, whose kernel packs them anew; everything else reads the packed bytes element by element.
 */
import { dimCeilDiv, dimEqual, dimMul, formatShape, type Dim } from "../core/dim.ts";
import { tensor, toNumbers, type Tensor } from "../core/tensor.ts";
import { defineOp, int, required, type InferContext, type Operand, type TypeInfo } from "../graph/op.ts";
import { add, binary, cast, constant, div, i32, mul, reduce, rem, sub, type Expr } from "../kernel/expr.ts";
import * as evaluate from "../evaluate/com-microsoft-block-quantized.ts";
import { Add } from "./arithmetic.ts";
import { axisWithin } from "./axis-reduction.ts";
import { DequantizedMatMul } from "./dequantized-matmul.ts";
import { Expansion } from "./expansion.ts";
import { indexFrom } from "./index-map.ts";

/** The integer at `index` of the last axis, `per` of which share a byte; `indices` are those of the other axes. */
function unpacked(of: Operand, bits: number, indices: readonly Expr[], index: Expr): Expr {
  if (bits === 8) return cast(of.at(...indices, index), "i32");
  const per = 8 / bits, byte = cast(of.at(...indices, div(index, per)), "i32");
  return binary("and", binary("shr", byte, mul(rem(index, per), bits)), constant(2 ** bits - 1, i32));
}

function checkBits(bits: number, allowed: readonly number[], context: InferContext): void {
  if (!allowed.includes(bits)) context.fail("OF3012", `weights of ${bits} bits are not supported`, `quantise them to ${allowed.join(", ")} bits`);
}

interface Product { readonly K: number; readonly N: number; readonly bits: number; readonly block_size: number; readonly accuracy_level: number }
interface Weights<T> { readonly A: T; readonly B: T; readonly scales: T; readonly zero_points: T | undefined; readonly g_idx: T | undefined; readonly bias: T | undefined }

/** The number that holds `bits` bits at `index` of a row of bytes. */
export const bitsAt = (of: ArrayLike<number>, rowStart: number, index: number, bits: number): number =>
  ((of[rowStart + Math.floor((index * bits) / 8)] ?? 0) >> ((index * bits) % 8)) & (2 ** bits - 1);

/** Zero points as [N, blocks], where all are constants that fit bytes and g_idx gives no order of its own. */
function constantZeros({ B, scales, zero_points, g_idx }: Weights<TypeInfo>, { K, N, bits, block_size }: Product): Tensor | undefined {
  if (!B.constant || !scales.constant || scales.dtype !== "float32" || g_idx || (zero_points && !zero_points.constant)) return undefined;
  const blocks = Math.ceil(K / block_size), given = zero_points?.constant, out = new Uint8Array(N * blocks);
  if (!given) return tensor("uint8", [N, blocks], out.fill(2 ** (bits - 1)));
  const values = toNumbers(given), rowBytes = Math.ceil((blocks * bits) / 8);
  for (let i = 0; i < out.length; i++) {
    const zero = given.dtype === "uint8" ? bitsAt(values, Math.floor(i / blocks) * rowBytes, i % blocks, bits) : values[i] ?? 0;
    if (!Number.isInteger(zero) || zero < 0 || zero > 255) return undefined;
    out[i] = zero;
  }
  return tensor("uint8", [N, blocks], out);
}

/** The weights as [N, K] of bytes. */
function unpackedWeights(B: Tensor, { K, N, bits, block_size }: Product): Tensor {
  const bytes = toNumbers(B), rowBytes = (Math.ceil(K / block_size) * block_size * bits) / 8, out = new Uint8Array(N * K);
  for (let n = 0, i = 0; n < N; n++) for (let k = 0; k < K; k++, i++) out[i] = bitsAt(bytes, n * rowBytes, k, bits);
  return tensor("uint8", [N, K], out);
}

/** accuracy_level allows onnxruntime to round A to fewer bits; here A stays as it is. */
export const MatMulNBits = defineOp({
  type: "MatMulNBits",
  domain: "com.microsoft",
  since: 1,
  inputs: { A: "required", B: "required", scales: "required", zero_points: "optional", g_idx: "optional", bias: "optional" },
  attributes: { K: required("int"), N: required("int"), bits: int(4), block_size: required("int"), accuracy_level: int(0) },
  fusionKind: "contraction",
  infer({ A, B, scales, zero_points }, { K, N, bits, block_size }, context) {
    checkBits(bits, [2, 4, 8], context);
    const blocks = Math.ceil(K / block_size), bytes = (block_size * bits) / 8, sizes = (t: TypeInfo): number | undefined => t.shape.reduce<number | undefined>((n, d) => (n === undefined || typeof d !== "number" ? undefined : n * d), 1);
    const expected: readonly (readonly [TypeInfo | undefined, string, number])[] = [
      [B, "B", N * blocks * bytes], [scales, "scales", N * blocks],
      [zero_points, "zero_points", zero_points?.dtype === "uint8" ? N * Math.ceil((blocks * bits) / 8) : N * blocks],
    ];
    for (const [t, name, count] of expected) if (t && (sizes(t) ?? count) !== count) context.fail("OF3011", `${name} of ${formatShape(t.shape)} does not hold ${count} elements`);
    const depth = A.shape.at(-1) ?? 1;
    if (A.shape.length === 0 || (typeof depth === "number" && depth !== K)) context.fail("OF3011", `A of ${formatShape(A.shape)} does not end in K, ${K}`);
    context.agree?.(depth, K, "equal");
    return [{ dtype: A.dtype, shape: [...A.shape.slice(0, -1), N] }];
  },
  evaluate: evaluate.MatMulNBits,
  lowerable: (inputs, options) => !asProduct(inputs, options) && inputs.B.shape.length === 3 && inputs.scales.shape.length === 2 && (inputs.zero_points?.shape.length ?? 2) === 2,
  lower({ A, B, scales, zero_points, g_idx, bias }, { K, bits, block_size }) {
    return [(...indices) => {
      const column = indices.at(-1) ?? constant(0, i32);
      const sum = reduce("add", [K], (...[k]) => {
        const depth = k ?? constant(0, i32), own = g_idx ? cast(g_idx.at(depth), "i32") : div(depth, block_size);
        const q = unpacked(B, bits, [column, div(depth, block_size)], rem(depth, block_size));
        const zero = !zero_points ? constant(2 ** (bits - 1), i32) : zero_points.dtype === "uint8" ? unpacked(zero_points, bits, [column], own) : undefined;
        const steps = zero ? cast(sub(q, zero), "f32") : sub(cast(q, "f32"), cast(zero_points?.at(column, own) ?? constant(0, i32), "f32"));
        return mul(A.at(...indices.slice(0, -1), depth), mul(steps, scales.at(column, own)));
      });
      return bias ? add(sum, bias.at(column)) : sum;
    }];
  },
  expand({ inputs: [a, , , , , bias], inputTypes: [A, B, scales, zero_points, g_idx], outputs }, options) {
    if (A?.dtype !== "float32" || !B?.constant || !scales?.constant) return undefined;
    const zeros = constantZeros({ A, B, scales, zero_points, g_idx, bias: undefined }, options);
    if (!zeros) return undefined;
    const to = new Expansion();
    const product = to.add(DequantizedMatMul, [a, unpackedWeights(B.constant, options), { ...scales.constant, dims: zeros.dims }, zeros], { block_size: options.block_size, transB: 1 }, bias === undefined ? outputs[0] : undefined);
    if (bias !== undefined) to.add(Add, [product, bias], {}, outputs[0]);
    return to.nodes;
  },
});
const asProduct = (inputs: Weights<TypeInfo>, options: Product): boolean => inputs.A.dtype === "float32" && constantZeros(inputs, options) !== undefined;

export const GatherBlockQuantized = defineOp({
  type: "GatherBlockQuantized",
  domain: "com.microsoft",
  since: 1,
  inputs: { data: "required", indices: "required", scales: "required", zero_points: "optional" },
  attributes: { bits: int(4), block_size: int(128), gather_axis: int(0), quantize_axis: int(1) },
  fusionKind: "injective",
  infer({ data, indices, scales }, { bits, block_size, gather_axis, quantize_axis }, context) {
    const rank = data.shape.length, gather = axisWithin(gather_axis, rank, context), along = axisWithin(quantize_axis, rank, context);
    const packed = data.dtype === "uint8";
    if (packed) checkBits(bits, [4, 8], context);
    if (packed && gather === rank - 1) context.fail("OF3012", "cannot gather along the axis whose elements share bytes");
    if (along === gather) context.fail("OF3012", "cannot gather along the axis that has blocks");
    const whole = data.shape.map((d, i): Dim => (packed && i === rank - 1 ? dimMul(d, 8 / bits) : d));
    const fits = scales.shape.length === rank && scales.shape.every((d, i) => dimEqual(d, i === along ? dimCeilDiv(whole[i] ?? 1, block_size) : whole[i] ?? 1));
    if (!fits) context.fail("OF3011", `scales of ${formatShape(scales.shape)} do not fit data of ${formatShape(whole)} in blocks of ${block_size}`);
    return [{ dtype: scales.dtype, shape: [...whole.slice(0, gather), ...indices.shape, ...whole.slice(gather + 1)] }];
  },
  evaluate: evaluate.GatherBlockQuantized,
  lower({ data, indices: chosen, scales, zero_points }, options) {
    const rank = data.shape.length, front = (axis: number): number => (axis < 0 ? axis + rank : axis);
    const gather = front(options.gather_axis), along = front(options.quantize_axis), packed = data.dtype === "uint8", bits = packed ? options.bits : 8;
    return [(...indices) => {
      const row = indexFrom(chosen.at(...indices.slice(gather, gather + chosen.shape.length)), data.shape[gather] ?? 1, true);
      const place = [...indices.slice(0, gather), row, ...indices.slice(gather + chosen.shape.length)], own = place.map((p, d) => (d === along ? div(p, options.block_size) : p));
      const read = (of: Operand, at: readonly Expr[]): Expr => unpacked(of, bits, at.slice(0, -1), at[rank - 1] ?? constant(0, i32));
      const zero = zero_points ? read(zero_points, own) : constant(packed ? 2 ** (bits - 1) : 0, i32);
      return mul(cast(sub(read(data, place), zero), "f32"), scales.at(...own));
    }];
  },
});
