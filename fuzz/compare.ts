/**
 * One generated case run by onnxruntime and by us: what differs, if anything. onnxruntime judges the reference
 * interpreter; that judges what is compiled. Where onnxruntime has no kernel for the types, only the latter counts.
 */
import { DiagnosticError } from "../src/core/diagnostic.ts";
import { dtypes } from "../src/core/dtype.ts";
import type { Tensor } from "../src/core/tensor.ts";
import { modelBytes } from "../test/support/model-spec.ts";
import { runOnnxruntime } from "../test/support/onnxruntime.ts";
import { differenceOf, runWay, specOf, type Way } from "../test/support/operator-oracle.ts";
import type { FuzzCase, Tolerance } from "./fuzz-case.ts";

export interface Verdict {
  readonly kind: "agrees" | "differs" | "known to differ" | "unjudged" | "refused by both";
  readonly message?: string;
}
type Tensors = Readonly<Record<string, Tensor>>;
export type Outcome = { readonly results: Tensors } | { readonly error: string; readonly isDiagnostic: boolean };

/** Results, or why there are none. */
export async function attempt(run: () => Promise<Tensors>): Promise<Outcome> {
  try {
    return { results: await run() };
  } catch (error) {
    return { error: error instanceof Error ? error.message.split("\n")[0] ?? "" : String(error), isDiagnostic: error instanceof DiagnosticError };
  }
}

/** Wider types are held to more, narrower to less. */
function widened({ relative, absolute }: Tolerance, t: Tensor): Tolerance {
  const by = { float64: 1e-6, float16: 256, bfloat16: 2048 }[t.dtype as string] ?? 1;
  return { relative: relative * by, absolute: absolute * by };
}
function mismatch(actual: Tensors, expected: Tensors, tolerance: Tolerance): string | undefined {
  for (const [name, t] of Object.entries(expected)) {
    if (!Object.hasOwn(dtypes, t.dtype)) return undefined;
    const { relative, absolute } = widened(tolerance, t), found = differenceOf(actual[name], t, relative, absolute);
    if (found !== undefined) return `${name}: ${found}`;
  }
  return undefined;
}

/** What onnxruntime says where it has no kernel for the types. */
export const lacksKernel = /NOT_IMPLEMENTED|Could not find an implementation|is invalid|not supported|Unsupported/i;

export async function judge(c: FuzzCase): Promise<Verdict> {
  const { spec, feeds } = specOf(c), bytes = modelBytes(spec);
  const theirs = await attempt(() => runOnnxruntime(bytes, feeds)), reference = await attempt(() => runWay(bytes, feeds, "reference"));
  if ("error" in reference && !reference.isDiagnostic) return { kind: "differs", message: `reference broke: ${reference.error}` };
  for (const way of ["unfused", "fused"] as const satisfies readonly Way[]) {
    const compiled = await attempt(() => runWay(bytes, feeds, way));
    if ("error" in compiled) {
      if (!compiled.isDiagnostic) return { kind: "differs", message: `${way} broke: ${compiled.error}` };
      if (!("error" in reference)) return { kind: "differs", message: `${way} refused: ${compiled.error}` };
    } else {
      if ("error" in reference) return { kind: "differs", message: `reference refused, ${way} ran: ${reference.error}` };
      const found = mismatch(compiled.results, reference.results, c.tolerance);
      if (found !== undefined) return { kind: "differs", message: `${way} against reference: ${found}` };
    }
  }
  if ("error" in theirs) return "error" in reference ? { kind: "refused by both" } : { kind: "unjudged", message: `${lacksKernel.test(theirs.error) ? "" : "onnxruntime: "}${theirs.error}` };
  if ("error" in reference) return { kind: "differs", message: `refused: ${reference.error}` };
  const found = mismatch(reference.results, theirs.results, c.tolerance);
  return found === undefined ? { kind: "agrees" } : { kind: "differs", message: `reference against onnxruntime: ${found}` };
}
