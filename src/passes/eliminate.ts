/**
 * Elimination: nodes that do nothing go, chains of views become one, and all spellings of a reshape become Reshape.
 * Exact: every result keeps its bits. A graph output keeps its name.
 */
import { isUnranked, sameContainer } from "../core/container.ts";
import { dimEqual, shapeEqual, symbolsOf, type Dim } from "../core/dim.ts";
import { bitsOf, dtypes, isFloat, isInteger, type DType } from "../core/dtype.ts";
import { toNumbers } from "../core/tensor.ts";
import { subgraphs, type Graph, type Node, type Value } from "../graph/graph.ts";
import { typeWithConstant } from "../graph/infer-node.ts";
import type { OpDef, TypeInfo } from "../graph/op.ts";
import { elementsOf } from "../ops/element-values.ts";
import { dropsNothing } from "../ops/identity.ts";
import {
  Abs, Add, Cast, CastLike, Ceil, Concat, Div, Dropout, Expand, Flatten, Floor, Identity, KnownElements, Max, Mean, Min, Mul, Neg, Not, OptionalGetElement, Pad, Pow,
  Relu, Reshape, Resize, Round, Sign, Slice, Split, Squeeze, Sub, Sum, Tile, Transpose, Unsqueeze, Where,
} from "../ops/index.ts";
import { isConstant } from "../rewrite/match.ts";
import { eliminateDeadCode } from "./dead-code.ts";
import type { Ledger } from "./ledger.ts";
import { replaceNode, replaceOutput } from "./replace.ts";
import { constantTarget, reshapeTarget } from "./reshape-target.ts";

export interface EliminateOptions {
  /** Whether KnownElements may be used. False where the graph is to be written as ONNX. Default true. */
  readonly symbolic?: boolean;
}

/** An input that the node's only used output equals; undefined where there is none. */
type SameAs = (node: Node) => Value | undefined;

/** Returns whether anything was eliminated. */
export function eliminate(graph: Graph, ledger: Ledger, options: EliminateOptions = {}): boolean {
  const symbols = new Set<string>();
  for (const v of graph.inputs) for (const d of v.type.shape) symbolsOf(d, symbols);
  let changed = eliminateDeadCode(graph, ledger);
  if (eliminateIn(graph, ledger, options.symbolic === false ? undefined : symbols)) changed = true;
  return eliminateDeadCode(graph, ledger) || changed;
}

/** `symbols`: what KnownElements may say; undefined where it may not be used. */
function eliminateIn(graph: Graph, ledger: Ledger, symbols: ReadonlySet<string> | undefined): boolean {
  let changed = false;
  for (const node of graph.nodes) {
    for (const inner of subgraphs(node)) if (eliminateIn(inner, ledger, symbols)) changed = true;
    if (!graph.has(node)) continue;
    if ([...node.inputs, ...node.outputs].some((v) => isUnranked(v?.type))) { if (passesOn.has(node.op) && dropNode(node, ledger)) changed = true; continue; }
    if (dropNode(node, ledger) || unifyReshape(node, ledger, symbols) || composeNode(node, ledger) || rejoinParts(node, ledger)) changed = true;
  }
  return changed;
}

function dropNode(node: Node, ledger: Ledger): boolean {
  const same = sameAs.get(node.op)?.(node);
  const out = node.outputs[0];
  if (!same || !out) return false;
  const alike = same.type.container && out.type.container ? sameContainer(same.type.container, out.type.container) : !same.type.container && !out.type.container;
  if (!alike || same.type.dtype !== out.type.dtype || !shapeEqual(same.type.shape, out.type.shape)) return false;
  const { name } = same;
  const saved = replaceOutput(node, same);
  if (saved === undefined || saved < 0) return false;
  ledger.record("eliminated", node.op.type, saved);
  ledger.trace("eliminated", [node], `it does nothing here: its result is '${name}'`);
  return true;
}

const first: SameAs = (node) => node.inputs[0];
const onlyOperand: SameAs = (node) => (node.inputs.length === 1 ? node.inputs[0] : undefined);
const idempotent = (op: OpDef): SameAs => (node) => (node.inputs[0]?.producer?.node.op === op ? node.inputs[0] : undefined);
const involution = (op: OpDef): SameAs => (node) => (node.inputs[0]?.producer?.node.op === op ? node.inputs[0].producer.node.inputs[0] : undefined);

/** x where the other operand is `neutral` throughout; on the left too for commutative operators. */
const neutral = (isNeutral: (x: number, dtype: DType) => boolean, commutes: boolean): SameAs => (node) => {
  const [a, b] = node.inputs;
  if (b && everyElement(b, isNeutral)) return a;
  return commutes && a && everyElement(a, isNeutral) ? b : undefined;
};
function everyElement(v: Value, holds: (x: number, dtype: DType) => boolean): boolean {
  if (!isConstant(v) || v.constant.dtype === "string") return false;
  const values = toNumbers(v.constant);
  for (let i = 0; i < values.length; i++) if (!holds(values[i] ?? NaN, v.constant.dtype)) return false;
  return values.length > 0;
}
const isOne = (x: number): boolean => x === 1;
/** x + (-0) is x; x + 0 is not, where x is -0. */
const isAdditiveZero = (x: number, dtype: DType): boolean => x === 0 && (isInteger(dtype) || Object.is(x, -0));
const isSubtractiveZero = (x: number, dtype: DType): boolean => x === 0 && (isInteger(dtype) || Object.is(x, 0));

/** Those whose result is their input whatever its rank. */
const passesOn: ReadonlySet<OpDef> = new Set([Identity, OptionalGetElement]);

/** Shapes are compared by the caller. */
const sameAs: ReadonlyMap<OpDef, SameAs> = new Map<OpDef, SameAs>([
  [Identity, first], [OptionalGetElement, first],
  [Dropout, (node) => (onlyFirstUsed(node) && dropsNothing(typeOf(node.inputs[1]), typeOf(node.inputs[2])) ? node.inputs[0] : undefined)],
  [Cast, first],
  [CastLike, first],
  [Reshape, first],
  [Flatten, first],
  [Squeeze, first],
  [Unsqueeze, first],
  [Expand, first],
  [Transpose, (node) => (permutationOf(node).every((axis, i) => axis === i) ? node.inputs[0] : undefined)],
  [Slice, (node) => (node.inputs[4] === undefined || elementsAre(node.inputs[4], (step) => step > 0) ? node.inputs[0] : undefined)],
  [Pad, (node) => (elementsAre(node.inputs[1], (pad) => pad === 0) ? node.inputs[0] : undefined)],
  [Tile, (node) => (elementsAre(node.inputs[1], (times) => times === 1) ? node.inputs[0] : undefined)],
  [Resize, (node) => (isUnscaled(node) ? node.inputs[0] : undefined)],
  [Concat, (node) => onlyOperand(node) ?? rejoined(node)],
  [Split, (node) => (node.outputs.length === 1 ? node.inputs[0] : undefined)],
  [Sum, onlyOperand],
  [Mean, onlyOperand],
  [Max, onlyOperand],
  [Min, onlyOperand],
  [Mul, neutral(isOne, true)],
  [Div, neutral(isOne, false)],
  [Pow, neutral(isOne, false)],
  [Add, neutral(isAdditiveZero, true)],
  [Sub, neutral(isSubtractiveZero, false)],
  ...[Relu, Ceil, Floor, Round, Sign, Abs].map((op): [OpDef, SameAs] => [op, idempotent(op)]),
  ...[Not, Neg].map((op): [OpDef, SameAs] => [op, involution(op)]),
]);

/** What a Split took apart and a Concat along the same axis puts together in the same order. */
const rejoined: SameAs = (node) => {
  const split = node.inputs[0]?.producer?.node, rank = node.inputs[0]?.type.shape.length ?? 0;
  const axisOf = ({ attributes }: Node): number => (Number(attributes["axis"]) + rank) % rank;
  if (split?.op !== Split || split.outputs.length !== node.inputs.length || axisOf(split) !== axisOf(node)) return undefined;
  return node.inputs.every((v, i) => v === split.outputs[i]) ? split.inputs[0] : undefined;
};

const onlyFirstUsed = (node: Node): boolean => node.outputs.slice(1).every((v) => v.uses.length === 0 && v.resultOf.length === 0);
const typeOf = (v: Value | undefined): TypeInfo | undefined => v && typeWithConstant(v);

/** Whether all elements of a small integer value are known, and hold. */
const elementsAre = (v: Value | undefined, holds: (x: number) => boolean): boolean => {
  const elements = v && elementsOf(typeWithConstant(v));
  return elements !== undefined && elements.every((e) => typeof e === "number" && holds(e));
};

/** Same size in and out, and scales of exactly 1 (a size that rounds to the same is not enough), in a mode that then copies. */
function isUnscaled(node: Node): boolean {
  const [x, , scales, sizes] = node.inputs;
  if (!x || node.attributes["coordinate_transformation_mode"] === "tf_crop_and_resize") return false;
  if (sizes && sizes.type.shape[0] !== 0) return true;
  return scales !== undefined && everyElement(scales, isOne);
}

export function permutationOf(node: Node): readonly number[] {
  const rank = node.inputs[0]?.type.shape.length ?? 0;
  const perm = node.attributes["perm"];
  return Array.isArray(perm) ? perm : Array.from({ length: rank }, (_, i) => rank - 1 - i);
}

/** Every view that keeps the elements' order becomes a Reshape of what it views, with the plainest target. */
function unifyReshape(node: Node, ledger: Ledger, symbols: ReadonlySet<string> | undefined): boolean {
  const [x] = node.inputs, [out] = node.outputs;
  if (!x || !out) return false;
  const isView = node.op === Flatten || node.op === Squeeze || node.op === Unsqueeze || (node.op === Transpose && movesOnlyOnes(node));
  if (!isView && node.op !== Reshape) return false;
  const under = x.producer?.node.op === Reshape ? x.producer.node.inputs[0] : undefined;
  const source = under ?? x;
  const shape = node.inputs[1];
  if (node.op === Reshape && !under && shape && (isConstant(shape) || (shape.producer?.node.op === KnownElements && !constantTarget(source, out.type.shape)))) return false;
  const target = reshapeTarget(source, out.type.shape, node, symbols);
  if (!target) return false;
  ledger.record("canonicalised", node.op.type, target.value.producer ? -1 : 0);
  replaceNode(node, Reshape, [source, target.value], target.attributes);
  if (under && x.producer) eliminateUnused(x.producer.node, ledger);
  return true;
}

function eliminateUnused(node: Node, ledger: Ledger): void {
  if (node.outputs.some((v) => v.uses.length || v.resultOf.length)) return;
  node.graph.erase(node);
  ledger.record("eliminated", node.op.type, 1);
  ledger.trace("eliminated", [node], "its one reader, of the same kind, does both");
}

/** A transposition that keeps the order of all axes longer than 1. */
function movesOnlyOnes(node: Node): boolean {
  const shape: readonly Dim[] = node.inputs[0]?.type.shape ?? [];
  const long = permutationOf(node).filter((axis) => !dimEqual(shape[axis] ?? 0, 1));
  return long.every((axis, i) => i === 0 || axis > (long[i - 1] ?? -1));
}

/** Transpose of Transpose, Cast of a lossless Cast, Where of a negated condition. */
function composeNode(node: Node, ledger: Ledger): boolean {
  const [x] = node.inputs;
  const inner = x?.producer?.node;
  if (!x || !inner) return false;
  const [source] = inner.inputs;
  if (!source) return false;
  if (node.op === Transpose && inner.op === Transpose) {
    const before = permutationOf(inner);
    replaceNode(node, Transpose, [source], { perm: permutationOf(node).map((axis) => before[axis] ?? 0) });
  } else if (node.op === Cast && inner.op === Cast && keepsEveryValue(source.type.dtype, x.type.dtype)) {
    replaceNode(node, Cast, [source], node.attributes);
  } else if (node.op === Where && inner.op === Not) {
    replaceNode(node, Where, [source, node.inputs[2], node.inputs[1]]);
  } else return false;
  eliminateUnused(inner, ledger);
  return true;
}

/** A Concat of all parts of a Split along its axis, among others, takes what was split: that may be computed in its place. */
function rejoinParts(node: Node, ledger: Ledger): boolean {
  if (node.op !== Concat) return false;
  const rank = node.outputs[0]?.type.shape.length ?? 0, axisOf = ({ attributes }: Node): number => (Number(attributes["axis"]) + rank) % rank;
  for (const [at, part] of node.inputs.entries()) {
    const split = part?.producer?.node, [whole] = split?.inputs ?? [];
    if (split?.op !== Split || !whole || split.outputs.length < 2 || axisOf(split) !== axisOf(node) || split.outputs.some((v, i) => node.inputs[at + i] !== v)) continue;
    replaceNode(node, Concat, [...node.inputs.slice(0, at), whole, ...node.inputs.slice(at + split.outputs.length)], node.attributes);
    eliminateUnused(split, ledger);
    return true;
  }
  return false;
}

/** How many bits of an integer a float holds exactly. */
function significantBits(dtype: DType): number {
  switch (dtype) {
    case "float64": return 53;
    case "float32": return 24;
    case "float16": return 11;
    case "bfloat16": return 8;
    default: return 0;
  }
}

/** Whether every value of `from` is one of `to`. */
function keepsEveryValue(from: DType, to: DType): boolean {
  if (from === to) return true;
  if (from === "bool") return to !== "string" && to !== "float8e8m0";
  const [a, b] = [dtypes[from], dtypes[to]];
  const wider = bitsOf(to) - bitsOf(from);
  if (isFloat(from)) return isFloat(to) && b.size > a.size && from !== "float8e8m0";
  if (isFloat(to)) return bitsOf(from) <= significantBits(to);
  if (a.kind === "uint") return (b.kind === "uint" && wider >= 0) || (b.kind === "int" && wider > 0);
  return a.kind === "int" && b.kind === "int" && wider >= 0;
}
