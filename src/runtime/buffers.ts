/** Reading and writing tensors of a running program: row-major outside, laid out as the manifest says inside. */
import type { BufferJson } from "../artifact/manifest.ts";
import { invariant, present } from "../core/assert.ts";
import { isHeld } from "../core/container.ts";
import { asTensor, type Datum } from "../core/datum.ts";
import { allocate, byteSize, viewBytes, type TypedArray } from "../core/dtype.ts";
import { rowMajorStrides, sizeOf, type Tensor } from "../core/tensor.ts";
import type { Arena } from "./arena.ts";
import type { Heap } from "./heap.ts";

export class Buffers {
  readonly #buffers: readonly BufferJson[];
  readonly #arena: Arena;
  readonly #heap: Heap;
  /** What has no place in memory: strings, sequences, optionals and maps. */
  readonly #held = new Map<number, Datum>();
  /** Held constants, which outlive a run. */
  readonly #constants: ReadonlyMap<number, Datum>;

  constructor(buffers: readonly BufferJson[], arena: Arena, heap: Heap, constants: ReadonlyMap<number, Datum> = new Map()) {
    this.#constants = constants;
    this.#buffers = buffers;
    this.#arena = arena;
    this.#heap = heap;
  }

  of(index: number): BufferJson { return present(this.#buffers[index], "buffer"); }
  dims(index: number): number[] { return this.#arena.sizes(this.of(index).dims); }

  /** Byte address of the first element of a buffer that is not held. */
  address(index: number): number {
    const b = this.of(index);
    return this.#arena.address(present(b.at, b.name)) + (b.offset === undefined ? 0 : this.#arena.size(b.offset) * byteSize(b.dtype));
  }

  /** The value, whatever it is; a tensor's elements are a copy. */
  readDatum(index: number): Datum {
    const buffer = this.of(index);
    if (!isHeld(buffer)) return this.read(index);
    const value = this.#held.has(index) ? this.#held.get(index) : this.#constants.get(index);
    invariant(value !== undefined, `${buffer.name} has no value`);
    return value;
  }
  writeDatum(index: number, value: Datum): void {
    const buffer = this.of(index);
    if (isHeld(buffer)) this.#held.set(index, value);
    else this.write(index, asTensor(value, buffer.name));
  }
  /** Forgets what is held but constants. */
  release(): void { this.#held.clear(); }

  /** A copy of the elements. */
  read(index: number): Tensor {
    const buffer = this.of(index), { dtype } = buffer;
    if (isHeld(buffer)) return asTensor(this.readDatum(index), buffer.name);
    const dims = this.dims(index);
    if (!this.#strides(index, dims)) {
      const base = this.address(index);
      // Made from an array, a new one is not filled with zeros first, as by `slice`.
      return { dtype, dims, data: viewBytes(dtype, new Uint8Array(this.#heap.bytes.subarray(base, base + sizeOf(dims) * byteSize(dtype)))) };
    }
    const data = allocate(dtype, sizeOf(dims));
    this.readInto(index, dims, data);
    return { dtype, dims, data };
  }

  readInto(index: number, dims: readonly number[], data: TypedArray): void {
    const size = byteSize(this.of(index).dtype);
    const out = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    const { bytes } = this.#heap;
    const base = this.address(index);
    const strides = this.#strides(index, dims);
    if (!strides) out.set(bytes.subarray(base, base + out.length));
    else eachElement(dims, strides, (element, at) => out.set(bytes.subarray(base + at * size, base + (at + 1) * size), element * size));
  }

  write(index: number, t: Tensor): void {
    const buffer = this.of(index), { dtype } = buffer;
    if (isHeld(buffer)) { this.#held.set(index, t); return; }
    const data = t.data as TypedArray;
    const source = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    const { bytes } = this.#heap;
    const size = byteSize(dtype), base = this.address(index);
    const strides = this.#strides(index, t.dims);
    if (!strides) bytes.set(source, base);
    else eachElement(t.dims, strides, (element, at) => bytes.set(source.subarray(element * size, (element + 1) * size), base + at * size));
  }

  /** Copies within memory from `address`, where the elements are row-major. */
  writeFrom(index: number, address: number, dims: readonly number[]): void {
    const { dtype } = this.of(index);
    const { bytes } = this.#heap;
    const length = sizeOf(dims) * byteSize(dtype);
    if (this.#strides(index, dims)) this.write(index, { dtype, dims, data: viewBytes(dtype, bytes.slice(address, address + length)) });
    else bytes.copyWithin(this.address(index), address, address + length);
  }

  copy(from: number, to: number): void { this.writeDatum(to, this.readDatum(from)); }

  /** Strides that are not row-major; undefined where the elements are one row-major run. */
  #strides(index: number, dims: readonly number[]): readonly number[] | undefined {
    const declared = this.of(index).strides;
    if (!declared) return undefined;
    const strides = this.#arena.sizes(declared), dense = rowMajorStrides(dims);
    return strides.every((s, d) => s === dense[d] || dims[d] === 1) ? undefined : strides;
  }
}

/** Calls `visit` with the row-major number and the strided position of every element. */
function eachElement(dims: readonly number[], strides: readonly number[], visit: (element: number, at: number) => void): void {
  const count = sizeOf(dims);
  const index = dims.map(() => 0);
  let at = 0;
  for (let element = 0; element < count; element++) {
    visit(element, at);
    for (let d = dims.length - 1; d >= 0; d--) {
      const stride = strides[d] ?? 0, size = dims[d] ?? 1;
      index[d] = (index[d] ?? 0) + 1;
      at += stride;
      if ((index[d] ?? 0) < size) break;
      at -= stride * size;
      index[d] = 0;
    }
  }
}
