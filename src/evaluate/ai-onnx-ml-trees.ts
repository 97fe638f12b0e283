/** Evaluation of tree ensembles: every tree is walked for every row, in float64. */
import type { Evaluate, EvaluateAttributes } from "../core/evaluate.ts";
import { fromNumbers, toNumbers, type Tensor } from "../core/tensor.ts";
import { bothScores, greatestOf, labelsOf, matrixOf, rowsOf, transformScores } from "./class-scores.ts";
import { aggregate, comparisons, numbersOrTensor, readForest, test, votesOf, type Forest, type TreeNode, type Vote } from "./decision-tree.ts";
import { input } from "./map-elements.ts";
import { numberOf, numbersOf, stringOf } from "./read-attribute.ts";

/** Base values for each target; one stands for a single target only. */
function baseValues(attributes: EvaluateAttributes, targets: number): (target: number) => number {
  const values = numbersOrTensor(attributes, "base_values") ?? [];
  return (t) => (values.length === targets ? values[t] ?? 0 : 0);
}

export const TreeEnsembleRegressor: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0), targets = numberOf(attributes, "n_targets", 1), forest = readForest(attributes, "target"), base = baseValues(attributes, targets);
  const rows = rowsOf(x.dims, toNumbers(x)).map((row) => {
    const scores = aggregate(votesOf(forest, row), targets, stringOf(attributes, "aggregate_function"));
    return transformScores(scores.map((s, t) => (s ?? 0) + base(t)), stringOf(attributes, "post_transform"));
  });
  return [matrixOf(rows, targets)];
};

/**
 * Where all votes are for one of two classes, its score says both: above 0.5 where no weight is negative, otherwise above
 * 0, the positive class wins. Otherwise the greatest score wins.
 */
export const TreeEnsembleClassifier: Evaluate = (inputs, attributes) => {
  const x = input(inputs, 0), labels = labelsOf(attributes, "classlabels_int64s", "classlabels_strings"), transform = stringOf(attributes, "post_transform");
  const forest = readForest(attributes, "class"), voted = new Set(numbersOf(attributes, "class_ids") ?? []), isBinary = labels.count === 2 && voted.size === 1;
  const allPositive = Array.from(numbersOrTensor(attributes, "class_weights") ?? []).every((w) => w >= 0);
  const [only = 0] = voted, base = numbersOrTensor(attributes, "base_values") ?? [];
  const judged = rowsOf(x.dims, toNumbers(x)).map((row) => {
    const scores = aggregate(votesOf(forest, row), labels.count, "SUM").map((s) => s ?? 0);
    if (isBinary) {
      const score = (scores[only] ?? 0) + (base[base.length - 1] ?? 0);
      return { best: Number(score > (allPositive ? 0.5 : 0)), scores: bothScores(score, allPositive && transform === "LOGISTIC" ? "NONE" : transform, allPositive) };
    }
    const based = scores.map((s, c) => s + (base.length === labels.count ? base[c] ?? 0 : 0));
    return { best: greatestOf(based), scores: transformScores(based, transform) };
  });
  return [labels.tensorOf(judged.map((j) => j.best)), matrixOf(judged.map((j) => j.scores), labels.count)];
};

const aggregates = ["AVERAGE", "SUM", "MIN", "MAX"], transforms = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"];
const listOf = (attributes: EvaluateAttributes, name: string): readonly number[] => numbersOf(attributes, name) ?? [];
function tensorOf(attributes: EvaluateAttributes, name: string): ArrayLike<number> {
  const t = attributes[name];
  return typeof t === "object" && "dtype" in t ? toNumbers(t) : [];
}

/** Interior nodes first, then leaves. */
function readEnsemble(attributes: EvaluateAttributes): Forest {
  const features = listOf(attributes, "nodes_featureids"), splits = tensorOf(attributes, "nodes_splits"), modes = tensorOf(attributes, "nodes_modes"), missing = listOf(attributes, "nodes_missing_value_tracks_true");
  const sets = memberSets(tensorOf(attributes, "membership_values")), child = (side: "true" | "false") => (i: number): number =>
    (listOf(attributes, `nodes_${side}nodeids`)[i] ?? 0) + (listOf(attributes, `nodes_${side}leafs`)[i] ? features.length : 0);
  const whenTrue = child("true"), whenFalse = child("false");
  let next = 0;
  const branches = features.map((feature, i): TreeNode => {
    const mode = comparisons[modes[i] ?? 0] ?? "BRANCH_LEQ";
    const members = mode === "BRANCH_MEMBER" ? sets[next++] ?? new Set<number>() : new Set<number>();
    return { feature, isTrue: test(mode, splits[i] ?? 0, members), missingIsTrue: missing[i] === 1, whenTrue: whenTrue(i), whenFalse: whenFalse(i) };
  });
  const targets = listOf(attributes, "leaf_targetids"), weights = tensorOf(attributes, "leaf_weights");
  return { nodes: [...branches, ...targets.map((target, i) => ({ votes: [{ target, weight: weights[i] ?? 0 }] satisfies Vote[] }))], roots: listOf(attributes, "tree_roots") };
}
/** The sets of set membership, in order of their nodes; each ends with NaN. */
function memberSets(values: ArrayLike<number>): Set<number>[] {
  const sets: Set<number>[] = [];
  let own = new Set<number>();
  for (let i = 0; i < values.length; i++) {
    const v = values[i] ?? NaN;
    if (Number.isNaN(v)) { sets.push(own); own = new Set(); } else own.add(v);
  }
  return sets;
}

export const TreeEnsemble: Evaluate = (inputs, attributes) => {
  const x: Tensor = input(inputs, 0), targets = numberOf(attributes, "n_targets", 1), forest = readEnsemble(attributes);
  const how = aggregates[numberOf(attributes, "aggregate_function")] ?? "SUM", transform = transforms[numberOf(attributes, "post_transform")] ?? "NONE";
  const rows = rowsOf(x.dims, toNumbers(x)).map((row) => transformScores(aggregate(votesOf(forest, row), targets, how).map((s) => s ?? 0), transform));
  return [fromNumbers(x.dtype, [rows.length, targets], rows.flat())];
};
