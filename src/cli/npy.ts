/** NumPy's .npy files, format 1.0 to 3.0, little endian, C order. */
import { fail } from "../core/diagnostic.ts";
import { byteSize, dtypes, viewBytes, type DType } from "../core/dtype.ts";
import { bytesOf, sizeOf, type Tensor } from "../core/tensor.ts";

const descriptors: Readonly<Partial<Record<DType, string>>> = {
  float32: "<f4", float64: "<f8", float16: "<f2", int8: "|i1", int16: "<i2", int32: "<i4", int64: "<i8",
  uint8: "|u1", uint16: "<u2", uint32: "<u4", uint64: "<u8", bool: "|b1",
};
const magic = "\x93NUMPY";

/** A tensor from a .npy file. Fails with OF1010. */
export function readNpy(bytes: Uint8Array, file: string): Tensor {
  const wrong = (message: string, hint?: string): never => fail("OF1010", message, { place: { file }, ...(hint === undefined ? {} : { hint }) });
  if (bytes.length < 12 || String.fromCharCode(...bytes.subarray(0, 6)) !== magic) wrong("this is not a .npy file");
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const wide = (bytes[6] ?? 1) >= 2;
  const start = wide ? 12 : 10, length = wide ? view.getUint32(8, true) : view.getUint16(8, true);
  if (start + length > bytes.length) wrong("its header is cut off");
  const header = new TextDecoder().decode(bytes.subarray(start, start + length));
  const descriptor = /'descr'\s*:\s*'([^']+)'/.exec(header)?.[1] ?? wrong("its header names no type");
  const shape = /'shape'\s*:\s*\(([^)]*)\)/.exec(header)?.[1] ?? wrong("its header names no shape");
  if (/'fortran_order'\s*:\s*True/.test(header)) wrong("it is in Fortran order", "save it with numpy.ascontiguousarray");
  const dtype = (Object.keys(descriptors) as DType[]).find((d) => descriptors[d]?.slice(1) === descriptor.slice(1) && descriptor[0] !== ">") ?? wrong(`its type '${descriptor}' is not supported`);
  const dims = shape.split(",").map((s) => s.trim()).filter((s) => s !== "").map(Number);
  if (!dims.every((d) => Number.isSafeInteger(d) && d >= 0)) wrong(`its shape (${shape}) is not one`);
  const payload = bytes.subarray(start + length);
  if (payload.length % byteSize(dtype) !== 0) wrong("its last element is cut off");
  const data = viewBytes(dtype, payload);
  if (data.length !== sizeOf(dims)) wrong(`it should have ${sizeOf(dims)} elements and has ${data.length}`);
  return { dtype, dims, data };
}

/** NumPy's type for a dtype: floats it does not have as their bits, integers of fewer than 8 bits one a byte. */
function storedType(dtype: DType): DType {
  if (descriptors[dtype] !== undefined || dtype === "string") return dtype;
  if (dtype === "bfloat16") return "uint16";
  return dtypes[dtype].kind === "int" ? "int8" : "uint8";
}

/** A .npy file; types that NumPy lacks as `storedType` says. Fails with OF1010 for strings. */
export function writeNpy(t: Tensor): Uint8Array {
  const descriptor = descriptors[storedType(t.dtype)] ?? fail("OF1010", `a ${t.dtype} tensor cannot be written as .npy`, { hint: "write JSON instead" });
  const shape = t.dims.length === 1 ? `${t.dims[0]},` : t.dims.join(", ");
  const text = `{'descr': '${descriptor}', 'fortran_order': False, 'shape': (${shape}), }`;
  const padded = `${text.padEnd(Math.ceil((text.length + 11) / 64) * 64 - 11)}\n`;
  const data = bytesOf(t);
  const out = new Uint8Array(10 + padded.length + data.length);
  out.set([...magic].map((c) => c.charCodeAt(0)));
  out.set([1, 0, padded.length & 255, padded.length >> 8], 6);
  out.set(new TextEncoder().encode(padded), 10);
  out.set(data, 10 + padded.length);
  return out;
}
