/** A product with a constant matrix right after another is one product with theirs, where that computes no more. */
import { toNumbers } from "../core/tensor.ts";
import { GraphBuilder } from "../graph/build.ts";
import { MatMul, Relu } from "../ops/index.ts";
import { constant, op, value, type ConstantValue, type Predicate } from "../rewrite/pattern.ts";
import { approximates, defineRule, isRefusal, refuse } from "../rewrite/rule.ts";
import { byColumn } from "./channel-map.ts";
import { roundOnce } from "./folded-tensor.ts";

const matrix: Predicate<ConstantValue> = { wants: "a matrix", holds: (w) => w.constant.dims.length === 2 };
const build = (sizes: readonly [number, number, number], used = false, dims: readonly (number | string)[] = [2, "n"]) => () => {
  const b = new GraphBuilder(), [k, inner, n] = sizes;
  const y = b.add(MatMul, [b.input("x", [...dims, k]), b.random([k, inner])]);
  return b.build(b.add(MatMul, [y, b.random([inner, n])]), ...(used ? [b.add(Relu, [y])] : []));
};

export const mergeFollowingProducts = defineRule({
  name: "merge-following-products",
  doc: "MatMul by a constant matrix, then by another, becomes MatMul by their product, where that takes no more multiplications: never for a bottleneck, whose two thin matrices are cheaper apart.",
  match: op(MatMul, [op(MatMul, [value("x"), constant("weight", matrix)], { as: "before" }), constant("nextWeight", matrix)], { as: "after" }),
  commonplace: ["other-operator", "not-constant"],
  numerics: approximates(1e-5, "an infinite input may give NaN in the first of the two where one product gives an infinity"),
  rewrite({ x, weight, nextWeight, after }, edit) {
    const [rows = 1, inner = 1] = weight.constant.dims, [, columns = 1] = nextWeight.constant.dims;
    const apart = rows * inner + inner * columns, together = rows * columns;
    if (together > apart) return refuse("dearer", `one matrix would take ${together} products a row, the two take ${apart}`, "none: they are cheaper apart");
    if (x.type.shape.length < 2) return refuse("rank", `'${x.name}' is a vector`, "give it two axes");
    const a = toNumbers(weight.constant), b = toNumbers(nextWeight.constant), product = new Float64Array(rows * columns);
    for (let i = 0; i < rows; i++) for (let k = 0; k < inner; k++) for (let j = 0; j < columns; j++)
      product[i * columns + j] = (product[i * columns + j] ?? 0) + (a[i * inner + k] ?? 0) * (b[k * columns + j] ?? 0);
    const tensor = roundOnce(`the matrix of '${after.name}'`, weight.constant.dtype, [rows, columns], product, byColumn(columns));
    return isRefusal(tensor) ? tensor : edit.insert(MatMul, [x, edit.constant(tensor, `${nextWeight.name}_merged`)], {}, { name: after.name });
  },
  example: build([5, 9, 4]),
  examples: [build([3, 3, 3], false, ["n"])],
  refuses: {
    approximate: build([5, 9, 4]),
    dearer: build([9, 2, 8]),
    "interior-value-used": build([5, 9, 4], true),
    rank: build([5, 9, 4], false, []),
  },
});
