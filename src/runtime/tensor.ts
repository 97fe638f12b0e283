/** Tensors that go into and come out of a session; of the same shape as onnxruntime-common's. */
import { fail } from "../core/diagnostic.ts";
import { allocate, dtypes, is64, type DType, type TensorData, type TypedArray } from "../core/dtype.ts";
import { toBfloat16, toFloat16 } from "../core/float16.ts";
import { sizeOf } from "../core/tensor.ts";

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
   * @param type element type; float16 and bfloat16 take their bits in a Uint16Array (or a Float16Array where that exists)
   * @param data as many elements as `dims` say, row-major; typed arrays are not copied
   */
  constructor(type: DType, data: ElementSource | Resident, dims?: readonly number[]) {
    if (!(type in dtypes)) fail("OF7003", `there is no tensor type '${String(type)}'`);
    this.type = type;
    if (isResident(data)) {
      this.#resident = data;
      this.dims = dims ?? [];
      return;
    }
    this.#data = storageOf(type, data);
    this.dims = dims ?? [this.#data.length];
    checkLength(this.#data.length, this.dims, "the tensor");
  }

  /** The elements. For a result kept in WebAssembly memory, a copy. */
  get data(): TensorData {
    if (this.#resident) return this.#resident.read();
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

const isResident = (data: ElementSource | Resident): data is Resident => "owner" in data && "free" in data;

/** Refuses a length that the dims do not have, with OF7006. */
export function checkLength(length: number, dims: readonly number[], what: string): void {
  if (dims.some((d) => !Number.isSafeInteger(d) || d < 0)) fail("OF7004", `${what} has dims [${dims.join(", ")}]; sizes are whole numbers of at least 0`);
  if (length !== sizeOf(dims)) fail("OF7006", `${what} of [${dims.join(", ")}] needs ${sizeOf(dims)} elements and has ${length}`);
}

/** `data` as what core tensors store: the dtype's own typed array, float16 as bits, bool as bytes. */
export function storageOf(type: DType, data: unknown): TensorData {
  if (type === "string") {
    if (Array.isArray(data)) return data.map(String);
    return fail("OF7003", "a string tensor takes an array of strings");
  }
  const empty = allocate(type, 0);
  if (ArrayBuffer.isView(data)) {
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
    if (is64(type)) (out as BigInt64Array)[i] = BigInt(value as number | bigint);
    else out[i] = type === "float16" ? toFloat16(Number(value)) : type === "bfloat16" ? toBfloat16(Number(value)) : Number(value);
  });
  return out;
}
