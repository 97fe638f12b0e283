/**
 * The manifest of an artifact: all that the runtime needs to know beside code and weights, as JSON a person can read.
 * Addresses are bytes in WebAssembly memory; `offset`s are bytes in the weights section.
 */
import type { Container } from "../core/container.ts";
import type { DType } from "../core/dtype.ts";
import type { PackSpec } from "../core/pack-spec.ts";
import type { DimJson } from "../core/dim-json.ts";

export interface Manifest {
  /** Name and version of the compiler. */
  readonly tool: string;
  /** Compilation options in normal form; no paths, output names or log levels. */
  readonly options: Readonly<Record<string, unknown>>;
  /** The model's name and its metadata_props. */
  readonly model: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly inputs: readonly InputJson[];
  readonly outputs: readonly PortJson[];
  readonly states?: readonly StateJson[];
  readonly code: readonly CodeJson[];
  readonly memory: MemoryJson;
  readonly buffers: readonly BufferJson[];
  readonly steps: readonly StepJson[];
  readonly weights: readonly WeightJson[];
  /** Where the weights section lies when it is not in this file, in pieces. */
  readonly external?: readonly ExternalPieceJson[];
  /** Constants of strings, which have no place in memory. */
  readonly held?: readonly HeldConstantJson[];
  /** What the sizes of inputs must satisfy. */
  readonly checks?: readonly CheckJson[];
  /** XXH32 of the model file. */
  readonly modelChecksum: number;
}

export interface PortJson {
  readonly name: string;
  readonly dtype: DType;
  /** Sizes the model declares; symbols are bound by what is fed. */
  readonly dims: readonly DimJson[];
  /** An output's number of sizes, where that hangs on sizes: the last ones of `dims`. */
  readonly rank?: DimJson;
  /** A sequence, an optional or a map: its type, sizes that are not fixed as null. Then `dims` is []. */
  readonly container?: Container;
  /** Index into `buffers`. */
  readonly buffer: number;
}
export interface InputJson extends PortJson {
  /** What stands here when nothing is fed. */
  readonly default?: DataJson;
}

/**
 * A value that a session keeps: what a run gives as `output`, the next one takes as `input`. With `grows` both start at
 * `at`, in `bytes` that have room along `axis` for as many as the size `capacity` says, and a run writes only what is new.
 */
export interface StateJson {
  readonly input: string;
  readonly output: string;
  readonly grows?: { readonly axis: number; readonly capacity: string; readonly bytes: DimJson; readonly at: AddressJson };
}

/** A part of the weights section in a file of its own; `file` is relative to the artifact. */
export interface ExternalPieceJson { readonly file: string; readonly offset: number; readonly length: number; readonly checksum: number }

/** Two sizes that must be equal, or one of which may be 1 with `broadcast`; `node` needs it, where no predicate of `where` is 0. */
export interface CheckJson { readonly a: DimJson; readonly b: DimJson; readonly broadcast?: true; readonly node: string; readonly where?: readonly DimJson[] }

/** Code for a machine, by the numbers of the container's sections that hold it. */
export interface CodeJson {
  readonly target: "wasm";
  /** Runs on every engine with SIMD. */
  readonly section: number;
  /** What to change in it where the engine has relaxed SIMD. */
  readonly relaxation?: number;
  /** The code itself is for relaxed SIMD. */
  readonly relaxed?: true;
  /** What its module for threads has beside the kernels; absent where there is no work for two. */
  readonly threads?: number;
}

export type AddressJson = number | { readonly slot: number };

export interface MemoryJson {
  /** Where the i32 table of sizes and addresses starts. */
  readonly table: number;
  /** Slot i of the table holds sizes[i]; the arena's slots follow. */
  readonly sizes: readonly DimJson[];
  readonly slots: number;
  /** First byte after table, weights and fixed blocks. */
  readonly fixedEnd: number;
  readonly arena: readonly BlockJson[];
  readonly weightBytes: number;
  /** Bytes of working memory that each thread besides the first needs: the largest of these. */
  readonly threadScratch?: readonly DimJson[];
  readonly peak?: { readonly bytes: number; readonly lowerBound: number };
}
/** A block of the arena, alive from step `first` to step `last`. */
export interface BlockJson {
  readonly bytes: DimJson;
  /** It is used only where none of these is 0. */
  readonly where?: readonly DimJson[];
  readonly first: number;
  readonly last: number;
  readonly at: AddressJson;
}

/** A tensor in memory that the runtime itself reads or writes. */
export interface BufferJson {
  readonly name: string;
  readonly dtype: DType;
  readonly dims: readonly DimJson[];
  /** A sequence, an optional or a map. Such, and strings, have no `at`: they are held outside the memory. */
  readonly container?: Container;
  /** Start of its storage. */
  readonly at?: AddressJson;
  /** In elements from the start of the storage; 0 when absent. */
  readonly offset?: DimJson;
  /** In elements; row-major when absent. */
  readonly strides?: readonly DimJson[];
}

export type AttributeValueJson =
  | number | string | boolean | readonly number[] | readonly string[]
  /** Numbers that JSON has no form for. */
  | { readonly float: string } | { readonly floats: readonly string[] }
  | { readonly tensor: DataJson };

export type StepJson =
  /** Calls the exported function `run_<run>`; `calls` are its kernels in order, with the region each computes, and how many functions it calls one after the other where it is not one. */
  | { readonly run: number; readonly calls: readonly (readonly [kernel: string, label: string, functions?: number])[] }
  | { readonly host: string; readonly domain: string; readonly attributes: Readonly<Record<string, AttributeValueJson>>; readonly inputs: readonly (number | null)[]; readonly outputs: readonly (number | null)[]; readonly label: string }
  /** A buffer index, or a predicate over sizes that is true when not 0. `checks` are of the sizes in each branch. */
  | { readonly if: number | { readonly predicate: DimJson }; readonly then: readonly StepJson[]; readonly else: readonly StepJson[]; readonly checks?: readonly [then: readonly CheckJson[], otherwise: readonly CheckJson[]] }
  /** Hands values on, all at once, with ones before the sizes of a lower rank; sizes that have no value yet are those of what comes. */
  | { readonly move: readonly (readonly [from: number, to: number])[] }
  /** Stops the run where values are not what kernels rely on: buffers of the least and largest index, and the sizes of their axes; none for divisors. */
  | { readonly check: readonly [low: number, high: number]; readonly sizes: readonly DimJson[]; readonly node: string; readonly value: string }
  | LoopJson;

/** A loop as `LoopStep` of the kernel language says it; null stands for what is absent. */
export interface LoopJson {
  readonly loop: readonly StepJson[];
  readonly count: number | { readonly size: DimJson } | null;
  readonly condition: number | null;
  readonly next: number | null;
  readonly iteration: number | null;
  readonly carry: readonly (readonly [initial: number, input: number, next: number, result: number | null])[];
  readonly stack: readonly (readonly [from: number, to: number])[];
  /** Looked at in every iteration. */
  readonly checks?: readonly CheckJson[];
}

/**
 * Elements in the weights section, row-major; with `fill`, one element that stands for all. Those of fewer than 8 bits are
 * packed as in ONNX files, a `fill` apart, which has a byte. A string is its length in bytes (u32) and its UTF-8.
 */
export interface DataJson {
  readonly dtype: DType;
  readonly dims: readonly number[];
  readonly offset: number;
  /** Bytes in the section. */
  readonly length: number;
  readonly fill?: true;
}

/** What a buffer without memory holds from the start. */
export interface HeldConstantJson { readonly buffer: number; readonly data: DataJson }

export interface WeightJson {
  /** Where it lies in memory, and how many bytes it takes there. */
  readonly at: number;
  readonly bytes: number;
  /** The elements, or the overridable input that they come from. */
  readonly source: DataJson | { readonly input: string };
  /** The source's elements are float16, or int8, and become float32 before they are arranged; int8 times `scales`, of sizes that are the source's or 1. */
  readonly widen?: { readonly scales?: DataJson };
  /** How the source is arranged for its kernel; absent when it is stored as it lies in memory. */
  readonly pack?: PackSpec;
  /** It is panels of pairs of int8, of so many bytes, which the code for relaxed SIMD reads as quads (memory/quads.ts). */
  readonly quads?: number;
}
