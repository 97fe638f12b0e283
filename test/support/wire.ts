/** Tensors as JSON, so that another engine's process or page can be given them and give them back: bytes in base64, a place for each element. */
import { viewBytes, type DType } from "../../src/core/dtype.ts";
import { bytesOf, type Tensor } from "../../src/core/tensor.ts";

export interface Wire {
  readonly dtype: DType;
  readonly dims: readonly number[];
  readonly bytes?: string;
  readonly strings?: readonly string[];
}

export function toWire({ dtype, dims, data }: Tensor): Wire {
  if (!ArrayBuffer.isView(data)) return { dtype, dims, strings: data };
  const bytes = bytesOf({ dtype, dims, data });
  return { dtype, dims, bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64") };
}

export const fromWire = ({ dtype, dims, bytes, strings }: Wire): Tensor => ({ dtype, dims, data: strings ?? viewBytes(dtype, new Uint8Array(Buffer.from(bytes ?? "", "base64"))) });

export const wires = (tensors: Readonly<Record<string, Tensor>>): Record<string, Wire> => Object.fromEntries(Object.entries(tensors).map(([name, t]) => [name, toWire(t)]));
