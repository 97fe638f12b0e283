/** What a compilation may be asked, and its normal form, which artifacts record. */
import type { DType } from "../core/dtype.ts";
import type { Rule } from "../rewrite/rule.ts";
import type { Choices } from "../schedule/choices.ts";
import type { StageObserver } from "./stages.ts";
import type { FusionSwitches } from "./switches.ts";

export interface CompileOptions {
  /** The machine code to make. Default and, so far, only `wasm`. */
  readonly target?: "wasm";
  /** False builds the same program without rules and fused regions. Default true. */
  readonly enableFusion?: boolean;
  /** Shapes of inputs, by name. Inputs that are left out, and sizes that are undefined, stay as the model declares them, symbolic ones included. A sequence's or an optional's is that of the tensors in it. */
  readonly inputShapes?: Readonly<Record<string, readonly (number | undefined)[]>>;
  /** Sizes of the model's named dimensions. */
  readonly dims?: Readonly<Record<string, number>>;
  /** Makes initializers that are also inputs constant. Default false. */
  readonly freezeInitializers?: boolean;
  readonly fusionSwitches?: FusionSwitches;
  /** Custom rules as JSON text or value: the linear form or GE's graph form. */
  readonly customRules?: unknown;
  /** Custom rules made by `defineRule`; they come before the built-in ones. Artifacts record their names. */
  readonly rules?: readonly Rule[];
  /** Allows rewrites that are right only for finite values, or approximate: all, or the rules named. Default false. */
  readonly allowApproximate?: boolean | readonly string[];
  /** `must_keep_origin_dtype`: nothing but exact and reassociating rewrites, whatever `allowApproximate` says elsewhere. */
  readonly precisionMode?: "must_keep_origin_dtype";
  /** Nodes whose 16-bit float results are rounded to their type also inside fusions: original names, or `OpType::Conv`. */
  readonly keepDtype?: readonly string[];
  /** Lets storages share memory when they are not in use together. Default true. */
  readonly reuseMemory?: boolean;
  /** Lets large 3x3 convolutions be computed by F(4x4,3x3), whose rounding errors are about ten times the direct form's. Default true. */
  readonly winograd?: boolean;
  /** Lets the runtime see every kernel call on its own, so that `onStep` times each. Default false: calls in a row are one. */
  readonly separateSteps?: boolean;
  /** Keeps weights in files beside the artifact: one for `each`, or all `combined`. Default: inside. */
  readonly externalWeights?: "each" | "combined";
  /** Tiles, strips and algorithms by kernel, as `onnxfuse tune` has measured them; kernels that are not named have the defaults. */
  readonly choices?: Choices;
  /** Holds the weights of contractions in float16, or in int8 with a scale for every output channel. Default: as the model does. Nodes in `keepDtype` keep theirs. */
  readonly weights?: "f16" | "int8";
  /** Leaves the fusion report out of the artifact. Default false. */
  readonly strip?: boolean;
  /** Names of the values to give as outputs, instead of the model's. */
  readonly outputs?: readonly string[];
  /** The element type of all outputs, or of those named; they are cast. */
  readonly outputTypes?: DType | Readonly<Record<string, DType>>;
  /**
   * Inputs that a session carries itself, each with the output that is its next value, such as `{ "past.*": "present.*" }`:
   * they need not be fed, and those outputs are given only when asked for. A `*` stands for the same text in both.
   */
  readonly states?: Readonly<Record<string, string>>;
  /** The machine the caller has in mind: recorded in the artifact, of no other effect. */
  readonly socVersion?: string;
  /** Told of each representation as it is reached; for dumps and debugging. It is not recorded in the artifact. */
  readonly onStage?: StageObserver;
  /** At most so many rewrites; to find by bisection the one that changes a result. */
  readonly fuel?: number;
  /** Rewrites not to do: those that verification found to change a result. */
  readonly skip?: readonly SkippedRewrite[];
}

/** A rule at the node it would have replaced. */
export interface SkippedRewrite {
  readonly rule: string;
  readonly at: string;
  /** What it did, for the report; artifacts do not record it. */
  readonly reason?: string;
}

/** The options as an artifact records them: only what differs from the defaults, keys in order. */
export function normalOptions(options: CompileOptions): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  const sorted = (record: Readonly<Record<string, unknown>>): Record<string, unknown> => Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
  const { allowApproximate: loose = false } = options;
  if (loose === true || (loose !== false && loose.length)) out["allowApproximate"] = loose === true ? true : [...loose].sort();
  if (options.choices && Object.keys(options.choices).length) out["choices"] = Object.fromEntries(Object.entries(sorted(options.choices)).map(([k, c]) => [k, sorted(c as Record<string, unknown>)]));
  if (options.customRules !== undefined) out["customRules"] = typeof options.customRules === "string" ? JSON.parse(options.customRules) : options.customRules;
  if (options.dims && Object.keys(options.dims).length) out["dims"] = sorted(options.dims);
  if (options.enableFusion === false) out["enableFusion"] = false;
  if (options.externalWeights) out["externalWeights"] = options.externalWeights;
  if (options.freezeInitializers) out["freezeInitializers"] = true;
  if (options.fuel !== undefined) out["fuel"] = options.fuel;
  const { named = {}, ...all } = options.fusionSwitches ?? {};
  if (Object.keys(all).length + Object.keys(named).length) out["fusionSwitches"] = { ...all, named: sorted(named) };
  if (options.inputShapes && Object.keys(options.inputShapes).length) out["inputShapes"] = sorted(options.inputShapes);
  if (options.keepDtype?.length) out["keepDtype"] = [...options.keepDtype].sort();
  if (options.outputs) out["outputs"] = options.outputs;
  if (options.outputTypes) out["outputTypes"] = typeof options.outputTypes === "string" ? options.outputTypes : sorted(options.outputTypes);
  if (options.precisionMode) out["precisionMode"] = options.precisionMode;
  if (options.reuseMemory === false) out["reuseMemory"] = false;
  if (options.rules?.length) out["rules"] = options.rules.map((r) => r.name);
  if (options.separateSteps) out["separateSteps"] = true;
  if (options.skip?.length) out["skip"] = options.skip.map(({ rule, at }) => ({ rule, at }));
  if (options.socVersion !== undefined) out["socVersion"] = options.socVersion;
  if (options.states && Object.keys(options.states).length) out["states"] = sorted(options.states);
  if (options.strip) out["strip"] = true;
  if (options.weights) out["weights"] = options.weights;
  if (options.winograd === false) out["winograd"] = false;
  out["target"] = options.target ?? "wasm";
  return out;
}
