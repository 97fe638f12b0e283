/** The bits of scalars and of vectors' lanes: what `bitcast` and `shuffle` mean. Little-endian. */
import { invariant } from "../core/assert.ts";
import { formatType, type Type } from "./expr.ts";
import { isWide, type NumberScalar } from "./scalar-ops.ts";

/** The 16 bytes of a vector; a mask's true lanes are all ones. The result is overwritten by the next call. */
export function packLanes(type: Type): (x: readonly number[]) => Uint8Array {
  const view = new DataView(new ArrayBuffer(16)), width = 16 / type.lanes, write = scalarWriter(view, laneScalar(type));
  const bytes = new Uint8Array(view.buffer);
  return (x) => {
    x.forEach((v, i) => write(i * width, type.scalar === "bool" ? -v : v));
    return bytes;
  };
}

/** The lanes of 16 bytes. */
export function unpackLanes(type: Type): (bytes: Uint8Array) => number[] {
  const width = 16 / type.lanes, scalar = laneScalar(type);
  return (bytes) => {
    const read = scalarReader(new DataView(bytes.buffer, bytes.byteOffset), scalar);
    return Array.from({ length: type.lanes }, (_, i) => (type.scalar === "bool" ? (read(i * width) !== 0 ? 1 : 0) : read(i * width)));
  };
}

/** The bytes that `numbers` name; 0 where there is none of a number. */
export const pickBytes = (bytes: Uint8Array, numbers: readonly number[]): Uint8Array => Uint8Array.from(numbers, (i) => bytes[i] ?? 0);

/** Four sums of products of neighbouring lanes, as many as there are, on top of `c`; they wrap. */
export function sumsOfProducts(a: readonly number[], b: readonly number[], c: readonly number[] = [0, 0, 0, 0]): number[] {
  const each = a.length / 4;
  return c.map((start, i) => {
    let sum = start;
    for (let j = i * each; j < (i + 1) * each; j++) sum = (sum + Math.imul(a[j] ?? 0, b[j] ?? 0)) | 0;
    return sum;
  });
}
/** Bytes of which engines make the same product, however they take their top bits: those that have none. */
export function sevenBits(bytes: readonly number[], where: string): readonly number[] {
  invariant(bytes.every((x) => x >= 0), `${where}: a factor of 7 bits is ${bytes.find((x) => x < 0)}`);
  return bytes;
}

/** A mask's lanes are integers as wide as 128 bits leave them. */
function laneScalar(type: Type): NumberScalar {
  const { scalar } = type;
  invariant(!isWide(scalar), `lanes of ${formatType(type)}`);
  if (scalar !== "bool") return scalar;
  return type.lanes === 16 ? "i8" : type.lanes === 8 ? "i16" : type.lanes === 4 ? "i32" : (invariant(false, "mask of 2 lanes has no number form") as never);
}

/** Reads a scalar from memory. */
export function scalarReader(view: DataView, s: NumberScalar): (p: number) => number {
  switch (s) {
    case "f32": return (p) => view.getFloat32(p, true);
    case "f64": return (p) => view.getFloat64(p, true);
    case "i32": return (p) => view.getInt32(p, true);
    case "u32": return (p) => view.getUint32(p, true);
    case "i16": return (p) => view.getInt16(p, true);
    case "u16": return (p) => view.getUint16(p, true);
    case "i8": return (p) => view.getInt8(p);
    case "u8": return (p) => view.getUint8(p);
    case "bool": return (p) => view.getUint8(p);
  }
}
/** Writes a scalar to memory, keeping its low bits. */
export function scalarWriter(view: DataView, s: NumberScalar): (p: number, x: number) => void {
  switch (s) {
    case "f32": return (p, x) => view.setFloat32(p, x, true);
    case "f64": return (p, x) => view.setFloat64(p, x, true);
    case "i32": case "u32": return (p, x) => view.setInt32(p, x | 0, true);
    case "i16": case "u16": return (p, x) => view.setInt16(p, x, true);
    case "i8": case "u8": case "bool": return (p, x) => view.setInt8(p, x);
  }
}
