/**
 * Elements of an artifact's weights section that JavaScript itself reads: defaults of inputs, constants of strings,
 * tensors in attributes of host operators, scales of
 * weights. They are copied out when the section is read; the rest of it goes to memory.
 */
import type { DataJson, Manifest, StepJson } from "../artifact/manifest.ts";
import { present } from "../core/assert.ts";
import { byteSize, viewBytes } from "../core/dtype.ts";
import { isPacked, unpackElements } from "../core/packed.ts";
import { decodeStrings } from "../core/string-bytes.ts";
import { sizeOf, type Tensor } from "../core/tensor.ts";

export class Constants {
  readonly #bytes = new Map<string, Uint8Array>();

  /** Keeps a copy of what lies where `d` says. */
  keep(d: DataJson, bytes: Uint8Array): void { this.#bytes.set(placeOf(d), bytes.slice()); }

  /** Whether what `d` stands for has been read. */
  has(d: DataJson): boolean { return this.#bytes.has(placeOf(d)); }

  /** The elements that `d`, one of `constantsOf`, stands for. */
  read(d: DataJson): Tensor { return readData(d, present(this.#bytes.get(placeOf(d)), "constant")); }
}

const placeOf = ({ offset, length }: DataJson): string => `${offset}:${length}`;

/** What `Constants` has to keep of an artifact, each place once. */
export function constantsOf({ inputs, held = [], steps, weights }: Manifest): readonly DataJson[] {
  const all = [...weights.flatMap((w) => w.widen?.scales ?? []), ...inputs.flatMap((i) => i.default ?? []), ...held.map((h) => h.data), ...steps.flatMap(inStep)];
  return [...new Map(all.map((d) => [placeOf(d), d])).values()];
}

function inStep(step: StepJson): readonly DataJson[] {
  if ("if" in step) return [...step.then, ...step.else].flatMap(inStep);
  if ("loop" in step) return step.loop.flatMap(inStep);
  if (!("host" in step)) return [];
  return Object.values(step.attributes).flatMap((a) => (typeof a === "object" && "tensor" in a ? [a.tensor] : []));
}

/** The elements that `d` stands for, from the bytes that lie where it says. */
export function readData(d: DataJson, stored: Uint8Array): Tensor {
  if (!d.fill && isPacked(d.dtype)) return { dtype: d.dtype, dims: d.dims, data: unpackElements(d.dtype, stored, sizeOf(d.dims)) };
  if (d.dtype === "string") return { dtype: d.dtype, dims: d.dims, data: decodeStrings(stored, sizeOf(d.dims)) };
  if (!d.fill) return { dtype: d.dtype, dims: d.dims, data: viewBytes(d.dtype, stored) };
  const bytes = new Uint8Array(sizeOf(d.dims) * byteSize(d.dtype));
  repeat(bytes, stored);
  return { dtype: d.dtype, dims: d.dims, data: viewBytes(d.dtype, bytes) };
}

/** Bytes that stay in the first-level cache while they are copied. */
const mostCopied = 1 << 14;

/** Fills `bytes` with copies of `element`, whose length is a power of two, doubling what is done up to `mostCopied`. */
export function repeat(bytes: Uint8Array, element: Uint8Array): void {
  bytes.set(element.subarray(0, bytes.length));
  for (let done = element.length; done < bytes.length;) {
    const count = Math.min(done, mostCopied, bytes.length - done);
    bytes.copyWithin(done, 0, count);
    done += count;
  }
}
