/**
 * Makes packed weights: the element orders that compiled kernels read. Runs in the compiler for constants, and in the
 * runtime for initializers that are fed.
 */
import { invariant } from "../core/assert.ts";
import { allocate, type DType, type TypedArray } from "../core/dtype.ts";
import { setNumber, sizeOf, tensor, toNumbers, type Tensor } from "../core/tensor.ts";
import type { PackAxis, PackSpec } from "../core/pack-spec.ts";

/** The packed form of a row-major tensor; the result is one-dimensional unless the spec is `copy`. */
export function packTensor(source: Tensor, spec: PackSpec): Tensor {
  switch (spec.kind) {
    case "copy": return source;
    case "panels": return packPanels(source, spec);
    case "nibbles": return packNibbles(source, spec);
    case "permute": return packPermuted(source, spec);
    case "winograd": return packWinograd(source, spec);
  }
}

/** Elements of the packed form of a tensor of these dims. */
export function packedLength(dims: readonly number[], spec: PackSpec): number {
  switch (spec.kind) {
    case "copy": return sizeOf(dims);
    case "panels": return spec.groups * Math.ceil(spec.n / spec.nr) * Math.ceil(spec.k / spec.kStep) * spec.kStep * spec.nr;
    case "nibbles": return Math.ceil(spec.n / 8) * Math.ceil(spec.k / 2) * 8;
    case "permute": return sizeOf(spec.shape);
    case "winograd": return Math.ceil(spec.m / spec.nr) * spec.nr * (spec.tile + 2) ** 2 * spec.c;
  }
}

type Spec<K extends PackSpec["kind"]> = Extract<PackSpec, { kind: K }>;

function packPanels(source: Tensor, spec: Spec<"panels">): Tensor {
  const from = toNumbers(source);
  const { groups, k, n, nr, kStep, strideG, strideK, strideN } = spec;
  const out = allocate(spec.as, packedLength(source.dims, spec));
  const { subtract = 0, offset: start = 0 } = spec;
  const depth = positions(strideK);
  invariant(depth.length === k, `panels of depth ${k} from axes of ${depth.length}`);
  const steps = Math.ceil(k / kStep), panels = Math.ceil(n / nr);
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
  return tensor(spec.as, [out.length], out);
}

function packNibbles(source: Tensor, spec: Spec<"nibbles">): Tensor {
  const from = toNumbers(source), { k, n, strideK, strideN, least, offset = 0 } = spec;
  const out = new Uint8Array(packedLength(source.dims, spec)), pairs = Math.ceil(k / 2);
  for (let column = 0; column < n; column++) for (let row = 0; row < k; row++) {
    const at = (Math.floor(column / 8) * pairs + (row >> 1)) * 8 + (column % 8);
    out[at] = (out[at] ?? 0) | (((from[offset + row * strideK + column * strideN] ?? 0) - least) << (4 * (row & 1)));
  }
  return tensor("uint8", [out.length], out);
}

function put(out: TypedArray, dtype: DType, i: number, value: number): void {
  if (dtype === "float32" || dtype === "int8" || dtype === "int16") out[i] = value;
  else setNumber(out, dtype, i, value);
}

/** The offset of padding. */
const none = -(2 ** 53);

/** Offsets of a nest of axes, outermost first. */
function positions(axes: readonly PackAxis[]): number[] {
  let out = [0];
  for (const { size, stride, padded = size } of axes) out = out.flatMap((p) => Array.from({ length: padded }, (_, i) => (i >= size || p === none ? none : p + i * stride)));
  return out;
}

function packPermuted(source: Tensor, spec: Spec<"permute">): Tensor {
  const from = toNumbers(source);
  const at = positions(spec.shape.map((size, d) => ({ size, stride: spec.strides[d] ?? 0 })));
  const dtype = spec.as ?? source.dtype;
  const out = allocate(dtype, at.length);
  const start = spec.offset ?? 0;
  if (dtype === source.dtype && spec.subtract === undefined) {
    const raw = source.data as TypedArray;
    for (const [i, p] of at.entries()) out[i] = raw[start + p] ?? 0;
  } else for (const [i, p] of at.entries()) put(out, dtype, i, (from[start + p] ?? 0) - (spec.subtract ?? 0));
  return tensor(dtype, [out.length], out);
}

/** F(2x2,3x3) and F(4x4,3x3) kernel transforms (Lavin & Gray, "Fast algorithms for convolutional neural networks"). */
const kernelTransform: Readonly<Record<2 | 4, readonly (readonly [number, number, number])[]>> = {
  2: [[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]],
  4: [[1 / 4, 0, 0], [-1 / 6, -1 / 6, -1 / 6], [-1 / 6, 1 / 6, -1 / 6], [1 / 24, 1 / 12, 1 / 6], [1 / 24, -1 / 12, 1 / 6], [0, 0, 1]],
};

/** U = G·g·Gᵀ for every pair of channels, computed in float64. */
function packWinograd(source: Tensor, spec: Spec<"winograd">): Tensor {
  const from = toNumbers(source);
  const { m, c, nr } = spec, rows = kernelTransform[spec.tile], size = rows.length;
  const out = new Float32Array(packedLength(source.dims, spec));
  const half = new Float64Array(size * 3), step = c * nr;
  const p = Float64Array.from(rows, (r) => r[0]), q = Float64Array.from(rows, (r) => r[1]), r = Float64Array.from(rows, (x) => x[2]);
  for (let panel = 0; panel * nr < m; panel++) for (let channel = 0; channel < c; channel++) for (let lane = 0; lane < nr && panel * nr + lane < m; lane++) {
    const g = ((panel * nr + lane) * c + channel) * 9;
    // half = G·g, then each row of it times Gᵀ.
    for (let x = 0; x < 3; x++) {
      const a = from[g + x] ?? 0, b = from[g + 3 + x] ?? 0, d = from[g + 6 + x] ?? 0;
      for (let i = 0; i < size; i++) half[i * 3 + x] = (p[i] ?? 0) * a + (q[i] ?? 0) * b + (r[i] ?? 0) * d;
    }
    let at = (panel * size * size * c + channel) * nr + lane;
    for (let i = 0; i < size; i++) {
      const a = half[i * 3] ?? 0, b = half[i * 3 + 1] ?? 0, d = half[i * 3 + 2] ?? 0;
      for (let j = 0; j < size; j++, at += step) out[at] = (p[j] ?? 0) * a + (q[j] ?? 0) * b + (r[j] ?? 0) * d;
    }
  }
  return tensor("float32", [out.length], out);
}
