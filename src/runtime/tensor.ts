/** Tensors that go into and come out of a session; of the same shape as onnxruntime-common's. */
import { fail } from "../core/diagnostic.ts";
import { allocate, bitsOf, dtypes, integerRange, is64, isInteger, type DType, type TensorData, type TypedArray } from "../core/dtype.ts";
import { encoderOf } from "../core/float-bits.ts";
import { isPacked, packedBytes, packElements, unpackElements } from "../core/packed.ts";
import { numericData, sizeOf, type Tensor as CoreTensor } from "../core/tensor.ts";

/** What `run` accepts: a Tensor of ours or onnxruntime's, or a plain object of this shape. */
export interface TensorLike {
  readonly type: string;
  readonly data: unknown;
  readonly dims: readonly number[];
}

/** Elements that lie in a session's WebAssembly memory. */
export interface Resident {
  /** Identifies the session. */
  readonly owner: object;
  readonly address: number;
  readonly bytes: number;
  /** Copies the elements out; fails once the session is disposed. */
  read(): TypedArray;
  free(): void;
}

/** Elements in any form `new Tensor` takes: the dtype's typed array, or a list of values. */
export type ElementSource = TypedArray | readonly (number | bigint | boolean | string)[];

export class Tensor implements TensorLike {
  readonly type: DType;
  readonly dims: readonly number[];
  #data: TensorData | undefined;
  #resident: Resident | undefined;

  /**
   * @param type element type; float16 and bfloat16 take their bits in a Uint16Array (or a Float16Array where that exists),
   *   floats of 8 bits theirs in a Uint8Array
   * @param data as many elements as `dims` say, row-major; typed arrays are not copied. Typed arrays of int4, uint4, int2,
   *   uint2 and float4e2m1 hold packed bytes, the first element in the lowest bits, in a Uint8Array
   */
  constructor(type: DType, data: ElementSource | Resident, dims?: readonly number[]) {
    if (typeof type !== "string" || !Object.hasOwn(dtypes, type)) fail("OF7003", `there is no tensor type '${textOf(type)}'`);
    this.type = type;
    if (isResident(data)) {
      this.#resident = data;
      this.dims = dims ?? [];
      return;
    }
    const stored = !Array.isArray(data) || !isPacked(type) ? storageOf(type, data) : undefined;
    this.dims = dims ?? [stored && isPacked(type) ? (stored.length * 8) / bitsOf(type) : data.length];
    this.#data = stored ?? pack(type, elementsOf(type, data, this.dims, "the tensor"));
    if (stored) checkLength(type, stored.length, this.dims, "the tensor");
  }

  /** A tensor around elements that have a place each. */
  static of(t: CoreTensor): Tensor { return new Tensor(t.dtype, isPacked(t.dtype) ? pack(t.dtype, t.data) : (t.data as ElementSource), t.dims); }
  /** The elements with a place each, also where `data` packs several into a byte. */
  unpacked(): CoreTensor {
    const data = this.#resident ? this.#resident.read() : elementsOf(this.type, this.data, this.dims, "the tensor");
    return { dtype: this.type, dims: this.dims, data };
  }

  /** The elements. For a result kept in WebAssembly memory, a copy. */
  get data(): TensorData {
    if (this.#resident) return isPacked(this.type) ? pack(this.type, this.#resident.read()) : this.#resident.read();
    return this.#data ?? fail("OF7012", "this tensor has been disposed");
  }
  async getData(): Promise<TensorData> { return this.data; }
  /** Number of elements. */
  get size(): number { return sizeOf(this.dims); }
  /** `cpu`, or `wasm` for a kept result. */
  get location(): "cpu" | "wasm" { return this.#resident ? "wasm" : "cpu"; }
  /** Where a kept result lies. */
  get resident(): Resident | undefined { return this.#resident; }
  /** Gives a kept result's memory back to its session. The tensor must not be used afterwards. */
  dispose(): void {
    this.#resident?.free();
    this.#resident = undefined;
    this.#data = undefined;
  }
}

const isResident = (data: ElementSource | Resident): data is Resident => typeof data === "object" && data !== null && "owner" in data && "free" in data;

/** Elements put together as `data` gives them. */
const pack = (type: DType, elements: TensorData): Uint8Array => packElements(type, numericData({ dtype: type, dims: [], data: elements }));

/** What is given as a tensor's data, with a place for each element. Fails with OF7003, OF7004 or OF7006. */
export function elementsOf(type: DType, data: unknown, dims: readonly number[], what: string): TensorData {
  const stored = storageOf(type, data);
  if (!isPacked(type) || !ArrayBuffer.isView(stored) || !ArrayBuffer.isView(data)) {
    checkSize(stored.length, dims, what);
    return stored;
  }
  checkLength(type, stored.length, dims, what);
  return unpackElements(type, stored as Uint8Array, sizeOf(dims));
}

/** Refuses a typed array whose length the dims do not have, with OF7006. */
function checkLength(type: DType, length: number, dims: readonly number[], what: string): void {
  if (!isPacked(type)) return checkSize(length, dims, what);
  checkDims(dims, what);
  const bytes = packedBytes(type, sizeOf(dims));
  if (length !== bytes) fail("OF7006", `${what} of [${dims.join(", ")}] needs ${bytes} bytes of packed ${type} and has ${length}`);
}
function checkSize(length: number, dims: readonly number[], what: string): void {
  checkDims(dims, what);
  if (length !== sizeOf(dims)) fail("OF7006", `${what} of [${dims.join(", ")}] needs ${sizeOf(dims)} elements and has ${length}`);
}
function checkDims(dims: readonly number[], what: string): void {
  if (!Array.isArray(dims) || dims.some((d) => !Number.isSafeInteger(d) || d < 0)) fail("OF7004", `${what} has dims [${Array.isArray(dims) ? dims.map(textOf).join(", ") : textOf(dims)}]; sizes are whole numbers of at least 0`);
}

/** `data` in the dtype's own typed array: floats of 16 bits and fewer as bits, bool as bytes. Lists get an element a place. */
function storageOf(type: DType, data: unknown): TensorData {
  if (type === "string") {
    if (Array.isArray(data) && data.every((s) => typeof s === "string")) return data;
    return fail("OF7003", "a string tensor takes an array of strings");
  }
  const empty = allocate(type, 0);
  if (ArrayBuffer.isView(data)) {
    if (isPacked(type)) return data instanceof Uint8Array ? data : fail("OF7003", `a ${type} tensor takes a Uint8Array of packed elements, not a ${data.constructor.name}`);
    if (data.constructor === empty.constructor) return data as TypedArray;
    if (data.constructor.name === "Float16Array") {
      const values = data as unknown as ArrayLike<number> & ArrayBufferView;
      if (type === "float16") return new Uint16Array(values.buffer, values.byteOffset, values.length);
    }
    if (type === "uint8" && data.constructor.name === "Uint8ClampedArray") return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    return fail("OF7003", `a ${type} tensor takes a ${empty.constructor.name}, not a ${data.constructor.name}`);
  }
  if (!Array.isArray(data)) return fail("OF7003", `a ${type} tensor takes a ${empty.constructor.name} or an array`);
  const out = allocate(type, data.length);
  data.forEach((value: unknown, i) => {
    if (is64(type)) (out as BigInt64Array)[i] = integerOf(value, type);
    else out[i] = encode(numberOf(value, type), type);
  });
  return out;
}

function encode(value: number, type: DType): number {
  const toBits = encoderOf(type);
  if (toBits) return toBits(value);
  if (type === "bool") return value === 0 ? 0 : 1;
  const [least, most] = isInteger(type) ? integerRange(type) : [-Infinity, Infinity];
  return isInteger(type) && !(Number.isInteger(value) && value >= least && value <= most) ? notAnElement(value, type) : value;
}

/** Elements of listed values: numbers, truth values, or the texts NaN, Infinity and -Infinity that JSON has no numbers for. */
function numberOf(value: unknown, type: DType): number {
  if (typeof value === "number") return value;
  if (typeof value === "boolean" || typeof value === "bigint") return Number(value);
  return value === "NaN" || value === "Infinity" || value === "-Infinity" ? Number(value) : notAnElement(value, type);
}

/** 64-bit integers, as bigint, whole number, or digits. */
function integerOf(value: unknown, type: "int64" | "uint64"): bigint {
  const isWhole = typeof value === "bigint" || typeof value === "boolean" || (typeof value === "number" && Number.isSafeInteger(value)) || (typeof value === "string" && /^-?\d{1,20}$/.test(value));
  if (!isWhole) return notAnElement(value, type);
  const integer = BigInt(value);
  return (type === "int64" ? BigInt.asIntN(64, integer) : BigInt.asUintN(64, integer)) === integer ? integer : notAnElement(value, type);
}


/** What a wrong value is, in words: an object need not have a text. */
const textOf = (value: unknown): string => (typeof value === "object" || typeof value === "function" ? typeof value : String(value));
const notAnElement = (value: unknown, type: DType): never => fail("OF7003", `${typeof value === "object" ? "an object or list" : `'${textOf(value)}'`} is not an element of a ${type} tensor`);

/** Whether a value has what a tensor has. */
export const isTensorLike = (feed: unknown): feed is TensorLike =>
  typeof feed === "object" && feed !== null && "dims" in feed && Array.isArray(feed.dims) && "type" in feed && typeof feed.type === "string" && "data" in feed;
