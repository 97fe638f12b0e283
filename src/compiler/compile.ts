/** A model's bytes → an artifact and the report of what was done. Uses nothing but what it is given. */
import { checksum } from "../artifact/checksum.ts";
import { allSteps } from "../kernel/segments.ts";
import type { CheckJson } from "../artifact/manifest.ts";
import { readModel, type ModelSource, type ReadModel } from "../onnx/read.ts";
import { operators } from "../ops/index.ts";
import { countNodes, Ledger } from "../passes/ledger.ts";
import { guardValues } from "../passes/guard-values.ts";
import { placeStates } from "../passes/place-states.ts";
import { simplify } from "../passes/simplify.ts";
import { attentionBlock } from "../schedule/contractions/attention-operands.ts";
import { rules as builtInRules } from "../rules/index.ts";
import type { Rule } from "../rewrite/rule.ts";
import { approximated, approximations } from "./approximations.ts";
import { checkRules } from "./check-rules.ts";
import { findChains, findKernels, nameChains, type ChainSite } from "./custom-rules/chains.ts";
import { countAdded, countSteps, countWork, type CountedWork } from "./accounts/counts.ts";
import { readCustomRules } from "./custom-rules/custom-rules.ts";
import type { ChainRule, GraphRule } from "./custom-rules/custom-rule.ts";
import { fatesOf } from "./accounts/fates.ts";
import { fuse, type Fused, type FuseOptions } from "./fuse.ts";
import { graphRuleOf } from "./custom-rules/graph-rules.ts";
import { KeptDtypes } from "./kept-dtypes.ts";
import { withCosts } from "./accounts/missed.ts";
import { normalOptions, type CompileOptions } from "./options.ts";
import { castOutputs, selectOutputs } from "./outputs.ts";
import { packageProgram, type Packaged } from "./package.ts";
import { build, type BuildOptions } from "./pipeline.ts";
import { sizeChecks } from "./size-checks.ts";
import type { Report } from "./accounts/report.ts";
import { linkStates } from "./states.ts";
import { Switches } from "./switches.ts";
import { regionTraffic, snapshotTraffic, type TrafficSnapshot } from "./accounts/traffic.ts";
import { version } from "./version.ts";

/** `artifact` is an `.om` file; `externalData` the files of its weights, where these are to lie outside. */
export interface Compiled extends Packaged {
  readonly report: Report;
  /** The operator type of an original node. */
  readonly typeOf: (node: string) => string | undefined;
}

/** A model read and simplified, with what is noted on the way. */
interface Prepared extends ReadModel {
  readonly ledger: Ledger;
  /** Nodes of the graph as it was read, when Constants had become constants and branches that cannot be taken were gone. */
  readonly nodesRead: number;
  readonly chains: readonly ChainSite[];
  readonly traffic: TrafficSnapshot;
}

/**
 * Compiles a model. Fails with OF2xxx for a model that cannot be read, OF3xxx for one that is wrong, OF4xxx for wrong
 * rules or switches, OF5xxx for what cannot be compiled.
 */
export function compileModel(source: ModelSource, options: CompileOptions = {}): Compiled {
  const fused = fuseModel(source, options, true);
  const { graph: model, regions } = fused;
  const typeOf = (node: string): string | undefined => model.info.nodeTypes.get(node);
  const { program, plan, code, attention, work, narrowed } = build(model.graph, regions, { ...narrowing(options, typeOf), ...(options.choices ? { choices: options.choices } : {}), reuse: options.reuseMemory ?? true, winograd: options.winograd ?? true, separateSteps: options.separateSteps ?? false, ...observed(options) });
  const bytes = source instanceof Uint8Array ? source : source.model;
  const hosts = [...allSteps(program.steps)].filter((s) => s.kind === "host");
  const compiled = countSteps(program);
  const report: Report = {
    model: model.info.name,
    nodes: { original: model.info.originalNodes, compiled },
    counts: countWork({ ...workBefore(model), sites: fused.sites, regions, compiled, added: countAdded(program) + copiedNodes(model), typeOf }),
    sites: withCosts(fused.sites, regions), fates: fatesIn(fused), switches: fused.switches, approximations: approximated(fused.sites, fused.rules), traffic: regionTraffic(model.traffic, regions), attention: attention.map((nodes) => ({ nodes, ...attentionBlock })),
    memory: { weights: plan.weightBytes, ...(plan.peak ? { arena: plan.peak.bytes, lowerBound: plan.peak.lowerBound } : {}) },
    code: { simd: code.code.length, relaxation: code.relaxation.length, threads: code.threads.length },
    kernels: work, ...(options.weights ? { narrowed } : {}),
    hostOperators: hosts.map((h) => ({ op: h.op, nodes: h.origin.nodes })),
    warnings: [...model.info.warnings, ...fused.warnings],
  };
  const info = { tool: `onnxfuse ${version}`, options: normalOptions(options), model: model.info.name, metadata: model.info.metadata, modelChecksum: checksum(bytes), ...checksOf(model) };
  const packaging = { separateSteps: options.separateSteps ?? false, ...(options.strip ? {} : { report }), ...(options.externalWeights ? { externalWeights: options.externalWeights } : {}) };
  return { ...packageProgram(program, plan, { code: code.code, relaxation: code.relaxation, threads: code.threads }, info, packaging), report, typeOf };
}

/** What became of the model's nodes. */
export const fatesIn = ({ graph: { info, ledger }, sites, regions }: FusedModel): Report["fates"] => fatesOf({ nodeTypes: info.nodeTypes, departures: ledger.departures, sites, regions });

const observed = ({ onStage }: CompileOptions): Pick<CompileOptions, "onStage"> => (onStage ? { onStage } : {});

/** How weights are narrowed, where that is asked for. */
function narrowing({ weights: form, keepDtype = [] }: CompileOptions, typeOf: (node: string) => string | undefined): Pick<BuildOptions, "weights"> {
  if (!form) return {};
  const kept = new Set(keepDtype);
  return { weights: { form, keeps: (nodes) => nodes.some((n) => kept.has(n) || kept.has(`OpType::${typeOf(n) ?? ""}`)) } };
}

/** What was done before fusion, for `countWork`. */
export function workBefore(model: Prepared): Pick<CountedWork, "originalNodes" | "nodesRead" | "constants" | "ledger"> {
  const constants = [...model.info.nodeTypes.values()].filter((type) => type === "Constant").length;
  return { originalNodes: model.info.originalNodes, nodesRead: model.nodesRead, constants, ledger: model.ledger.entries };
}

/** Nodes that the graph has because it holds the model more than once. */
export const copiedNodes = ({ info, nodesRead }: Prepared): number => (info.variants > 1 ? Math.max(0, nodesRead - info.originalNodes) : 0);

/** What `fuseModel` gives. */
export interface FusedModel extends Fused<Prepared> { readonly warnings: Report["warnings"]; readonly switches: Report["switches"]; readonly rules: readonly Rule[] }

/** The rules of a compilation: those given first, so that they see the graph before the built-in ones change it. */
function rulesOf({ rules = [] }: CompileOptions, graphRules: readonly GraphRule[], builtIn: readonly Rule[]): readonly Rule[] {
  return [...graphRules.flatMap((r) => graphRuleOf(r) ?? []), ...checkRules(rules), ...builtIn];
}

/** Reads, simplifies and fuses, by those of the built-in rules that serve; `apart` as for `fuse`, `symbolic` and `keepComposites` as for `simplify`. */
export function fuseModel(source: ModelSource, options: CompileOptions, symbolic: boolean, keepComposites = false, serves: (rule: Rule) => boolean = () => true, apart?: FuseOptions["apart"]): FusedModel {
  const fusion = options.enableFusion ?? true;
  const custom = options.customRules === undefined ? [] : readCustomRules(options.customRules);
  const chainRules = custom.filter((r): r is ChainRule => r.kind === "chain");
  const graphRules = custom.filter((r): r is GraphRule => r.kind === "graph");
  const rules = rulesOf(options, graphRules, builtInRules.filter(serves));
  const switches = new Switches(options.fusionSwitches ?? {});
  const foreign = switches.check([...rules, ...builtInRules], operators, custom.flatMap((r) => [r.name, ...(r.kind === "chain" ? [r.outputOp] : r.becomes.kind === "kernel" ? [r.becomes.outputOp] : [])]));
  let nodeTypes: ReadonlyMap<string, string> = new Map();
  const read = (): Prepared => {
    const model = readModel(source, operators, {
      freezeInitializers: options.freezeInitializers ?? false,
      ...(options.dims ? { dims: options.dims } : {}), ...(options.inputShapes ? { inputShapes: options.inputShapes } : {}),
    });
    if (options.outputs) selectOutputs(model.graph, options.outputs);
    if (options.outputTypes) castOutputs(model.graph, options.outputTypes);
    if (options.states) linkStates(model.graph, options.states);
    nodeTypes = model.info.nodeTypes;
    const chains = fusion ? [...findChains(model.graph, chainRules), ...findKernels(model.graph, graphRules)] : [];
    options.onStage?.({ name: "read", graph: model.graph, info: model.info });
    const ledger = new Ledger(), nodesRead = countNodes(model.graph);
    simplify(model.graph, ledger, { symbolic, keepComposites, keepQuantized: fusion });
    options.onStage?.({ name: "simplified", graph: model.graph, info: model.info });
    return { ...model, ledger, nodesRead, chains, traffic: snapshotTraffic(model.graph) };
  };
  const settle = (m: Prepared): void => {
    simplify(m.graph, m.ledger, { symbolic, keepComposites });
    if (!symbolic) return;
    guardValues(m.graph);
    placeStates(m.graph);
  };
  const fused = fuse(read, settle, {
    ...(apart ? { apart } : {}), rules, switches, fusion, mayApproximate: approximations(options, rules),
    ...(options.fuel === undefined ? {} : { fuel: options.fuel }), skip: options.skip ?? [], keepDtype: options.keepDtype ?? [], typeOf: (n) => nodeTypes.get(n),
  });
  const { graph, info } = fused.graph;
  options.onStage?.({ name: "rewritten", graph, info });
  options.onStage?.({ name: "partitioned", regions: fused.regions, graph, info });
  const named = nameChains(fused.graph.chains, fused.regions, fused.sites);
  const strangers = new KeptDtypes(options.keepDtype ?? [], (n) => nodeTypes.get(n)).unmatched(nodeTypes.keys());
  const warnings = [
    ...foreign,
    ...switches.effects.filter((e) => e.sites.length === 0 && !foreign.some((w) => w.message.includes(`'${e.name}'`))).map(({ name }) => ({ code: "OF4012", message: `the fusion switch '${name}' concerns nothing in this model` })),
    ...strangers.map((name) => ({ code: "OF4013", message: `keep_dtype names '${name}', which the model does not have` })),
  ];
  return { ...fused, ...named, warnings, switches: switches.effects, rules };
}

/** What sizes must agree, by what the reader noted and what came out of branches that are always taken. */
function checksOf({ graph, info }: Prepared): { readonly checks?: readonly CheckJson[] } {
  const checks = sizeChecks([...info.agreements, ...graph.agreements]);
  return checks.length ? { checks } : {};
}
