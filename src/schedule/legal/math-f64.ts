/**
 * Elementary functions of float64 scalars in the kernel language's arithmetic; float32 ones that are not hot are computed
 * by them and rounded once. Errors are a few ulp of float64 (measured: below 2e-15 relative); sin, cos and
 * tan of float64 values beyond 2^20 lose digits in proportion, those of float32 values do not.
 *
 * Kernels and constants are those of Sun's fdlibm (exp by its series, log, sin, cos, atan, erf), 1993.
 */
import { add, binary, bitcast, cast, constant, div, f64, i32, i64, mul, select, scalarType, sub, unary, type Expr } from "../../kernel/expr.ts";
import { horner } from "./math-f32.ts";

const u64 = scalarType("u64");
const c = (value: number): Expr => constant(value, f64);
const long = (value: bigint): Expr => constant(value, i64);
const abs = (x: Expr): Expr => unary("abs", x);
const lt = (a: Expr, b: number): Expr => binary("lt", a, c(b));
const same = (a: Expr, b: number): Expr => binary("eq", a, c(b));
const negative = (x: Expr): Expr => unary("neg", x);
const withSignOf = (value: Expr, x: Expr): Expr =>
  bitcast(binary("or", bitcast(value, i64), binary("and", bitcast(x, i64), long(-(2n ** 63n)))), f64);

const ln2High = 6.93147180369123816490e-01, ln2Low = 1.90821492927058770002e-10;
const factorials = Array.from({ length: 14 }, (_, n) => Array.from({ length: n }, (__, i) => i + 1).reduce((p, i) => p * i, 1));
const expSeries = factorials.map((n) => 1 / n).reverse();
const powerOfTwo = (n: Expr): Expr => bitcast(binary("shl", add(n, long(1023n)), long(52n)), f64);

export function expF64(x: Expr): Expr {
  const clamped = binary("pmin", binary("pmax", x, c(-746)), c(710));
  const n = unary("nearest", mul(clamped, c(Math.LOG2E)));
  const r = sub(sub(clamped, mul(n, c(ln2High))), mul(n, c(ln2Low)));
  const exponent = cast(n, "i64"), half = binary("shr", exponent, long(1n));
  return mul(mul(horner(r, expSeries), powerOfTwo(half)), powerOfTwo(sub(exponent, half)));
}

const logSeries = [1.479819860511658591e-01, 1.531383769920937332e-01, 1.818357216161805012e-01, 2.222219843214978396e-01, 2.857142874366239149e-01, 3.999999999940941908e-01, 6.666666666666735130e-01];

export function logF64(x: Expr): Expr {
  const denormal = lt(x, 2 ** -1022);
  const bits = bitcast(select(denormal, mul(x, c(2 ** 54)), x), i64);
  const e = binary("shr", sub(bits, long(0x3fe6a09e667f3bcdn)), long(52n));
  const m = sub(bitcast(sub(bits, binary("shl", e, long(52n))), f64), c(1));
  const k = sub(cast(e, "f64"), select(denormal, c(54), c(0)));
  const s = div(m, add(m, c(2))), z = mul(s, s), half = mul(mul(m, m), c(0.5));
  const r = mul(horner(z, logSeries), z);
  const value = sub(mul(k, c(ln2High)), sub(sub(half, add(mul(s, add(half, r)), mul(k, c(ln2Low)))), m));
  const ordinary = binary("and", binary("gt", x, c(0)), lt(x, Infinity));
  return select(ordinary, value, select(same(x, 0), c(-Infinity), select(lt(x, 0), c(NaN), x)));
}
/** log(1 + u), accurate for small u (Kahan's correction). */
function log1p(u: Expr): Expr {
  const w = add(u, c(1));
  return select(same(w, 1), u, select(same(w, Infinity), w, div(mul(logF64(w), u), sub(w, c(1)))));
}

const sinSeries = [1.58969099521155010221e-10, -2.50507602534068634195e-08, 2.75573137070700676789e-06, -1.98412698298579493134e-04, 8.33333333332248946124e-03, -1.66666666666666324348e-01];
const cosSeries = [-1.13596475577881948265e-11, 2.08757232129817482790e-09, -2.75573143513906633035e-07, 2.48015872894767294178e-05, -1.38888888888741095749e-03, 4.16666666666666019037e-02];
const halfPi = [1.57079632673412561417e+00, 6.07710050630396597660e-11, 2.02226624879595063154e-21];

/** x = quarters·π/2 + rest. */
interface Reduced { readonly quarters: Expr; readonly rest: Expr }

/** For |x| up to 2^20, by Cody and Waite in three parts. */
function reduceSmall(x: Expr): Reduced {
  const n = unary("nearest", mul(x, c(6.36619772367581382433e-01)));
  return { quarters: cast(n, "i64"), rest: halfPi.reduce((rest, part) => sub(rest, mul(n, c(part))), x) };
}

/** The binary digits of 2/π, from 32 places before the point. */
const twoOverPi = [0n, 0xa2f9836en, 0x4e441529n, 0xfc2757d1n, 0xf534ddc0n, 0xdb629599n, 0x3c439041n, 0xfe5163abn];

const unsigned = (e: Expr): Expr => cast(e, "u64"), u = (value: bigint): Expr => constant(value, u64);

/** |x| in quarters, of which the lowest 62 bits are the fraction, for float32 values of at least 2^20, by Payne and Hanek: their mantissa times the digits of 2/π that matter. */
function quartersOf(x: Expr): Expr {
  const bits = bitcast(abs(x), i64);
  // |x| = mantissa · 2^exponent with a mantissa of 24 bits.
  const exponent = sub(binary("shr", bits, long(52n)), long(1023n + 23n));
  const mantissa = unsigned(binary("or", binary("and", binary("shr", bits, long(29n)), long(0x7fffffn)), long(0x800000n)));
  // Digits worth 4 quarters or more are left out.
  const first = binary("pmax", add(exponent, long(30n)), long(0n));
  const word = binary("shr", first, long(5n)), shift = unsigned(binary("and", first, long(31n)));
  const digits = (from: number): Expr => [3, 2, 1, 0].reduce<Expr>((rest, k) => select(binary("eq", word, long(BigInt(k))), u(((twoOverPi[k + from] ?? 0n) << 32n) | (twoOverPi[k + from + 1] ?? 0n)), rest), u(((twoOverPi[4 + from] ?? 0n) << 32n) | (twoOverPi[5 + from] ?? 0n)));
  const high = digits(0), low = digits(2);
  const window = binary("or", binary("shl", high, shift), binary("shr", binary("shr", low, u(1n)), sub(u(63n), shift)));
  const beyond = binary("shr", binary("shl", low, shift), u(32n));
  return add(mul(mantissa, window), binary("shr", mul(mantissa, beyond), u(32n)));
}

/** x, whose size in quarters is `product`. */
function reduceLarge(x: Expr, product: Expr): Reduced {
  const quarters = cast(binary("shr", add(product, u(1n << 61n)), u(62n)), "i64");
  const fraction = cast(cast(sub(product, binary("shl", unsigned(quarters), u(62n))), "i64"), "f64");
  const rest = mul(fraction, c(2 ** -62 * (Math.PI / 2)));
  const below = lt(x, 0);
  return { quarters: select(below, sub(long(0n), quarters), quarters), rest: select(below, negative(rest), rest) };
}

/** For float32 values. The product, which costs much, is computed once, in a branch of its own: where it is 0, so is what it gives. */
function reduceSingle(x: Expr): Reduced {
  const far = binary("gt", abs(x), c(2 ** 20)), small = reduceSmall(x), large = reduceLarge(x, select(far, quartersOf(x), u(0n)));
  return { quarters: add(large.quarters, select(far, long(0n), small.quarters)), rest: add(large.rest, select(far, c(0), small.rest)) };
}

/** sin of x + quarter·π/2. `single`: x is a float32 value. */
function sinShifted(x: Expr, quarter: number, single: boolean): Expr {
  const { quarters, rest: r } = single ? reduceSingle(x) : reduceSmall(x);
  const z = mul(r, r);
  const sine = add(r, mul(mul(r, z), horner(z, sinSeries)));
  const cosine = add(sub(c(1), mul(z, c(0.5))), mul(mul(z, z), horner(z, cosSeries)));
  const q = add(quarters, long(BigInt(quarter)));
  const odd = binary("ne", binary("and", q, long(1n)), long(0n));
  const value = select(odd, cosine, sine);
  const down = binary("ne", binary("and", q, long(2n)), long(0n));
  const signed = select(down, negative(value), value);
  // Infinity and NaN have no sine; -0 keeps its sign.
  return select(lt(abs(x), Infinity), quarter === 0 ? select(same(x, 0), x, signed) : signed, c(NaN));
}
export const sinF64 = (x: Expr, single = false): Expr => sinShifted(x, 0, single);
export const cosF64 = (x: Expr, single = false): Expr => sinShifted(x, 1, single);
export const tanF64 = (x: Expr, single = false): Expr => div(sinF64(x, single), cosF64(x, single));

const atanSeries = [
  1.62858201153657823623e-02, -3.65315727442169155270e-02, 4.97687799461593236017e-02, -5.83357013379057348645e-02, 6.66107313738753120669e-02, -7.69187620504482999495e-02,
  9.09088713343650656196e-02, -1.11111104054623557880e-01, 1.42857142725034663711e-01, -1.99999999998764832476e-01, 3.33333333333329318027e-01,
];
export function atanF64(x: Expr): Expr {
  const a = abs(x);
  const choose = (...values: readonly Expr[]): Expr => [7 / 16, 11 / 16, 19 / 16, 39 / 16].reduceRight<Expr>((above, limit, i) => select(lt(a, limit), values[i] ?? above, above), values[4] ?? a);
  const numerator = choose(a, sub(add(a, a), c(1)), sub(a, c(1)), sub(a, c(1.5)), c(-1));
  const denominator = choose(c(1), add(a, c(2)), add(a, c(1)), add(mul(a, c(1.5)), c(1)), a);
  const high = choose(c(0), c(4.63647609000806093515e-01), c(7.85398163397448278999e-01), c(9.82793723247329054082e-01), c(1.57079632679489655800e+00));
  const low = choose(c(0), c(2.26987774529616870924e-17), c(3.06161699786838301793e-17), c(1.39033110312309984516e-17), c(6.12323399573676603587e-17));
  const t = div(numerator, denominator), z = mul(t, t);
  const tail = mul(t, mul(z, horner(z, atanSeries)));
  return withSignOf(add(high, sub(t, sub(tail, low))), x);
}
export const asinF64 = (x: Expr): Expr => atanF64(div(x, unary("sqrt", mul(sub(c(1), x), add(x, c(1))))));
export function acosF64(x: Expr): Expr {
  const half = atanF64(unary("sqrt", div(sub(c(1), x), add(x, c(1)))));
  return add(half, half);
}

const sinhSeries = [21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1].map((n) => 1 / Array.from({ length: n }, (_, i) => i + 1).reduce((p, i) => p * i, 1));
/** For |x| <= 1. */
const sinhSmall = (x: Expr): Expr => mul(x, horner(mul(x, x), sinhSeries));
export function sinhF64(x: Expr): Expr {
  const a = abs(x), root = expF64(mul(a, c(0.5)));
  const large = sub(mul(mul(root, c(0.5)), root), div(c(0.5), mul(root, root)));
  return select(binary("le", a, c(1)), sinhSmall(x), withSignOf(large, x));
}
export function coshF64(x: Expr): Expr {
  const root = expF64(mul(abs(x), c(0.5)));
  return add(mul(mul(root, c(0.5)), root), div(c(0.5), mul(root, root)));
}
export function tanhF64(x: Expr): Expr {
  const a = abs(x), s = sinhSmall(x);
  const large = sub(c(1), div(c(2), add(expF64(add(a, a)), c(1))));
  return select(binary("le", a, c(0.5)), div(s, unary("sqrt", add(mul(s, s), c(1)))), withSignOf(large, x));
}
export function asinhF64(x: Expr): Expr {
  const a = abs(x), z = mul(a, a);
  const near = log1p(add(a, div(z, add(unary("sqrt", add(z, c(1))), c(1)))));
  return withSignOf(select(lt(a, 2 ** 28), near, add(logF64(a), c(Math.LN2))), x);
}
export function acoshF64(x: Expr): Expr {
  const t = sub(x, c(1));
  return select(lt(x, 1), c(NaN), select(lt(x, 2 ** 28), log1p(add(t, unary("sqrt", add(add(t, t), mul(t, t))))), add(logF64(x), c(Math.LN2))));
}
export function atanhF64(x: Expr): Expr {
  const a = abs(x);
  return withSignOf(mul(log1p(div(add(a, a), sub(c(1), a))), c(0.5)), x);
}

const erfSmallTop = [-2.37630166566501626084e-05, -5.77027029648944159157e-03, -2.84817495755985104766e-02, -3.25042107247001499370e-01, 1.28379167095512558561e-01];
const erfSmallBottom = [-3.96022827877536812320e-06, 1.32494738004321644526e-04, 5.08130628187576562776e-03, 6.50222499887672944485e-02, 3.97917223959155352819e-01, 1];
const erfMiddleTop = [-2.16637559486879084300e-03, 3.54783043256182359371e-02, -1.10894694282396677476e-01, 3.18346619901161753674e-01, -3.72207876035701323847e-01, 4.14856118683748331666e-01, -2.36211856075265944077e-03];
const erfMiddleBottom = [1.19844998467991074170e-02, 1.36370839120290507362e-02, 1.26171219808761642112e-01, 7.18286544141962662868e-02, 5.40397917702171048937e-01, 1.06420880400844228286e-01, 1];
const erfLargeTop = [-9.81432934416914548592e+00, -8.12874355063065934246e+01, -1.84605092906711035994e+02, -1.62396669462573470355e+02, -6.23753324503260060396e+01, -1.05586262253232909814e+01, -6.93858572707181764372e-01, -9.86494403484714822705e-03];
const erfLargeBottom = [-6.04244152148580987438e-02, 6.57024977031928170135e+00, 1.08635005541779435134e+02, 4.29008140027567833386e+02, 6.45387271733267880336e+02, 4.34565877475229228821e+02, 1.37657754143519042600e+02, 1.96512716674392571292e+01, 1];
const erfFarTop = [-4.83519191608651397019e+02, -1.02509513161107724954e+03, -6.37566443368389627722e+02, -1.60636384855821916062e+02, -1.77579549177547519889e+01, -7.99283237680523006574e-01, -9.86494292470009928597e-03];
const erfFarBottom = [-2.24409524465858183362e+01, 4.74528541206955367215e+02, 2.55305040643316442583e+03, 3.19985821950859553908e+03, 1.53672958608443695994e+03, 3.25792512996573918826e+02, 3.03380607434824582924e+01, 1];

export function erfF64(x: Expr): Expr {
  const a = abs(x), z = mul(x, x), s = sub(a, c(1)), w = div(c(1), z);
  const small = add(x, mul(x, div(horner(z, erfSmallTop), horner(z, erfSmallBottom))));
  const middle = add(c(8.45062911510467529297e-01), div(horner(s, erfMiddleTop), horner(s, erfMiddleBottom)));
  const ratio = select(lt(a, 1 / 0.35), div(horner(w, erfLargeTop), horner(w, erfLargeBottom)), div(horner(w, erfFarTop), horner(w, erfFarBottom)));
  const tail = sub(c(1), div(expF64(add(sub(c(-0.5625), z), ratio)), a));
  const large = select(lt(a, 1.25), middle, select(lt(a, 6), tail, select(binary("ge", a, c(6)), c(1), a)));
  return select(lt(a, 0.84375), small, withSignOf(large, x));
}

/** x / (1 + e^-x). */
export const siluF64 = (x: Expr): Expr => div(x, add(expF64(unary("neg", x)), c(1)));
export const geluF64 = (x: Expr): Expr => mul(mul(x, c(0.5)), add(erfF64(mul(x, c(Math.SQRT1_2))), c(1)));

/** The result for xʸ as C's pow from |x|ʸ: 1 for y = 0 or x = 1, NaN for negative x and fractional y. */
function withPowerCases(x: Expr, y: Expr, power: (a: Expr) => Expr): Expr {
  const a = abs(x);
  const whole = binary("eq", unary("floor", y), y);
  const half = mul(y, c(0.5));
  const odd = binary("and", whole, binary("and", binary("ne", unary("floor", half), half), lt(abs(y), 2 ** 53)));
  const magnitude = select(binary("and", same(a, 1), binary("eq", y, y)), c(1), power(a));
  // The sign bit, so that -0 counts as negative.
  const negativeBase = binary("lt", bitcast(x, i64), long(0n));
  const signed = select(binary("and", negativeBase, odd), negative(magnitude), magnitude);
  const undefinedPower = binary("and", binary("and", lt(x, 0), unary("not", whole)), binary("and", lt(a, Infinity), lt(abs(y), Infinity)));
  return select(binary("or", same(y, 0), same(x, 1)), c(1), select(undefinedPower, c(NaN), signed));
}

/** Accurate to about |y·log₂x| ulp of float64. */
export const powF64 = (x: Expr, y: Expr): Expr => withPowerCases(x, y, (a) => expF64(mul(y, logF64(a))));

const log2Series = [1 / 15, 1 / 13, 1 / 11, 1 / 9, 1 / 7, 1 / 5, 1 / 3, 1].map((k) => k * 2 * Math.LOG2E);
const exp2Series = factorials.slice(0, 9).map((n, k) => Math.LN2 ** k / n).reverse();

/** For operands that are float32 values and a result that is rounded to float32: some 10 digits. */
export const powF32 = (x: Expr, y: Expr): Expr => withPowerCases(x, y, (a) => {
  const bits = bitcast(a, i64);
  const e = binary("shr", sub(bits, long(0x3fe6a09e667f3bcdn)), long(52n));
  const m = bitcast(sub(bits, binary("shl", e, long(52n))), f64);
  const s = div(sub(m, c(1)), add(m, c(1)));
  const log2 = add(cast(e, "f64"), mul(s, horner(mul(s, s), log2Series)));
  const limited = select(same(a, 0), c(-Infinity), select(lt(a, Infinity), log2, a));
  const t = binary("pmin", binary("pmax", mul(y, limited), c(-1000)), c(1000));
  const n = unary("nearest", t);
  return mul(horner(sub(t, n), exp2Series), powerOfTwo(cast(n, "i64")));
});

/** The remainder with the sign of a, exact for operands that are float32 values; else for quotients below 2^53. */
export function remF64(a: Expr, b: Expr): Expr {
  const divisor = abs(b);
  let rest = abs(a);
  // Each step takes 28 bits of quotient away; quotients of float32 values have at most 277.
  for (let step = 0; step < 10; step++) rest = reduceOnce(rest, divisor);
  const exact = select(lt(div(abs(a), divisor), 2 ** 28), reduceWhole(abs(a), divisor), rest);
  const ordinary = binary("and", lt(abs(a), Infinity), binary("and", binary("ne", b, c(0)), binary("eq", b, b)));
  const value = select(same(divisor, Infinity), a, withSignOf(exact, a));
  return select(ordinary, value, c(NaN));
}
/** rest − trunc(rest / divisor)·divisor where the quotient has at most 28 bits and so its product is exact. */
function reduceWhole(rest: Expr, divisor: Expr): Expr {
  const r = sub(rest, mul(unary("floor", div(rest, divisor)), divisor));
  return select(lt(r, 0), add(r, divisor), r);
}
/** The same with the divisor times the power of two that leaves 28 bits. */
function reduceOnce(rest: Expr, divisor: Expr): Expr {
  const bits = sub(binary("shr", bitcast(div(rest, divisor), i64), long(52n)), long(1023n + 27n));
  const up = binary("pmax", cast(bits, "i32"), constant(0, i32));
  return reduceWhole(rest, mul(divisor, powerOfTwo(cast(up, "i64"))));
}
