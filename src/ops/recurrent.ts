/** LSTM, GRU and RNN: whole-buffer kernels, since each step reads the one before. */
import { dimMul, formatShape, type Dim } from "../core/dim.ts";
import { defineOp, int, optional, string, type AnchorOperand, type Attributes, type AttributeSpec, type ExpandContext, type ExpansionNode, type InferContext, type OpDef, type TypeInfo } from "../graph/op.ts";
import type { Buffer } from "../kernel/expr.ts";
import type { Activation, RecurrenceStructure } from "../kernel/structure.ts";
import { GRU as evaluateGru, LSTM as evaluateLstm, RNN as evaluateRnn } from "../evaluate/recurrent.ts";
import { agreeSizes } from "./agree-sizes.ts";
import { checkType } from "./element-wise.ts";
import { Expansion } from "./expansion.ts";
import { Transpose } from "./transpose.ts";

const attributes = {
  activation_alpha: optional("floats"),
  activation_beta: optional("floats"),
  activations: optional("strings"),
  clip: optional("float"),
  direction: string("forward"),
  hidden_size: optional("int"),
  layout: int(0),
} as const satisfies Record<string, AttributeSpec>;

interface Options {
  readonly activation_alpha: readonly number[] | undefined;
  readonly activation_beta: readonly number[] | undefined;
  readonly activations: readonly string[] | undefined;
  readonly clip: number | undefined;
  readonly direction: string;
  readonly hidden_size: number | undefined;
  readonly layout: number;
}

interface Cell {
  readonly kind: RecurrenceStructure["cell"];
  readonly gates: number;
  readonly defaults: readonly string[];
}
const lstmCell: Cell = { kind: "lstm", gates: 4, defaults: ["Sigmoid", "Tanh", "Tanh"] };
const gruCell: Cell = { kind: "gru", gates: 3, defaults: ["Sigmoid", "Tanh"] };
const rnnCell: Cell = { kind: "rnn", gates: 1, defaults: ["Tanh"] };

/** Reads one activation, taking alpha and beta from the lists where it uses them; undefined for an unknown name. */
function activationOf(name: string, alphas: number[], betas: number[]): Activation | undefined {
  const alpha = (missing: number): number => alphas.shift() ?? missing;
  const beta = (missing: number): number => betas.shift() ?? missing;
  switch (name.toLowerCase()) {
    case "sigmoid": return { kind: "sigmoid" };
    case "tanh": return { kind: "tanh" };
    case "relu": return { kind: "relu" };
    case "softsign": return { kind: "softsign" };
    case "softplus": return { kind: "softplus" };
    case "affine": return { kind: "affine", alpha: alpha(1), beta: beta(0) };
    case "hardsigmoid": return { kind: "hard-sigmoid", alpha: alpha(0.2), beta: beta(0.5) };
    case "scaledtanh": return { kind: "scaled-tanh", alpha: alpha(1), beta: beta(1) };
    case "leakyrelu": return { kind: "leaky-relu", alpha: alpha(0.01) };
    case "thresholdedrelu": return { kind: "thresholded-relu", alpha: alpha(1) };
    case "elu": return { kind: "elu", alpha: alpha(1) };
    default: return undefined;
  }
}

/** Activations of each direction; undefined where a name is unknown or the count is wrong. */
function activationsOf(options: Options, cell: Cell, directions: number): readonly (readonly Activation[])[] | undefined {
  const names = options.activations ?? Array.from({ length: directions }, () => cell.defaults).flat();
  if (names.length !== directions * cell.defaults.length) return undefined;
  const alphas = [...(options.activation_alpha ?? [])], betas = [...(options.activation_beta ?? [])];
  const all = names.map((name) => activationOf(name, alphas, betas));
  if (!all.every((a): a is Activation => a !== undefined)) return undefined;
  return Array.from({ length: directions }, (_, d) => all.slice(d * cell.defaults.length, (d + 1) * cell.defaults.length));
}

const directionCount = (direction: string): number => (direction === "bidirectional" ? 2 : 1);

/** Operands by name; P and initial_c are LSTM's. */
interface Recurrent { readonly X: TypeInfo; readonly W: TypeInfo; readonly R: TypeInfo; readonly B?: TypeInfo | undefined; readonly sequence_lens?: TypeInfo | undefined; readonly initial_h?: TypeInfo | undefined; readonly initial_c?: TypeInfo | undefined; readonly P?: TypeInfo | undefined }

function inferRecurrent({ X, W, R, ...rest }: Recurrent, options: Options, cell: Cell, context: InferContext): readonly TypeInfo[] {
  checkType(context, X, "X", "float");
  if (X.shape.length !== 3 || W.shape.length !== 3 || R.shape.length !== 3)
    context.fail("OF3010", `X, W and R need rank 3, got ${formatShape(X.shape)}, ${formatShape(W.shape)} and ${formatShape(R.shape)}`);
  if (!["forward", "reverse", "bidirectional"].includes(options.direction)) context.fail("OF3012", `unknown direction '${options.direction}'`);
  const directions = directionCount(options.direction), hidden = R.shape[2] ?? 0;
  if (!activationsOf(options, cell, directions)) context.fail("OF3012", `unknown or wrong number of activations: ${(options.activations ?? []).join(", ")}`);
  if (options.hidden_size !== undefined && typeof hidden === "number" && options.hidden_size !== hidden)
    context.fail("OF3011", `hidden_size is ${options.hidden_size}, R has ${hidden}`);
  for (const [name, t] of Object.entries({ W, R, ...rest })) if (t && name !== "sequence_lens" && t.dtype !== X.dtype) context.fail("OF3013", `operands have different types, ${X.dtype} and ${t.dtype}`);
  const [first = 1, second = 1] = X.shape;
  const [sequence, batch] = options.layout ? [second, first] : [first, second];
  const y: readonly Dim[] = options.layout ? [batch, sequence, directions, hidden] : [sequence, directions, batch, hidden];
  const state: readonly Dim[] = options.layout ? [batch, directions, hidden] : [directions, batch, hidden];
  const gates = dimMul(cell.gates, hidden);
  agreeSizes(context, "W", W, [directions, gates, X.shape[2] ?? 1]);
  agreeSizes(context, "R", R, [directions, gates, hidden]);
  agreeSizes(context, "B", rest.B, [directions, dimMul(2, gates)]);
  agreeSizes(context, "sequence_lens", rest.sequence_lens, [batch]);
  agreeSizes(context, "initial_h", rest.initial_h, state);
  agreeSizes(context, "initial_c", rest.initial_c, state);
  agreeSizes(context, "P", rest.P, [directions, dimMul(3, hidden)]);
  return [y, state, ...(cell.kind === "lstm" ? [state] : [])].map((shape) => ({ dtype: X.dtype, shape }));
}

interface Operands {
  readonly X: AnchorOperand; readonly W: AnchorOperand; readonly R: AnchorOperand; readonly B: AnchorOperand | undefined;
  readonly sequence_lens: AnchorOperand | undefined; readonly initial_h: AnchorOperand | undefined;
  readonly initial_c?: AnchorOperand | undefined; readonly P?: AnchorOperand | undefined;
}

function structureOf(o: Operands, options: Options, cell: Cell, flags: { readonly linearBeforeReset: boolean; readonly inputForget: boolean }, outputs: readonly (Buffer | undefined)[]): RecurrenceStructure {
  const [sequence = 1, batch = 1, inputSize = 1] = o.X.shape;
  const count = directionCount(options.direction);
  const [y, yH, yC] = outputs;
  return {
    kind: "recurrence", cell: cell.kind, sequence, batch, inputSize, hidden: o.R.shape[2] as number,
    directions: options.direction === "bidirectional" ? ["forward", "reverse"] : [options.direction === "reverse" ? "reverse" : "forward"],
    activations: activationsOf(options, cell, count) ?? [],
    ...(options.clip ? { clip: options.clip } : {}),
    ...flags,
    x: o.X.buffer(), w: o.W.buffer(), r: o.R.buffer(),
    ...(o.B ? { b: o.B.buffer() } : {}),
    ...(o.sequence_lens ? { sequenceLengths: o.sequence_lens.buffer() } : {}),
    ...(o.initial_h ? { initialH: o.initial_h.buffer() } : {}),
    ...(o.initial_c ? { initialC: o.initial_c.buffer() } : {}),
    ...(o.P ? { peepholes: o.P.buffer() } : {}),
    ...(y ? { y } : {}), ...(yH ? { yH } : {}), ...(yC ? { yC } : {}),
  };
}

/** Kernels take time-major float32 (or float16) and a hidden size known when compiling; anything else runs on the host. */
const hasKernel = (X: TypeInfo, R: TypeInfo, { layout }: Options): boolean => layout === 0 && X.dtype !== "float64" && typeof R.shape[2] === "number";

/** Layout 1 (batch first) as layout 0 between transposes. */
function timeMajor(op: OpDef, { inputs, outputs }: ExpandContext, attributes: Attributes): readonly ExpansionNode[] | undefined {
  if (attributes["layout"] !== 1) return undefined;
  const to = new Expansion(), exchanged = [1, 0, 2];
  const states = new Set([0, 5, 6]);
  const read = inputs.map((x, i) => (x !== undefined && states.has(i) ? to.add(Transpose, [x], { perm: exchanged }) : x));
  const results = outputs.map((_, i) => `result${i}`);
  to.nodes.push({ op, inputs: read, outputs: results, attributes: { ...attributes, layout: 0 } });
  results.forEach((result, i) => { to.add(Transpose, [result], { perm: i === 0 ? [2, 0, 1, 3] : exchanged }, outputs[i]); });
  return to.nodes;
}

const inputs = { X: "required", W: "required", R: "required", B: "optional", sequence_lens: "optional", initial_h: "optional" } as const;
const oneType = ["X", "W", "R", "B", "initial_h"] as const;

export const LSTM: OpDef = defineOp({
  type: "LSTM",
  domain: "",
  since: 14,
  inputs: { ...inputs, initial_c: "optional", P: "optional" }, integers: ["sequence_lens"], oneType: [[...oneType, "initial_c", "P"]],
  attributes: { ...attributes, input_forget: int(0) },
  fusionKind: "opaque",
  infer: (given, options, context) => inferRecurrent(given, options, lstmCell, context),
  evaluate: evaluateLstm,
  lowerable: ({ X, R }, options) => hasKernel(X, R, options),
  whole: (operands, options, outputs) => structureOf(operands, options, lstmCell, { linearBeforeReset: false, inputForget: options.input_forget !== 0 }, outputs),
  expand: (context, options): readonly ExpansionNode[] | undefined => timeMajor(LSTM, context, options),
  write: (node, opset) => withoutLayout(node, opset),
});

export const GRU: OpDef = defineOp({
  type: "GRU",
  domain: "",
  since: 14,
  inputs, integers: ["sequence_lens"], oneType: [oneType],
  attributes: { ...attributes, linear_before_reset: int(0) },
  fusionKind: "opaque",
  infer: (given, options, context) => inferRecurrent(given, options, gruCell, context),
  evaluate: evaluateGru,
  lowerable: ({ X, R }, options) => hasKernel(X, R, options),
  whole: (operands, options, outputs) => structureOf(operands, options, gruCell, { linearBeforeReset: options.linear_before_reset !== 0, inputForget: false }, outputs),
  expand: (context, options): readonly ExpansionNode[] | undefined => timeMajor(GRU, context, options),
  write: (node, opset) => withoutLayout(node, opset),
});

export const RNN: OpDef = defineOp({
  type: "RNN",
  domain: "",
  since: 14,
  inputs, integers: ["sequence_lens"], oneType: [oneType],
  attributes,
  fusionKind: "opaque",
  infer: (given, options, context) => inferRecurrent(given, options, rnnCell, context),
  evaluate: evaluateRnn,
  lowerable: ({ X, R }, options) => hasKernel(X, R, options),
  whole: (operands, options, outputs) => structureOf(operands, options, rnnCell, { linearBeforeReset: false, inputForget: false }, outputs),
  expand: (context, options): readonly ExpansionNode[] | undefined => timeMajor(RNN, context, options),
  write: (node, opset) => withoutLayout(node, opset),
});

/** `layout` came with opset 14. */
function withoutLayout(node: Parameters<NonNullable<OpDef["write"]>>[0], opset: number): ReturnType<NonNullable<OpDef["write"]>> {
  const { layout, ...rest } = node.attributes;
  if (opset >= 14) return node;
  return layout || opset < 7 ? undefined : { ...node, attributes: rest };
}
