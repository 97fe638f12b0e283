/** Fills the weights' memory: from the artifact at load, and from what is fed for initializers that may be overridden. */
import type { DataJson, Manifest, WeightJson } from "../artifact/manifest.ts";
import { present } from "../core/assert.ts";
import { byteSize, viewBytes } from "../core/dtype.ts";
import { isPacked, unpackElements } from "../core/packed.ts";
import { decodeStrings } from "../core/string-bytes.ts";
import { numericData, sizeOf, type Tensor } from "../core/tensor.ts";
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

  #default(name: string): Tensor {
    const input = this.#manifest.inputs.find((i) => i.name === name);
    return readData(present(input?.default, `default of ${name}`), this.#section);
  }

  #store(w: WeightJson, source: Tensor): void {
    const data = numericData(w.pack ? packTensor(source, w.pack) : source);
    this.#heap.bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), w.at);
  }
}
