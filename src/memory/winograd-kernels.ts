/**
 * Winograd's transform of 3x3 kernels, F(2x2,3x3) and F(4x4,3x3) (Lavin and Gray, "Fast algorithms for convolutional
 * neural networks"), in the order in which compiled convolutions read them. Computed in float64 and rounded once. It runs
 * when an artifact is loaded, before its first inference, so its time counts.
 */
import type { PackSpec } from "../core/pack-spec.ts";
import { winogradCode } from "./winograd-code.ts";

type Spec = Extract<PackSpec, { kind: "winograd" }>;

/** Bytes of the module's memory that are its own, and channels that are transformed at once: as many as fit in the rest of it. */
const ownBytes = 288, channelsAtOnce = 128;

/**
 * As `packWinograd`, by WebAssembly where that is worth a module, which needs no time to become quick: what a first
 * inference waits for. Gives the same bits.
 */
export function packWinogradQuickly(out: Float32Array, from: Float32Array, spec: Spec): void {
  const { m, c, nr, tile } = spec;
  if (tile !== 4 || nr !== 8 || m * c < 256) { packWinograd(out, from, spec); return; }
  const { memory, transform } = new WebAssembly.Instance(new WebAssembly.Module(Uint8Array.from(atob(winogradCode), (x) => x.charCodeAt(0)))).exports as unknown as Exports;
  const kernels = new Float32Array(memory.buffer, ownBytes, nr * channelsAtOnce * 9), cells = new Float32Array(memory.buffer, ownBytes + kernels.byteLength, nr * channelsAtOnce * 36);
  for (let panel = 0; panel * nr < m; panel++) for (let first = 0; first < c; first += channelsAtOnce) {
    const count = Math.min(channelsAtOnce, c - first), used = Math.min(nr, m - panel * nr);
    for (let lane = 0; lane < used; lane++) {
      const at = ((panel * nr + lane) * c + first) * 9;
      kernels.set(from.subarray(at, at + count * 9), lane * count * 9);
    }
    for (let lane = 0; lane < used; lane += 2) transform(kernels.byteOffset + lane * count * 36, count * 36, count, cells.byteOffset + lane * 4, nr * 4, count * nr * 4);
    if (used < nr) for (let at = used; at < 36 * count * nr; at += nr) cells.fill(0, at, at + nr - used);
    for (let cell = 0; cell < 36; cell++) out.set(cells.subarray(cell * count * nr, (cell + 1) * count * nr), ((panel * 36 + cell) * c + first) * nr);
  }
}

/** What scripts/code/winograd.ts says that the module exports. */
interface Exports {
  readonly memory: WebAssembly.Memory;
  readonly transform: (from: number, next: number, count: number, to: number, step: number, cell: number) => void;
}

/** Writes U = G·g·Gᵀ of every 3x3 kernel of `from`, [M, C, 3, 3], to `out`: [ceil(M/nr)][cells][C][nr], zeros past M. */
export function packWinograd(out: Float32Array, from: ArrayLike<number>, spec: Spec): void {
  const { m, c, nr } = spec, cells = (spec.tile + 2) ** 2, transform = transformOf(spec);
  // A channel's lanes are gathered before they are stored: its cells lie far apart in `out`.
  const lanes = new Float32Array(cells * nr), half = new Float64Array(18);
  for (let panel = 0; panel * nr < m; panel++) {
    const used = Math.min(nr, m - panel * nr);
    lanes.fill(0);
    for (let channel = 0; channel < c; channel++) {
      for (let lane = 0; lane < used; lane++) transform(from, ((panel * nr + lane) * c + channel) * 9, half, lanes, lane, nr);
      let at = (panel * cells * c + channel) * nr;
      for (let cell = 0, read = 0; cell < cells; cell++, at += c * nr) for (let lane = 0; lane < nr; lane++) out[at + lane] = lanes[read++] ?? 0;
    }
  }
}

/** As `packWinograd`, of kernels whose elements are all `value`. */
export function packUniformWinograd(out: Float32Array, value: number, spec: Spec): void {
  const { m, c, nr } = spec, cells = (spec.tile + 2) ** 2, kernel = new Float32Array(cells);
  transformOf(spec)(new Float64Array(9).fill(value), 0, new Float64Array(18), kernel, 0, 1);
  for (let panel = 0, at = 0; panel * nr < m; panel++) {
    const used = Math.min(nr, m - panel * nr);
    for (const element of kernel) {
      const end = at + c * nr;
      if (used === nr) out.fill(element, at, end);
      else for (let i = at; i < end; i += nr) out.fill(element, i, i + used).fill(0, i + used, i + nr);
      at = end;
    }
  }
}

const transformOf = ({ tile }: Spec): typeof transformOf4 => (tile === 4 ? transformOf4 : transformOf2);

/** One kernel at `g`: `half` = G·g by columns, then each row of it times Gᵀ, to `lane` of each cell. */
function transformOf4(from: ArrayLike<number>, g: number, half: Float64Array, lanes: Float32Array, lane: number, nr: number): void {
  for (let x = 0; x < 3; x++) {
    const a = from[g + x] ?? 0, b = from[g + 3 + x] ?? 0, d = from[g + 6 + x] ?? 0;
    const outer = (a + d) / -6, middle = b / 6, near = a / 24 + d / 6, step = b / 12;
    half[x] = a / 4;
    half[3 + x] = outer - middle;
    half[6 + x] = outer + middle;
    half[9 + x] = near + step;
    half[12 + x] = near - step;
    half[15 + x] = d;
  }
  for (let row = 0, at = lane; row < 18; row += 3, at += 6 * nr) {
    const a = half[row] ?? 0, b = half[row + 1] ?? 0, d = half[row + 2] ?? 0;
    const outer = (a + d) / -6, middle = b / 6, near = a / 24 + d / 6, step = b / 12;
    lanes[at] = a / 4;
    lanes[at + nr] = outer - middle;
    lanes[at + 2 * nr] = outer + middle;
    lanes[at + 3 * nr] = near + step;
    lanes[at + 4 * nr] = near - step;
    lanes[at + 5 * nr] = d;
  }
}

function transformOf2(from: ArrayLike<number>, g: number, half: Float64Array, lanes: Float32Array, lane: number, nr: number): void {
  for (let x = 0; x < 3; x++) {
    const a = from[g + x] ?? 0, b = from[g + 3 + x] ?? 0, d = from[g + 6 + x] ?? 0;
    const outer = (a + d) / 2, middle = b / 2;
    half[x] = a;
    half[3 + x] = outer + middle;
    half[6 + x] = outer - middle;
    half[9 + x] = d;
  }
  for (let row = 0, at = lane; row < 12; row += 3, at += 4 * nr) {
    const a = half[row] ?? 0, b = half[row + 1] ?? 0, d = half[row + 2] ?? 0;
    const outer = (a + d) / 2, middle = b / 2;
    lanes[at] = a;
    lanes[at + nr] = outer + middle;
    lanes[at + 2 * nr] = outer - middle;
    lanes[at + 3 * nr] = d;
  }
}
