/** Decision trees as ai.onnx.ml gives them: walked from the root by comparisons to a leaf, whose votes are added up. */
import { invariant } from "../core/assert.ts";
import type { EvaluateAttributes } from "../core/evaluate.ts";
import { toNumbers } from "../core/tensor.ts";
import { numbersOf, stringsOf } from "./read-attribute.ts";

export interface Vote { readonly target: number; readonly weight: number }
interface Branch { readonly feature: number; readonly isTrue: (x: number) => boolean; readonly missingIsTrue: boolean; readonly whenTrue: number; readonly whenFalse: number }
/** A branch, whose successors are indices into the forest, or a leaf's votes. */
export type TreeNode = Branch | { readonly votes: readonly Vote[] };
export interface Forest { readonly nodes: readonly TreeNode[]; readonly roots: readonly number[] }

export type Comparison = "BRANCH_LEQ" | "BRANCH_LT" | "BRANCH_GTE" | "BRANCH_GT" | "BRANCH_EQ" | "BRANCH_NEQ" | "BRANCH_MEMBER";
/** Comparisons in the order in which TreeEnsemble numbers them. */
export const comparisons: readonly Comparison[] = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER"];

export function test(mode: Comparison, by: number, members: ReadonlySet<number>): (x: number) => boolean {
  switch (mode) {
    case "BRANCH_LEQ": return (x) => x <= by;
    case "BRANCH_LT": return (x) => x < by;
    case "BRANCH_GTE": return (x) => x >= by;
    case "BRANCH_GT": return (x) => x > by;
    case "BRANCH_EQ": return (x) => x === by;
    case "BRANCH_NEQ": return (x) => x !== by;
    case "BRANCH_MEMBER": return (x) => members.has(x);
  }
}

/** The votes of each tree for one row. */
export function votesOf({ nodes, roots }: Forest, row: ArrayLike<number>): readonly (readonly Vote[])[] {
  return roots.map((root) => {
    let node = nodes[root];
    for (let steps = 0; node && !("votes" in node); steps++) {
      invariant(steps <= nodes.length, "a tree has no cycle");
      const x = row[node.feature] ?? NaN;
      node = nodes[node.isTrue(x) || (Number.isNaN(x) && node.missingIsTrue) ? node.whenTrue : node.whenFalse];
    }
    return node?.votes ?? [];
  });
}

/** A list attribute, or its tensor form. */
export function numbersOrTensor(attributes: EvaluateAttributes, name: string): ArrayLike<number> | undefined {
  const t = attributes[`${name}_as_tensor`];
  return typeof t === "object" && "dtype" in t ? toNumbers(t) : numbersOf(attributes, name);
}

/** The forest of a TreeEnsembleClassifier or Regressor; `votes` is the prefix of its leaves' attributes. */
export function readForest(attributes: EvaluateAttributes, votes: "class" | "target"): Forest {
  const list = (name: string): readonly number[] => numbersOf(attributes, name) ?? [];
  const trees = list("nodes_treeids"), ids = list("nodes_nodeids"), modes = stringsOf(attributes, "nodes_modes") ?? [], values = numbersOrTensor(attributes, "nodes_values") ?? [];
  const key = (tree: number | undefined, id: number | undefined): string => `${tree} ${id}`;
  const place = new Map(ids.map((id, i) => [key(trees[i], id), i]));
  const cast = new Map<string, Vote[]>(), weights = numbersOrTensor(attributes, `${votes}_weights`) ?? [], voters = list(`${votes}_nodeids`), targets = list(`${votes}_ids`), of = list(`${votes}_treeids`);
  voters.forEach((id, i) => {
    const k = key(of[i], id), own = cast.get(k) ?? [];
    own.push({ target: targets[i] ?? 0, weight: weights[i] ?? 0 });
    cast.set(k, own);
  });
  const whenTrue = list("nodes_truenodeids"), whenFalse = list("nodes_falsenodeids"), features = list("nodes_featureids"), missing = list("nodes_missing_value_tracks_true");
  const nodes = ids.map((id, i): TreeNode => {
    const mode = comparisons.find((m) => m === modes[i]);
    if (!mode) return { votes: cast.get(key(trees[i], id)) ?? [] };
    const child = (to: number | undefined): number => place.get(key(trees[i], to)) ?? -1;
    return { feature: features[i] ?? 0, isTrue: test(mode, values[i] ?? 0, new Set()), missingIsTrue: missing[i] === 1, whenTrue: child(whenTrue[i]), whenFalse: child(whenFalse[i]) };
  });
  return { nodes, roots: rootsOf(nodes, trees) };
}

/** Each tree's first node that no other leads to. */
function rootsOf(nodes: readonly TreeNode[], trees: readonly number[]): number[] {
  const reached = new Set(nodes.flatMap((n) => ("votes" in n ? [] : [n.whenTrue, n.whenFalse])));
  const roots = new Map<number, number>();
  trees.forEach((tree, i) => { if (!reached.has(i) && !roots.has(tree)) roots.set(tree, i); });
  return [...roots.values()];
}

/** Votes joined by target: their sum, mean over all trees, least or greatest; undefined where a target has none. */
export function aggregate(votes: readonly (readonly Vote[])[], targets: number, how: string): (number | undefined)[] {
  const out = new Array<number | undefined>(targets).fill(undefined);
  for (const { target, weight } of votes.flat()) {
    const so = out[target];
    out[target] = so === undefined ? weight : how === "MIN" ? Math.min(so, weight) : how === "MAX" ? Math.max(so, weight) : so + weight;
  }
  return how === "AVERAGE" ? out.map((v) => v === undefined ? v : v / votes.length) : out;
}
