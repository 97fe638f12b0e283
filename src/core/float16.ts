/** Conversions between float32 values and the bits of float16 and bfloat16, rounding to nearest even. */
const scratch = (): { f: Float32Array; u: Uint32Array } => {
  const f = new Float32Array(1);
  return { f, u: new Uint32Array(f.buffer) };
};
const { f: word, u: bits } = scratch();

/** float16 bits → value, exact. */
export function fromFloat16(half: number): number {
  const sign = half & 0x8000 ? -1 : 1;
  const exponent = (half >> 10) & 0x1f;
  const fraction = half & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** Finite float16 bits → float32 values in `to`, exact: the exponent is moved by a product. */
export function widenFloat16(halves: Uint16Array, to: Float32Array): void {
  const words = new Uint32Array(to.buffer, to.byteOffset, to.length), power = 2 ** 112;
  for (let i = 0; i < words.length; i++) {
    const half = halves[i] ?? 0;
    words[i] = ((half & 0x8000) << 16) | ((half & 0x7fff) << 13);
    to[i] = (to[i] ?? 0) * power;
  }
}

/** Value → float16 bits; overflow gives infinity, as IEEE rounding does. */
export function toFloat16(value: number): number {
  if (Number.isNaN(value)) return 0x7e00;
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const magnitude = Math.abs(value);
  if (magnitude >= 65520) return sign | 0x7c00;
  if (magnitude < 2 ** -14) return sign | roundHalfEven(magnitude * 2 ** 24);
  const exponent = Math.floor(Math.log2(magnitude));
  const e = magnitude < 2 ** exponent ? exponent - 1 : magnitude >= 2 ** (exponent + 1) ? exponent + 1 : exponent;
  return sign | (((e + 15) << 10) + roundHalfEven((magnitude / 2 ** e - 1) * 1024));
}

/** bfloat16 bits → value, exact. */
export function fromBfloat16(half: number): number {
  bits[0] = half << 16;
  return word[0] ?? NaN;
}

/** Value → bfloat16 bits. */
export function toBfloat16(value: number): number {
  if (Number.isNaN(value)) return 0x7fc0;
  word[0] = value;
  const u = bits[0] ?? 0;
  return ((u + 0x7fff + ((u >>> 16) & 1)) >>> 16) & 0xffff;
}

function roundHalfEven(x: number): number {
  const floor = Math.floor(x);
  const rest = x - floor;
  if (rest > 0.5 || (rest === 0.5 && floor % 2 === 1)) return floor + 1;
  return floor;
}
