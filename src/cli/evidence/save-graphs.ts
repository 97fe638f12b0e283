/** `GE_GRAPH_SAVE_PATH`: the graph before and after, as ONNX that Netron opens, with their node counts. */
import { join } from "node:path";
import { optimise, type CompileOptions } from "../../api/index.ts";
import type { OutputFile, readModelFile } from "../files.ts";

/** `before.onnx` and `after.onnx` for a folder, with the lines that tell of them. */
export function savedGraphs(source: ReturnType<typeof readModelFile>, options: CompileOptions, folder: string): { readonly files: readonly OutputFile[]; readonly lines: readonly string[] } {
  const { model, report } = optimise(source, options);
  const before = join(folder, "before.onnx"), after = join(folder, "after.onnx");
  return {
    files: [{ path: before, content: source.model }, { path: after, content: model }],
    lines: [`[GE] Saved ${before}: ${report.nodes.original} nodes`, `[GE] Saved ${after}: ${report.nodes.compiled} nodes`],
  };
}
