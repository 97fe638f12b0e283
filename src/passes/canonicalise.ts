/**
 * One spelling for each computation, by changes that keep every bit: constants second, subtraction of a constant as
 * addition, squares as products, two-operand sums as Add, one-sided and two-sided bounds as Clip, division by a power
 * of two as multiplication. Spellings that are equal only up to rounding are alternatives in the rules' patterns.
 */
import { isUnranked } from "../core/container.ts";
import { dtypes, isFloat, type DType } from "../core/dtype.ts";
import { fromBigInts, fromNumbers, sizeOf, toBigInts, toNumbers } from "../core/tensor.ts";
import { subgraphs, type Graph, type Node, type Value } from "../graph/graph.ts";
import type { OpDef } from "../graph/op.ts";
import { Add, And, Clip, Div, Max, Min, Mul, Or, Pow, Sub, Sum, Xor } from "../ops/index.ts";
import { isConstant } from "../rewrite/match.ts";
import { numberIn, type ConstantValue } from "../rewrite/pattern.ts";
import type { Ledger } from "./ledger.ts";
import { replaceNode } from "./replace.ts";

/** Rewrites a node in place; whether it did. */
type Canonicaliser = (node: Node) => boolean;

/** Returns whether anything was changed. */
export function canonicalise(graph: Graph, ledger: Ledger): boolean {
  let changed = false;
  for (const node of graph.nodes) {
    for (const inner of subgraphs(node)) if (canonicalise(inner, ledger)) changed = true;
    const { type } = node.op;
    if (node.inputs.some((v) => isUnranked(v?.type))) continue;
    if ((canonicalisers.get(node.op) ?? []).some((c) => c(node))) {
      ledger.record("canonicalised", type, 0);
      changed = true;
    }
  }
  return changed;
}

/** Constants stand second. */
const constantSecond: Canonicaliser = (node) => {
  const [a, b] = node.inputs;
  if (node.inputs.length !== 2 || !a || !b || !isConstant(a) || isConstant(b)) return false;
  node.graph.setInput(node, 0, b);
  node.graph.setInput(node, 1, a);
  return true;
};

/** x − c is x + (−c). */
const subtractedConstant: Canonicaliser = (node) => {
  const [x, c] = node.inputs;
  if (!x || !c || !isConstant(c) || isConstant(x)) return false;
  const negated = negate(c);
  if (!negated) return false;
  replaceNode(node, Add, [x, node.graph.addConstant(negated, `${c.name}_negated`)]);
  return true;
};
function negate({ constant: t }: ConstantValue) {
  if (isFloat(t.dtype)) return fromNumbers(t.dtype, t.dims, Float64Array.from(toNumbers(t), (x) => -x));
  return dtypes[t.dtype].kind === "int" || dtypes[t.dtype].kind === "uint" ? fromBigInts(t.dtype, t.dims, toBigInts(t).map((x) => -x)) : undefined;
}

/** x² is x·x. */
const square: Canonicaliser = (node) => {
  const [x, c] = node.inputs, [out] = node.outputs;
  if (!x || !c || !out || !isScalarFor(c, x) || numberIn(c) !== 2 || out.type.dtype !== x.type.dtype) return false;
  replaceNode(node, Mul, [x, x]);
  return true;
};

/** A variadic operator of two operands. */
const ofTwo = (op: OpDef): Canonicaliser => (node) => {
  if (node.inputs.length !== 2) return false;
  replaceNode(node, op, node.inputs);
  return true;
};

/** Max(x, c) and Min(x, c) are Clip, but for NaN, and for the zero that differs in sign from a zero of x. */
const bound = (side: "min" | "max"): Canonicaliser => (node) => {
  const [a, b] = node.inputs;
  if (node.inputs.length !== 2 || !a || !b) return false;
  const [x, c] = isConstant(a) ? [b, a] : [a, b];
  if (isConstant(x) || !isScalarFor(c, x) || Number.isNaN(numberIn(c)) || Object.is(numberIn(c), side === "min" ? 0 : -0) || !isFloat(x.type.dtype)) return false;
  const limit = c.constant.dims.length === 0 ? c : node.graph.addConstant({ ...c.constant, dims: [] }, `${c.name}_scalar`);
  replaceNode(node, Clip, side === "min" ? [x, limit] : [x, undefined, limit]);
  return true;
};

/** x / c is x · (1/c) where c and 1/c are powers of two. */
const dividedByPowerOfTwo: Canonicaliser = (node) => {
  const [x, c] = node.inputs;
  if (!x || !c || !isConstant(c) || isConstant(x) || !isFloat(c.constant.dtype)) return false;
  const values = Array.from(toNumbers(c.constant));
  if (!values.every((v) => isPowerOfTwo(v, c.constant.dtype))) return false;
  replaceNode(node, Mul, [x, node.graph.addConstant(fromNumbers(c.constant.dtype, c.constant.dims, values.map((v) => 1 / v)), `${c.name}_reciprocal`)]);
  return true;
};
/** With a reciprocal that is a normal number too. */
function isPowerOfTwo(x: number, dtype: DType): boolean {
  const exponent = Math.log2(Math.abs(x));
  return Number.isInteger(exponent) && 2 ** exponent === Math.abs(x) && Math.abs(exponent) <= (dtype === "float16" ? 14 : 126);
}

/** A constant of one element that does not enlarge x. */
const isScalarFor = (c: Value, x: Value): c is ConstantValue =>
  isConstant(c) && c.constant.dtype !== "string" && sizeOf(c.constant.dims) === 1 && c.constant.dims.length <= x.type.shape.length;

const canonicalisers: ReadonlyMap<OpDef, readonly Canonicaliser[]> = new Map<OpDef, readonly Canonicaliser[]>([
  ...[Add, Mul, And, Or, Xor].map((op): [OpDef, readonly Canonicaliser[]] => [op, [constantSecond]]),
  [Sub, [subtractedConstant]],
  [Div, [dividedByPowerOfTwo]],
  [Pow, [square]],
  [Sum, [ofTwo(Add)]],
  [Max, [bound("min")]],
  [Min, [bound("max")]],
]);
