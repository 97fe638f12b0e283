/** WebAssembly's instructions by their text names: the encoded opcode and the kind of immediates that follow it. */

/** What follows an opcode. `memory`: alignment and offset. `memoryLane`: the same and a lane. */
export type Immediates = "none" | "memory" | "lane" | "memoryLane";
export interface Opcode {
  readonly name: string;
  readonly bytes: readonly number[];
  readonly immediates: Immediates;
  /** log2 of the bytes a memory instruction touches. */
  readonly align: number;
}

/** Unsigned LEB128. */
export function unsigned(n: number): number[] {
  const out: number[] = [];
  do {
    const low = n % 128;
    n = Math.floor(n / 128);
    out.push(n > 0 ? low | 128 : low);
  } while (n > 0);
  return out;
}
/** Signed LEB128. */
export function signed(n: bigint): number[] {
  const out: number[] = [];
  for (;;) {
    const low = Number(n & 127n);
    n >>= 7n;
    if ((n === 0n && (low & 64) === 0) || (n === -1n && (low & 64) !== 0)) return [...out, low];
    out.push(low | 128);
  }
}

const compare = "eq ne lt_s lt_u gt_s gt_u le_s le_u ge_s ge_u";
const floatCompare = "eq ne lt gt le ge";
const integer = "clz ctz popcnt add sub mul div_s div_u rem_s rem_u and or xor shl shr_s shr_u rotl rotr";
const float = "abs neg ceil floor trunc nearest sqrt add sub mul div min max copysign";

/** [first code, prefix, names]; a dot in a name means that it is complete, an underscore alone skips a code. */
const plain: readonly [number, string, string][] = [
  [0x00, "", "unreachable nop"], [0x0f, "", "return"], [0x1a, "", "drop select"],
  [0x45, "i32", `eqz ${compare}`], [0x50, "i64", `eqz ${compare}`], [0x5b, "f32", floatCompare], [0x61, "f64", floatCompare],
  [0x67, "i32", integer], [0x79, "i64", integer], [0x8b, "f32", float], [0x99, "f64", float],
  [0xa7, "", "i32.wrap_i64 i32.trunc_f32_s i32.trunc_f32_u i32.trunc_f64_s i32.trunc_f64_u i64.extend_i32_s i64.extend_i32_u"],
  [0xb2, "", "f32.convert_i32_s f32.convert_i32_u f32.convert_i64_s f32.convert_i64_u f32.demote_f64 f64.convert_i32_s f64.convert_i32_u f64.convert_i64_s f64.convert_i64_u f64.promote_f32"],
  [0xbc, "", "i32.reinterpret_f32 i64.reinterpret_f64 f32.reinterpret_i32 f64.reinterpret_i64 i32.extend8_s i32.extend16_s i64.extend8_s i64.extend16_s i64.extend32_s"],
];
const saturating: readonly [number, string, string][] = [
  [0, "", "i32.trunc_sat_f32_s i32.trunc_sat_f32_u i32.trunc_sat_f64_s i32.trunc_sat_f64_u i64.trunc_sat_f32_s i64.trunc_sat_f32_u i64.trunc_sat_f64_s i64.trunc_sat_f64_u"],
];
const smallCompare = "eq ne lt_s gt_s le_s ge_s";
const simd: readonly [number, string, string][] = [
  [14, "i8x16", "swizzle splat i16x8.splat i32x4.splat i64x2.splat f32x4.splat f64x2.splat"],
  [35, "i8x16", compare], [45, "i16x8", compare], [55, "i32x4", compare], [65, "f32x4", floatCompare], [71, "f64x2", floatCompare],
  [77, "v128", "not and andnot or xor bitselect any_true"],
  [94, "", "f32x4.demote_f64x2_zero f64x2.promote_low_f32x4"],
  [96, "i8x16", "abs neg popcnt all_true bitmask narrow_i16x8_s narrow_i16x8_u f32x4.ceil f32x4.floor f32x4.trunc f32x4.nearest shl shr_s shr_u add add_sat_s add_sat_u sub sub_sat_s sub_sat_u f64x2.ceil f64x2.floor min_s min_u max_s max_u f64x2.trunc avgr_u"],
  [124, "i16x8", "extadd_pairwise_i8x16_s extadd_pairwise_i8x16_u i32x4.extadd_pairwise_i16x8_s i32x4.extadd_pairwise_i16x8_u"],
  [128, "i16x8", "abs neg q15mulr_sat_s all_true bitmask narrow_i32x4_s narrow_i32x4_u extend_low_i8x16_s extend_high_i8x16_s extend_low_i8x16_u extend_high_i8x16_u shl shr_s shr_u add add_sat_s add_sat_u sub sub_sat_s sub_sat_u f64x2.nearest mul min_s min_u max_s max_u _ avgr_u extmul_low_i8x16_s extmul_high_i8x16_s extmul_low_i8x16_u extmul_high_i8x16_u"],
  [160, "i32x4", "abs neg _ all_true bitmask _ _ extend_low_i16x8_s extend_high_i16x8_s extend_low_i16x8_u extend_high_i16x8_u shl shr_s shr_u add _ _ sub _ _ _ mul min_s min_u max_s max_u dot_i16x8_s _ extmul_low_i16x8_s extmul_high_i16x8_s extmul_low_i16x8_u extmul_high_i16x8_u"],
  [192, "i64x2", `abs neg _ all_true bitmask _ _ extend_low_i32x4_s extend_high_i32x4_s extend_low_i32x4_u extend_high_i32x4_u shl shr_s shr_u add _ _ sub _ _ _ mul ${smallCompare}`],
  [224, "f32x4", "abs neg _ sqrt add sub mul div min max pmin pmax"],
  [236, "f64x2", "abs neg _ sqrt add sub mul div min max pmin pmax"],
  [248, "", "i32x4.trunc_sat_f32x4_s i32x4.trunc_sat_f32x4_u f32x4.convert_i32x4_s f32x4.convert_i32x4_u i32x4.trunc_sat_f64x2_s_zero i32x4.trunc_sat_f64x2_u_zero f64x2.convert_low_i32x4_s f64x2.convert_low_i32x4_u"],
  [0x100, "", "i8x16.relaxed_swizzle i32x4.relaxed_trunc_f32x4_s i32x4.relaxed_trunc_f32x4_u i32x4.relaxed_trunc_f64x2_s_zero i32x4.relaxed_trunc_f64x2_u_zero f32x4.relaxed_madd f32x4.relaxed_nmadd f64x2.relaxed_madd f64x2.relaxed_nmadd i8x16.relaxed_laneselect i16x8.relaxed_laneselect i32x4.relaxed_laneselect i64x2.relaxed_laneselect f32x4.relaxed_min f32x4.relaxed_max f64x2.relaxed_min f64x2.relaxed_max i16x8.relaxed_q15mulr_s i16x8.relaxed_dot_i8x16_i7x16_s i32x4.relaxed_dot_i8x16_i7x16_add_s"],
];
const lanes: readonly [number, string, string][] = [
  [21, "", "i8x16.extract_lane_s i8x16.extract_lane_u i8x16.replace_lane i16x8.extract_lane_s i16x8.extract_lane_u i16x8.replace_lane i32x4.extract_lane i32x4.replace_lane i64x2.extract_lane i64x2.replace_lane f32x4.extract_lane f32x4.replace_lane f64x2.extract_lane f64x2.replace_lane"],
];
/** With the log2 of the bytes accessed, in order. */
const memory: readonly [number, string, readonly number[]][] = [
  [0x28, "i32.load i64.load f32.load f64.load i32.load8_s i32.load8_u i32.load16_s i32.load16_u i64.load8_s i64.load8_u i64.load16_s i64.load16_u i64.load32_s i64.load32_u i32.store i64.store f32.store f64.store i32.store8 i32.store16", [2, 3, 2, 3, 0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 2, 3, 2, 3, 0, 1]],
];
const simdMemory: readonly [number, string, readonly number[]][] = [
  [0, "v128.load v128.load8x8_s v128.load8x8_u v128.load16x4_s v128.load16x4_u v128.load32x2_s v128.load32x2_u v128.load8_splat v128.load16_splat v128.load32_splat v128.load64_splat v128.store", [4, 3, 3, 3, 3, 3, 3, 0, 1, 2, 3, 4]],
  [92, "v128.load32_zero v128.load64_zero", [2, 3]],
];
const simdMemoryLane: readonly [number, string, readonly number[]][] = [
  [84, "v128.load8_lane v128.load16_lane v128.load32_lane v128.load64_lane v128.store8_lane v128.store16_lane v128.store32_lane v128.store64_lane", [0, 1, 2, 3, 0, 1, 2, 3]],
];

/** Those of threads, on the memory that all share. */
const atomics: readonly [number, string, readonly number[]][] = [
  [0x00, "memory.atomic.notify memory.atomic.wait32", [2, 2]],
  [0x10, "i32.atomic.load", [2]], [0x17, "i32.atomic.store", [2]], [0x1e, "i32.atomic.rmw.add", [2]], [0x25, "i32.atomic.rmw.sub", [2]], [0x48, "i32.atomic.rmw.cmpxchg", [2]],
];

/** All instructions with no or fixed-size immediates, by name. Control, locals and constants are the assembler's own. */
export function instructionSet(): ReadonlyMap<string, Opcode> {
  const set = new Map<string, Opcode>();
  const define = (name: string, bytes: readonly number[], immediates: Immediates, align = 0): void => { set.set(name, { name, bytes, immediates, align }); };
  const spell = (prefix: string, name: string): string => (prefix === "" || name.includes(".") ? name : `${prefix}.${name}`);
  const series = (list: readonly [number, string, string][], escape: readonly number[], immediates: Immediates): void => {
    for (const [first, prefix, names] of list) names.split(" ").forEach((name, i) => { if (name !== "_") define(spell(prefix, name), escape.length ? [...escape, ...unsigned(first + i)] : [first + i], immediates); });
  };
  const accesses = (list: readonly [number, string, readonly number[]][], escape: readonly number[], immediates: Immediates): void => {
    for (const [first, names, align] of list) names.split(" ").forEach((name, i) => define(name, escape.length ? [...escape, ...unsigned(first + i)] : [first + i], immediates, align[i] ?? 0));
  };
  series(plain, [], "none");
  series(saturating, [0xfc], "none");
  series(simd, [0xfd], "none");
  series(lanes, [0xfd], "lane");
  accesses(memory, [], "memory");
  accesses(atomics, [0xfe], "memory");
  accesses(simdMemory, [0xfd], "memory");
  accesses(simdMemoryLane, [0xfd], "memoryLane");
  return set;
}
