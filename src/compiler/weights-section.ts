/** The weights section of an artifact: every tensor once, aligned to 64 bytes, uniform tensors as one element. */
import { checksum } from "../artifact/checksum.ts";
import type { DataJson, WeightJson } from "../artifact/manifest.ts";
import { byteSize } from "../core/dtype.ts";
import { encodeStrings } from "../core/string-bytes.ts";
import type { PackSpec } from "../core/pack-spec.ts";
import { isPacked, packElements } from "../core/packed.ts";
import { bytesOf, fromNumbers, numericData, rowMajorStrides, sameBytes, sizeOf, stringsOf, tensor, toNumbers, type Tensor } from "../core/tensor.ts";
import type { StoredForm } from "../kernel/program.ts";
import { packedLength, packTensor } from "../memory/pack.ts";

const alignment = 64;

export class WeightsSection {
  readonly #pieces: { readonly offset: number; readonly bytes: Uint8Array }[] = [];
  readonly #byChecksum = new Map<number, { readonly offset: number; readonly bytes: Uint8Array }[]>();
  #end = 0;

  /** Stores a tensor. */
  add(t: Tensor): DataJson {
    if (t.dtype === "string") {
      const bytes = encodeStrings(stringsOf(t));
      return { dtype: t.dtype, dims: t.dims, offset: this.#store(bytes), length: bytes.length };
    }
    const bytes = bytesOf(t);
    const element = byteSize(t.dtype);
    const uniform = sizeOf(t.dims) > 1 && isUniform(bytes, element);
    const stored = uniform ? bytes.subarray(0, element) : isPacked(t.dtype) ? packElements(t.dtype, numericData(t)) : bytes;
    return { dtype: t.dtype, dims: t.dims, offset: this.#store(stored), length: stored.length, ...(uniform ? { fill: true } : {}) };
  }

  /**
   * Stores a weight, packed unless its packed form is larger, or is no longer uniform: then it is packed at load.
   */
  addPacked(t: Tensor, spec: PackSpec): Pick<WeightJson, "source" | "pack"> {
    if (spec.kind === "copy") return { source: this.add(t) };
    const grows = packedLength(t.dims, spec) * elementBytes(t, spec) > bytesOf(t).length;
    const uniform = isUniform(bytesOf(t), byteSize(t.dtype));
    if (grows && (!uniform || spec.kind === "winograd")) return { source: this.add(t), pack: spec };
    const packed = packTensor(t, spec);
    return uniform && !isUniform(bytesOf(packed), byteSize(packed.dtype)) ? { source: this.add(t), pack: spec } : { source: this.add(packed) };
  }

  /** Stores a weight in fewer bits, packed where that keeps its size; else it is packed at load. */
  addNarrow(t: Tensor, spec: PackSpec, stored: StoredForm): Pick<WeightJson, "source" | "pack" | "widen"> {
    const later = spec.kind === "copy" ? {} : { pack: spec };
    const early = spec.kind === "panels" && spec.as === "float32" && packedLength(t.dims, spec) <= sizeOf(t.dims);
    if (stored.as === "float16") {
      const halves = (x: Tensor): DataJson => this.add(fromNumbers("float16", x.dims, toNumbers(x)));
      return early ? { source: halves(packTensor(t, spec)), widen: {} } : { source: halves(t), widen: {}, ...later };
    }
    const { axis, bytes, scales } = stored, whole = tensor("int8", t.dims, bytes);
    // Scales stand before what they scale, so that it can be read to its place at once.
    if (!early) return { widen: { scales: this.add(tensor("float32", t.dims.map((d, i) => (i === axis ? d : 1)), scales)) }, source: this.add(whole), ...later };
    const panels = spec.groups * Math.ceil(spec.n / spec.nr), packed = packTensor(whole, { ...spec, as: "int8" });
    return { widen: { scales: this.add(panelScales(t, spec, axis, scales)) }, source: this.add(tensor("int8", [panels, spec.k, spec.nr], numericData(packed))) };
  }

  bytes(): Uint8Array {
    const out = new Uint8Array(this.#end);
    for (const p of this.#pieces) out.set(p.bytes, p.offset);
    return out;
  }

  /** What was stored, without the gaps. */
  get pieces(): readonly { readonly offset: number; readonly bytes: Uint8Array }[] { return this.#pieces; }

  #store(bytes: Uint8Array): number {
    const sum = checksum(bytes);
    const alike = this.#byChecksum.get(sum) ?? [];
    const same = alike.find((p) => sameBytes(p.bytes, bytes));
    if (same) return same.offset;
    const piece = { offset: this.#end, bytes };
    this.#pieces.push(piece);
    this.#byChecksum.set(sum, [...alike, piece]);
    this.#end = Math.ceil((piece.offset + bytes.length) / alignment) * alignment;
    return piece.offset;
  }
}

/** The scale of every column of every panel. */
function panelScales(t: Tensor, spec: Extract<PackSpec, { kind: "panels" }>, axis: number, scales: Float32Array): Tensor {
  const { groups, n, nr, strideG, strideN, offset = 0 } = spec, panels = Math.ceil(n / nr), inner = rowMajorStrides(t.dims)[axis] ?? 1;
  const out = new Float32Array(groups * panels * nr).fill(1);
  for (let g = 0; g < groups; g++) for (let column = 0; column < n; column++) {
    const channel = Math.floor((offset + g * strideG + column * strideN) / inner) % scales.length;
    out[(g * panels) * nr + column] = scales[channel] ?? 1;
  }
  return tensor("float32", [groups * panels, 1, nr], out);
}

const elementBytes = (t: Tensor, spec: PackSpec): number =>
  spec.kind === "panels" ? byteSize(spec.as) : spec.kind === "permute" ? byteSize(spec.as ?? t.dtype) : byteSize(t.dtype);

/** Whether all elements have the same bits. */
function isUniform(bytes: Uint8Array, element: number): boolean {
  if (element === 4 && bytes.byteOffset % 4 === 0) {
    const words = new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4);
    const [first] = words;
    for (let i = 1; i < words.length; i++) if (words[i] !== first) return false;
    return words.length > 1;
  }
  for (let i = element; i < bytes.length; i++) if (bytes[i] !== bytes[i - element]) return false;
  return bytes.length > element;
}
