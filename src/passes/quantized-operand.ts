/** Which dequantised constants are worth keeping as integers until the rules have run: operands of quantised contractions, and matrices of weights. */
import type { Node, Value } from "../graph/graph.ts";
import { Conv, DequantizeLinear, Gemm, MatMul, Transpose } from "../ops/index.ts";

/** A DequantizeLinear (or a Transpose of one) that a contraction reads together with another dequantised operand, or as a product's right operand. */
export function isQuantizedOperand(node: Node): boolean {
  const source = node.op === Transpose ? node.inputs[0]?.producer?.node : node;
  if (source?.op !== DequantizeLinear) return false;
  return node.outputs[0]?.uses.some((u) => (u.node.op === Transpose ? isQuantizedOperand(u.node) : readsQuantized(u.node, u.index))) ?? false;
}

const readsQuantized = (user: Node, index: number): boolean =>
  (index === 1 && (user.op === MatMul || user.op === Gemm))
  || (user.op === Conv || user.op === Gemm || user.op === MatMul) && user.inputs.slice(0, 2).every((v, i) => i === index || isDequantized(v));

function isDequantized(v: Value | undefined): boolean {
  const node = v?.producer?.node;
  return node?.op === DequantizeLinear || (node?.op === Transpose && node.inputs[0]?.producer?.node.op === DequantizeLinear);
}
