/** `GE_GRAPH_SAVE_PATH`: the graph before and after, as ONNX that Netron opens, with their node counts. */
import { join } from "node:path";
import { optimise, type CompileOptions } from "../api/index.ts";
import { writeFile, type readModelFile } from "./files.ts";
import type { Console } from "./main.ts";

/** Writes `before.onnx` and `after.onnx` into a folder. */
export function saveGraphs(source: ReturnType<typeof readModelFile>, options: CompileOptions, folder: string, console: Console): void {
  const { model, report } = optimise(source, options);
  const before = join(folder, "before.onnx"), after = join(folder, "after.onnx");
  writeFile(before, source.model);
  writeFile(after, model);
  console.out(`[GE] Saved ${before}: ${report.nodes.original} nodes`);
  console.out(`[GE] Saved ${after}: ${report.nodes.compiled} nodes`);
}
