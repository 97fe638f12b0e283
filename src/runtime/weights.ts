/** Fills the weights' memory: from the artifact at load, and from what is fed for initializers that may be overridden. */
import type { DataJson, Manifest, WeightJson } from "../artifact/manifest.ts";
import { present } from "../core/assert.ts";
import { byteSize, viewBytes } from "../core/dtype.ts";
import { isPacked, unpackElements } from "../core/packed.ts";
import { decodeStrings } from "../core/string-bytes.ts";
import { widenFloat16 } from "../core/float16.ts";
import { numericData, rowMajorStrides, sizeOf, type Tensor } from "../core/tensor.ts";
import { packTensor } from "../memory/pack.ts";
import type { Heap } from "./heap.ts";

/** The elements that `d` stands for. */
export function readData(d: DataJson, section: Uint8Array): Tensor {
  const stored = section.subarray(d.offset, d.offset + d.length);
  if (!d.fill && isPacked(d.dtype)) return { dtype: d.dtype, dims: d.dims, data: unpackElements(d.dtype, stored, sizeOf(d.dims)) };
  if (d.dtype === "string") return { dtype: d.dtype, dims: d.dims, data: decodeStrings(stored, sizeOf(d.dims)) };
  if (!d.fill) return { dtype: d.dtype, dims: d.dims, data: viewBytes(d.dtype, stored) };
  const bytes = new Uint8Array(sizeOf(d.dims) * byteSize(d.dtype));
  repeat(bytes, stored);
  return { dtype: d.dtype, dims: d.dims, data: viewBytes(d.dtype, bytes) };
}

/** Fills `bytes` with copies of `element`, doubling what is done. */
function repeat(bytes: Uint8Array, element: Uint8Array): void {
  bytes.set(element.subarray(0, bytes.length));
  for (let done = element.length; done < bytes.length; done *= 2) bytes.copyWithin(done, 0, Math.min(done, bytes.length - done));
}

/** Integers times scales, whose sizes are theirs or 1. */
function scale(source: Tensor, scales: Tensor, to: Float32Array): void {
  const from = numericData(source) as Int8Array, by = numericData(scales) as Float32Array;
  const rank = source.dims.length, own = rowMajorStrides(scales.dims), strides = scales.dims.map((d, i) => (d === 1 ? 0 : (own[i] ?? 0)));
  const inner = source.dims[rank - 1] ?? 1, step = strides[rank - 1] ?? 0, index = source.dims.map(() => 0);
  for (let i = 0, at = 0; i < to.length;) {
    for (let x = 0; x < inner; x++, i++) to[i] = (from[i] ?? 0) * (by[at + x * step] ?? 0);
    for (let d = rank - 2; d >= 0; d--) {
      const size = source.dims[d] ?? 1, n = (index[d] ?? 0) + 1;
      at += strides[d] ?? 0;
      index[d] = n;
      if (n < size) break;
      at -= (strides[d] ?? 0) * size;
      index[d] = 0;
    }
  }
}

export class Weights {
  readonly #manifest: Manifest;
  readonly #section: Uint8Array;
  readonly #heap: Heap;
  /** Overridable inputs whose fed elements, not their defaults, are packed now. */
  readonly #overridden = new Set<string>();

  constructor(manifest: Manifest, section: Uint8Array, heap: Heap) {
    this.#manifest = manifest;
    this.#section = section;
    this.#heap = heap;
  }

  /** Fills everything, overridable initializers with their defaults. */
  fill(): void {
    for (const w of this.#manifest.weights) {
      if ("input" in w.source) this.#store(w, this.#default(w.source.input));
      else if (w.widen) this.#widened(w, w.source, w.widen);
      else if (w.pack || (isPacked(w.source.dtype) && !w.source.fill)) this.#store(w, readData(w.source, this.#section));
      else if (w.source.fill) repeat(this.#heap.bytes.subarray(w.at, w.at + w.bytes), this.#section.subarray(w.source.offset, w.source.offset + w.source.length));
      else this.#heap.bytes.set(this.#section.subarray(w.source.offset, w.source.offset + w.source.length), w.at);
    }
  }

  /** Packs what is fed for overridable initializers, and their defaults again where nothing is fed any more. */
  override(fed: (input: string) => Tensor | undefined): void {
    for (const input of this.#manifest.inputs) {
      if (!input.default) continue;
      const given = fed(input.name);
      if (!given && !this.#overridden.has(input.name)) continue;
      const elements = given ?? this.#default(input.name);
      for (const w of this.#manifest.weights) if ("input" in w.source && w.source.input === input.name) this.#store(w, elements);
      if (given) this.#overridden.add(input.name);
      else this.#overridden.delete(input.name);
    }
  }

  /** float16, or int8 times its scales, as float32: in place, or packed. */
  #widened(w: WeightJson, from: DataJson, { scales }: { readonly scales?: DataJson }): void {
    const source = readData(from, this.#section), { buffer } = this.#heap.bytes;
    const to = w.pack ? new Float32Array(sizeOf(source.dims)) : new Float32Array(buffer, w.at, sizeOf(source.dims));
    if (scales) scale(source, readData(scales, this.#section), to);
    else widenFloat16(numericData(source) as Uint16Array, to);
    if (w.pack) this.#store(w, { dtype: "float32", dims: source.dims, data: to });
  }

  #default(name: string): Tensor {
    const input = this.#manifest.inputs.find((i) => i.name === name);
    return readData(present(input?.default, `default of ${name}`), this.#section);
  }

  #store(w: WeightJson, source: Tensor): void {
    const data = numericData(w.pack ? packTensor(source, w.pack) : source);
    this.#heap.bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), w.at);
  }
}
