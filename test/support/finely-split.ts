/** Artifacts in which every parallel loop is split for threads, however small. */
import { fuseModel } from "../../src/compiler/compile.ts";
import type { CompileOptions } from "../../src/compiler/options.ts";
import { packageProgram } from "../../src/compiler/package.ts";
import { build } from "../../src/compiler/pipeline.ts";

export function finelySplit(bytes: Uint8Array, options: CompileOptions = {}): Uint8Array {
  const { graph, regions } = fuseModel(bytes, options, true);
  const { program, plan, code } = build(graph.graph, regions, { threadWork: 0 });
  return packageProgram(program, plan, { code: code.code, relaxation: code.relaxation, threads: code.threads }, { tool: "test", options: {}, model: "m", metadata: {}, modelChecksum: 0 }).artifact;
}
