import { describe, expect, it } from "vitest";
import { present } from "../../core/assert.ts";
import { symbol, type Dim } from "../../core/dim.ts";
import { named, type AnchorOperand } from "../../graph/op.ts";
import { add, load, type Buffer } from "../../kernel/expr.ts";
import type { Layout } from "../../kernel/kernel.ts";
import { fromNumbers, toNumbers, type Tensor } from "../../core/tensor.ts";
import type { EpilogueStore } from "../../kernel/structure.ts";
import { FlashAttention } from "../../ops/flash-attention.ts";
import { randomFrom, randomTensor } from "../../../test/support/random.ts";
import { contextOf, difference, naiveBody, runKernel, structuredKernel, type KernelCase } from "../../../test/support/kernel-case.ts";
import { scheduleStructure } from "./structures.ts";

interface Options {
  readonly q: readonly number[]; readonly keys: number; readonly keyHeads?: number; readonly width?: number;
  readonly symbolic?: boolean;
  readonly scale?: "pre" | "post"; readonly by?: number;
  /** Shape of the mask; `hidden` -Infinity in half of it, `all` everywhere in its first row. */
  readonly mask?: readonly number[]; readonly hidden?: "some" | "all";
  /** Layouts: heads inside the sequence (BSND), keys transposed. */
  readonly layout?: "bsnd" | "transposed keys";
  readonly residual?: boolean;
  /** What hides keys by position, and what else goes into the softmax. */
  readonly causal?: boolean; readonly window?: number; readonly softcap?: number;
  readonly least?: number; readonly empty?: "hidden" | "undefined";
  /** Queries and values that are no finite numbers. */
  readonly odd?: { readonly q?: Readonly<Record<number, number>>; readonly v?: Readonly<Record<number, number>> };
  readonly offset?: readonly number[]; readonly limit?: readonly number[]; readonly sink?: readonly number[];
}

const operand = (buffer: Buffer): AnchorOperand => ({ dtype: buffer.dtype, shape: buffer.shape, at: (...i) => load(buffer, i), buffer: () => buffer });

/** What the operator's evaluation gives, in the bytes of a float32 tensor. */
function expectedOf(o: Options, data: ReadonlyMap<Buffer, Tensor>, operands: readonly (Buffer | undefined)[], residual: Buffer): Uint8Array {
  const evaluate = present(FlashAttention.evaluate, "evaluation");
  const result = present(evaluate(operands.map((b) => b && data.get(b)), attributesOf(o), { outputCount: 1 })[0], "result");
  const values = Float32Array.from(toNumbers(result));
  const added = toNumbers(present(data.get(residual), "residual"));
  return new Uint8Array((o.residual ? values.map((x, i) => x + (added[i] ?? 0)) : values).buffer);
}
const attributesOf = (o: Options) => ({ scale: o.scale ? (o.by ?? 0.5) : 1, scale_position: o.scale ?? "post", causal: Number(o.causal ?? false), window: o.window ?? 0, softcap: o.softcap ?? 0, least: o.least ?? -Infinity, empty_rows: o.empty ?? "nan" });

function attentionCase(o: Options): { c: KernelCase; out: Buffer; expected: Uint8Array } {
  const [n = 1, h = 1, sq = 1, d = 1] = o.q, kh = o.keyHeads ?? h, width = o.width ?? d;
  const size = (name: string, value: number): Dim => (o.symbolic ? symbol(name) : value);
  const last = (o.mask?.length ?? 0) - 1;
  const random = randomFrom(sq * 31 + o.keys);
  const q: Buffer = { name: "Q", dtype: "float32", shape: [n, h, size("s", sq), d] };
  const k: Buffer = { name: "K", dtype: "float32", shape: [n, kh, size("t", o.keys), d] };
  const v: Buffer = { name: "V", dtype: "float32", shape: [n, kh, size("t", o.keys), width] };
  const mask: Buffer | undefined = o.mask && { name: "M", dtype: "float32", shape: o.mask.map((x, i) => (o.symbolic && i === last && x > 1 ? symbol("t") : o.symbolic && i === last - 1 && x > 1 ? symbol("s") : x)) };
  const y: Buffer = { name: "Y", dtype: "float32", shape: [n, h, size("s", sq), width] }, residual: Buffer = { name: "R", dtype: "float32", shape: y.shape };
  const small = (name: string, dtype: "int64" | "float32", values: readonly number[] | undefined): Buffer | undefined => values && { name, dtype, shape: [values.length] };
  const extra = [small("O", "int64", o.offset), small("L", "int64", o.limit), small("S", "float32", o.sink)];
  const given = [q, k, v, mask, undefined, undefined, ...extra];
  const inputs = named(FlashAttention, given.map((x) => x && operand(x)));
  const anchor = present(FlashAttention.anchor, "anchor")(inputs, attributesOf(o), { outputs: [{ dtype: "float32", shape: y.shape }] });
  const store: EpilogueStore = { buffer: y, indices: anchor.indices, value: o.residual ? add(anchor.element, load(residual, anchor.indices)) : anchor.element };
  const kernel = structuredKernel("attention", anchor.structure([store]), [...given.filter((x) => x !== undefined), ...(o.residual ? [residual] : [])], [y], naiveBody(anchor.axes, "acc", anchor.accumulate, [store]));
  const data = new Map<Buffer, Tensor>([[q, randomTensor([n, h, sq, d], random)], [k, randomTensor([n, kh, o.keys, d], random)], [v, randomTensor([n, kh, o.keys, width], random)], [residual, randomTensor([n, h, sq, width], random)]]);
  if (mask && o.mask) {
    const t = randomTensor(o.mask, random);
    const values = Float32Array.from(t.data as Float32Array, (x, i) => (o.hidden === "some" && i % 2 === 0 ? -Infinity : o.hidden === "all" && i < o.keys ? -Infinity : x));
    data.set(mask, { ...t, data: values });
  }
  for (const [buffer, values] of [[q, o.odd?.q], [v, o.odd?.v]] as const) {
    const t = present(data.get(buffer), "operand");
    if (values) data.set(buffer, { ...t, data: Float32Array.from(t.data as Float32Array, (x, i) => values[i] ?? x) });
  }
  extra.forEach((buffer, i) => { if (buffer) data.set(buffer, fromNumbers(buffer.dtype, [Number(buffer.shape[0])], [o.offset, o.limit, o.sink][i] ?? [])); });
  const layouts = new Map<Buffer, Layout>();
  const t = size("t", o.keys);
  if (o.layout === "bsnd" && n === 1) {
    layouts.set(q, { strides: [0, d, h * d, 1], offset: 0 }).set(y, { strides: [0, width, h * width, 1], offset: 0 }).set(k, { strides: [0, d, kh * d, 1], offset: 0 }).set(v, { strides: [0, width, kh * width, 1], offset: 0 });
  }
  if (o.layout === "transposed keys" && typeof t === "number") layouts.set(k, { strides: [kh * d * t, d * t, 1, t], offset: 0 });
  const sizes: Record<string, number> = { s: sq, t: o.keys };
  return { c: { kernel, data, layouts, dims: (name) => present(sizes[name], name) }, out: y, expected: expectedOf(o, data, given, residual) };
}

function check(o: Options): void {
  for (const symbolic of [false, true]) for (const layout of [undefined, "bsnd", "transposed keys"] as const) {
    const { c, out, expected } = attentionCase({ ...o, symbolic, ...(layout ? { layout } : {}) });
    const { context, packed } = contextOf(c);
    const scheduled = present(scheduleStructure(c.kernel, context), "schedule");
    const actual = present(runKernel(c, scheduled, packed).get(out), "result");
    expect(difference("float32", expected, actual), `${JSON.stringify(o)} ${symbolic} ${layout}`).toBeLessThan(2e-6);
    const compiled = present(runKernel(c, scheduled, packed, "wasm").get(out), "result");
    expect(difference("float32", expected, compiled), `${JSON.stringify(o)} compiled`).toBeLessThan(2e-6);
  }
}

describe("attention", () => {
  it("few queries, many queries, awkward sizes", () => {
    for (const s of [1, 2, 7, 8, 9, 19]) for (const keys of [1, 5, 16]) check({ q: [1, 2, s, 8], keys });
    check({ q: [2, 1, 9, 5], keys: 7, width: 6, scale: "pre" });
    check({ q: [1, 1, 10, 4], keys: 3, width: 1, scale: "post" });
  });
  it("several blocks of keys", () => check({ q: [1, 1, 9, 4], keys: 517 }));
  it("scales that are taken into the queries, and scores too large for an exponent", () => {
    for (const scale of ["pre", "post"] as const) {
      check({ q: [1, 1, 17, 5], keys: 9, scale, by: 0.3 });
      check({ q: [1, 1, 17, 5], keys: 9, scale, by: -0.3, causal: true });
      check({ q: [1, 1, 11, 5], keys: 9, scale, by: 1e-6 });
    }
    check({ q: [1, 1, 11, 5], keys: 9, scale: "post", by: 0.3, mask: [11, 9], hidden: "some" });
    check({ q: [1, 1, 11, 5], keys: 9, scale: "post", by: 3 });
    for (const keys of [9, 540]) for (const size of [3e6, 1e9, 1e30, Infinity, NaN]) check({ q: [1, 1, 11, 5], keys, scale: "post", by: 0.3, odd: { q: { 5: size, 13: -size } } });
  });
  it("rows that see no key, of scores that nothing is added to", () => {
    for (const empty of ["hidden", "undefined"] as const) check({ q: [1, 1, 11, 4], keys: 11, causal: true, offset: [-3], empty, scale: "post", by: 0.3, odd: { q: { 21: NaN, 30: Infinity }, v: { 5: Infinity } } });
  });
  it("values in panels, and dims that no panel holds", () => {
    for (const keys of [1, 7, 515]) for (const width of [3, 4, 5, 11]) check({ q: [1, 2, 17, 5], keys, keyHeads: 1, width, scale: "pre" });
    check({ q: [1, 1, 16, 6], keys: 530, width: 8, causal: true, offset: [510] });
  });
  it("masks, also of whole rows", () => {
    for (const s of [3, 11]) {
      check({ q: [1, 2, s, 4], keys: 9, mask: [s, 9], hidden: "some", scale: "post" });
      check({ q: [2, 2, s, 4], keys: 9, mask: [2, 1, 1, 9], hidden: "some" });
      check({ q: [1, 2, s, 4], keys: 9, mask: [1, 1, s, 9], hidden: "all" });
    }
    check({ q: [1, 1, 9, 4], keys: 140, mask: [9, 140], hidden: "all" });
  });
  it("rows that are masked everywhere weigh nothing, and NaN does where it says so", () => {
    for (const s of [3, 11]) for (const empty of ["hidden", "undefined"] as const) {
      const of: Options = { q: [1, 2, s, 4], keys: 9, mask: [1, 1, s, 9], hidden: "all", empty };
      check(of);
      check({ ...of, odd: { v: { 0: NaN, 5: Infinity } } });
      check({ ...of, odd: { q: { 4: NaN, 8: Infinity, 12: -Infinity } } });
      check({ ...of, keys: 560, mask: [1, 1, s, 560], odd: { q: { 4: NaN, 8: Infinity } } });
    }
    check({ q: [1, 1, 9, 4], keys: 0, empty: "undefined" });
  });
  it("scores limited from below", () => {
    for (const s of [3, 11]) check({ q: [1, 2, s, 4], keys: 9, mask: [1, 1, s, 9], hidden: "all", least: -3e38 });
  });
  it("shared key heads, a residual", () => {
    check({ q: [1, 4, 9, 4], keys: 6, keyHeads: 2, residual: true });
    check({ q: [1, 4, 1, 4], keys: 6, keyHeads: 1, residual: true });
  });
  it("keys hidden by position: causal, windows, limits, offsets of each of the batch", () => {
    for (const s of [1, 9]) {
      check({ q: [1, 2, s, 4], keys: s, causal: true });
      check({ q: [2, 1, s, 4], keys: s + 3, causal: true, offset: [3, 1], limit: [s + 3, s + 1] });
      check({ q: [2, 1, s, 4], keys: s + 3, causal: true, offset: [3], window: 2 });
    }
    check({ q: [1, 1, 9, 4], keys: 9, causal: true, offset: [-4] });
    check({ q: [1, 1, 20, 4], keys: 600, causal: true, offset: [570], window: 540, scale: "post" });
    check({ q: [1, 1, 20, 4], keys: 520, causal: true, window: 3 });
    check({ q: [2, 1, 9, 4], keys: 150, limit: [0, 129] });
  });
  it("a soft cap, a sink", () => {
    for (const s of [2, 11]) {
      check({ q: [1, 2, s, 4], keys: 6, softcap: 0.7, scale: "post", mask: [s, 6], hidden: "some" });
      check({ q: [1, 2, s, 4], keys: 6, sink: [0.5, -1], causal: true });
      check({ q: [1, 2, s, 4], keys: 6, keyHeads: 1, sink: [3, 0], limit: [0] });
    }
  });
  it("no keys give the empty sum", () => {
    check({ q: [1, 1, 9, 4], keys: 0 });
    check({ q: [1, 1, 2, 4], keys: 0 });
    check({ q: [1, 1, 9, 4], keys: 0, sink: [1] });
  });
  it("another scale is noticed", () => {
    const { expected: a } = attentionCase({ q: [1, 1, 9, 4], keys: 5 }), { c, out } = attentionCase({ q: [1, 1, 9, 4], keys: 5, scale: "post" });
    const b = present(runKernel(c, present(scheduleStructure(c.kernel, contextOf(c).context), "schedule")).get(out), "result");
    expect(difference("float32", a, b)).toBeGreaterThan(1e-3);
  });
});
