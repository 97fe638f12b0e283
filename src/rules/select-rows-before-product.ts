/** Rows that are chosen from a product by a constant matrix are chosen from its left operand, so that only they are multiplied (a language model's head for the last token). */
import { GraphBuilder } from "../graph/build.ts";
import type { Node, Value } from "../graph/graph.ts";
import { toNumbers } from "../core/tensor.ts";
import { Add, Gather, MatMul, Relu, Slice } from "../ops/index.ts";
import { anyOf, commuted, constant, op, optionalInput, parameter, value, type ConstantValue, type Pattern } from "../rewrite/pattern.ts";
import { defineRule, exact, refuse, type Verdict } from "../rewrite/rule.ts";

interface Match { readonly x: Value; readonly weight: ConstantValue; readonly bias: ConstantValue | undefined; readonly axes: ConstantValue | undefined }
const product = op(MatMul, [value("x"), constant("weight", { wants: "a matrix", holds: (w) => w.constant.dims.length === 2 })]);
const whole = anyOf(commuted(Add, [product, parameter("bias")]), product);

/** The axes along which a node chooses, counted from the front. */
function chosenAxes(root: Node, { axes }: Match): readonly number[] {
  const rank = root.inputs[0]?.type.shape.length ?? 0;
  const given = root.op === Gather ? [Number(root.attributes["axis"])] : axes ? Array.from(toNumbers(axes.constant)) : Array.from({ length: Number(root.inputs[1]?.type.shape[0] ?? rank) }, (_, d) => d);
  return given.map((a) => (a < 0 ? a + rank : a));
}

function choosesRows(m: Match, root: Node): Verdict {
  const columns = (root.inputs[0]?.type.shape.length ?? 0) - 1;
  return chosenAxes(root, m).every((a) => a < columns) || refuse("axes", `'${root.name}' chooses columns of the product`, "none: its matrix would have to be cut");
}
function biasesColumns({ bias }: Match): Verdict {
  return !bias || bias.type.shape.length <= 1 || refuse("not-per-channel", `'${bias.name}' is not one value a column`, "give the bias one axis");
}
/** A Gather may choose a row several times. */
function choosesFewer(m: Match, root: Node): Verdict {
  if (root.op === Slice) return true;
  const [data, indices] = root.inputs, rows = data?.type.shape[chosenAxes(root, m)[0] ?? 0] ?? 0;
  const count = (indices?.type.shape ?? []).reduce<number>((n, d) => (typeof d === "number" ? n * d : NaN), 1);
  return count <= 1 || (typeof rows === "number" && count <= rows) || refuse("dearer", `'${root.name}' chooses ${Number.isNaN(count) ? "who knows how many" : count} rows of ${typeof rows === "number" ? rows : "who knows how many"}`, "choose a known number of rows, no more than there are");
}

type End = (b: GraphBuilder, y: Value) => readonly Value[];
const slice = (start: number, end: number, axis: number): End => (b, y) => [b.add(Slice, [y, b.int64(start), b.int64(end), b.int64(axis)])];
const gather = (axis: number, dims: readonly number[], ...indices: readonly number[]): End => (b, y) => [b.add(Gather, [y, b.numbers(indices, dims, "int64")], { axis })];
const build = (end: End, bias?: readonly number[]) => () => {
  const b = new GraphBuilder(), y = b.add(MatMul, [b.input("x", ["n", 5, 6]), b.random([6, 4])]);
  return b.build(...end(b, bias ? b.add(Add, [y, b.random(bias)]) : y));
};

export const selectRowsBeforeProduct = defineRule({
  name: "select-rows-before-product",
  doc: "A Slice or Gather of rows of a product by a constant matrix, with or without a bias, chooses rows of the left operand instead: only these are multiplied.",
  match: anyOf(
    op(Slice, [whole, value("starts"), value("ends"), optionalInput(parameter("axes")), optionalInput(value("steps"))]),
    op(Gather, [whole, value("indices")]),
  ) as Pattern<Match>,
  where: [choosesRows, biasesColumns, choosesFewer],
  numerics: exact,
  rewrite({ x, weight, bias }, edit) {
    const { op: choose, inputs, attributes } = edit.root;
    const result = edit.insert(MatMul, [edit.insert(choose, [x, ...inputs.slice(1)], attributes), weight]);
    return bias ? edit.insert(Add, [result, bias]) : result;
  },
  example: build(slice(-1, 9, 1), [4]),
  examples: [
    build(gather(1, [], -1)),
    build(gather(1, [2], 3, 0), [4]),
    build(slice(0, 1, 0)),
    build((b, y) => [b.add(Slice, [y, b.input("from", [1], "int64"), b.int64(5), b.int64(-2)])], [1]),
  ],
  refuses: {
    axes: build(slice(0, 2, 2)),
    "not-per-channel": build(slice(0, 2, 1), [5, 4]),
    dearer: build(gather(1, [6], 0, 1, 2, 3, 4, 0)),
    "interior-value-used": build((b, y) => [...slice(-1, 9, 1)(b, y), b.add(Relu, [y])]),
  },
});
