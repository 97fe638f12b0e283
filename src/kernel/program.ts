/**
 * A Program: kernels and the steps between them, over buffers that lie in storages. Lowering makes it, layout and
 * scheduling rewrite its kernels, planning gives storages their addresses, emission turns it into code.
 */
import type { NodeAgreement } from "../core/agreement.ts";
import type { Dim } from "../core/dim.ts";
import type { PackSpec } from "../core/pack-spec.ts";
import type { Tensor } from "../core/tensor.ts";
import type { Buffer } from "./expr.ts";
import type { Kernel, Layout } from "./kernel.ts";

export type { PackAxis, PackSpec, PanelSpec } from "../core/pack-spec.ts";

/** A block of memory that one or more buffers lie in. Identity is the object. */
export interface Storage {
  readonly name: string;
  /**
   * input: written by the runtime before a run. output: read after. weight: filled at load. arena: planned.
   * state: kept by the runtime from run to run, and enlarged when needed.
   * held: no memory at all; its one buffer's value (strings, a sequence, an optional, a map) lives on the JavaScript side.
   */
  readonly kind: "input" | "output" | "weight" | "arena" | "state" | "held";
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
  /** Runs one branch by a bool scalar buffer, or by a predicate over sizes (non-zero is then). Both branches write the same result buffers; sizes in the one that runs must agree. */
  | { readonly kind: "if"; readonly condition: Buffer | { readonly predicate: Dim }; readonly then: readonly Step[]; readonly else: readonly Step[]; readonly agreements?: { readonly then: readonly NodeAgreement[]; readonly else: readonly NodeAgreement[] }; readonly origin: StepOrigin }
  /** Hands values on, all at once: each `to` takes the elements of its `from`, and its sizes (after ones where its rank is larger), which bind symbols that have no value. */
  | { readonly kind: "move"; readonly moves: readonly Move[]; readonly origin: StepOrigin }
  /** Stops the run where values are not what kernels rely on: see `ValueCheck`. It comes last among its neighbours. */
  | CheckStep
  | LoopStep;

export interface CheckStep {
  readonly kind: "check";
  /** The least and the largest element (int64), for all or for each of `sizes`. */
  readonly low: Buffer;
  readonly high: Buffer;
  /** Sizes of the axes that they index; none where they divide. */
  readonly sizes: readonly Dim[];
  readonly node: string;
  readonly value: string;
  readonly origin: StepOrigin;
}

export interface Move { readonly from: Buffer; readonly to: Buffer }

/**
 * Runs `body` at most `count` times (for ever when absent): the first time where `condition` holds, again where `next`
 * does (both hold when absent). Symbols that an iteration binds have no value any more when it ends, so that the next
 * one may bind them anew; values carried in memory of one size are copied by the body's own steps instead of `carry`.
 */
export interface LoopStep {
  readonly kind: "loop";
  readonly count?: Buffer | { readonly size: Dim };
  readonly condition?: Buffer;
  readonly next?: Buffer;
  /** Takes the number of the iteration (int64 scalar) before each. */
  readonly iteration?: Buffer;
  readonly body: readonly Step[];
  readonly carry: readonly Carry[];
  readonly stack: readonly Stack[];
  /** Sizes that every iteration needs to agree. */
  readonly agreements?: readonly NodeAgreement[];
  readonly origin: StepOrigin;
}
/** `input` is `initial` in the first iteration, the last one's `next` in the others; `result` is what the next would be given. */
export interface Carry { readonly initial: Buffer; readonly input: Buffer; readonly next: Buffer; readonly result?: Buffer }
/** `to` is all iterations' `from`, joined along a new first axis; sizes that no iteration tells are 0. */
export interface Stack { readonly from: Buffer; readonly to: Buffer }

/** Where a step comes from, for reports. */
export interface StepOrigin {
  /** Region kind, such as `ConvBNReLU`, or an operator type. */
  readonly label: string;
  /** Original ONNX node names. */
  readonly nodes: readonly string[];
}

export interface ProgramInput { readonly name: string; readonly buffer: Buffer; readonly default?: Tensor }
/** With `rank`, the value has that many of the last sizes of its buffer. */
export interface ProgramOutput { readonly name: string; readonly buffer: Buffer; readonly rank?: Dim }

/**
 * What a run gives as `output`, the next one takes as `input`. With `grows` both start in one storage, which has room along
 * `axis` for as many as the symbol `capacity` says: kernels write only what comes behind the input.
 */
export interface ProgramState {
  readonly input: string;
  readonly output: string;
  readonly grows?: { readonly axis: number; readonly capacity: string; readonly storage: Storage };
}

/** A weight: what fills its storage. `source` is a constant, or the name of an overridable graph input. */
export interface Weight {
  readonly buffer: Buffer;
  readonly source: Tensor | { readonly input: string };
  readonly pack: PackSpec;
  /** How artifacts hold the elements, which are exact in it; as they are where absent. */
  readonly stored?: StoredForm;
}

/** float32 elements in fewer bits. int8: `bytes` times the scale of their index along `axis`. */
export type StoredForm =
  /** `resident`: where a kernel can, it reads them so and widens them itself. */
  | { readonly as: "float16"; readonly resident?: true }
  | { readonly as: "int8"; readonly axis: number; readonly bytes: Int8Array; readonly scales: Float32Array };

export interface Program {
  readonly inputs: readonly ProgramInput[];
  readonly outputs: readonly ProgramOutput[];
  readonly states?: readonly ProgramState[];
  readonly weights: readonly Weight[];
  readonly steps: readonly Step[];
  /** Every buffer that a step, input, output or weight names. */
  readonly placements: ReadonlyMap<Buffer, Placement>;
}
