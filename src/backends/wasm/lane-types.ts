/** How the kernel language's types are held in WebAssembly: value types, lane shapes, and which instructions touch memory. */
import { invariant } from "../../core/assert.ts";
import type { DType } from "../../core/dtype.ts";
import { formatType, type Scalar, type Type } from "../../kernel/expr.ts";
import type { ValueType } from "./assembler.ts";

/** Scalars narrower than 32 bits and bools are held as i32. */
export function valueType(t: Type): ValueType {
  if (t.lanes > 1) return "v128";
  switch (t.scalar) {
    case "f32": return "f32";
    case "f64": return "f64";
    case "i64": case "u64": return "i64";
    default: return "i32";
  }
}

export const isUnsigned = (s: Scalar): boolean => s === "u8" || s === "u16" || s === "u32" || s === "u64";
export const isFloating = (s: Scalar): boolean => s === "f32" || s === "f64";

/** The instruction prefix of a vector: `f32x4`, `i32x4` … A bool vector is a mask of integer lanes that fill 128 bits. */
export function laneShape(t: Type): "f32x4" | "f64x2" | "i64x2" | "i32x4" | "i16x8" | "i8x16" {
  const bits = t.scalar === "bool" ? 128 / t.lanes : widthOf(t.scalar);
  invariant(bits * t.lanes === 128, `${formatType(t)} does not fill 128 bits`);
  if (t.scalar === "f32") return "f32x4";
  if (t.scalar === "f64") return "f64x2";
  switch (bits) {
    case 64: return "i64x2";
    case 32: return "i32x4";
    case 16: return "i16x8";
    default: return "i8x16";
  }
}
export function widthOf(s: Scalar): number {
  switch (s) {
    case "f64": case "i64": case "u64": return 64;
    case "f32": case "i32": case "u32": case "bool": return 32;
    case "i16": case "u16": return 16;
    case "i8": case "u8": return 8;
  }
}

/** Reads one element: the instruction, and whether the value must be compared with 0 (bool). */
export function scalarLoad(dtype: DType): string {
  switch (dtype) {
    case "float32": return "f32.load";
    case "float64": return "f64.load";
    case "int64": case "uint64": return "i64.load";
    case "int32": case "uint32": return "i32.load";
    case "int16": return "i32.load16_s";
    case "uint16": return "i32.load16_u";
    case "int8": return "i32.load8_s";
    case "uint8": case "bool": return "i32.load8_u";
    default: return invariant(false, `${dtype} is not read directly`) as never;
  }
}
export function scalarStore(dtype: DType): string {
  switch (dtype) {
    case "float32": return "f32.store";
    case "float64": return "f64.store";
    case "int64": case "uint64": return "i64.store";
    case "int32": case "uint32": return "i32.store";
    case "int16": case "uint16": return "i32.store16";
    case "int8": case "uint8": case "bool": return "i32.store8";
    default: return invariant(false, `${dtype} is not written directly`) as never;
  }
}

/** Reads consecutive elements into lanes: the instructions, the first of which accesses memory. */
export function vectorLoad(dtype: DType, t: Type): readonly string[] {
  const from = `${dtype}→${t.scalar}x${t.lanes}`;
  switch (from) {
    case "float32→f32x4": case "int32→i32x4": case "uint32→u32x4": case "int32→u32x4": case "uint32→i32x4": case "float64→f64x2":
    case "int64→i64x2": case "uint64→u64x2": case "int16→i16x8": case "uint16→u16x8": case "int8→i8x16": case "uint8→u8x16":
      return ["v128.load"];
    case "int8→i32x4": return ["v128.load32_zero", "i16x8.extend_low_i8x16_s", "i32x4.extend_low_i16x8_s"];
    case "uint8→i32x4": return ["v128.load32_zero", "i16x8.extend_low_i8x16_u", "i32x4.extend_low_i16x8_u"];
    case "bool→boolx4": return ["v128.load32_zero", "i16x8.extend_low_i8x16_u", "i32x4.extend_low_i16x8_u"];
    case "int16→i32x4": return ["v128.load16x4_s"];
    case "uint16→i32x4": return ["v128.load16x4_u"];
    case "int8→i16x8": return ["v128.load8x8_s"];
    case "uint8→i16x8": case "uint8→u16x8": return ["v128.load8x8_u"];
    default: return invariant(false, `no load of ${from}`) as never;
  }
}
/** Reads one element into every lane, where one instruction does. */
export function splatLoad(dtype: DType, t: Type): string | undefined {
  switch (`${dtype}→${t.scalar}x${t.lanes}`) {
    case "float32→f32x4": case "int32→i32x4": case "uint32→u32x4": return "v128.load32_splat";
    case "float64→f64x2": case "int64→i64x2": case "uint64→u64x2": return "v128.load64_splat";
    case "int16→i16x8": case "uint16→u16x8": return "v128.load16_splat";
    case "int8→i8x16": case "uint8→u8x16": return "v128.load8_splat";
    default: return undefined;
  }
}

/** Bytes of a shuffle that gathers the low `bytes` bytes of each lane. */
export const lowBytes = (lanes: number, bytes: number): number[] => {
  const width = 16 / lanes;
  const picked = Array.from({ length: lanes * bytes }, (_, i) => Math.floor(i / bytes) * width + (i % bytes));
  return [...picked, ...new Array<number>(16 - picked.length).fill(0)];
};
