/**
 * FlexAttention (ai.onnx.preview): read, as a function is, as the operators that it stands for, with the graphs that
 * change scores and probabilities in their places. Where nothing needs the scores, they become FlashAttention like any
 * other spelling.
 */
import { present } from "../core/assert.ts";
import { fail, type Place } from "../core/diagnostic.ts";
import { dimExactDiv, formatDim, formatShape, shapeEqual, type Dim } from "../core/dim.ts";
import { dtypes, isFloat } from "../core/dtype.ts";
import { fromNumbers, type Tensor } from "../core/tensor.ts";
import type { Value } from "../graph/graph.ts";
import { inferNode } from "../graph/infer-node.ts";
import type { Attributes, OpDef } from "../graph/op.ts";
import { Cast } from "../ops/cast.ts";
import { Mul } from "../ops/arithmetic.ts";
import { Expand } from "../ops/fill.ts";
import { KnownElements, knownElements } from "../ops/known-elements.ts";
import { MatMul } from "../ops/matmul.ts";
import { Reshape, Unsqueeze } from "../ops/reshape.ts";
import { Softmax } from "../ops/softmax.ts";
import { Transpose } from "../ops/transpose.ts";
import { nameNodes } from "./order.ts";
import { displayName, newConstant, readInitializers, Scope, valueOf, type Body, type GivenAttribute, type ReadState } from "./reading.ts";

export interface FlexNode {
  readonly name: string;
  readonly inputs: readonly Value[];
  /** The result's name in the file. */
  readonly output: string;
  readonly scale: number | undefined;
  /** The element type, by ONNX's number, in which scores are changed and normalised. */
  readonly precision: number | undefined;
  readonly graphs: readonly GivenAttribute[];
}

/** Reads the node into the body. Fails with OF2060 where a graph does not give one result like its input, or with what inference reports. */
export function readFlexAttention(node: FlexNode, body: Body, state: ReadState): void {
  new FlexReader(node, body, state).read();
}

class FlexReader {
  readonly #node: FlexNode;
  readonly #body: Body;
  readonly #state: ReadState;
  readonly #place: Place;
  constructor(node: FlexNode, body: Body, state: ReadState) {
    this.#node = node;
    this.#body = body;
    this.#state = state;
    this.#place = { node: node.name };
  }

  read(): void {
    const { inputs, output, scale, precision } = this.#node, [q, k, v] = inputs;
    if (!q || !k || !v) return fail("OF3001", "FlexAttention needs its inputs 'Q', 'K' and 'V'", { place: this.#place });
    if ([q, k, v].some((t) => t.type.shape.length !== 4)) fail("OF3010", `FlexAttention needs inputs of rank 4, got ${[q, k, v].map((t) => formatShape(t.type.shape)).join(", ")}`, { place: this.#place });
    if (!isFloat(q.type.dtype)) fail("OF3013", `FlexAttention: input 'Q' is ${q.type.dtype}, must be float`, { place: this.#place });
    const { dtype } = q.type, half = dtype === "float16" || dtype === "bfloat16", depth = q.type.shape[3];
    if (typeof depth !== "number" && scale === undefined) return fail("OF3014", `FlexAttention needs to know the depth of its heads, got ${formatDim(depth ?? 1)}`, { place: this.#place, hint: "fix the sizes with --input_shape, or give a scale" });
    const wide = precision ?? (half ? dtypes.float32.onnx : dtypes[dtype].onnx), own = dtypes[dtype].onnx;
    const cast = (x: Value, to: number): Value => (dtypes[x.type.dtype].onnx === to ? x : this.#add(Cast, [x], { to }));
    const keys = this.#add(Transpose, [this.#repeated(k, q)], { perm: [0, 1, 3, 2] });
    const factor = this.#constant(fromNumbers(dtype, [], [scale ?? 1 / Math.sqrt(Number(depth))]));
    const scores = this.#changed("score_mod", cast(this.#add(Mul, [this.#add(MatMul, [q, keys]), factor]), wide));
    const weights = this.#changed("prob_mod", this.#add(Softmax, [scores], { axis: -1 }));
    const values = this.#repeated(v, q), name = displayName(output, this.#body, this.#state);
    const last = cast(values, wide), sum = this.#add(MatMul, [weights, last], {}, wide === own ? name : undefined);
    this.#body.scope.set(output, wide === own ? sum : this.#add(Cast, [sum], { to: own }, name));
  }

  #add(op: OpDef, inputs: readonly Value[], attributes: Attributes = {}, output?: string): Value {
    const { name } = this.#node, { graph } = this.#body;
    const types = inferNode(op, inputs, attributes, 1, { place: this.#place, fresh: (hint) => this.#state.symbols.fresh(`${name}_${hint}`) });
    return present(graph.insert({ op, inputs, attributes, outputs: types, name: `${name}_${op.type}`, origins: [name], outputNames: [output] }).outputs[0], "a result");
  }
  #constant(tensor: Tensor): Value {
    return newConstant(tensor, `${this.#node.name}_constant`, this.#body.graph, this.#state);
  }
  #sizes(sizes: readonly Dim[]): Value {
    if (sizes.every((d) => typeof d === "number")) return this.#constant(fromNumbers("int64", [sizes.length], sizes));
    const { graph } = this.#body, { name } = this.#node;
    return present(graph.insert({ op: KnownElements, inputs: [], attributes: knownElements("int64", [sizes.length], sizes), outputs: [{ dtype: "int64", shape: [sizes.length], elements: sizes }], name: `${name}_sizes`, origins: [name] }).outputs[0], "sizes");
  }

  /** Key heads repeated for the query heads that share them. */
  #repeated(x: Value, q: Value): Value {
    const [batch = 1, own = 1, tokens = 1, depth = 1] = x.type.shape, heads = q.type.shape[1] ?? 1, each = dimExactDiv(heads, own);
    if (each === undefined) return fail("OF3011", `FlexAttention: ${formatDim(heads)} query heads cannot share ${formatDim(own)} key heads evenly`, { place: this.#place });
    if (each === 1) return x;
    const spread = this.#add(Expand, [this.#add(Unsqueeze, [x, this.#constant(fromNumbers("int64", [1], [2]))]), this.#sizes([batch, own, each, tokens, depth])]);
    return this.#add(Reshape, [spread, this.#sizes([batch, heads, tokens, depth])]);
  }

  /** What the node's graph of this name makes of a value; the value itself where there is none. */
  #changed(which: string, x: Value): Value {
    const given = this.#node.graphs.find((a) => a.name === which), graph = given?.proto.g;
    if (!given || !graph) return x;
    const [input] = graph.input, [output] = graph.output;
    if (!input || !output || graph.input.length !== 1 || graph.output.length !== 1) return fail("OF2060", `the graph '${which}' of FlexAttention must take and give one value`, { place: this.#place });
    const inner: Body = { ...given.body, graph: this.#body.graph, scope: new Scope(given.body.scope), resultNames: new Map(), nested: true, prefix: `${given.body.prefix}${this.#node.name}/${which}/` };
    inner.scope.set(input.name, x);
    readInitializers(graph, inner, this.#state);
    this.#state.readNodes(nameNodes(graph.node), inner, this.#state);
    const result = valueOf(output.name, inner, this.#node.name);
    if (result.type.dtype !== x.type.dtype || !shapeEqual(result.type.shape, x.type.shape))
      return fail("OF2060", `the graph '${which}' of FlexAttention gives ${result.type.dtype}${formatShape(result.type.shape)} for ${x.type.dtype}${formatShape(x.type.shape)}`, { place: this.#place });
    return result;
  }
}
