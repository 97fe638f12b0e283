/**
 * TfIdfVectorizer: counts n-grams of a pool in each row. Items of an n-gram may lie a fixed distance apart, up to
 * `max_skip_count` + 1; single items are counted at distance 1 only.
 */
import type { Evaluate, EvaluateAttributes } from "../core/evaluate.ts";
import { fromNumbers, toBigInts, type Tensor } from "../core/tensor.ts";
import { input } from "./map-elements.ts";
import { numberOf, numbersOf, stringOf, stringsOf } from "./read-attribute.ts";
import { at } from "./window.ts";

/** Items of an n-gram lead from one to the next; a whole one has a column. */
interface Step { column?: number; readonly next: Map<string, Step> }

const itemsOf = (t: Tensor): readonly string[] => (t.dtype === "string" ? (t.data as readonly string[]) : toBigInts(t).map(String));

/** The pool lists all 1-grams, then all 2-grams, and so on; `ngram_counts` says where each length starts. */
function poolOf(attributes: EvaluateAttributes): Step {
  const items = stringsOf(attributes, "pool_strings") ?? (numbersOf(attributes, "pool_int64s") ?? []).map(String);
  const starts = numbersOf(attributes, "ngram_counts") ?? [], columns = numbersOf(attributes, "ngram_indexes") ?? [];
  const root: Step = { next: new Map() };
  let gram = 0;
  starts.forEach((start, i) => {
    const length = i + 1, end = starts[i + 1] ?? items.length;
    for (let from = start; from + length <= end; from += length) {
      let step = root;
      for (const item of items.slice(from, from + length)) {
        const next: Step = step.next.get(item) ?? { next: new Map() };
        step.next.set(item, next);
        step = next;
      }
      step.column = at(columns, gram++);
    }
  });
  return root;
}

function count(row: readonly string[], pool: Step, shortest: number, longest: number, skips: number, out: Float64Array): void {
  for (let distance = 1; distance <= skips + 1; distance++) {
    for (let start = 0; start < row.length; start++) {
      let step: Step | undefined = pool;
      for (let length = 1, i = start; length <= longest && i < row.length; length++, i += distance) {
        step = step.next.get(at(row, i));
        if (!step) break;
        if (length >= shortest && !(length === 1 && distance > 1) && step.column !== undefined) out[step.column] = (out[step.column] ?? 0) + 1;
      }
    }
  }
}

export const TfIdfVectorizer: Evaluate = (inputs, attributes) => {
  const X = input(inputs, 0), items = itemsOf(X), pool = poolOf(attributes), mode = stringOf(attributes, "mode");
  const width = Math.max(-1, ...(numbersOf(attributes, "ngram_indexes") ?? [])) + 1, weights = numbersOf(attributes, "weights");
  const rows = X.dims.length > 1 ? at(X.dims, 0) : 1, length = at(X.dims, X.dims.length - 1);
  const out = new Float64Array(rows * width);
  for (let r = 0; r < rows; r++) {
    const row = out.subarray(r * width, (r + 1) * width);
    count(items.slice(r * length, (r + 1) * length), pool, numberOf(attributes, "min_gram_length"), numberOf(attributes, "max_gram_length"), numberOf(attributes, "max_skip_count"), row);
    if (mode !== "TF") for (let c = 0; c < width; c++) row[c] = (mode === "IDF" ? Number((row[c] ?? 0) > 0) : row[c] ?? 0) * (weights?.[c] ?? 1);
  }
  return [fromNumbers("float32", [...X.dims.slice(0, -1), width], out)];
};
