/** A model written for every opset that can say it, read back, and run by the reference interpreter and by onnxruntime. */
import { DiagnosticError } from "../../src/core/diagnostic.ts";
import type { Tensor } from "../../src/core/tensor.ts";
import { newestOpset, oldestOpset } from "../../src/onnx/operators.ts";
import { readModel } from "../../src/onnx/read.ts";
import { writeModel } from "../../src/onnx/write.ts";
import { operators } from "../../src/ops/index.ts";
import { interpret } from "../../src/reference/interpret.ts";
import { deviation } from "./deviation.ts";
import { modelBytes, type ModelSpec } from "./model-spec.ts";
import { runOnnxruntime } from "./onnxruntime.ts";

/** The newest opset whose operators onnxruntime's release has. */
const judged = 25;
const opsets = Array.from({ length: newestOpset - oldestOpset + 1 }, (_, i) => oldestOpset + i);
type Tensors = Readonly<Record<string, Tensor>>;

export interface History {
  /** The first opset that can say the model; undefined where none can. */
  readonly first: number | undefined;
  /** Opsets whose files onnxruntime ran. */
  readonly ran: readonly number[];
  /** What is wrong: results that differ, or a later opset that cannot say it. */
  readonly wrong: readonly string[];
}

export async function historyOf(spec: ModelSpec, feeds: Tensors): Promise<History> {
  const { graph, info } = readModel(modelBytes(spec), operators), expected = interpret(graph, feeds), wrong: string[] = [], ran: number[] = [];
  let first: number | undefined;
  for (const opset of opsets) {
    const bytes = written(() => writeModel(graph, { ...info, irVersion: 8, opsets: new Map([["", opset]]) }));
    if (!bytes) { if (first !== undefined) wrong.push(`it is said in opset ${first} but not in ${opset}`); continue; }
    first ??= opset;
    const note = (by: string, found: Tensors): void => { for (const [name, t] of Object.entries(expected)) { const d = deviation(found[name], t); if (d !== undefined) wrong.push(`opset ${opset}${by}: ${name}: ${d}`); } };
    note("", interpret(readModel(bytes, operators).graph, feeds));
    const theirs = opset > judged ? undefined : await judge(bytes, feeds);
    if (theirs) { ran.push(opset); note(", onnxruntime", theirs); }
  }
  return { first, ran, wrong };
}

function written(write: () => Uint8Array): Uint8Array | undefined {
  try { return write(); } catch (e) { if (e instanceof DiagnosticError && e.code === "OF2080") return undefined; throw e; }
}
/** What onnxruntime gives; undefined where it knows the operator but has no kernel for it. */
async function judge(bytes: Uint8Array, feeds: Tensors): Promise<Tensors | undefined> {
  try { return await runOnnxruntime(bytes, feeds); } catch (e) { if (String(e).includes("NOT_IMPLEMENTED") || String(e).includes("Could not find an implementation")) return undefined; throw e; }
}
