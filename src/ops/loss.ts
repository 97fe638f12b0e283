/** Losses: NegativeLogLikelihoodLoss, and SoftmaxCrossEntropyLoss as LogSoftmax and that. */
import { formatShape, type Dim } from "../core/dim.ts";
import * as evaluate from "../evaluate/loss.ts";
import { defineOp, optional, string, type AttributeSpec, type InferContext, type TypeInfo } from "../graph/op.ts";
import { cast, constant, div, eq, lift, mul, neg, reduce, select, type Expr } from "../kernel/expr.ts";
import { agreeSizes } from "./agree-sizes.ts";
import { checkType } from "./element-wise.ts";
import { Expansion } from "./expansion.ts";
import { LogSoftmax } from "./softmax.ts";

const attributes = { ignore_index: optional("int"), reduction: string("mean") } as const satisfies Record<string, AttributeSpec>;

function inferLoss(x: TypeInfo, target: TypeInfo, weight: TypeInfo | undefined, reduction: string, context: InferContext): TypeInfo {
  checkType(context, x, "input", "float");
  checkType(context, target, "target", "integer");
  if (!["none", "mean", "sum"].includes(reduction)) context.fail("OF3012", `unknown reduction '${reduction}'`, "it is none, mean or sum");
  if (x.shape.length < 2 || target.shape.length !== x.shape.length - 1) context.fail("OF3010", `target ${formatShape(target.shape)} does not fit scores ${formatShape(x.shape)}`);
  target.shape.forEach((d, i) => {
    const own: Dim = x.shape[i === 0 ? 0 : i + 1] ?? d;
    if (typeof d === "number" && typeof own === "number" && d !== own) context.fail("OF3011", `target ${formatShape(target.shape)} does not fit scores ${formatShape(x.shape)}`);
    context.agree?.(d, own, "equal");
  });
  if (weight && weight.shape.length !== 1) context.fail("OF3010", `needs a weight for each class, got ${formatShape(weight.shape)}`);
  agreeSizes(context, "weight", weight, x.shape.slice(1, 2));
  return { dtype: x.dtype, shape: reduction === "none" ? target.shape : [] };
}

export const NegativeLogLikelihoodLoss = defineOp({
  type: "NegativeLogLikelihoodLoss", domain: "", since: 13, evaluate: evaluate.NegativeLogLikelihoodLoss,
  inputs: { input: "required", target: "required", weight: "optional" }, integers: ["target"], oneType: [["input", "weight"]],
  attributes, fusionKind: "reduction",
  infer: ({ input, target, weight }, { reduction }, context) => [inferLoss(input, target, weight, reduction, context)],
  lower: ({ input, target, weight }, { ignore_index, reduction }) => {
    const label = (at: readonly Expr[]): Expr => target.at(...at);
    const ignored = (at: readonly Expr[]): Expr | undefined => { const t = label(at); return ignore_index === undefined ? undefined : eq(t, lift(ignore_index, t.type)); };
    const orZero = (at: readonly Expr[], value: Expr): Expr => { const skip = ignored(at); return skip ? select(skip, constant(0, value.type), value) : value; };
    const share = (at: readonly Expr[]): Expr | undefined => weight?.at(cast(label(at), "i32"));
    const loss = (at: readonly Expr[]): Expr => {
      const [n, ...place] = at, log = neg(input.at(...(n ? [n] : []), cast(label(at), "i32"), ...place)), w = share(at);
      return orZero(at, w ? mul(log, w) : log);
    };
    if (reduction === "none") return [(...at) => loss(at)];
    return [() => {
      const total = reduce("add", target.shape, (...at) => loss(at));
      if (reduction === "sum") return total;
      return div(total, reduce("add", target.shape, (...at) => orZero(at, share(at) ?? constant(1, total.type))));
    }];
  },
});

export const SoftmaxCrossEntropyLoss = defineOp({
  type: "SoftmaxCrossEntropyLoss", domain: "", since: 13, evaluate: evaluate.SoftmaxCrossEntropyLoss,
  inputs: { scores: "required", labels: "required", weights: "optional" }, integers: ["labels"], oneType: [["scores", "weights"]],
  attributes, fusionKind: "opaque",
  infer: ({ scores, labels, weights }, { reduction }, context) => [inferLoss(scores, labels, weights, reduction, context), { dtype: scores.dtype, shape: scores.shape }],
  expand: ({ inputs: [scores, labels, weights], outputs }, options) => {
    const to = new Expansion();
    const logs = to.add(LogSoftmax, [scores], { axis: 1 }, outputs[1]);
    to.add(NegativeLogLikelihoodLoss, [logs, labels, weights], options, outputs[0]);
    return to.nodes;
  },
});
