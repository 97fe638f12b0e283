/**
 * Results written to tensors that the caller gives (`into`), so that a run allocates nothing for them. What can be known
 * before a run is checked before it; sizes are checked when all steps have run, and nothing is written unless every
 * tensor fits. Loaded by runs that give any.
 */
import type { PortJson } from "../artifact/manifest.ts";
import type { isHeld } from "../core/container.ts";
import { fail } from "../core/diagnostic.ts";
import type { TypedArray } from "../core/dtype.ts";
import { isPacked, packElements } from "../core/packed.ts";
import { numericData } from "../core/tensor.ts";
import type { Buffers } from "./buffers.ts";
import type { elementsOf, isTensorLike, Tensor, TensorLike } from "./tensor.ts";

export type GivenTensors = Readonly<Record<string, TensorLike>>;

/** The runtime's own; they are not loaded twice. */
export interface RuntimeParts {
  readonly Tensor: typeof Tensor;
  readonly elementsOf: typeof elementsOf;
  readonly isTensorLike: typeof isTensorLike;
  readonly isHeld: typeof isHeld;
}

/** A place for one result. */
interface Place {
  readonly tensor: Tensor;
  /** The caller's memory. */
  readonly memory: Uint8Array;
}

/** The tensors given for the results of one run. */
export class GivenOutputs {
  readonly #places: ReadonlyMap<string, Place>;

  /** Fails with OF7003 and OF7006 where a type or length is wrong, with OF7023 where a tensor cannot take a result. */
  constructor(outputs: readonly PortJson[], into: GivenTensors, kept: readonly string[], parts: RuntimeParts) {
    const places = new Map<string, Place>();
    for (const port of outputs) {
      const given = Object.hasOwn(into, port.name) ? into[port.name] : undefined;
      if (given === undefined) continue;
      if (kept.includes(port.name)) refuse(port.name, "it is also to be kept in WebAssembly memory", "leave it out of `keep` or of `into`");
      const place = placeFor(port, given, parts);
      for (const [other, { memory }] of places) if (overlap(memory, place.memory)) refuse(port.name, `it shares memory with what is given for '${other}'`, "give every output memory of its own");
      places.set(port.name, place);
    }
    this.#places = places;
  }

  /** Fails with OF7004 where a tensor has other dims than its result. */
  check(outputs: readonly PortJson[], dimsOf: (port: PortJson) => readonly number[]): void {
    for (const port of outputs) {
      const place = this.#places.get(port.name);
      if (!place) continue;
      const { dims } = place.tensor, actual = dimsOf(port);
      if (dims.length !== actual.length || dims.some((d, axis) => d !== actual[axis])) fail("OF7004", `output '${port.name}' is [${actual.join(", ")}]; the tensor given for it has dims [${dims.join(", ")}]`);
    }
  }

  /** Writes a result to the tensor given for it, and gives that; undefined where none was given. */
  write({ name, buffer, dtype }: PortJson, buffers: Buffers): Tensor | undefined {
    const place = this.#places.get(name);
    if (!place) return undefined;
    if (isPacked(dtype)) place.memory.set(packElements(dtype, numericData(buffers.read(buffer))));
    else buffers.readInto(buffer, buffers.dims(buffer), place.memory);
    return place.tensor;
  }
}

function placeFor(port: PortJson, given: unknown, { Tensor, elementsOf, isTensorLike, isHeld }: RuntimeParts): Place {
  const { name, dtype } = port;
  if (isHeld(port)) refuse(name, `a ${port.container ? port.container.kind : "tensor of strings"} is no block of memory`, "leave it out of `into`");
  if (!isTensorLike(given)) return refuse(name, "it is not a tensor", "give new Tensor(type, data, dims)");
  if (given.type !== dtype) fail("OF7003", `output '${name}' is ${dtype}, not ${given.type}`);
  if (given instanceof Tensor && given.resident) refuse(name, "it lies in WebAssembly memory", "give a tensor around a typed array; kept results are for feeding back");
  const { data, dims } = given;
  if (!ArrayBuffer.isView(data)) return refuse(name, "its elements are not a typed array", "give new Tensor(type, data, dims)");
  elementsOf(dtype, data, dims, `what is given for output '${name}'`);
  return { tensor: given instanceof Tensor ? given : new Tensor(dtype, data as TypedArray, dims), memory: new Uint8Array(data.buffer, data.byteOffset, data.byteLength) };
}

function refuse(name: string, reason: string, hint: string): never {
  return fail("OF7023", `what is given for output '${name}' cannot take it: ${reason}`, { hint });
}

const overlap = (a: Uint8Array, b: Uint8Array): boolean =>
  a.buffer === b.buffer && Math.max(a.byteOffset, b.byteOffset) < Math.min(a.byteOffset + a.byteLength, b.byteOffset + b.byteLength);
