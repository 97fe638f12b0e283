/** The weights section of an artifact: every tensor once, aligned to 64 bytes, uniform tensors as one element. */
import { checksum, Checksum } from "../artifact/checksum.ts";
import type { DataJson, WeightJson } from "../artifact/manifest.ts";
import { byteSize, type DType } from "../core/dtype.ts";
import { encodeStrings } from "../core/string-bytes.ts";
import type { PackSpec } from "../core/pack-spec.ts";
import { isPacked, packElements } from "../core/packed.ts";
import { bytesOf, fromNumbers, numericData, rowMajorStrides, sameBytes, sizeOf, stringsOf, tensor, toNumbers, type Tensor } from "../core/tensor.ts";
import type { StoredForm } from "../kernel/program.ts";
import { packedForm, packedLength, packTensor } from "../memory/pack.ts";

const alignment = 64;

export class WeightsSection {
  readonly #sum = new Checksum();
  readonly #pieces: { readonly offset: number; readonly bytes: Uint8Array }[] = [];
  readonly #byChecksum = new Map<number, { readonly offset: number; readonly bytes: Uint8Array }[]>();
  #end = 0;

  /** Stores a tensor. */
  add(t: Tensor, uniform = isUniform(t)): DataJson {
    if (t.dtype === "string") {
      const bytes = encodeStrings(stringsOf(t));
      return { dtype: t.dtype, dims: t.dims, offset: this.#store(bytes), length: bytes.length };
    }
    if (uniform) return this.#addUniform(t, t.dtype, t.dims);
    const stored = isPacked(t.dtype) ? packElements(t.dtype, numericData(t)) : bytesOf(t);
    return { dtype: t.dtype, dims: t.dims, offset: this.#store(stored), length: stored.length };
  }
  /** Stores the first element of `t` for all of `dims`. */
  #addUniform(t: Tensor, dtype: DType, dims: readonly number[]): DataJson {
    const length = byteSize(dtype);
    return { dtype, dims, offset: this.#store(bytesOf(t).subarray(0, length)), length, fill: true };
  }

  /**
   * Stores a weight, packed unless its packed form is larger, or is no longer uniform: then it is packed at load.
   */
  addPacked(t: Tensor, spec: PackSpec): Pick<WeightJson, "source" | "pack"> {
    if (spec.kind === "copy") return { source: this.add(t) };
    const form = packedForm(t, spec), uniform = isUniform(t);
    const grows = form.length * byteSize(form.dtype) > bytesOf(t).length;
    if (grows && (!uniform || spec.kind === "winograd")) return { source: this.add(t, uniform), pack: spec };
    if (uniform && onlyMoves(t, spec)) return { source: this.#addUniform(t, form.dtype, [form.length]) };
    const packed = packTensor(t, spec);
    if (!uniform) return { source: this.add(packed) };
    return isUniform(packed) ? { source: this.add(packed, true) } : { source: this.add(t, true), pack: spec };
  }

  /** Stores a weight in fewer bits, packed where that keeps its size; else it is packed at load. */
  addNarrow(t: Tensor, spec: PackSpec, stored: StoredForm): Pick<WeightJson, "source" | "pack" | "widen"> {
    const later = spec.kind === "copy" ? {} : { pack: spec };
    const early = spec.kind === "panels" && spec.as === "float32" && packedLength(t.dims, spec) <= sizeOf(t.dims);
    if (stored.as === "float16") {
      if (spec.kind === "panels" && spec.as === "float16") return { source: this.add(packTensor(t, spec)) };
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
    const sum = checksum(bytes, this.#sum);
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

/** Whether the packed form holds the elements as they are and nothing else. */
const onlyMoves = (t: Tensor, spec: PackSpec): boolean =>
  spec.kind === "panels" && spec.as === t.dtype && (spec.subtract ?? 0) === 0 && spec.n % spec.nr === 0 && spec.k % spec.kStep === 0 && spec.strideK.every((a) => (a.padded ?? a.size) === a.size);

/** Whether there are several elements and all have the same bits. */
function isUniform(t: Tensor): boolean {
  if (t.dtype === "string" || sizeOf(t.dims) <= 1) return false;
  const bytes = bytesOf(t), element = byteSize(t.dtype);
  return sameBytes(bytes.subarray(element), bytes.subarray(0, bytes.length - element));
}
