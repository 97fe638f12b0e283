/** Convolutions on the parts of a Split, whose results are joined again (ResNeXt spelled out, OpenVINO's group convolution), are one convolution with as many groups. */
import { shapeEqual } from "../core/dim.ts";
import { GraphBuilder } from "../graph/build.ts";
import type { Node, Value } from "../graph/graph.ts";
import { Concat, Conv, LeakyRelu, Neg, Relu, Split } from "../ops/index.ts";
import { isConstant } from "../rewrite/match.ts";
import { op } from "../rewrite/pattern.ts";
import { defineRule, exact, isRefusal, refuse } from "../rewrite/rule.ts";
import type { Refusal } from "../rewrite/site.ts";
import { branchOf, columnValues, commonSteps, insertSteps, isElementWise, sameAttributes, sideBySide, type Branch, type JoinedStep, type SiblingKind } from "./siblings.ts";

/** What stands between a Split of channels and the Concat of what was computed from its parts. */
interface Site { readonly split: Node; readonly convolutions: readonly Node[] }
interface Groups { readonly x: Value; readonly branches: readonly Branch[]; readonly steps: readonly JoinedStep[] }

const ofConv: Pick<SiblingKind, "columnAxis"> = { columnAxis: () => 1 };
const alongChannels = (node: Node, rank: number): boolean => [1, 1 - rank].includes(Number(node.attributes["axis"]));
/** How many nodes may follow a convolution before its result is joined. */
const longestEpilogue = 8;

/** The convolution that a value comes from, through what is computed element by element. */
function convolutionOf(value: Value | undefined): Node | undefined {
  let node = value?.producer?.node;
  for (let i = 0; node && node.op !== Conv && i < longestEpilogue; i++) {
    if (!isElementWise(node)) return undefined;
    node = node.inputs.find((v) => v && !isConstant(v))?.producer?.node;
  }
  return node?.op === Conv ? node : undefined;
}

function siteAt(root: Node): Site | undefined {
  const rank = root.outputs[0]?.type.shape.length ?? 0, convolutions = root.inputs.map(convolutionOf);
  const split = convolutions[0]?.inputs[0]?.producer?.node;
  if (rank < 3 || root.inputs.length < 2 || !alongChannels(root, rank) || split?.op !== Split || split.graph !== root.graph || !alongChannels(split, rank)) return undefined;
  const found = convolutions.filter((n): n is Node => n?.inputs[0]?.producer?.node === split);
  return found.length === root.inputs.length ? { split, convolutions: found } : undefined;
}

/** The groups of one convolution, or why it would not be the same. */
function groupsAt({ split, convolutions }: Site, root: Node): Groups | Refusal {
  const [first] = convolutions, [x] = split.inputs, parts = split.outputs;
  if (!first || !x) return refuse("convolutions-differ", "nothing is convolved", "none is needed");
  if (parts.length !== convolutions.length || convolutions.some((n, i) => n.inputs[0] !== parts[i]) || parts.some((p) => !shapeEqual(p.type.shape, parts[0]?.type.shape ?? [])))
    return refuse("parts-differ", `'${root.name}' does not join what comes of all parts of '${split.name}', of one size and in their order`, "split into equal parts, and join them in their order");
  const unknown = convolutions.flatMap((n) => n.inputs.slice(1)).find((v) => v && !isConstant(v));
  if (unknown) return refuse("not-constant", `'${unknown.name}' is computed`, "make weights and biases initializers");
  const other = convolutions.find((n) => !sameAttributes(n, first) || n.inputs[1]?.type.dtype !== first.inputs[1]?.type.dtype || !shapeEqual(n.inputs[1]?.type.shape ?? [], first.inputs[1]?.type.shape ?? []));
  if (other) return refuse("convolutions-differ", `'${other.name}' has another window, other strides or other channels than '${first.name}'`, "give all of them the same");
  const branches = convolutions.map((n) => branchOf(n, ofConv)), steps = commonSteps(branches);
  const apart = branches.findIndex((b, i) => b.steps.length !== steps.filter((s) => s.of[i]).length || (b.steps.at(-1)?.node ?? b.contraction).outputs[0] !== root.inputs[i]);
  if (apart < 0) return { x, branches, steps };
  const value = convolutions[apart]?.outputs[0];
  return refuse("own-epilogue", `what follows '${value?.name ?? ""}' is read elsewhere, or not what follows the others`, "let the same operators follow each of them, and nothing else read their results");
}

type Part = (b: GraphBuilder, x: Value, i: number) => Value;
const conv = ({ channels = 2, filters = 3, window = 3, bias = true, attributes = {} } = {}): Part => (b, x) =>
  b.add(Conv, [x, b.random([filters, channels, window, window]), bias ? b.random([filters]) : undefined], { pads: window === 3 ? [1, 1, 1, 1] : [0, 0, 0, 0], ...attributes });
const build = (part: Part, { sizes = [2, 2, 2], order = sizes.map((_, i) => i), more = () => [] }: { readonly sizes?: readonly number[]; readonly order?: readonly number[]; readonly more?: (b: GraphBuilder, parts: readonly Value[]) => readonly Value[] } = {}) => () => {
  const b = new GraphBuilder(), x = b.input("x", ["n", sizes.reduce((p, q) => p + q, 0), 5, "w"]);
  const parts = b.addAll(Split, [x, b.int64(...sizes)], { axis: 1 }, sizes.length).map((p, i) => part(b, p, i));
  return b.build(b.add(Concat, order.map((i) => parts[i]), { axis: 1 }), ...more(b, parts));
};

export const mergeSplitConvolutions = defineRule({
  name: "merge-split-convolutions",
  doc: "A Split of channels, a convolution with the same window on each part, and a Concat of their results become one convolution with as many groups; what follows all of them alike goes behind it.",
  stage: "merge",
  match: op(Concat, [], { rest: true }),
  beside(_, root) {
    const site = siteAt(root);
    return site && [site.split, ...site.convolutions];
  },
  numerics: exact,
  rewrite(_, edit) {
    const site = siteAt(edit.root);
    const groups = site ? groupsAt(site, edit.root) : refuse("parts-differ", "nothing is split", "none is needed");
    if (isRefusal(groups)) return groups;
    const { x, branches, steps } = groups, columns = branches.map((b) => b.columns), node = branches[0]?.contraction ?? edit.root;
    const constantsOf = (index: number) => branches.map((b) => b.contraction.inputs[index]?.constant);
    const weights = constantsOf(1).flatMap((t) => (t ? [t] : [])), biases = constantsOf(2);
    const inputs = [x, edit.constant(sideBySide(weights, 0), `${node.name}_weights`), biases.some((t) => t !== undefined) ? edit.constant(columnValues(biases, columns, 0), `${node.name}_biases`) : undefined];
    const joined = edit.insert(Conv, inputs, { ...node.attributes, group: Number(node.attributes["group"]) * branches.length }, { name: node.name });
    return insertSteps(joined, steps, columns, x.type.shape.length - 2, edit);
  },
  example: build(conv()),
  examples: [
    build((b, x) => b.add(Relu, [conv()(b, x, 0)]), { sizes: [2, 2] }),
    build((b, x, i) => conv({ bias: i === 1, window: 1, attributes: { strides: [2, 2] } })(b, x, i)),
    build(conv({ channels: 2, filters: 4, attributes: { group: 2 } }), { sizes: [4, 4] }),
    build((b, x) => b.add(LeakyRelu, [conv({ channels: 1, filters: 1 })(b, x, 0)]), { sizes: [1, 1, 1, 1] }),
  ],
  refuses: {
    "convolutions-differ": build((b, x, i) => conv({ window: i === 0 ? 1 : 3 })(b, x, i)),
    "parts-differ": build(conv(), { order: [1, 0, 2] }),
    "not-constant": build((b, x, i) => b.add(Conv, [x, i === 0 ? b.input("weight", [3, 2, 3, 3]) : b.random([3, 2, 3, 3])], { pads: [1, 1, 1, 1] })),
    "own-epilogue": build((b, x, i) => (i === 0 ? b.add(Relu, [conv()(b, x, i)]) : conv()(b, x, i)), { more: (b, parts) => parts.slice(1, 2).map((p) => b.add(Neg, [p])) }),
  },
});
