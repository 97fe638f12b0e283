import { describe, expect, it } from "vitest";
import { bitsOf, dtypes, isStorageOnly, type DType } from "./dtype.ts";
import { decoderOf, encoderOf } from "./float-bits.ts";
import { isPacked, packedBytes, packElements, unpackElements } from "./packed.ts";
import { floatFormats, fromFloat8e8m0, largestOf, toFloat8e8m0, toSmallFloat } from "./small-floats.ts";
import { fromNumbers, numericData, toNumbers } from "./tensor.ts";

const small = (Object.keys(floatFormats) as DType[]).map((dtype) => {
  const format = floatFormats[dtype], decode = decoderOf(dtype), encode = encoderOf(dtype);
  if (!format || !decode || !encode) throw new Error(dtype);
  return { dtype, format, decode, encode, codes: Array.from({ length: 2 ** bitsOf(dtype) }, (_, i) => i) };
});

describe.each(small)("$dtype", ({ dtype, format, decode, encode, codes }) => {
  it("takes every code to its value and back", () => {
    for (const code of codes) if (!Number.isNaN(decode(code))) expect(encode(decode(code))).toBe(code);
  });
  it("rounds to the nearest value, ties to the even code", () => {
    const finite = codes.filter((c) => Number.isFinite(decode(c)) && (c & format.sign) === 0);
    for (let i = 0; i + 1 < finite.length; i++) {
      const [low = 0, high = 0] = [finite[i], finite[i + 1]], a = decode(low), b = decode(high), middle = (a + b) / 2;
      expect([middle * (1 - 1e-9), middle, middle * (1 + 1e-9)].map(encode)).toEqual([low, low % 2 === 0 ? low : high, high]);
      expect(encode(-middle * (1 + 1e-9))).toBe(high | format.sign);
    }
  });
  it("goes beyond its largest value only where that is nearer", () => {
    const most = largestOf(format), step = most - decode(format.most - 1);
    expect(decode(encode(most + step * 0.49))).toBe(most);
    const beyond = decode(encode(most + step * 0.51));
    if (dtype === "float4e2m1") expect(beyond).toBe(most);
    else if (dtype === "float8e5m2") expect(beyond).toBe(Infinity);
    else expect(beyond).toBeNaN();
  });
});

it("has the largest values that the formats are known by", () => {
  expect(Object.fromEntries(small.map(({ dtype, format }) => [dtype, largestOf(format)]))).toEqual({ float8e4m3fn: 448, float8e4m3fnuz: 240, float8e5m2: 57344, float8e5m2fnuz: 57344, float4e2m1: 6 });
  expect(small.find((s) => s.dtype === "float4e2m1")?.codes.slice(0, 8).map(small.find((s) => s.dtype === "float4e2m1")?.decode ?? Number)).toEqual([0, 0.5, 1, 1.5, 2, 3, 4, 6]);
});

it("keeps or drops the sign of zero", () => {
  expect(small.map(({ format }) => toSmallFloat(-0, format))).toEqual([0x80, 0, 0x80, 0, 8]);
});

describe("float8e8m0", () => {
  it("takes every code to its value and back", () => {
    for (let code = 0; code < 255; code++) for (const mode of ["up", "down", "nearest"] as const) expect(toFloat8e8m0(fromFloat8e8m0(code), mode)).toBe(code);
    expect(fromFloat8e8m0(255)).toBeNaN();
  });
  it("rounds as it is told", () => {
    const of = (mode: "up" | "down" | "nearest"): number[] => [2.5, 3, 3.5, 4.001].map((v) => fromFloat8e8m0(toFloat8e8m0(v, mode)));
    expect([of("up"), of("down"), of("nearest")]).toEqual([[4, 4, 4, 8], [2, 2, 2, 4], [2, 4, 4, 4]]);
  });
});

describe("packed elements", () => {
  it("lie from the lowest bits on", () => {
    expect(packElements("uint4", Uint8Array.of(1, 2, 15))).toEqual(Uint8Array.of(0x21, 0x0f));
    expect(packElements("int4", Int8Array.of(-1, 3))).toEqual(Uint8Array.of(0x3f));
    expect(packElements("int2", Int8Array.of(1, -2, -1, 0, 1))).toEqual(Uint8Array.of(0b00111001, 1));
  });
  it.each((Object.keys(dtypes) as DType[]).filter(isPacked))("%s comes back", (dtype) => {
    for (const count of [0, 1, 2, 3, 4, 5, 9]) {
      const elements = numericData(fromNumbers(dtype, [count], Array.from({ length: count }, (_, i) => i * 7 - 9)));
      const packed = packElements(dtype, elements);
      expect(packed.length).toBe(packedBytes(dtype, count));
      expect(unpackElements(dtype, packed, count)).toEqual(elements);
    }
  });
});

it("wraps integers of few bits", () => {
  expect([...numericData(fromNumbers("int4", [4], [7, 8, -9, 16]))]).toEqual([7, -8, 7, 0]);
  expect([...numericData(fromNumbers("uint2", [3], [3, 4, -1]))]).toEqual([3, 0, 3]);
});

it("knows which types are stored only", () => {
  expect((Object.keys(dtypes) as DType[]).filter(isStorageOnly).length).toBe(10);
  expect(Array.from(toNumbers(fromNumbers("float8e4m3fn", [2], [1.0625, -300])))).toEqual([1, -288]);
});
