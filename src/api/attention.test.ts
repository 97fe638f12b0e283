import { describe, expect, it } from "vitest";
import { DiagnosticError } from "../core/diagnostic.ts";
import { Tensor } from "../runtime/tensor.ts";
import { Attention, flashAttention, type AttentionLayout } from "./attention.ts";

interface Sizes { readonly b: number; readonly n: number; readonly m: number; readonly s: number; readonly t: number; readonly d: number; readonly e: number }
type At = (b: number, n: number, s: number, d: number) => number;

/** Pseudo-random values that depend on the four indices and a seed. */
const noise = (seed: number): At => (b, n, s, d) => Math.fround(Math.sin(seed + 12.9898 * b + 78.233 * n + 37.719 * s + 4.581 * d) * 2);

function laidOut(layout: AttentionLayout, at: At, b: number, n: number, s: number, d: number): Tensor {
  const out: number[] = [];
  const dims = layout === "BNSD" ? [b, n, s, d] : [b, s, n, d];
  for (let i = 0; i < b; i++) for (let j = 0; j < (dims[1] ?? 0); j++) for (let k = 0; k < (dims[2] ?? 0); k++) for (let l = 0; l < d; l++)
    out.push(layout === "BNSD" ? at(i, j, k, l) : at(i, k, j, l));
  return new Tensor("float32", Float32Array.from(out), layout === "BSH" ? [b, s, n * d] : dims);
}

/** softmax(q·kᵀ·scale + mask)·v in float64. */
function oracle(z: Sizes, q: At, k: At, v: At, scale: number, mask: At): At {
  return (b, n, s, e) => {
    const m = Math.floor(n / (z.n / z.m));
    const scores = Array.from({ length: z.t }, (_, t) => {
      let dot = 0;
      for (let d = 0; d < z.d; d++) dot += q(b, n, s, d) * k(b, m, t, d);
      return dot * scale + mask(b, n, s, t);
    });
    const most = Math.max(...scores), exps = scores.map((x) => Math.exp(x - most));
    const total = exps.reduce((x, y) => x + y, 0);
    return exps.reduce((sum, x, t) => sum + (x / total) * v(b, m, t, e), 0);
  };
}

async function difference(layout: AttentionLayout, z: Sizes, options: { scale?: number; expectedScale?: number; mask?: At } = {}): Promise<number> {
  const q = noise(1), k = noise(2), v = noise(3);
  const result = await flashAttention({
    query: laidOut(layout, q, z.b, z.n, z.s, z.d), key: laidOut(layout, k, z.b, z.m, z.t, z.d), value: laidOut(layout, v, z.b, z.m, z.t, z.e),
    headNum: z.n, keyHeadNum: z.m, inputLayout: layout,
    ...(options.scale === undefined ? {} : { scale: options.scale }), ...(options.mask ? { mask: laidOut("BNSD", options.mask, z.b, z.n, z.s, z.t) } : {}),
  });
  const expected = laidOut(layout, oracle(z, q, k, v, options.expectedScale ?? options.scale ?? 1 / Math.sqrt(z.d), options.mask ?? (() => 0)), z.b, z.n, z.s, z.e);
  expect(result.dims).toEqual(expected.dims);
  const [a, b] = [result.data as Float32Array, expected.data as Float32Array];
  return Math.max(0, ...a.map((x, i) => Math.abs(x - (b[i] ?? NaN))));
}

describe("flashAttention", () => {
  const sizes: readonly Sizes[] = [
    { b: 2, n: 4, m: 4, s: 17, t: 17, d: 8, e: 8 }, { b: 1, n: 6, m: 2, s: 1, t: 70, d: 16, e: 5 }, { b: 1, n: 1, m: 1, s: 65, t: 3, d: 7, e: 64 },
  ];
  it.each(["BNSD", "BSND", "BSH"] as const)("%s at any size, with shared key heads", async (layout) => {
    for (const z of sizes) expect(await difference(layout, z)).toBeLessThan(1e-5);
  });
  it("takes a mask and a scale", async () => {
    const causal: At = (_b, _n, s, t) => (t <= s ? 0.25 * t : -Infinity);
    const [z] = sizes as [Sizes];
    expect(await difference("BSND", z, { mask: causal, scale: 0.5 })).toBeLessThan(1e-5);
    expect(await difference("BSND", z, { mask: causal, scale: 0.5, expectedScale: 0.6 })).toBeGreaterThan(1e-3);
  });
  it("broadcasts a mask over batch and heads", async () => {
    const [z] = sizes as [Sizes];
    const mask: At = (_b, _n, s, t) => (s === t ? 1 : 0);
    const give = (at: At, n: number, s: number, d: number): Tensor => laidOut("BNSD", at, z.b, n, s, d);
    const common = { query: give(noise(1), z.n, z.s, z.d), key: give(noise(2), z.m, z.t, z.d), value: give(noise(3), z.m, z.t, z.e), headNum: z.n, inputLayout: "BNSD" as const };
    const whole = await flashAttention({ ...common, mask: laidOut("BNSD", mask, z.b, z.n, z.s, z.t) });
    const small = await flashAttention({ ...common, mask: laidOut("BNSD", mask, 1, 1, z.s, z.t) });
    expect(small.data).toEqual(whole.data);
  });
  it("gives for a fully masked row what the operators one by one give", async () => {
    const one = (x: number): Tensor => new Tensor("float32", Float32Array.of(x, x), [1, 1, 2, 1]);
    const mask = new Tensor("float32", Float32Array.of(0, 0, -Infinity, -Infinity), [1, 1, 2, 2]);
    const y = await flashAttention({ query: one(1), key: one(1), value: one(3), headNum: 1, inputLayout: "BNSD", mask });
    expect([...(y.data as Float32Array)]).toEqual([3, NaN]);
  });
  it("says what does not fit", async () => {
    const x = new Tensor("float32", new Float32Array(24), [1, 2, 3, 4]);
    const attempt = async (more: object): Promise<string> => flashAttention({ query: x, key: x, value: x, headNum: 2, inputLayout: "BNSD", ...more }).then(() => "ran", (e: unknown) => (e instanceof DiagnosticError ? e.code : String(e)));
    expect(await attempt({ headNum: 3 })).toBe("OF7021");
    expect(await attempt({ inputLayout: "SBH" })).toBe("OF7020");
    expect(await attempt({ inputLayout: "BSH" })).toBe("OF7021");
    expect(await attempt({ headNum: 2, keyHeadNum: 2, key: new Tensor("float32", new Float32Array(12), [1, 2, 3, 2]) })).toBe("OF7005");
  });
  it("can be kept loaded", async () => {
    const attention = await Attention.load("BSH");
    const x = new Tensor("float32", Float32Array.from({ length: 24 }, (_, i) => Math.cos(i)), [1, 3, 8]);
    const first = await attention.run({ query: x, key: x, value: x, headNum: 2 });
    const second = await attention.run({ query: x, key: x, value: x, headNum: 2 });
    expect(second.data).toEqual(first.data);
    attention.dispose();
  });
});
