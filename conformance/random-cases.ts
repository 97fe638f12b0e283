/**
 * The standard's cases whose outputs are random: what another generator draws cannot be compared, so dtype, dims, range,
 * and repeatability where the node has a seed are checked. They count as not passed all the same.
 */
import { toNumbers, type Tensor } from "../src/core/tensor.ts";
import { nodeCaseMismatch } from "../test/conformance/tolerance.ts";

type Tensors = Readonly<Record<string, Tensor>>;

const bernoulli = /^test_bernoulli/, dropout = /^test_training_dropout(?!.*zero_ratio)/;
export const randomPassed = "random results: dtype, dims, range and repeatability are right";

/** Why a case counts as not passed: that it is random, or what is wrong. Undefined where the case is not random. */
export async function randomMismatch(name: string, run: () => Promise<Tensors>, feeds: Tensors, expected: Tensors): Promise<string | undefined> {
  const kind = bernoulli.test(name) ? "bernoulli" : dropout.test(name) ? "dropout" : undefined;
  if (kind === undefined) return undefined;
  const first = await run(), second = await run();
  for (const [output, e] of Object.entries(expected)) {
    const t = first[output];
    if (!t || t.dtype !== e.dtype || t.dims.join() !== e.dims.join()) return `${output}: wrong type or dims`;
    if (/seed|dropout/.test(name) && nodeCaseMismatch(second[output], t) !== undefined) return `${output}: two runs with one seed differ`;
  }
  return (kind === "bernoulli" ? bernoulliRange(first) : dropoutRange(first, feeds)) ?? randomPassed;
}

function bernoulliRange(results: Tensors): string | undefined {
  const outside = Object.values(results).some((t) => Array.from(toNumbers(t)).some((v) => v !== 0 && v !== 1));
  return outside ? "a result is neither 0 nor 1" : undefined;
}

/** Every element is 0, or the input over 1 − ratio. */
function dropoutRange(results: Tensors, feeds: Tensors): string | undefined {
  const x = feeds["x"], y = results["y"];
  if (!x || !y) return "no such input or output";
  const ratio = feeds["r"] ? toNumbers(feeds["r"])[0] ?? 0.5 : 0.5, data = toNumbers(x);
  const wrong = Array.from(toNumbers(y)).some((v, i) => v !== 0 && !(Math.abs(v - (data[i] ?? 0) / (1 - ratio)) <= 1e-5 * Math.abs(v)));
  return wrong ? "an element is neither 0 nor scaled" : undefined;
}
