/**
 * A model's bytes → the optimised graph as ONNX again, at one of three levels: rules carried out and every region a
 * model-local function, operators of the model's opset alone, or these and onnxruntime's own. The last two keep of the
 * rules only what pays there: where spelling a result takes more nodes than it saves, rules are left out; the result
 * never has more nodes than the model.
 */
import { fail } from "../core/diagnostic.ts";
import type { Graph } from "../graph/graph.ts";
import type { Region } from "../graph/region.ts";
import { decodeModel } from "../onnx/decode.ts";
import type { ModelInfo } from "../onnx/model-info.ts";
import { countOperators, totalOf, type OperatorCounts } from "../onnx/operator-counts.ts";
import type { ModelSource } from "../onnx/read.ts";
import { writeModel, writeModelWithExternalData } from "../onnx/write.ts";
import { mergeCommonSubexpressions } from "../passes/common-subexpressions.ts";
import type { Provider } from "../portable/kernels.ts";
import { onnxruntimeRules } from "../portable/onnxruntime.ts";
import { unsqueezeMask } from "../portable/unsqueeze-mask.ts";
import { applyRules } from "../rewrite/driver.ts";
import { recogniseAttention } from "../rules/index.ts";
import { approximated } from "./approximations.ts";
import { copiedNodes, fatesIn, fuseModel, workBefore, type FusedModel } from "./compile.ts";
import { countWork } from "./accounts/counts.ts";
import { withCosts } from "./accounts/missed.ts";
import type { CompileOptions } from "./options.ts";
import { hidesSize, servesOthers } from "./portable-rules.ts";
import type { Report } from "./accounts/report.ts";
import { regionTraffic } from "./accounts/traffic.ts";

export type EmitLevel = "standard" | "functions" | "ort";

export interface OptimiseOptions extends CompileOptions {
  /** With `externalWeights`: the file that holds all, or the folder for a file each. Default `weights`. */
  readonly externalLocation?: string;
  /**
   * `functions`: regions as model-local functions. `standard`: operators of the model's opset only. `ort`: those and
   * onnxruntime's own, where it has kernels for them. Default `functions`.
   */
  readonly level?: EmitLevel;
  /** With level `ort`: the execution provider of onnxruntime that is to run the model. Default `cpu`. */
  readonly emitFor?: Provider;
}
export interface Optimised {
  /** An ONNX model of the same opset, which any runtime loads. */
  readonly model: Uint8Array;
  /** Its external data, where that was asked for, by location beside the model. */
  readonly externalData: Readonly<Record<string, Uint8Array>>;
  /** Nodes by operator, of the model with its functions inlined and of the result. */
  readonly operators: { readonly before: OperatorCounts; readonly after: OperatorCounts };
  readonly report: Report;
  /** The operator type of an original node. */
  readonly typeOf: (node: string) => string | undefined;
}

/**
 * Optimises a model into portable ONNX. Fails as `compileModel` does, with OF2080 where its opset cannot say the result,
 * with OF5004 for narrowed weights, OF5007 for states, and at level `standard` with OF5202 where the model is not to be had in as few nodes as it has.
 */
export function optimiseModel(source: ModelSource, options: OptimiseOptions = {}): Optimised {
  if (options.states) fail("OF5007", "states are carried by sessions of artifacts, not by emitted ONNX", { hint: "leave out the option states, or compile to an artifact" });
  if (options.weights) fail("OF5004", "weights are narrowed in artifacts, not in emitted ONNX", { hint: "leave out the option weights, or compile to an artifact" });
  return options.level === undefined || options.level === "functions" ? functionForm(source, options) : plainForm(source, options, options.level);
}

function functionForm(source: ModelSource, options: OptimiseOptions): Optimised {
  const own = fuseModel(source, options, false, false, servesOthers("functions"), hidesSize), fused = asAttention(own, source, options, "functions") ?? own;
  const { graph: model, regions, sites } = fused;
  const file = written(model, regions, options);
  return { ...file, ...accounts(source, file, fused, { compiled: countRegions(regions), regions, sites }) };
}

function plainForm(source: ModelSource, options: OptimiseOptions, level: "standard" | "ort"): Optimised {
  const formOf = (fused: FusedModel): Optimised => {
    const own = level === "ort" && (options.enableFusion ?? true) ? inOnnxruntimesOperators(fused, options.emitFor ?? "cpu") : [];
    const file = written(fused.graph, [], options);
    return { ...file, ...accounts(source, file, fused, { compiled: nodesOf(file.model), regions: [], sites: [...fused.sites.filter((s) => s.kind === "rule"), ...own] }) };
  };
  const fused = fuseModel(source, options, false, true, servesOthers(level));
  const kept = level === "standard" ? asAttention(fused, source, options, level) : undefined, spelled = kept && formOf(kept);
  if (spelled && spelled.report.nodes.compiled <= spelled.report.nodes.original) return spelled;
  const attempts = [fused, fuseModel(source, { ...options, enableFusion: false }, false, true, servesOthers(level))].map(formOf);
  const best = attempts.reduce((a, b) => (b.report.nodes.compiled < a.report.nodes.compiled ? b : a));
  const { original, compiled } = best.report.nodes;
  if (compiled > original) fail("OF5202", `the model's opset says its ${original} nodes in ${compiled} simple ones, so there is nothing to gain`, { hint: "leave the model as it is" });
  return best;
}

/**
 * The model with its attention as it was written, where onnxruntime's optimiser makes more of that than of ours: of the
 * projections, the attention and its mask it makes one operator. Undefined where there is none that it knows.
 */
function asAttention(own: FusedModel, source: ModelSource, options: OptimiseOptions, level: "standard" | "functions"): FusedModel | undefined {
  if (!own.sites.some((s) => s.outcome === "fired" && s.name === recogniseAttention.name)) return undefined;
  const kept = fuseModel(source, options, false, level === "standard", servesOthers(level, true), level === "functions" ? hidesSize : undefined), { graph } = kept.graph;
  if (applyRules(graph, [unsqueezeMask]).rewrites === 0) return undefined;
  return { ...kept, regions: kept.regions.filter((r) => r.nodes.every((n) => n.graph.has(n))) };
}

/** Says a graph in onnxruntime's operators; the rewrites that did it. What several of them made alike is shared. */
function inOnnxruntimesOperators({ graph: { graph, ledger } }: FusedModel, provider: Provider): Report["sites"] {
  const { sites } = applyRules(graph, onnxruntimeRules(provider));
  mergeCommonSubexpressions(graph, ledger);
  return sites.filter((s) => s.outcome === "fired");
}

interface Made { readonly compiled: number; readonly regions: readonly Region[]; readonly sites: Report["sites"] }

function accounts(source: ModelSource, file: Pick<Optimised, "model">, fused: FusedModel, { compiled, regions, sites }: Made): Omit<Optimised, "model" | "externalData"> {
  const { graph: model, switches, warnings } = fused;
  const typeOf = (node: string): string | undefined => model.info.nodeTypes.get(node);
  const report: Report = {
    model: model.info.name, nodes: { original: model.info.originalNodes, compiled },
    counts: countWork({ ...workBefore(model), compiled, added: copiedNodes(model), sites, regions, typeOf }),
    sites: withCosts(sites, regions), fates: fatesIn({ ...fused, sites }), switches, approximations: approximated(sites, fused.rules), traffic: regionTraffic(model.traffic, regions), attention: [], memory: { weights: 0 }, code: { simd: 0, relaxation: 0, threads: 0 }, kernels: [], hostOperators: [],
    warnings: [...model.info.warnings, ...warnings],
  };
  const before = countOperators(decodeModel(source instanceof Uint8Array ? source : source.model), true);
  return { report, typeOf, operators: { before, after: countOperators(decodeModel(file.model), false) } };
}

const nodesOf = (model: Uint8Array): number => totalOf(countOperators(decodeModel(model), false));

function written({ graph, info }: { readonly graph: Graph; readonly info: ModelInfo }, regions: readonly Region[], { externalWeights, externalLocation, level }: OptimiseOptions): Pick<Optimised, "model" | "externalData"> {
  const form = { regions, ...(level === "ort" ? { runtime: "onnxruntime" as const } : {}) };
  if (externalWeights === undefined) return { model: writeModel(graph, info, form), externalData: {} };
  const { model, files } = writeModelWithExternalData(graph, info, { location: externalLocation ?? "weights", each: externalWeights === "each" }, form);
  return { model, externalData: files };
}

const countRegions = (regions: readonly Region[]): number =>
  regions.reduce((n, r) => n + (r.execution === "view" ? 0 : 1) + (r.branches ?? []).reduce((m, b) => m + countRegions(b), 0), 0);
