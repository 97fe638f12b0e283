/**
 * Weights of contractions in fewer bits: float16, or int8 with a float32 scale for every output channel (symmetric: the
 * largest magnitude of a channel is 127). Kernels compute with the narrowed values from here on, whatever form they read
 * them in: most are widened when an artifact is loaded, matrices in int8 stay so in memory and are widened by their kernel.
 */
import { dimProduct, isSymbolic } from "../../core/dim.ts";
import { toFloat16, fromFloat16 } from "../../core/float16.ts";
import { rowMajorStrides, sizeOf, tensor, toNumbers, type Tensor } from "../../core/tensor.ts";
import { mapNested, touchedBy } from "../../kernel/accesses.ts";
import { cast, constant, i32, load, mul, type Axis, type Buffer, type Expr } from "../../kernel/expr.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Placement, Program, Step, Storage, StoredForm, Weight } from "../../kernel/program.ts";
import { allSteps } from "../../kernel/segments.ts";
import type { MatMulStructure, Structure } from "../../kernel/structure.ts";
import { mapExpr, mapStmtExprs } from "../../kernel/traverse.ts";
import { affineAccess, bytesAlong } from "../loops/affine.ts";
import { denseLayout } from "../builder.ts";

export type WeightForm = "f16" | "int8";

/**
 * Why a weight keeps its type. `shared`: others than contractions read it, or contractions along other axes. `overridable`:
 * it is an input of the model too. `range`: an element is not finite in the narrow type.
 */
export type KeptWeight = "keep-dtype" | "shared" | "overridable" | "range";

/** A weight that was narrowed, or why it was not. */
export interface NarrowedWeight {
  readonly weight: string;
  /** Original nodes that read it. */
  readonly nodes: readonly string[];
  readonly elements: number;
  readonly kept?: KeptWeight;
  /** The largest change of an element, as a share of the largest element. */
  readonly error?: number;
  /** In memory, too. */
  readonly resident?: true;
}

/** Fewer elements than this are not worth their error. */
const leastElements = 256;
/** Matrices of fewer elements are read from a cache: there their kernel is bound by arithmetic, and widening costs up to 0.3 of its speed. */
const leastResident = 2 ** 21;

/** The same of float16: for one row its kernel is 1.15 times as fast as that of float32 at 2^23 elements, where these no longer fit in a cache. */
const leastHalves = 2 ** 23;

interface Use { readonly kernel: Kernel; readonly buffer: Buffer; readonly nodes: readonly string[]; /** Of the output channels, in elements of the source; undefined where there is none. */ readonly stride: number | undefined }

/** The program with its contractions' weights narrowed, but those of nodes that `keeps` names. */
export function narrowWeights(program: Program, form: WeightForm, keeps: (nodes: readonly string[]) => boolean): { readonly program: Program; readonly narrowed: readonly NarrowedWeight[] } {
  const storageOf = (b: Buffer): Storage | undefined => program.placements.get(b)?.storage;
  const uses = new Map<Storage, Use[]>(), reads = new Map<Storage, number>();
  for (const s of allSteps(program.steps)) {
    for (const b of new Set(touchedBy(s).map(storageOf))) if (b) reads.set(b, (reads.get(b) ?? 0) + 1);
    if (s.kind !== "call" || !s.kernel.structure) continue;
    for (const { buffer, stride } of operandsOf(s.kernel.structure, program.placements)) {
      const storage = storageOf(buffer);
      if (storage) uses.set(storage, [...(uses.get(storage) ?? []), { kernel: s.kernel, buffer, nodes: s.origin.nodes, stride }]);
    }
  }
  const narrowed: NarrowedWeight[] = [], changed = new Map<Weight, Weight>(), resident = new Residents(program.placements);
  for (const weight of program.weights) {
    const storage = storageOf(weight.buffer), by = storage && uses.get(storage);
    const elements = Number(dimProduct(weight.buffer.shape));
    if (!by || weight.buffer.dtype !== "float32" || weight.pack.kind !== "copy" || !(elements >= leastElements)) continue;
    const nodes = [...new Set(by.flatMap((u) => u.nodes))], entry = { weight: weight.buffer.name, nodes, elements };
    if ("input" in weight.source) { narrowed.push({ ...entry, kept: "overridable" }); continue; }
    const [first] = by, axis = first?.stride === undefined ? undefined : axisOf(weight.source.dims, first.stride);
    const kept = keeps(nodes) ? "keep-dtype" : new Set(by.map((u) => u.kernel)).size < (reads.get(storage) ?? 0) ? "shared" : undefined;
    const result = kept ?? (form === "f16" ? inHalves(weight.source) : axis === undefined || by.some((u) => u.stride !== first?.stride) ? "shared" : inBytes(weight.source, axis)) ?? "range";
    if (typeof result === "string") { narrowed.push({ ...entry, kept: result }); continue; }
    const stays = result.stored.as === "int8" ? elements >= leastResident && resident.add(by, weight, result.stored) : elements >= leastHalves && resident.takesHalves(by, weight);
    if (!stays || result.stored.as === "float16") changed.set(weight, { ...weight, source: result.source, stored: stays ? { as: "float16", resident: true } : result.stored });
    narrowed.push({ ...entry, error: result.error, ...(stays ? { resident: true } : {}) });
  }
  const weights = program.weights.map((w) => changed.get(w) ?? w);
  return { program: resident.finish({ ...program, weights }), narrowed };
}

/** Constant operands of a contraction, with the distance of its output channels in memory. */
function operandsOf(s: Structure, placements: ReadonlyMap<Buffer, Placement>): { readonly buffer: Buffer; readonly stride: number | undefined }[] {
  const fixed = (buffer: Buffer, d: number): number | undefined => { const n = placements.get(buffer)?.layout.strides[d]; return n === undefined || isSymbolic(n) ? undefined : n; };
  switch (s.kind) {
    case "conv": return [...(s.inputFrom ? operandsOf(s.inputFrom, placements) : []), { buffer: s.weight, stride: fixed(s.weight, s.transposed ? 1 : 0) }];
    case "recurrence": return [{ buffer: s.w, stride: fixed(s.w, 1) }, { buffer: s.r, stride: fixed(s.r, 1) }];
    case "matmul": return s.quantized ? [] : [[s.a, s.m] as const, [s.b, s.n] as const, ...(s.others ?? []).map((o) => [o.b, s.n] as const)].flatMap(([e, axis]) => (e.kind === "load" ? [{ buffer: e.buffer, stride: strideAlong(e, axis, placements) }] : []));
    default: return [];
  }
}

function strideAlong(e: Extract<Expr, { kind: "load" }>, axis: Axis, placements: ReadonlyMap<Buffer, Placement>): number | undefined {
  const layout = placements.get(e.buffer)?.layout, access = layout && affineAccess(e.buffer, e.indices, new Set([axis]), layout);
  const bytes = access && bytesAlong(access, axis);
  return bytes === undefined || isSymbolic(bytes) ? undefined : bytes / 4;
}

/** The axis of a row-major tensor whose elements are so far apart. */
function axisOf(dims: readonly number[], stride: number): number | undefined {
  const at = rowMajorStrides(dims).findIndex((s, d) => s === stride && (dims[d] ?? 1) > 1);
  return at < 0 ? undefined : at;
}

interface Narrow { readonly source: Tensor; readonly stored: StoredForm; readonly error: number }

/** Rounded to float16; undefined where an element is not finite there. */
function inHalves(t: Tensor): Narrow | undefined {
  const values = toNumbers(t), out = new Float32Array(values.length);
  for (let i = 0; i < values.length; i++) {
    const v = fromFloat16(toFloat16(values[i] ?? 0));
    if (!Number.isFinite(v)) return undefined;
    out[i] = v;
  }
  return { source: tensor("float32", t.dims, out), stored: { as: "float16" }, error: errorOf(values, out) };
}

/** Rounded to multiples of a scale per index of `axis`; undefined where an element is not finite. */
function inBytes(t: Tensor, axis: number): Narrow | undefined {
  const values = toNumbers(t), channels = t.dims[axis] ?? 1, inner = rowMajorStrides(t.dims)[axis] ?? 1;
  const channelOf = (i: number): number => Math.floor(i / inner) % channels;
  const most = new Float64Array(channels), out = new Float32Array(values.length), bytes = new Int8Array(values.length);
  for (let i = 0; i < values.length; i++) {
    const v = values[i] ?? 0, c = channelOf(i);
    if (!Number.isFinite(v)) return undefined;
    most[c] = Math.max(most[c] ?? 0, Math.abs(v));
  }
  const scales = Float32Array.from(most, (m) => (m === 0 ? 1 : Math.fround(m / 127)));
  if (scales.some((s) => s === 0)) return undefined;
  for (let i = 0; i < values.length; i++) {
    const scale = scales[channelOf(i)] ?? 1, q = Math.max(-127, Math.min(127, Math.round((values[i] ?? 0) / scale)));
    bytes[i] = q;
    out[i] = q * scale;
  }
  return { source: tensor("float32", t.dims, out), stored: { as: "int8", axis, bytes, scales }, error: errorOf(values, out) };
}

function errorOf(before: ArrayLike<number>, after: ArrayLike<number>): number {
  let most = 0, largest = 0;
  for (let i = 0; i < before.length; i++) {
    most = Math.max(most, Math.abs((before[i] ?? 0) - (after[i] ?? 0)));
    largest = Math.max(largest, Math.abs(before[i] ?? 0));
  }
  return largest === 0 ? 0 : most / largest;
}

/** Matrices that stay in int8 in memory, and the kernels that widen them. */
class Residents {
  readonly #placements: Map<Buffer, Placement>;
  readonly #weights: Weight[] = [];
  readonly #kernels = new Map<Kernel, Kernel>();
  readonly #made = new Map<Weight, { readonly storage: Storage; readonly scales: Buffer; readonly buffers: Map<Buffer, Buffer> }>();

  constructor(placements: ReadonlyMap<Buffer, Placement>) {
    this.#placements = new Map(placements);
  }

  /** Lets products read their right operand so; false, and nothing changed, where one of them has no such form. */
  add(uses: readonly Use[], weight: Weight, stored: StoredForm): boolean {
    if (stored.as !== "int8") return false;
    const matrices = uses.map((u) => this.#matrix(u, weight, stored.scales.length));
    if (!matrices.every((m) => m !== undefined)) return false;
    for (const { kernel, buffer, layout, structure, n } of matrices) {
      const made = this.#make(weight, stored, n), narrow = made.buffers.get(buffer) ?? { name: `${buffer.name}_int8`, dtype: "int8" as const, shape: buffer.shape };
      made.buffers.set(buffer, narrow);
      this.#placements.set(narrow, { storage: made.storage, layout });
      this.#kernels.set(kernel, widening(kernel, structure, buffer, narrow, made.scales, n));
    }
    return true;
  }

  /** Whether products read all of it as their right operand, which float16 can be as it is. */
  takesHalves(uses: readonly Use[], weight: Weight): boolean {
    return uses.every((u) => u.kernel.structure?.kind === "matmul" && !u.kernel.structure.others && Number(u.kernel.structure.n.extent) >= 8 && this.#matrix(u, weight, Number(u.kernel.structure.n.extent)));
  }

  /** The operand as a whole matrix with its columns along `n`. */
  #matrix({ kernel, buffer }: Use, weight: Weight, channels: number) {
    const { structure } = kernel, layout = this.#placements.get(buffer)?.layout;
    if (!layout || structure?.kind !== "matmul" || structure.others || structure.b.kind !== "load" || structure.b.buffer !== buffer || this.#kernels.has(kernel)) return undefined;
    const along = (axis: Axis): number => (structure.b.kind === "load" ? structure.b.indices.findIndex((e) => e.kind === "axis" && e.axis === axis) : -1);
    const n = along(structure.n), k = along(structure.k), [rows, columns] = [structure.k.extent, structure.n.extent];
    if (n < 0 || k < 0 || buffer.shape.length !== 2 || layout.offset !== 0 || isSymbolic(rows) || isSymbolic(columns)) return undefined;
    const whole = buffer.shape[n] === columns && buffer.shape[k] === rows && channels === columns && rows * columns === dimProduct(weight.buffer.shape);
    return whole ? { kernel, buffer, layout, structure, n } : undefined;
  }

  #make(weight: Weight, stored: Extract<StoredForm, { as: "int8" }>, n: number) {
    const known = this.#made.get(weight);
    if (known) return known;
    const { name } = weight.buffer, dims = "input" in weight.source ? [] : weight.source.dims;
    const own: Buffer = { name: `${name}_int8`, dtype: "int8", shape: dims }, scales: Buffer = { name: `${name}_scales`, dtype: "float32", shape: n === 0 ? [stored.scales.length, 1] : [1, stored.scales.length] };
    const storage: Storage = { name: own.name, kind: "weight", bytes: sizeOf(dims) }, place = { storage: { name: scales.name, kind: "weight", bytes: 4 * stored.scales.length } as const, layout: denseLayout(scales.shape) };
    this.#placements.set(own, { storage, layout: denseLayout(own.shape) });
    this.#placements.set(scales, place);
    this.#weights.push({ buffer: own, source: tensor("int8", dims, stored.bytes), pack: { kind: "copy" } }, { buffer: scales, source: tensor("float32", scales.shape.map(Number), stored.scales), pack: { kind: "copy" } });
    const made = { storage, scales, buffers: new Map<Buffer, Buffer>() };
    this.#made.set(weight, made);
    return made;
  }

  finish(program: Program): Program {
    if (this.#kernels.size === 0) return program;
    const step = (s: Step): Step => (s.kind === "call" ? { ...s, kernel: this.#kernels.get(s.kernel) ?? s.kernel } : mapNested(s, step));
    const weights = [...program.weights.filter((w) => !this.#made.has(w)), ...this.#weights];
    const gone = new Set([...this.#made.keys()].map((w) => this.#placements.get(w.buffer)?.storage));
    const placements = new Map([...this.#placements].filter(([, p]) => !gone.has(p.storage)));
    return { ...program, weights, placements, steps: program.steps.map(step) };
  }
}

/** The kernel with `from` read as integers times scales. */
function widening(kernel: Kernel, s: MatMulStructure, from: Buffer, to: Buffer, scales: Buffer, n: number): Kernel {
  const memo = new Map<Expr, Expr>(), zero = constant(0, i32);
  const change = (e: Expr): Expr => mapExpr(e, (x) => {
    if (x.kind !== "load" || x.buffer !== from) return x;
    const column = x.indices[n] ?? zero;
    return mul(cast(load(to, x.indices), "f32"), load(scales, n === 0 ? [column, zero] : [zero, column]));
  }, memo);
  const quantized = { weight: to, scales, block: Number(s.k.extent), transposed: n === 0 };
  return {
    ...kernel, body: mapStmtExprs(kernel.body, change), structure: { ...s, b: change(s.b), quantized },
    inputs: kernel.inputs.flatMap((b) => (b === from ? [to, scales] : [b])),
  };
}
