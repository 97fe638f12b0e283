/** Which node tests of the ONNX standard are not run, and why. A case that stops for any other reason fails. */
import type { DiagnosticError } from "../../src/core/diagnostic.ts";

/** Operators outside what this project covers so far. */
export const missingOperators: ReadonlySet<string> = new Set(["ImageDecoder"]);

/** Diagnostics that say a model is outside what is covered. */
export const uncovered: ReadonlyMap<string, string> = new Map([["OF2012", "sparse tensor"]]);

/** Cases whose results are random, or which the project leaves out on purpose. */
export const leftOut: Readonly<Record<string, string>> = {
  test_bernoulli: "random", test_bernoulli_double: "random", test_bernoulli_double_expanded: "random", test_bernoulli_expanded: "random",
  test_bernoulli_seed: "random", test_bernoulli_seed_expanded: "random",
  test_training_dropout: "random", test_training_dropout_default: "random", test_training_dropout_default_mask: "random", test_training_dropout_mask: "random",
  test_dft_inverse: "the expectation has float32's rounding noise, 1.9e-7 of values up to 100, where the result is 0",
  test_dft_inverse_opset19: "the expectation has float32's rounding noise, 1.9e-7 of values up to 100, where the result is 0",
};

const bitsCutOff = "bits are cut off where numbers are rounded to the nearest, by onnxruntime, PyTorch and later releases of the standard";
/** Cases of the standard's release 1.12, which Debian's libonnx-testdata has, that cannot be as they expect. */
export const wrongInRelease112: Readonly<Record<string, string>> = {
  test_adam_multiple: "the model leaves out the epsilon with which its results were computed; later releases have it right",
  test_cast_FLOAT_to_BFLOAT16: bitsCutOff,
  test_castlike_FLOAT_to_BFLOAT16: bitsCutOff, test_castlike_FLOAT_to_BFLOAT16_expanded: bitsCutOff,
};

/** Why a case is outside what is covered; undefined for any other error. */
export function outside(error: DiagnosticError): string | undefined {
  if (error.code !== "OF2004") return uncovered.get(error.code);
  const missing = error.diagnostics.map((d) => d.message.split(" ")[1] ?? "");
  return missing.every((m) => missingOperators.has(m)) ? missing.join(", ") : undefined;
}
