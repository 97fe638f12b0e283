/**
 * Makes packed weights: the element orders that compiled kernels read. Runs in the compiler for constants, and in the
 * runtime for initializers that are fed.
 */
import { invariant } from "../core/assert.ts";
import { allocate, type DType, type TypedArray } from "../core/dtype.ts";
import { bytesOf, setNumber, sizeOf, tensor, toNumbers, type Tensor } from "../core/tensor.ts";
import type { PackAxis, PackSpec, PanelSpec } from "../core/pack-spec.ts";
import { columnTerms } from "./quads.ts";
import { packUniformWinograd, packWinograd, packWinogradQuickly } from "./winograd-kernels.ts";

/** The packed form of a row-major tensor; the result is one-dimensional unless the spec is `copy`. */
export function packTensor(source: Tensor, spec: PackSpec): Tensor {
  if (spec.kind === "copy") return source;
  const { dtype, length } = packedForm(source, spec), out = allocate(dtype, length);
  packInto(out, source, spec);
  return tensor(dtype, [length], out);
}

/** Element type and number of elements of the packed form. */
export function packedForm(source: Pick<Tensor, "dtype" | "dims">, spec: PackSpec): { readonly dtype: DType; readonly length: number } {
  const length = packedLength(source.dims, spec);
  switch (spec.kind) {
    case "copy": return { dtype: source.dtype, length };
    case "panels": return { dtype: spec.as, length };
    case "nibbles": return { dtype: "uint8", length };
    case "permute": return { dtype: spec.as ?? source.dtype, length };
    case "winograd": return { dtype: "float32", length };
    case "terms": return { dtype: "int32", length };
  }
}

/** Writes the packed form into `out`, an array of its type and length, whatever that holds. */
export function packInto(out: TypedArray, source: Tensor, spec: PackSpec): void {
  switch (spec.kind) {
    case "copy": copyInto(out, source); return;
    case "panels": clear(out); packPanels(out, source, spec); return;
    case "nibbles": clear(out); packNibbles(out as Uint8Array, source, spec); return;
    case "permute": packPermuted(out, source, spec); return;
    case "winograd": if (source.data instanceof Float32Array) packWinogradQuickly(out as Float32Array, source.data, spec); else packWinograd(out as Float32Array, toNumbers(source), spec); return;
    case "terms": columnTerms(out as Int32Array, packTensor(source, spec.of).data as Int8Array, 8 * spec.of.k);
  }
}

/** As `packInto`, of a tensor whose elements are all that of `one`; `whole` makes that tensor where it is needed. */
export function packUniformInto(out: TypedArray, one: Tensor, whole: () => Tensor, spec: PackSpec): void {
  const value = toNumbers(one)[0] ?? 0;
  if (spec.kind === "winograd") packUniformWinograd(out as Float32Array, value, spec);
  else if (spec.kind === "panels" && isPlain(spec)) fillPanels(out as Float32Array, value, spec);
  else packInto(out, whole(), spec);
}

/** Whether panels hold float32 as it is, and zeros past the last column alone. */
const isPlain = ({ as, kStep, subtract = 0, strideK }: Spec<"panels">): boolean => as === "float32" && kStep === 1 && subtract === 0 && strideK.every(({ size, padded = size }) => padded === size);

function fillPanels(out: Float32Array, value: number, { groups, k, n, nr }: Spec<"panels">): void {
  const columns = n % nr, panels = Math.ceil(n / nr);
  out.fill(value);
  if (columns === 0) return;
  for (let g = 0; g < groups; g++) for (let at = ((g + 1) * panels - 1) * k * nr, end = at + k * nr; at < end; at += nr) out.fill(0, at + columns, at + nr);
}

const bytesIn = (data: TypedArray): Uint8Array => new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
function copyInto(out: TypedArray, source: Tensor): void { bytesIn(out).set(bytesOf(source)); }
function clear(out: TypedArray): void { bytesIn(out).fill(0); }

/** Elements of the packed form of a tensor of these dims. */
export function packedLength(dims: readonly number[], spec: PackSpec): number {
  switch (spec.kind) {
    case "copy": return sizeOf(dims);
    case "panels": return spec.groups * Math.ceil(spec.n / spec.nr) * Math.ceil(spec.k / spec.kStep) * spec.kStep * spec.nr;
    case "nibbles": return Math.ceil(spec.n / 8) * Math.ceil(spec.k / 2) * 8;
    case "permute": return sizeOf(spec.shape);
    case "winograd": return Math.ceil(spec.m / spec.nr) * spec.nr * (spec.tile + 2) ** 2 * spec.c;
    case "terms": return spec.of.groups * Math.ceil(spec.of.n / spec.of.nr) * 16;
  }
}

type Spec<K extends PackSpec["kind"]> = Extract<PackSpec, { kind: K }>;

function packPanels(out: TypedArray, source: Tensor, spec: Spec<"panels">): void {
  const from = toNumbers(source);
  const { groups, k, n, nr, kStep, strideG, strideK, strideN, subtract = 0, offset: start = 0 } = spec;
  const depth = positions(strideK);
  invariant(depth.length === k, `panels of depth ${k} from axes of ${depth.length}`);
  const steps = Math.ceil(k / kStep), panels = Math.ceil(n / nr);
  if (kStep === 1 && subtract === 0 && spec.as === "float32" && !depth.includes(none)) {
    for (let g = 0, at = 0; g < groups; g++) for (let panel = 0; panel < panels; panel++) {
      const lanes = Math.min(nr, n - panel * nr), first = start + g * strideG + panel * nr * strideN;
      for (let i = 0; i < k; i++, at += nr) for (let lane = 0, read = first + (depth[i] ?? 0); lane < lanes; lane++, read += strideN) out[at + lane] = from[read] ?? 0;
    }
    return;
  }
  for (let g = 0; g < groups; g++) for (let column = 0; column < n; column++) {
    const base = ((g * panels + Math.floor(column / nr)) * steps * nr + (column % nr)) * kStep;
    const read = start + g * strideG + column * strideN;
    const less = typeof subtract === "number" ? subtract : subtract[g * n + column] ?? 0;
    for (let i = 0; i < k; i++) {
      const step = Math.floor(i / kStep);
      const at = depth[i] ?? none;
      if (at !== none) put(out, spec.as, base + step * nr * kStep + (i - step * kStep), (from[read + at] ?? 0) - less);
    }
  }
}

/** Whether no column of panels has elements that differ by more than 127; none may have padding within. */
export function spanSevenBits(source: Tensor, { groups, n, strideG, strideK, strideN, offset = 0 }: PanelSpec): boolean {
  const from = toNumbers(source), depth = positions(strideK);
  for (let g = 0; g < groups; g++) for (let column = 0; column < n; column++) {
    const read = offset + g * strideG + column * strideN;
    let low = Infinity, high = -Infinity;
    for (const at of depth) {
      const v = from[read + at] ?? 0;
      if (v < low) low = v;
      if (v > high) high = v;
    }
    if (high - low > 127) return false;
  }
  return true;
}

function packNibbles(out: Uint8Array, source: Tensor, spec: Spec<"nibbles">): void {
  const from = toNumbers(source), { k, n, strideK, strideN, middle, offset = 0 } = spec;
  const pairs = Math.ceil(k / 2);
  for (let column = 0; column < n; column++) for (let row = 0; row < k; row++) {
    const at = (Math.floor(column / 8) * pairs + (row >> 1)) * 8 + (column % 8);
    out[at] = (out[at] ?? 0) | ((((from[offset + row * strideK + column * strideN] ?? 0) - middle) & 15) << (4 * (row & 1)));
  }
}

function put(out: TypedArray, dtype: DType, i: number, value: number): void {
  if (dtype === "float32" || dtype === "int8" || dtype === "int16") out[i] = value;
  else setNumber(out, dtype, i, value);
}

/** The offset of padding. */
const none = -(2 ** 53);

/** Offsets of a nest of axes, outermost first. */
function positions(axes: readonly PackAxis[]): readonly number[] {
  let out = [0];
  for (const { size, stride, padded = size } of axes) {
    const next: number[] = [];
    for (const p of out) for (let i = 0; i < padded; i++) next.push(i >= size || p === none ? none : p + i * stride);
    out = next;
  }
  return out;
}

function packPermuted(out: TypedArray, source: Tensor, spec: Spec<"permute">): void {
  const { shape, strides, offset = 0, subtract = 0 } = spec, last = shape.length - 1;
  const rows = positions(shape.slice(0, Math.max(last, 0)).map((size, d) => ({ size, stride: strides[d] ?? 0 })));
  const width = shape[last] ?? 1, step = strides[last] ?? 0, dtype = spec.as ?? source.dtype;
  let at = 0;
  if (dtype === source.dtype && subtract === 0) {
    const raw = source.data as TypedArray;
    for (const row of rows) for (let i = 0, read = offset + row; i < width; i++, read += step) out[at++] = raw[read] ?? 0;
    return;
  }
  const from = toNumbers(source);
  for (const row of rows) for (let i = 0, read = offset + row; i < width; i++, read += step) put(out, dtype, at++, (from[read] ?? 0) - subtract);
}
