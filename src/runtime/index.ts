/** onnxfuse/runtime: runs artifacts in Node, browsers and edge runtimes. Contains no compiler. */
export { load, type LoadOptions } from "./load.ts";
export type { ArtifactSource, OpenFile } from "./open.ts";
export { Session, type Port, type RunOptions, type SessionOptions } from "./session.ts";
export { Tensor, type ElementSource, type TensorLike } from "./tensor.ts";
export { fromOnnxruntime, toOnnxruntime, type TensorClass } from "./onnxruntime-tensor.ts";
export type { Feeds } from "./feeds.ts";
export type { Feed, RunValue } from "./run-values.ts";
export type { Container, ItemType } from "../core/container.ts";
export type { DatumMap } from "../core/datum.ts";
export type { StepObserver } from "./watch.ts";
export { DiagnosticError, type Diagnostic } from "../core/diagnostic.ts";
export type { DType, TensorData } from "../core/dtype.ts";
