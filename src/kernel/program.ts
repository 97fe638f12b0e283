/**
 * A Program: kernels and the steps between them, over buffers that lie in storages. Lowering makes it, layout and
 * scheduling rewrite its kernels, planning gives storages their addresses, emission turns it into code.
 */
import type { Dim } from "../core/dim.ts";
import type { PackSpec } from "../core/pack-spec.ts";
import type { Tensor } from "../core/tensor.ts";
import type { Buffer } from "./expr.ts";
import type { Kernel, Layout } from "./kernel.ts";

export type { PackAxis, PackSpec } from "../core/pack-spec.ts";

/** A block of memory that one or more buffers lie in. Identity is the object. */
export interface Storage {
  readonly name: string;
  /** input: written by the runtime before a run. output: read after. weight: filled at load. arena: planned. */
  readonly kind: "input" | "output" | "weight" | "arena";
  readonly bytes: Dim;
}

export interface Placement {
  readonly storage: Storage;
  readonly layout: Layout;
}

export type AttributeJson = number | string | boolean | readonly number[] | readonly string[] | { readonly tensor: Tensor };

export type Step =
  | { readonly kind: "call"; readonly kernel: Kernel; readonly origin: StepOrigin }
  /** An operator run by its `evaluate` on row-major tensors. `outputs` shapes may hold symbols that this step binds. */
  | { readonly kind: "host"; readonly domain: string; readonly op: string; readonly attributes: Readonly<Record<string, AttributeJson>>; readonly inputs: readonly (Buffer | undefined)[]; readonly outputs: readonly (Buffer | undefined)[]; readonly origin: StepOrigin }
  /** Runs one branch by a bool scalar buffer, or by a predicate over sizes (non-zero is then). Both branches write the same result buffers. */
  | { readonly kind: "if"; readonly condition: Buffer | { readonly predicate: Dim }; readonly then: readonly Step[]; readonly else: readonly Step[]; readonly origin: StepOrigin }
  /** Loops are lowered as host control flow: `body` runs while `condition` (bool buffer) holds, at most `count` times. */
  | { readonly kind: "loop"; readonly count?: Buffer; readonly condition?: Buffer; readonly iteration: Buffer; readonly body: readonly Step[]; readonly carry: readonly { readonly from: Buffer; readonly to: Buffer }[]; readonly origin: StepOrigin };

/** Where a step comes from, for reports. */
export interface StepOrigin {
  /** Region kind, such as `ConvBNReLU`, or an operator type. */
  readonly label: string;
  /** Original ONNX node names. */
  readonly nodes: readonly string[];
}

export interface ProgramInput { readonly name: string; readonly buffer: Buffer; readonly default?: Tensor }
export interface ProgramOutput { readonly name: string; readonly buffer: Buffer }

/** A weight: what fills its storage. `source` is a constant, or the name of an overridable graph input. */
export interface Weight {
  readonly buffer: Buffer;
  readonly source: Tensor | { readonly input: string };
  readonly pack: PackSpec;
}

export interface Program {
  readonly inputs: readonly ProgramInput[];
  readonly outputs: readonly ProgramOutput[];
  readonly weights: readonly Weight[];
  readonly steps: readonly Step[];
  /** Every buffer that a step, input, output or weight names. */
  readonly placements: ReadonlyMap<Buffer, Placement>;
}
