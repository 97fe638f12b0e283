/**
 * exp, log, tanh and erf of float32 in the kernel language's arithmetic, for scalars and vectors alike: the same
 * operations in the same order, so that a vector body and its scalar tail give the same bits. Right at NaN, infinities,
 * zeros, overflow and denormals. Largest errors measured over all of float32: exp 1 ulp, log 1 ulp, tanh 2.5 ulp, erf 2 ulp.
 *
 * exp and log: Cody and Waite reductions with the polynomials of Moshier's Cephes library (expf, logf). tanh by
 * e^2x - 1. erf: after N. Juffa, a polynomial for small arguments, 1 - exp(polynomial) else.
 */
import { add, binary, bitcast, constant, mul, select, shift, sub, unary, div, type Expr, type Type } from "../kernel/expr.ts";

const f = (value: number, like: Expr): Expr => constant(Math.fround(value), like.type);
const word = (like: Expr): Type => ({ scalar: "i32", lanes: like.type.lanes });
const int = (value: number, like: Expr): Expr => constant(value, word(like));

/** c[0]·xⁿ + … + c[n]. */
export function horner(x: Expr, coefficients: readonly number[]): Expr {
  const [first = 0, ...rest] = coefficients;
  return rest.reduce<Expr>((sum, c) => add(mul(sum, x), constant(x.type.scalar === "f32" ? Math.fround(c) : c, x.type)), constant(x.type.scalar === "f32" ? Math.fround(first) : first, x.type));
}

const expPolynomial = [1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1];
/** Adding it to |x| < 2^22 leaves x rounded to an integer in the low bits. */
const magic = 12582912;

/** e^x = (1 + rest) · 2^n with n in an i32 and |rest| < 0.42. `x` must be within ±126·ln 2 for n to be a normal exponent. */
function expParts(x: Expr): { rest: Expr; exponent: Expr } {
  const shifted = add(mul(x, f(Math.LOG2E, x)), f(magic, x));
  const n = sub(shifted, f(magic, x));
  const r = sub(sub(x, mul(n, f(0.693359375, x))), mul(n, f(-2.12194440e-4, x)));
  return { rest: add(mul(mul(horner(r, expPolynomial), r), r), r), exponent: sub(bitcast(shifted, word(x)), int(0x4b400000, x)) };
}
/** 2^n for n from -126 to 127. */
const powerOfTwo = (n: Expr, like: Expr): Expr => bitcast(shift("shl", add(n, int(127, like)), 23), like.type);

export function expF32(x: Expr): Expr {
  const clamped = binary("pmin", binary("pmax", x, f(-104, x)), f(89, x));
  const { rest, exponent } = expParts(clamped);
  // Two factors, so that denormal results are rounded once and overflow is infinity.
  const half = shift("shr", exponent, 1);
  return mul(mul(add(rest, f(1, x)), powerOfTwo(half, x)), powerOfTwo(sub(exponent, half), x));
}

const logPolynomial = [7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1];

export function logF32(x: Expr): Expr {
  const denormal = binary("lt", x, f(2 ** -126, x));
  const scaled = select(denormal, mul(x, f(2 ** 23, x)), x);
  const bits = bitcast(scaled, word(x));
  // m in [√½, √2)
  const e = shift("shr", sub(bits, int(0x3f3504f3, x)), 23);
  const m = sub(bitcast(sub(bits, shift("shl", e, 23)), x.type), f(1, x));
  const exponent: Expr = { kind: "cast", a: sub(e, select(denormal, int(23, x), int(0, x))), type: x.type };
  const z = mul(m, m);
  const tail = add(mul(mul(horner(m, logPolynomial), m), z), mul(exponent, f(-2.12194440e-4, x)));
  const value = add(add(m, sub(tail, mul(z, f(0.5, x)))), mul(exponent, f(0.693359375, x)));
  const ordinary = binary("and", binary("gt", x, f(0, x)), binary("lt", x, f(Infinity, x)));
  const special = select(binary("eq", x, f(0, x)), f(-Infinity, x), select(binary("lt", x, f(0, x)), f(NaN, x), x));
  return select(ordinary, value, special);
}

/** E / (E + 2) with E = e^2|x| - 1, which keeps the digits of small arguments. */
export function tanhF32(x: Expr): Expr {
  const a = unary("abs", x);
  // 2·9.1 is past where the result rounds to 1.
  const { rest, exponent } = expParts(binary("pmin", add(a, a), f(18.2, x)));
  const scale = powerOfTwo(exponent, x);
  const e = add(mul(rest, scale), sub(scale, f(1, x)));
  return withSignOf(div(e, add(e, f(2, x))), x);
}

const erfSmall = [-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1];
const erfLarge = [-1.72853470e-5, 3.83197126e-4, -3.88396438e-3, 2.42546219e-2, -1.06777877e-1, -6.34846687e-1, -1.28717512e-1];

export function erfF32(x: Expr): Expr {
  const a = binary("pmin", unary("abs", x), f(4, x)), z = mul(x, x);
  const small = add(mul(horner(z, erfSmall), x), x);
  const { rest, exponent } = expParts(sub(mul(horner(a, erfLarge), a), a));
  const large = sub(f(1, x), mul(add(rest, f(1, x)), powerOfTwo(exponent, x)));
  return select(binary("gt", a, f(0.927734375, x)), withSignOf(large, x), small);
}

/** A value that is not negative, with the sign of x; NaN where `value` is. */
function withSignOf(value: Expr, x: Expr): Expr {
  return bitcast(binary("or", bitcast(value, word(x)), binary("and", bitcast(x, word(x)), int(-(2 ** 31), x))), x.type);
}
