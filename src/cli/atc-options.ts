/**
 * The options of `atc`: those that work, those that a later release brings, and those of Huawei's atc that have no
 * meaning here, each with what to do instead.
 */

export interface OptionSpec {
  readonly name: string;
  /** Shown in the help; `<…>` marks a value. */
  readonly value: string;
  readonly doc: string;
  /** Accepted values, when there are few. */
  readonly choices?: readonly string[];
}

export const atcOptions: readonly OptionSpec[] = [
  { name: "model", value: "<file>", doc: "the ONNX model" },
  { name: "output", value: "<path>", doc: "where to write; .om (or .onnx) is added" },
  { name: "om", value: "<file>", doc: "the artifact that --mode=1 and --mode=6 read" },
  { name: "json", value: "<file>", doc: "where --mode=1 writes" },
  { name: "dump_mode", value: "<number>", doc: "1 adds the inferred shapes to the JSON of --mode=1", choices: ["0", "1"] },
  { name: "framework", value: "<number>", doc: "5 is ONNX", choices: ["5"] },
  { name: "mode", value: "<number>", doc: "0 compiles, 1 writes a model or artifact as JSON, 3 only checks the model, 6 shows what an artifact is", choices: ["0", "1", "3", "6"] },
  { name: "input_shape", value: "<shapes>", doc: '"x:1,3,224,224;y:1,-1"; -1 and ranges stay dynamic; default: as in the model' },
  { name: "input_format", value: "<format>", doc: "layout of the inputs; ONNX inputs are NCHW or ND", choices: ["NCHW", "NCDHW", "ND", "NHWC", "NDHWC"] },
  { name: "dim", value: "<name=size,…>", doc: "fixes named dimensions of the model" },
  { name: "soc_version", value: "<name>", doc: "accepted and recorded; the kernels are WebAssembly" },
  { name: "target", value: "<target>", doc: "machine code to make: wasm" },
  { name: "emit", value: "<form>", doc: "om (default) or onnx, the optimised graph for other runtimes", choices: ["om", "onnx"] },
  { name: "emit_level", value: "<level>", doc: "of emitted ONNX: functions (default), regions as model-local functions, or standard, operators of the model's opset only", choices: ["functions", "standard"] },
  { name: "log", value: "<level>", doc: "debug, info, warning, error or null (default)", choices: ["debug", "info", "warning", "error", "null"] },
  { name: "enable_fusion", value: "<bool>", doc: "false builds without fusion", choices: ["true", "false"] },
  { name: "fusion_switch_file", value: "<file>", doc: "turns named fusions on or off" },
  { name: "optimization_switch", value: "<switches>", doc: '"NameA:on;NameB:off"; beats --oo_level and --fusion_switch_file' },
  { name: "oo_level", value: "<level>", doc: "O3 (default) fuses, O1 does not, but for what --optimization_switch names", choices: ["O1", "O3"] },
  { name: "only_rule", value: "<rule>", doc: "of all rules only this one; regions are not touched" },
  { name: "max_rewrites", value: "<number>", doc: "at most so many rewrites, to find by halving the one that changes a result" },
  { name: "precision_mode", value: "<mode>", doc: "must_keep_origin_dtype: nothing but exact and reassociating rules", choices: ["must_keep_origin_dtype"] },
  { name: "fusion_rules", value: "<file>", doc: "custom fusion rules, JSON" },
  { name: "allow_approximate", value: "[rules]", doc: "allows rewrites that are right only for finite values, or approximate: true, or names of rules" },
  { name: "freeze_initializers", value: "<bool>", doc: "makes initializers that are inputs too constant", choices: ["true", "false"] },
  { name: "out_nodes", value: "<names>", doc: '"node:0;value": values to give as outputs' },
  { name: "output_type", value: "<types>", doc: 'FP32, FP16, UINT8, INT8 …, or "y:FP16;z:UINT8": casts outputs' },
  { name: "dynamic_batch_size", value: "<sizes>", doc: '"1,2,4": checked; one artifact serves every size that --input_shape leaves open' },
  { name: "dynamic_image_size", value: "<sizes>", doc: '"224,224;448,448": as dynamic_batch_size' },
  { name: "dynamic_dims", value: "<sizes>", doc: '"1,128;4,256": as dynamic_batch_size' },
  { name: "export_compile_stat", value: "<number>", doc: "0 does not write fusion_result.json; 1 (default) does; 2 writes fusion_op.csv too", choices: ["0", "1", "2"] },
  { name: "check_report", value: "<file>", doc: "where --mode=3 writes (default check_result.json)" },
  { name: "display_model_info", value: "<number>", doc: "1 prints sizes after compiling", choices: ["0", "1"] },
  { name: "disable_reuse_memory", value: "<number>", doc: "1 gives every tensor memory of its own", choices: ["0", "1"] },
  { name: "verify", value: "<bool>", doc: "compares the result with the original model", choices: ["true", "false"] },
  { name: "verify_budget", value: "<seconds>", doc: "how long verification may take (default 60)" },
  { name: "keep_dtype", value: "<file>", doc: "nodes, or OpType::Type, a line each, whose 16-bit float results are rounded also inside fusions" },
  { name: "external_weight", value: "<number>", doc: "1 writes each weight into a file of the folder weight, 2 all into one file; 0 (default) keeps them in the artifact", choices: ["0", "1", "2"] },
  { name: "debug_dir", value: "<folder>", doc: "writes every stage of the compilation there as text" },
  { name: "winograd", value: "<bool>", doc: "false computes 3x3 convolutions directly: slower, with a tenth of the rounding error", choices: ["true", "false"] },
  { name: "weights", value: "<form>", doc: "f16 or int8: holds the weights of contractions so; --verify says what that changes", choices: ["f16", "int8"] },
  { name: "strip", value: "<bool>", doc: "leaves the fusion report out of the file", choices: ["true", "false"] },
];

/** Options that a later release brings. */
export const plannedOptions: readonly string[] = [
  "oo_constant_folding", "oo_dead_code_elimination", "precision_mode_v2", "modify_mixlist",
];

/** Options of Huawei's atc that are refused, with what to do instead. */
export const refusedOptions: Readonly<Record<string, string>> = {
  weight: "Caffe models are not read; convert the model to ONNX",
  insert_op_conf: "AIPP is not offered; put the preprocessing into the model, with Sub, Mul and Cast nodes before the first operator",
  singleop: "single operators are not compiled; make a model with one node",
  input_shape_range: 'use ranges in --input_shape, such as "x:1~8,3,224,224"',
  input_fp16_nodes: "give the input the type float16 in the model",
  is_input_adjust_hw_layout: "layouts of Ascend hardware do not exist here; leave it out",
  is_output_adjust_hw_layout: "layouts of Ascend hardware do not exist here; leave it out",
  customize_dtypes: "set the types in the model",
  op_precision_mode: "kernels come in one precision; leave it out",
  op_select_implmode: "kernels come in one precision; leave it out",
  optypelist_for_implmode: "kernels come in one precision; leave it out",
  buffer_optimize: "there is no L2 buffer to plan; leave it out",
  enable_small_channel: "convolutions of few channels have kernels of their own already; leave it out",
  enable_single_stream: "there is one stream; leave it out",
  enable_scope_fusion_passes: "scopes are TensorFlow's; leave it out",
  topo_sorting_mode: "the order is chosen by the compiler; leave it out",
  multi_stream_parallel_mode: "there is one stream; leave it out",
  tiling_schedule_optimize: "tiles are chosen by the compiler; leave it out",
  static_model_ops_lower_limit: "static and dynamic parts are one program; leave it out",
  auto_tune_mode: "there is no tuning bank; leave it out",
  mdl_bank_path: "there is no tuning bank; leave it out",
  op_bank_path: "there is no tuning bank; leave it out",
  op_compiler_cache_mode: "compilation needs no cache; leave it out",
  op_compiler_cache_dir: "compilation needs no cache; leave it out",
  op_debug_level: "use --log=debug",
  op_debug_config: "use --log=debug",
  op_name_map: "custom Ascend operators do not exist here; leave it out",
  compression_optimize_conf: "quantise the model before compiling, for example with onnxruntime's quantisation tools",
  sparsity: "sparse weights are not exploited; leave it out",
  core_type: "Ascend cores do not exist here; leave it out",
  aicore_num: "Ascend cores do not exist here; leave it out",
  virtual_type: "Ascend devices do not exist here; leave it out",
  jit_compile: "everything is compiled ahead of time; leave it out",
  save_original_model: "set GE_GRAPH_SAVE_PATH to save the graph before and after",
  cluster_config: "there is one device; leave it out",
  host_env_os: "artifacts run everywhere; leave it out",
  host_env_cpu: "artifacts run everywhere; leave it out",
  raw_ge_options: "give the options directly",
  deterministic: "compilation and kernels are deterministic; leave it out",
  deterministic_level: "compilation and kernels are deterministic; leave it out",
  atomic_clean_policy: "memory is planned by the compiler; leave it out",
  status_check: "leave it out",
};
