/**
 * What a structured schedule writes its loops with: unique local names, scratch buffers, and packed weights asked for
 * on the way. One builder serves one kernel.
 */
import { dimMul, isSymbolic, type Dim } from "../core/dim.ts";
import { byteSize, type DType } from "../core/dtype.ts";
import type { Tensor } from "../core/tensor.ts";
import { constant, dimExpr, i32, local, type Axis, type Buffer, type Expr, type Type } from "../kernel/expr.ts";
import type { Choices, KernelChoice } from "./choices.ts";
import { outermostParallel } from "./threads/outermost.ts";
import type { Layout } from "../kernel/kernel.ts";
import type { PackSpec, Weight } from "../kernel/program.ts";
import { letLocal, loop, type LoopMode, type Stmt } from "../kernel/stmt.ts";
import { axisOf } from "../kernel/expr.ts";

/** What the engine that will run the code can do. */
export interface ScheduleTarget {
  /** f32x4.relaxed_madd may be used: products and sums round once or twice. */
  readonly relaxedSimd: boolean;
  /** 3x3 convolutions may be computed by F(4x4,3x3), whose rounding errors are larger. Default true. */
  readonly winograd?: boolean;
  /** What was measured to be best, by kernel. */
  readonly choices?: Choices;
}

/** What may be asked of contents: answers that are compared by value. */
export type Answer = boolean | number | string | readonly number[];

/** What a schedule may ask about the program around a kernel. */
export interface ScheduleContext {
  readonly target: ScheduleTarget;
  /** Where a buffer's elements lie. */
  layout(buffer: Buffer): Layout;
  /** The weight a buffer is a view of, when its contents are known before a run (or when it is a stored default). */
  weight(buffer: Buffer): Weight | undefined;
  /** What a schedule hangs on in a weight's contents; undefined where these are known only at the run. Nothing else may look at them. */
  contents<T extends Answer>(weight: Weight, ask: (contents: Tensor) => T): T | undefined;
  /** The buffer that will hold `weight` packed by `spec`; equal requests give the same buffer. */
  packed(weight: Weight, spec: PackSpec, dtype: DType, length: number): Buffer;
}

/** A row-major layout for a buffer of the schedule's own. */
export function denseLayout(shape: readonly Dim[]): Layout {
  const strides: Dim[] = [];
  let size: Dim = 1;
  for (const d of [...shape].reverse()) {
    strides.unshift(size);
    size = dimMul(size, d);
  }
  return { strides, offset: 0 };
}

export class KernelBuilder {
  readonly context: ScheduleContext;
  private readonly prefix: string;
  private readonly used = new Map<string, number>();
  private readonly scratchBuffers: Buffer[] = [];
  private readonly sharedBuffers: Buffer[] = [];
  private readonly extraInputs = new Set<Buffer>();
  private alone = false;

  private readonly choice: KernelChoice;

  constructor(kernelName: string, context: ScheduleContext, choice: KernelChoice = {}) {
    this.prefix = kernelName;
    this.context = context;
    this.choice = choice;
  }

  get relaxed(): boolean {
    return this.context.target.relaxedSimd;
  }
  /** The register tile: rows, and columns in order of preference. */
  get tile(): { readonly rows: number; readonly widths: readonly number[] } {
    return this.choice.tile === "2x16" ? { rows: 2, widths: [16, 8] } : { rows: 4, widths: [8] };
  }
  /** Whether costly epilogues run along strips. */
  /** The body with those of its loops shared by threads that the choice says. */
  asShared(body: Stmt): Stmt { return this.choice.split === "outer" ? outermostParallel(body) : body; }
  get strips(): boolean { return this.choice.strips ?? true; }
  /** Whether convolutions may be computed by Winograd's algorithm. */
  get winograd(): boolean { return (this.context.target.winograd ?? true) && (this.choice.winograd ?? true); }
  get scratch(): readonly Buffer[] {
    return this.scratchBuffers;
  }
  /** Those of `scratch` that parts of the kernel leave for each other. */
  get sharedScratch(): readonly Buffer[] {
    return this.sharedBuffers;
  }
  /** Packed weights and constants the loops read. */
  get addedInputs(): readonly Buffer[] {
    return [...this.extraInputs];
  }

  /** A name no other local of this kernel has. */
  name(hint: string): string {
    const n = this.used.get(hint) ?? 0;
    this.used.set(hint, n + 1);
    return `${hint}_${n}`;
  }

  /** Declares a local in `into` and returns it. */
  let(into: Stmt[], hint: string, value: Expr): Expr {
    const name = this.name(hint);
    into.push(letLocal(name, value));
    return local(name, value.type);
  }

  /** Declares an i32 local, unless the value is already a constant or a local. */
  letIndex(into: Stmt[], hint: string, value: Expr): Expr {
    return value.kind === "const" || value.kind === "local" || value.kind === "axis" ? value : this.let(into, hint, value);
  }

  /** A loop over a fresh variable. The body is written by `body`. */
  loop(into: Stmt[], hint: string, begin: Expr | number, end: Expr, step: number, extent: Dim, body: (value: Expr, into: Stmt[]) => void, mode: LoopMode = "serial"): void {
    const axis: Axis = { name: this.name(hint), extent };
    const inner: Stmt[] = [];
    body(axisOf(axis), inner);
    into.push(loop(axis, typeof begin === "number" ? constant(begin, i32) : begin, end, step, { kind: "block", body: inner }, mode));
  }

  /**
   * A parallel loop (see `LoopMode`) from 0 to `total`, each iteration of some `work` instructions; `undefined` or within
   * `serially`: a plain one.
   */
  parallel(into: Stmt[], hint: string, total: Dim, step: number, work: Dim | undefined, body: (value: Expr, into: Stmt[]) => void): void {
    const axis: Axis = { name: this.name(hint), extent: total };
    const inner: Stmt[] = [], shared = work !== undefined && !this.alone;
    body(axisOf(axis), inner);
    const done = loop(axis, constant(0, i32), isSymbolic(total) ? dimExpr(total) : constant(total, i32), step, { kind: "block", body: inner }, shared ? "parallel" : "serial");
    into.push(shared && done.kind === "for" ? { ...done, work } : done);
  }

  /** Writes loops none of which threads may share. */
  serially<T>(write: () => T): T {
    const around = this.alone;
    this.alone = true;
    const out = write();
    this.alone = around;
    return out;
  }

  /** Working memory that one part of the kernel leaves for another. */
  shared(hint: string, dtype: DType, shape: readonly Dim[]): Buffer {
    const buffer = this.temporary(hint, dtype, shape);
    this.sharedBuffers.push(buffer);
    return buffer;
  }

  /** Working memory of the kernel: for the part at hand, which finds nothing in it. */
  temporary(hint: string, dtype: DType, shape: readonly Dim[]): Buffer {
    const buffer: Buffer = { name: this.name(`${this.prefix}_${hint}`), dtype, shape };
    this.scratchBuffers.push(buffer);
    return buffer;
  }

  packed(weight: Weight, spec: PackSpec, dtype: DType, length: number): Buffer {
    const buffer = this.context.packed(weight, spec, dtype, length);
    this.extraInputs.add(buffer);
    return buffer;
  }

  /** Layout of any buffer, also of this kernel's own. */
  layout(buffer: Buffer): Layout {
    return this.scratchBuffers.includes(buffer) || this.extraInputs.has(buffer) ? denseLayout(buffer.shape) : this.context.layout(buffer);
  }
}

/** Byte address of a buffer's element 0…0. */
export const addressOf = (buffer: Buffer): Expr => ({ kind: "address", buffer, indices: buffer.shape.map(() => constant(0, i32)), type: i32 });

/** `type.lanes` consecutive elements at `pointer` + `offset` bytes. */
export const loadAt = (pointer: Expr, offset: number, dtype: DType, type: Type): Expr => ({ kind: "loadAt", pointer, offset, dtype, splat: false, type });
/** One element in every lane. */
export const splatAt = (pointer: Expr, offset: number, dtype: DType, type: Type): Expr => ({ kind: "loadAt", pointer, offset, dtype, splat: type.lanes > 1, type });
export const storeAt = (pointer: Expr, offset: number, dtype: DType, value: Expr): Stmt => ({ kind: "storeAt", pointer, offset, dtype, value });

/** Bytes of `count` elements. */
export const bytesOf = (count: Dim, dtype: DType): Dim => dimMul(count, byteSize(dtype));
