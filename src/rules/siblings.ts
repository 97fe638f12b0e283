/**
 * Contractions that read one input, with constant weights each, joined into one whose columns are theirs side by side;
 * each result then is a view of some columns (horizontal fusion: XLA's multi-output fusion, TASO's merged matmuls). What
 * follows all of them alike, such as their biases or the same activation, is joined too. None of it may cost what it
 * saves: a result must be readable in place, and a follower of one result alone would lose its place in the epilogue.
 */
import { present } from "../core/assert.ts";
import { dimEqual, dimProduct, shapeEqual, type Dim } from "../core/dim.ts";
import { isFloat } from "../core/dtype.ts";
import { fromNumbers, sameTensor, sizeOf, toNumbers, type Tensor } from "../core/tensor.ts";
import type { Node, Value } from "../graph/graph.ts";
import type { AttributeValue, OpDef } from "../graph/op.ts";
import { concatenationOf, partLayout, viewLayout, viewOf, type Layout } from "../graph/view.ts";
import { Add, Div, Mul, PRelu, Split, Sub } from "../ops/index.ts";
import { isConstant } from "../rewrite/match.ts";
import { isRefusal, refuse, type Editor, type Replacements, type RuleSpec } from "../rewrite/rule.ts";
import type { Refusal } from "../rewrite/site.ts";

/** How one operator's weights, which are input 1, and biases are joined. */
export interface SiblingKind {
  readonly op: OpDef;
  /** The weights' axis of output columns. */
  weightAxis(node: Node): number;
  /** The axis of columns in the result. */
  columnAxis(node: Node): number;
  /** The input that is added to each column, where the operator has one. */
  readonly biasInput?: number;
  /** The weights' zero points, one or one a column: then elements are integers. */
  readonly zeroInput?: number;
  /** Constants beside the weights that have their axis of columns too: scales and zero points of blocks. Inputs 2 and on, and the only ones. */
  readonly besideWeights?: readonly number[];
  /** Inputs beside the first that all must have in common. */
  readonly sharedInputs?: readonly number[];
  /** Whether a node may be joined at all: such as only one group of a convolution. Default: always. */
  accepts?(node: Node): boolean;
}

/** One element-wise node behind a contraction: which input carries the value, the others being constants. */
export interface Step { readonly node: Node; readonly carried: number; readonly scaled?: Scaled }
/** What a step multiplies by where it is no constant: one number that is known at run time, the same for all branches, times constants. */
interface Scaled { readonly factor: Value; readonly own: Tensor }
export interface Branch { readonly contraction: Node; readonly columns: number; readonly steps: readonly Step[] }
/** A step of all branches; a branch that lacks it adds nothing there. */
export interface JoinedStep { readonly op: OpDef; readonly carried: number; readonly of: readonly (Step | undefined)[] }
export interface Joined { readonly branches: readonly Branch[]; readonly steps: readonly JoinedStep[] }

/** Contractions of the same operator and attributes on the same input, with constant weights of their own; in the order of use. */
function siblingsOf(node: Node, kind: SiblingKind): readonly Node[] {
  const [x] = node.inputs;
  if (!x || isFloat(x.type.dtype) === (kind.zeroInput !== undefined)) return [];
  return [...new Set(x.uses.filter((u) => u.index === 0).map((u) => u.node))].filter((n) => n.op === node.op && n.graph === node.graph && standsAlone(n, kind) && fitsBeside(node, n, kind));
}

/** Weights that nothing else reads and that are known, as is the bias: one number a column. */
function standsAlone(node: Node, kind: SiblingKind): boolean {
  const { inputs, outputs } = node, [, weight] = inputs, bias = kind.biasInput === undefined ? undefined : inputs[kind.biasInput];
  const zero = kind.zeroInput === undefined ? undefined : inputs[kind.zeroInput];
  const plain = (!bias || (isConstant(bias) && bias.type.shape.slice(0, -1).every((d) => d === 1))) && (!zero || (isConstant(zero) && zero.type.shape.length <= 1));
  const known = (kind.besideWeights ?? []).every((i) => !inputs[i] || isConstant(inputs[i]));
  return weight !== undefined && known && isConstant(weight) && weight.uses.length === 1 && sizeOf(weight.constant.dims) > 0 && plain && outputs.length === 1 && (kind.accepts?.(node) ?? true);
}

/** Whether the weights differ in nothing but their columns, and the attributes in nothing at all. */
function fitsBeside(a: Node, b: Node, kind: SiblingKind): boolean {
  const axis = kind.weightAxis(a);
  const alike = (p: Value | undefined, q: Value | undefined): boolean => (p && q ? p.type.dtype === q.type.dtype && p.type.shape.length === q.type.shape.length && p.type.shape.every((d, i) => i === axis || d === q.type.shape[i]) : p === q);
  return [1, ...(kind.besideWeights ?? [])].every((i) => alike(a.inputs[i], b.inputs[i]))
    && (kind.sharedInputs ?? []).every((i) => a.inputs[i] === b.inputs[i]) && sameAttributes(a, b);
}
/** Whether two nodes say the same of what they do. */
export const sameAttributes = (a: Pick<Node, "attributes">, b: Pick<Node, "attributes">): boolean => {
  const keys = new Set([...Object.keys(a.attributes), ...Object.keys(b.attributes)]);
  return [...keys].every((k) => sameAttribute(a.attributes[k], b.attributes[k]));
};
function sameAttribute(a: AttributeValue | undefined, b: AttributeValue | undefined): boolean {
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((x, i) => Object.is(x, b[i]));
  return Object.is(a, b);
}

/**
 * How these contractions, two or more, are joined, or why that would not pay. Branches that do not fit stay as they are;
 * where what follows differs too much for all, the most that go on alike are joined.
 */
function join(nodes: readonly Node[], kind: SiblingKind): Joined | Refusal {
  const branches = nodes.map((n) => branchOf(n, kind)), alike = new Map<string, Branch[]>();
  for (const b of branches) {
    const steps = b.steps.filter((s) => s.node.op !== Add).map((s) => s.node.op.type).join();
    alike.set(steps, [...(alike.get(steps) ?? []), b]);
  }
  const all = joinSome(branches, kind);
  if (!isRefusal(all)) return all;
  const groups = [...alike.values()].filter((g) => g.length > 1 && g.length < branches.length).sort((p, q) => q.length - p.length);
  return groups.map((g) => joinSome(g, kind)).find((j): j is Joined => !isRefusal(j)) ?? all;
}

function joinSome(candidates: readonly Branch[], kind: SiblingKind): Joined | Refusal {
  let refusal: Refusal | undefined;
  for (let branches = candidates; branches.length > 1;) {
    const joined: Joined = { branches, steps: commonSteps(branches) };
    const layouts = layoutsOf(joined, kind);
    const kept = branches.filter((_, i) => {
      const verdict = readInPlace(endOf(joined, i), present(layouts[i], "layout of a branch"), true);
      refusal ??= verdict;
      return verdict === undefined;
    });
    if (kept.length === branches.length) return joined;
    branches = kept;
  }
  return present(refusal, "reason for which branches were left out");
}

/** A contraction and what follows it alone, element by element. */
export function branchOf(contraction: Node, kind: Pick<SiblingKind, "columnAxis">): Branch {
  const [result] = contraction.outputs, axis = kind.columnAxis(contraction);
  const columns = Number(result?.type.shape[axis] ?? 0), steps: Step[] = [];
  for (let value = result; value;) {
    const step = stepAfter(value, axis);
    if (!step) break;
    steps.push(step);
    value = step.node.outputs[0];
  }
  return { contraction, columns, steps };
}

/** Whether a node computes element by element, the same on every run. */
export const isElementWise = ({ op }: Node): boolean => (op.fusionKind === "elementwise" || op.fusionKind === "broadcast") && op.deterministic !== false && op.sideEffects !== true;

/** The only reader of a value, where it is element-wise and all else it reads is one number, or one a column. */
function stepAfter(value: Value, axis: number): Step | undefined {
  const [use, more] = value.uses, rank = value.type.shape.length;
  if (!use || more || value.resultOf.length > 0 || use.node.graph !== value.graph) return undefined;
  const { node, index } = use, [result, another] = node.outputs;
  if (!isElementWise(node) || !result || another) return undefined;
  if (!shapeEqual(result.type.shape, value.type.shape) || !isFloat(result.type.dtype)) return undefined;
  const others = node.inputs.filter((v, i): v is Value => v !== undefined && i !== index);
  const fits = (v: Value): boolean => isConstant(v) && isFloat(v.type.dtype) && v.type.shape.every((d, i) => d === 1 || i === axis - rank + v.type.shape.length);
  if (others.every(fits)) return { node, carried: index };
  const scaled = node.op === Mul && others[0] ? scaledBy(others[0], fits) : undefined;
  return scaled && { node, carried: index, scaled };
}

/** A product of one number and of constants that fit. */
function scaledBy(v: Value, fits: (v: Value) => boolean): Scaled | undefined {
  const node = v.producer?.node;
  if (node?.op !== Mul || node.graph !== v.graph) return undefined;
  const own = node.inputs.find((x) => x && fits(x)), factor = node.inputs.find((x) => x !== own);
  return own?.constant && factor && isFloat(factor.type.dtype) && factor.type.shape.every((d) => d === 1) && factor.type.shape.length <= 1 ? { factor, own: own.constant } : undefined;
}

/** What the branches do alike, from the contraction on. Only an addition may be missing in some. */
export function commonSteps(branches: readonly Branch[]): readonly JoinedStep[] {
  const out: JoinedStep[] = [], at = branches.map(() => 0);
  for (;;) {
    const next = branches.map((b, i) => b.steps[at[i] ?? 0]);
    const adding = next.find((s) => s?.node.op === Add);
    const model = adding ?? next[0];
    if (!model) return out;
    const of = next.map((s) => (s && isAlike(model, s) ? s : undefined));
    if (of.some((s) => !s) && model.node.op !== Add) return out;
    out.push({ op: model.node.op, carried: model.carried, of });
    of.forEach((s, i) => { if (s) at[i] = (at[i] ?? 0) + 1; });
  }
}

/** Operators whose other operand may be a number a column. */
const byColumn: ReadonlySet<OpDef> = new Set([Add, Sub, Mul, Div, PRelu]);
function isAlike(a: Step, b: Step): boolean {
  if (a.node.op !== b.node.op || a.node.inputs.length !== b.node.inputs.length || !sameAttributes(a.node, b.node)) return false;
  if (a.carried !== b.carried && a.node.op !== Add) return false;
  if (a.node.outputs[0]?.type.dtype !== b.node.outputs[0]?.type.dtype || a.scaled?.factor !== b.scaled?.factor) return false;
  if (byColumn.has(a.node.op)) return true;
  return a.node.inputs.every((v, i) => i === a.carried || sameInput(v, b.node.inputs[i]));
}
const sameInput = (a: Value | undefined, b: Value | undefined): boolean => a === b || (a?.constant !== undefined && b?.constant !== undefined && sameTensor(a.constant, b.constant));

/** The value that the joined steps of a branch end in. */
export function endOf({ branches, steps }: Joined, i: number): Value {
  const own = steps.flatMap((s) => s.of[i] ?? []);
  return present((own.at(-1)?.node ?? branches[i]?.contraction)?.outputs[0], "result of a branch");
}

/** Where each branch's result would lie in the joined one. */
function layoutsOf(joined: Joined, kind: SiblingKind): readonly Layout[] {
  const [first] = joined.branches, shape = first?.contraction.outputs[0]?.type.shape ?? [], axis = first ? kind.columnAxis(first.contraction) : 0;
  const whole = shape.map((d, i): Dim => (i === axis ? joined.branches.reduce((n, b) => n + b.columns, 0) : d));
  let before = 0;
  return joined.branches.map((b) => {
    const layout = partLayout(whole, axis, before);
    before += b.columns;
    return layout;
  });
}

/** Why a result that lies at `layout` would cost its readers something; undefined where it would not. `whole`: nothing has been left out of it, so that it may be written where a concatenation wants it. */
function readInPlace(value: Value, layout: Layout, first: boolean, whole = true): Refusal | undefined {
  if (value.resultOf.length > 0) return refuse("graph-output", `'${value.name}' is a graph output, which lies in memory of its own`, `remove '${value.name}' from the graph's outputs`);
  for (const { node } of value.uses) {
    const { fusionKind } = node.op;
    if (first && (fusionKind === "elementwise" || fusionKind === "broadcast"))
      return refuse("own-epilogue", `${node.op.type} '${node.name}' follows '${value.name}' alone and is computed with it`, "none: each is computed with what follows it");
    if (fusionKind !== "injective") continue;
    const joins = concatenationOf(node) !== undefined;
    if (joins && !whole) continue;
    if (joins) return refuse("placed-in-concat", `'${value.name}' is written where ${node.op.type} '${node.name}' wants it`, "none is needed: nothing is copied now");
    for (const [i, output] of node.outputs.entries()) {
      const view = viewOf(node, i);
      if (!view || view.source !== value) continue;
      const inner = viewLayout(view, output.type.shape, layout);
      if (!inner) return refuse("not-a-view", `${node.op.type} '${node.name}' could not look at '${value.name}' among the other columns`, "none: its columns would have to be copied");
      const refusal = readInPlace(output, inner, false, whole && dimEqual(dimProduct(output.type.shape), dimProduct(value.type.shape)));
      if (refusal) return refusal;
    }
  }
  return undefined;
}

/** The rule's condition, its site and its rewrite. */
export function siblingRule<B extends object>(kindOf: (root: Node) => SiblingKind): Pick<RuleSpec<B>, "beside" | "rewrite"> {
  const joinAt = (root: Node): Joined | Refusal => join(siblingsOf(root, kindOf(root)), kindOf(root));
  return {
    beside(_, root) {
      const siblings = siblingsOf(root, kindOf(root));
      if (siblings[0] !== root || siblings.length < 2) return undefined;
      const joined = joinAt(root);
      return isRefusal(joined) ? siblings : [...joined.branches.map((b) => b.contraction), ...joined.steps.flatMap((s) => s.of.flatMap((step) => (step ? [step.node] : [])))];
    },
    rewrite(_, edit) {
      const joined = joinAt(edit.root);
      return isRefusal(joined) ? joined : insertJoined(joined, kindOf(edit.root), edit);
    },
  };
}

/** Inserts the joined contraction and steps, and its parts: what stands for each branch's result. */
function insertJoined(joined: Joined, kind: SiblingKind, edit: Editor): Replacements {
  const { branches, steps } = joined, node = present(branches[0], "a branch").contraction;
  const columns = branches.map((b) => b.columns), axis = kind.columnAxis(node), behind = present(node.outputs[0], "result").type.shape.length - axis - 1;
  const constantsOf = (index: number): (Tensor | undefined)[] => branches.map((b) => b.contraction.inputs[index]?.constant);
  const weights = constantsOf(1).filter((t): t is Tensor => t !== undefined);
  const inputs: (Value | undefined)[] = [node.inputs[0], edit.constant(sideBySide(weights, kind.weightAxis(node)), `${node.name}_weights`)];
  for (const index of kind.besideWeights ?? []) {
    const parts = constantsOf(index).filter((t): t is Tensor => t !== undefined);
    inputs.push(parts.length > 0 ? edit.constant(sideBySide(parts, kind.weightAxis(node)), `${node.name}_columns_${index}`) : undefined);
  }
  const biases = kind.biasInput === undefined ? [] : constantsOf(kind.biasInput);
  if (biases.some((b) => b !== undefined)) inputs.push(edit.constant(columnValues(biases, columns, 0), `${node.name}_biases`));
  if (kind.zeroInput !== undefined) {
    const zeros = constantsOf(kind.zeroInput), shared = (kind.sharedInputs ?? []).map((i) => node.inputs[i]);
    inputs.push(...shared, zeros.some((z) => z !== undefined) ? edit.constant(columnValues(zeros, columns, 0, 0), `${node.name}_zero_points`) : undefined);
  }
  const value = insertSteps(edit.insert(node.op, inputs, node.attributes, { name: node.name }), steps, columns, behind, edit);
  const sizes = edit.constant(fromNumbers("int64", [columns.length], columns), `${node.name}_columns`);
  const parts = edit.insert(Split, [value, sizes], { axis }, { name: `${node.name}_split`, outputCount: columns.length }).producer?.node.outputs ?? [];
  return new Map(branches.map((_, i) => [endOf(joined, i), present(parts[i], "part of the joined result")]));
}

/** Inserts what all branches do, on the joined result; constants of a branch stand for its columns, `behind` which so many axes follow. */
export function insertSteps(start: Value, steps: readonly JoinedStep[], columns: readonly number[], behind: number, edit: Editor): Value {
  let value = start;
  for (const { op, carried, of } of steps) {
    const model = present(of.find((s) => s !== undefined), "a step of some branch").node;
    const factor = of.find((s) => s?.scaled)?.scaled?.factor;
    const joinedOperand = (): Value => {
      const own = edit.constant(columnValues(of.map((s) => s?.scaled?.own ?? s?.node.inputs[1 - s.carried]?.constant), columns, behind), `${model.name}_columns`);
      return factor ? edit.insert(Mul, [factor, own], {}, { name: `${model.name}_scale` }) : own;
    };
    value = edit.insert(op, model.inputs.map((own, i) => (i === carried ? value : byColumn.has(op) ? joinedOperand() : own)), model.attributes, { name: model.name });
  }
  return value;
}

/** Tensors that differ along `axis` only, joined there. */
export function sideBySide(tensors: readonly Tensor[], axis: number): Tensor {
  const [first] = tensors, dims = first?.dims ?? [], outer = sizeOf(dims.slice(0, axis));
  const each = tensors.map((t) => ({ values: toNumbers(t), run: sizeOf(t.dims.slice(axis)) }));
  const total = each.reduce((n, e) => n + e.run, 0), values = new Float64Array(outer * total);
  for (let o = 0, at = 0; o < outer; o++) for (const { values: from, run } of each) for (let i = 0; i < run; i++) values[at++] = from[o * run + i] ?? 0;
  return fromNumbers(first?.dtype ?? "float32", dims.map((d, i) => (i === axis ? tensors.reduce((n, t) => n + (t.dims[axis] ?? 0), 0) : d)), values);
}

/** A number for each column of all branches: a branch's own, its only one for all of its columns, or `none`, which adds nothing. `behind`: how many axes follow. */
export function columnValues(given: readonly (Tensor | undefined)[], columns: readonly number[], behind: number, none = -0): Tensor {
  const values = columns.flatMap((count, i) => {
    const own = given[i] && toNumbers(given[i]);
    return Array.from({ length: count }, (_, c) => (own ? own[own.length === 1 ? 0 : c] ?? 0 : none));
  });
  const dtype = present(given.find((t) => t !== undefined), "a constant of some branch").dtype;
  return fromNumbers(dtype, [values.length, ...Array.from({ length: behind }, () => 1)], values);
}
