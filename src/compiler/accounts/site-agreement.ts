/** A site of a custom rule, evaluated: what stands there and what would replace it, on the same random inputs. */
import { present } from "../../core/assert.ts";
import { formatContainer } from "../../core/container.ts";
import { asTensor } from "../../core/datum.ts";
import { DiagnosticError, fail } from "../../core/diagnostic.ts";
import { symbol } from "../../core/dim.ts";
import { isFloat } from "../../core/dtype.ts";
import type { EvaluateAttribute } from "../../core/evaluate.ts";
import { fromNumbers, sizeOf, toNumbers, type Tensor } from "../../core/tensor.ts";
import type { Node, Value } from "../../graph/graph.ts";
import { inferTypes } from "../../graph/infer-node.ts";
import { evaluationOf, type Attributes, type OpDef } from "../../graph/op.ts";
import { refuse, type Verdict } from "../../rewrite/rule.ts";

/**
 * Evaluates both sides: constants as they are, the other inputs random, symbolic sizes 2. Refuses with `not-equal` where
 * they differ by more than `tolerance`, a share of the largest element.
 */
export function agrees(root: Node, inputs: ReadonlyMap<string, Value>, replacement: (inputs: ReadonlyMap<string, Tensor>) => Tensor, tolerance: number): Verdict {
  const values = new Map<Value, Tensor>();
  const feeds = new Map<string, Tensor>();
  [...inputs].forEach(([name, v], i) => {
    const t = v.constant ?? v.type.constant ?? randomTensor(v, i + 1);
    values.set(v, t);
    feeds.set(name, t);
  });
  const original = (v: Value): Tensor => {
    const known = values.get(v) ?? v.constant;
    if (known) return known;
    const { node, index } = present(v.producer, `producer of ${v.name}`);
    if (v.type.container) fail("OF3017", `'${v.name}' is not a tensor but a ${formatContainer(v.type.container)}`);
    return present(evaluateNode(node.op, node.inputs.map((x) => x && original(x)), node.attributes, node.outputs.length)[index], `result of ${node.op.type}`);
  };
  const no = (reason: string): Verdict => refuse("not-equal", reason, "correct the FusionGraph");
  try {
    const expected = original(present(root.outputs[0], "output")), actual = replacement(feeds);
    if (actual.dtype !== expected.dtype || actual.dims.join() !== expected.dims.join()) return no(`the replacement gives ${actual.dtype} [${actual.dims.join(", ")}], the original ${expected.dtype} [${expected.dims.join(", ")}]`);
    const difference = differenceOf(actual, expected);
    return difference <= tolerance || no(`the replacement differs by ${difference.toExponential(2)} of the largest element on random inputs`);
  } catch (e) {
    if (e instanceof DiagnosticError) return no(e.message);
    throw e;
  }
}

/** An operator's results on tensors, by its naive evaluation. Fails as inference does, and with OF4023 where there is no evaluation on tensors. */
export function evaluateNode(op: OpDef, inputs: readonly (Tensor | undefined)[], attributes: Attributes, outputCount: number): Tensor[] {
  const run = op.containers ? undefined : evaluationOf(op);
  if (!run) return fail("OF4023", `${op.type} cannot be evaluated alone`, { hint: "leave it out of the rule" });
  inferTypes(op, inputs.map((t) => t && { dtype: t.dtype, shape: t.dims, constant: t }), attributes, outputCount, { place: { node: op.type }, fresh: symbol });
  const filled: Record<string, EvaluateAttribute | undefined> = {};
  for (const [key, spec] of Object.entries(op.attributes)) filled[key] = (attributes[key] ?? spec.default) as EvaluateAttribute | undefined;
  return run(inputs, filled, { outputCount }).map((d) => asTensor(present(d, `result of ${op.type}`)));
}

function randomTensor(v: Value, seed: number): Tensor {
  const { dtype, shape } = v.type;
  if (dtype === "string") fail("OF3013", `'${v.name}' is of strings`, { hint: "rules replace computations on numbers" });
  const dims = shape.map((d) => (typeof d === "number" ? d : 2));
  let state = seed * 7919;
  const values = Array.from({ length: sizeOf(dims) }, () => {
    state = (state * 48271) % 2147483647;
    return isFloat(dtype) ? state / 2147483647 - 0.5 : state % 3;
  });
  return fromNumbers(dtype, dims, values);
}

/** Largest difference as a share of the largest element. */
function differenceOf(a: Tensor, b: Tensor): number {
  const x = toNumbers(a), y = toNumbers(b);
  let most = 0, largest = 0;
  for (let i = 0; i < y.length; i++) {
    const d = Math.abs((x[i] ?? NaN) - (y[i] ?? NaN));
    if (Number.isNaN(d) && !Object.is(x[i], y[i])) return Infinity;
    most = Math.max(most, d || 0);
    largest = Math.max(largest, Math.abs(y[i] ?? 0));
  }
  return most === 0 ? 0 : most / largest;
}
