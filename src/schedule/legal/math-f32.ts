/**
 * exp, log, tanh and erf of float32 in the kernel language's arithmetic, for scalars and vectors alike: the same
 * operations in the same order, so that a vector body and its scalar tail give the same bits. Right at NaN, infinities,
 * zeros, overflow and denormals. Largest errors measured over all of float32: exp 1 ulp, log 1 ulp, tanh 2.5 ulp, erf 2 ulp.
 *
 * exp and log: Cody and Waite's reductions, log with the polynomial of Moshier's Cephes library (logf). tanh by
 * e^2x - 1. erf: after N. Juffa, a polynomial for small arguments, 1 - exp(polynomial) else.
 */
import { add, binary, bitcast, constant, mul, select, shift, sub, unary, div, type Expr, type Type } from "../../kernel/expr.ts";

const f = (value: number, like: Expr): Expr => constant(Math.fround(value), like.type);
const word = (like: Expr): Type => ({ scalar: "i32", lanes: like.type.lanes });
const int = (value: number, like: Expr): Expr => constant(value, word(like));

/** c[0]·xⁿ + … + c[n]. */
export function horner(x: Expr, coefficients: readonly number[]): Expr {
  const [first = 0, ...rest] = coefficients;
  return rest.reduce<Expr>((sum, c) => add(mul(sum, x), constant(x.type.scalar === "f32" ? Math.fround(c) : c, x.type)), constant(x.type.scalar === "f32" ? Math.fround(first) : first, x.type));
}

/** e^r = 1 + r + r²·(c[0] + c[1]·r + …) for |r| ≤ ½ ln 2, minimax with the first two terms fixed: to 0.05 ulp, and by one term less to 1.8 ulp. */
const longTail = [0.4999999344, 0.1666652048, 4.1668389851e-2, 8.3687355616e-3, 1.3814560317e-3];
const shortTail = [0.4999923071, 0.1666711514, 4.1890272427e-2, 8.3125076383e-3];
/** Adding it to |x| < 2^22 leaves x rounded to an integer in the low bits. */
const magic = 12582912;
/** What the exponent's bits of 1 say: with it on top of `magic`, the low bits are those of a power of two. */
const bias = 127;

/**
 * e^±x = (1 + rest) · 2^n with |rest| < 0.42; n + `offset` is in the low bits of `shifted`. `x` must be within ±2^20. With
 * `sign` −1 the operations are those on −x, term by term.
 */
function expParts(x: Expr, sign: 1 | -1 = 1, tail: readonly number[] = longTail, offset = bias): { rest: Expr; shifted: Expr } {
  const plus = sign > 0 ? add : sub, minus = sign > 0 ? sub : add;
  const shifted = add(mul(x, f(sign * Math.LOG2E, x)), f(magic + offset, x));
  const n = sub(shifted, f(magic + offset, x));
  const t = minus(minus(x, mul(n, f(0.693359375, x))), mul(n, f(-2.12194440e-4, x)));
  const s = mul(t, t);
  return { rest: plus(mul(pairwise(t, s, sign, tail), s), t), shifted: bitcast(shifted, word(x)) };
}
/** c[0] ± c[1]·t + c[2]·t² ± …, summed in pairs: sums wait for each other less than by Horner's rule. `s` is t². */
function pairwise(t: Expr, s: Expr, sign: 1 | -1, [c0 = 0, c1, ...more]: readonly number[]): Expr {
  const pair = c1 === undefined ? f(c0, t) : add(f(c0, t), mul(f(sign * c1, t), t));
  return more.length === 0 ? pair : add(pair, mul(pairwise(t, s, sign, more), s));
}
/** ±x clamped from `low` to `high`, without the sign; NaN stays. */
const within = (x: Expr, sign: 1 | -1, low: number, high: number): Expr =>
  binary("pmin", binary("pmax", x, f(sign > 0 ? low : -high, x)), f(sign > 0 ? high : -low, x));
/** 2^n for n + `bias` in the low bits of `shifted`, whose other bits leave by the shift; from 2^-126 to 2^127, and 0 for n = -127. */
const powerOfTwo = (shifted: Expr, like: Expr): Expr => bitcast(shift("shl", shifted, 23), like.type);

/** e^±x. */
export function expF32(x: Expr, sign: 1 | -1 = 1): Expr {
  // Twice the bias, so that half of it goes to each of two factors: denormal results are rounded once and overflow is infinity.
  const { rest, shifted } = expParts(within(x, sign, -104, 89), sign, longTail, 2 * bias);
  const half = shift("shr", shifted, 1);
  return mul(mul(add(rest, f(1, x)), powerOfTwo(half, x)), powerOfTwo(sub(shifted, half), x));
}

/** 1 + e^±x to 2.7 ulp: what is below 2^-126 leaves no trace, so that one factor does. */
export function onePlusExpF32(x: Expr, sign: 1 | -1 = 1): Expr {
  // e^x / 2, as 2^128 is not a number.
  const { rest, shifted } = expParts(within(x, sign, -87, 89), sign, shortTail, bias - 1);
  const half = mul(add(rest, f(1, x)), powerOfTwo(shifted, x));
  return add(add(half, half), f(1, x));
}

/**
 * e^x for x ≤ 0 (or NaN), as softmax weighs: relative errors up to (2 + |x|) ulp, so never more than 2 ulp of 1; 0 where
 * e^x is below 2^-126.5.
 */
export const expOfNegativeF32 = (x: Expr): Expr => decay(binary("pmax", x, f(-88, x)), 1);

/** e^±x for ±x from −88 to 0. */
function decay(x: Expr, sign: 1 | -1): Expr {
  const plus = sign > 0 ? add : sub, minus = sign > 0 ? sub : add;
  const shifted = add(mul(x, f(sign * Math.LOG2E, x)), f(magic + bias, x));
  const t = minus(x, mul(sub(shifted, f(magic + bias, x)), f(Math.LN2, x)));
  const s = mul(t, t);
  return mul(add(plus(mul(pairwise(t, s, sign, shortTail), s), t), f(1, x)), powerOfTwo(bitcast(shifted, word(x)), x));
}

/** −ln(erfc(a)) / a, minimax for the error of erfc from 0 to 9. */
const erfcLogarithm = [1.12838167, 0.636572922, 0.103058794, -1.99372048e-2, 9.96086640e-4, 7.17378584e-4, -2.00932664e-4, 1.70001401e-5];
/** Where erfc falls below 2^-126. */
const erfcEnd = 7.708;

/**
 * 1 + erf(x) to 2.2e-7, as e^(-a·p(a)) for a negative argument −a, which keeps its digits where the sum would lose them:
 * 2 % of the value at most down to −4. 0 below −7.7.
 */
export function onePlusErfF32(x: Expr): Expr {
  const a = binary("pmin", unary("abs", x), f(erfcEnd, x));
  const tail = decay(mul(pairwise(a, mul(a, a), 1, erfcLogarithm), a), -1);
  return select(binary("lt", x, f(0, x)), tail, sub(f(2, x), tail));
}

/** −log2(erfc(a / √2)) / a, and 2^t for |t| ≤ ½ from the second term on: the polynomials above in base 2. */
const tailLogarithm = erfcLogarithm.map((c, k) => c / (Math.LN2 * 2 ** ((k + 1) / 2)));
const powerTail = [1, ...shortTail].map((c, k) => c * Math.LN2 ** (k + 1));
/** Where erfc(a / √2) / 2 falls below 2^-126. */
const tailEnd = 10.88;

/**
 * x · (1 + erf(x/√2)) / 2, as max(x, 0) − |x| · erfc(|x|/√2) / 2: to 1.2e-7 of |x|, and to 2 % of the value down to
 * x = −5.6.
 */
export function geluF32(x: Expr): Expr {
  // |x|, but at +∞, whose tail is 0; that of -∞ is 0 · ∞, NaN as by the definition.
  const size = binary("pmax", sub(f(0, x), x), binary("pmin", x, f(tailEnd, x)));
  const a = binary("pmin", size, f(tailEnd, x));
  const y = mul(pairwise(a, mul(a, a), 1, tailLogarithm), a);
  // 2^-y / 2
  const shifted = sub(f(magic + bias - 1, x), y), t = add(y, sub(shifted, f(magic + bias - 1, x)));
  const s = mul(t, t), [c1 = 0, c2 = 0, ...more] = powerTail;
  const power = add(sub(f(1, x), mul(f(c1, x), t)), mul(pairwise(t, s, -1, [c2, ...more]), s));
  return sub(binary("pmax", x, f(0, x)), mul(mul(powerOfTwo(bitcast(shifted, word(x)), x), size), power));
}

/** 2^t for |t| ≤ ½ from the second term on, minimax for the relative error: to 9.2e-8. */
const powerOfHalf = [0.6931470037, 0.2402224243, 0.0555073358, 9.6715129912e-3, 1.3264727313e-3];

/** Integers that `powerBelow` takes are of this magnitude at most. */
export const largestPower = 2 ** 21;

/**
 * 2^(x − top) for x ≤ top (or NaN) and an integer `top` of at most `largestPower`: to 2 ulp, 0 below 2^-126.5. What is
 * computed of `top` comes apart, as it is the same for many x.
 */
export function powerBelow(top: Expr): { readonly low: Expr; readonly offset: Expr } {
  return { low: sub(top, f(bias, top)), offset: sub(f(magic + bias, top), top) };
}
export function powerOf(x: Expr, { low, offset }: ReturnType<typeof powerBelow>): Expr {
  const y = binary("pmax", x, low), shifted = add(y, offset), t = sub(y, sub(shifted, offset));
  const s = mul(t, t), [c1 = 0, ...more] = powerOfHalf;
  return mul(add(add(f(1, x), mul(f(c1, x), t)), mul(pairwise(t, s, 1, more), s)), powerOfTwo(bitcast(shifted, word(x)), x));
}

/**
 * x / (1 + e^-x), to 2e-7 of |x|, and to (2 + |x|) ulp of the value where that is normal: e^-x as 2^y of the rounded y = -x · log2(e).
 * Infinite y is 2^128, whose bits are infinity's: -0 below -88.8 and NaN at -∞, as by the definition.
 */
export function siluF32(x: Expr): Expr {
  const y = binary("pmin", binary("pmax", mul(x, f(-Math.LOG2E, x)), f(-126, x)), f(128, x));
  const shifted = add(y, f(magic, x)), t = sub(y, sub(shifted, f(magic, x)));
  const s = mul(t, t), [c1 = 0, ...more] = powerOfHalf;
  const power = add(add(f(1, x), mul(f(c1, x), t)), mul(pairwise(t, s, 1, more), s));
  // n goes to the exponent's bits as it is; a NaN in x is one in the quotient whatever they become.
  const scaled = bitcast(add(bitcast(power, word(x)), shift("shl", bitcast(shifted, word(x)), 23)), x.type);
  return div(x, add(scaled, f(1, x)));
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
  const { rest, shifted } = expParts(binary("pmin", add(a, a), f(18.2, x)));
  const scale = powerOfTwo(shifted, x);
  const e = add(mul(rest, scale), sub(scale, f(1, x)));
  return withSignOf(div(e, add(e, f(2, x))), x);
}

const erfSmall = [-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1];
const erfLarge = [-1.72853470e-5, 3.83197126e-4, -3.88396438e-3, 2.42546219e-2, -1.06777877e-1, -6.34846687e-1, -1.28717512e-1];

export function erfF32(x: Expr): Expr {
  const a = binary("pmin", unary("abs", x), f(4, x)), z = mul(x, x);
  const small = add(mul(horner(z, erfSmall), x), x);
  const { rest, shifted } = expParts(sub(mul(horner(a, erfLarge), a), a));
  const large = sub(f(1, x), mul(add(rest, f(1, x)), powerOfTwo(shifted, x)));
  return select(binary("gt", a, f(0.927734375, x)), withSignOf(large, x), small);
}

/** A value that is not negative, with the sign of x; NaN where `value` is. */
function withSignOf(value: Expr, x: Expr): Expr {
  return bitcast(binary("or", bitcast(value, word(x)), binary("and", bitcast(x, word(x)), int(-(2 ** 31), x))), x.type);
}
