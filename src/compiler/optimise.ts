/** A model's bytes → the optimised graph as ONNX again: rules carried out, regions as model-local functions. */
import type { Graph } from "../graph/graph.ts";
import type { ModelInfo } from "../onnx/model-info.ts";
import { writeModel, writeModelWithExternalData } from "../onnx/write.ts";
import type { ModelSource } from "../onnx/read.ts";
import type { Region } from "../graph/region.ts";
import { countWork } from "./counts.ts";
import { approximated } from "./approximations.ts";
import { copiedNodes, fatesIn, fuseModel, workBefore } from "./compile.ts";
import { withCosts } from "./missed.ts";
import type { CompileOptions } from "./options.ts";
import type { Report } from "./report.ts";
import { regionTraffic } from "./traffic.ts";

export interface OptimiseOptions extends CompileOptions {
  /** With `externalWeights`: the file that holds all, or the folder for a file each. Default `weights`. */
  readonly externalLocation?: string;
}
export interface Optimised {
  /** An ONNX model of the same opset, which any runtime loads. */
  readonly model: Uint8Array;
  /** Its external data, where that was asked for, by location beside the model. */
  readonly externalData: Readonly<Record<string, Uint8Array>>;
  readonly report: Report;
  /** The operator type of an original node. */
  readonly typeOf: (node: string) => string | undefined;
}

/** Optimises a model into portable ONNX. Fails as `compileModel` does, and with OF2080 where its opset cannot say the result. */
export function optimiseModel(source: ModelSource, options: OptimiseOptions = {}): Optimised {
  const fused = fuseModel(source, options, false);
  const { graph: model, regions, sites, warnings, switches } = fused;
  const typeOf = (node: string): string | undefined => model.info.nodeTypes.get(node);
  const compiled = countRegions(regions);
  const original = model.info.originalNodes;
  const report: Report = {
    model: model.info.name, nodes: { original, compiled },
    counts: countWork({ ...workBefore(model), compiled, added: copiedNodes(model), sites, regions, typeOf }),
    sites: withCosts(sites, regions), fates: fatesIn(fused), switches, approximations: approximated(sites), traffic: regionTraffic(model.traffic, regions), attention: [], memory: { weights: 0 }, code: { simd: 0, relaxation: 0 }, hostOperators: [],
    warnings: [...model.info.warnings, ...warnings],
  };
  return { ...written(model, regions, options), report, typeOf };
}

function written({ graph, info }: { readonly graph: Graph; readonly info: ModelInfo }, regions: readonly Region[], { externalWeights, externalLocation }: OptimiseOptions): Pick<Optimised, "model" | "externalData"> {
  if (externalWeights === undefined) return { model: writeModel(graph, info, { regions }), externalData: {} };
  const { model, files } = writeModelWithExternalData(graph, info, { location: externalLocation ?? "weights", each: externalWeights === "each" }, { regions });
  return { model, externalData: files };
}

const countRegions = (regions: readonly Region[]): number =>
  regions.reduce((n, r) => n + (r.execution === "view" ? 0 : 1) + (r.branches ?? []).reduce((m, b) => m + countRegions(b), 0), 0);
