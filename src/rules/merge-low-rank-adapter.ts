/** A low-rank adapter beside a product, x·W + (x·A)·B, is one product by W + A·B (LoRA, merged). */
import { toNumbers } from "../core/tensor.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { Value } from "../graph/graph.ts";
import { Add, MatMul, Relu } from "../ops/index.ts";
import { anyOf, commuted, constant, op, value, type ConstantValue, type Predicate } from "../rewrite/pattern.ts";
import { approximates, defineRule, isRefusal } from "../rewrite/rule.ts";
import { byColumn } from "./channel-map.ts";
import { roundOnce, whyNotCopied } from "./folded-tensor.ts";

const matrix: Predicate<ConstantValue> = { wants: "a matrix", holds: (w) => w.constant.dims.length === 2 };
const product = op(MatMul, [value("x"), constant("weight", matrix)], { as: "product" });
const adapter = op(MatMul, [op(MatMul, [value("x"), constant("down", matrix)]), constant("up", matrix)]);

interface Spelling { readonly bias?: boolean; readonly dims?: readonly (number | string)[]; readonly used?: boolean; readonly fed?: boolean; readonly other?: boolean }
const build = ({ bias = false, dims = [2, "n"], used = false, fed = false, other = false }: Spelling = {}) => () => {
  const b = new GraphBuilder(), x = b.input("x", [...dims, 6]), plain = b.add(MatMul, [x, b.random([6, 5])]);
  const narrow = b.add(MatMul, [other ? b.input("z", [...dims, 6]) : x, fed ? b.input("down", [6, 2]) : b.random([6, 2])]);
  const main: Value = bias ? b.add(Add, [plain, b.random([5])]) : plain;
  return b.build(b.add(Add, [b.add(MatMul, [narrow, b.random([2, 5])]), main]), ...(used ? [b.add(Relu, [narrow])] : []));
};

export const mergeLowRankAdapter = defineRule({
  name: "merge-low-rank-adapter",
  doc: "A product by a constant matrix, plus the product by two thin constant ones of the same input, with or without a bias, becomes one product by the sum of the matrix and the thin ones' product. Adapters that are fed stay.",
  match: anyOf(commuted(Add, [product, adapter]), commuted(Add, [commuted(Add, [product, constant("bias")]), adapter])),
  commonplace: ["other-operator"],
  numerics: approximates(1e-5, "an infinite input may give NaN in the adapter where one product gives an infinity"),
  where: [({ weight, product: node }) => whyNotCopied(weight, node) ?? true],
  rewrite({ x, weight, down, up, bias, product: node }, edit) {
    const [rows = 1, columns = 1] = weight.constant.dims, [, inner = 1] = down.constant.dims;
    const a = toNumbers(down.constant), b = toNumbers(up.constant), sum = Float64Array.from(toNumbers(weight.constant));
    for (let i = 0; i < rows; i++) for (let k = 0; k < inner; k++) for (let j = 0; j < columns; j++)
      sum[i * columns + j] = (sum[i * columns + j] ?? 0) + (a[i * inner + k] ?? 0) * (b[k * columns + j] ?? 0);
    const merged = roundOnce(`the matrix of '${node.name}'`, weight.constant.dtype, [rows, columns], sum, byColumn(columns));
    if (isRefusal(merged)) return merged;
    const y = edit.insert(MatMul, [x, edit.constant(merged, `${weight.name}_adapted`)], {}, { name: node.name });
    return bias ? edit.insert(Add, [y, bias]) : y;
  },
  example: build(),
  examples: [build({ bias: true }), build({ dims: ["n"] }), build({ bias: true, dims: [3] })],
  refuses: {
    approximate: build(),
    "interior-value-used": build({ used: true }),
    "different-operand": build({ other: true }),
    "not-constant": build({ fed: true }),
  },
});
