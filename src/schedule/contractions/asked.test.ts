import { expect, it } from "vitest";
import { AlikeKernels } from "../../kernel/alike.ts";
import { axisOf, constant, i32, load, f32, type Axis, type Buffer } from "../../kernel/expr.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { PackSpec, Weight } from "../../kernel/program.ts";
import { block } from "../../kernel/stmt.ts";
import type { MatMulStructure } from "../../kernel/structure.ts";
import { denseLayout, type ScheduleContext } from "../builder.ts";
import { Asked } from "./asked.ts";

const spec: PackSpec = { kind: "copy" };
const weightOf = (name: string, values: readonly number[]): Weight => ({ buffer: { name, dtype: "float32", shape: [values.length] }, source: { dtype: "float32", dims: [values.length], data: Float32Array.from(values) }, pack: spec });
/** A context over some weights, which counts what is packed. */
function contextOf(weights: readonly Weight[], offsets: ReadonlyMap<Buffer, number> = new Map()): { context: ScheduleContext; packed: Buffer[] } {
  const packed: Buffer[] = [];
  return {
    packed,
    context: {
      target: { relaxedSimd: true },
      layout: (b) => ({ ...denseLayout(b.shape), offset: offsets.get(b) ?? 0 }),
      weight: (b) => weights.find((w) => w.buffer === b),
      contents: (w, ask) => ("input" in w.source ? undefined : ask(w.source)),
      packed: (w, _spec, dtype, length) => { const b: Buffer = { name: `${w.buffer.name}_packed`, dtype, shape: [length] }; packed.push(b); return b; },
    },
  };
}
const largest = (w: Weight, asked: Asked): number | undefined => asked.contents(w, (t) => Math.max(...Array.from(t.data as Float32Array)));

it("packs other weights in the same ways where they give the same answers", () => {
  const a = weightOf("a", [1, 2]), b = weightOf("b", [2, 0]), { context, packed } = contextOf([a, b]), asked = new Asked(context);
  asked.weight(a.buffer);
  expect(largest(a, asked)).toBe(2);
  const own = asked.packed(a, spec, "float32", 2), again = asked.again((x) => (x === a.buffer ? b.buffer : x));
  expect(again?.get(own)?.name).toBe("b_packed");
  expect(packed.map((x) => x.name)).toEqual(["a_packed", "b_packed"]);
});

it("packs nothing where an answer differs, a weight is none, stands for two, or lies elsewhere in its memory", () => {
  const a = weightOf("a", [1, 2]), b = weightOf("b", [3, 0]), c = weightOf("c", [2, 2]), given: Weight = { ...weightOf("d", [1, 2]), source: { input: "d" } };
  const offsets = new Map([[c.buffer, 1]]), { context, packed } = contextOf([a, b, c, given], offsets), asked = new Asked(context);
  asked.weight(a.buffer);
  largest(a, asked);
  asked.packed(a, spec, "float32", 2);
  for (const other of [b.buffer, c.buffer, given.buffer, { ...a.buffer }]) expect(asked.again((x) => (x === a.buffer ? other : x)), other.name).toBeUndefined();
  const both = new Asked(contextOf([a, b]).context);
  both.weight(a.buffer);
  both.weight(b.buffer);
  expect(both.again(() => a.buffer)).toBeUndefined();
  expect(packed).toHaveLength(1);
});

const [m, n, k]: readonly [Axis, Axis, Axis] = [{ name: "m", extent: 4 }, { name: "n", extent: 8 }, { name: "k", extent: 8 }];
function product(name: string, change: (s: MatMulStructure) => MatMulStructure = (s) => s): Kernel {
  const buffer = (of: string, shape: readonly number[]): Buffer => ({ name: `${name}_${of}`, dtype: "float32", shape });
  const x = buffer("x", [4, 8]), w = buffer("w", [8, 8]), y = buffer("y", [4, 8]), accumulator = { name: "acc", type: f32 };
  const structure = change({ kind: "matmul", batch: [], m, n, k, a: load(x, [axisOf(m), axisOf(k)]), b: load(w, [axisOf(k), axisOf(n)]), accumulator, stores: [{ buffer: y, indices: [axisOf(m), axisOf(n)], value: { kind: "local", name: "acc", type: f32 } }] });
  return { name, inputs: [x, w], outputs: [y], scratch: [], structure, body: block() };
}

it("schedules kernels of the same structure once, each with working memory and weights of its own", () => {
  const scheduled: string[] = [];
  const alike = new AlikeKernels((b) => denseLayout(b.shape), (kernel) => {
    scheduled.push(kernel.name);
    const row: Buffer = { name: `${kernel.name}_row_0`, dtype: "float32", shape: [8] }, packed: Buffer = { name: `${kernel.name}_packed`, dtype: "float32", shape: [64] };
    const { structure: _, ...rest } = kernel;
    return { kernel: { ...rest, inputs: [...kernel.inputs, packed], scratch: [row], body: { kind: "store", buffer: row, indices: [constant(0, i32)], value: load(packed, [constant(0, i32)]) } }, again: () => new Map([[packed, { ...packed, name: "other" }]]) };
  });
  const first = alike.changed(product("p")), second = alike.changed(product("q"));
  expect(scheduled).toEqual(["p"]);
  expect(second.like).toBe(first);
  expect([...second.inputs, ...second.outputs, ...second.scratch].map((b) => b.name)).toEqual(["q_x", "q_w", "other", "q_y", "q_row_0"]);
  expect(second.body).toMatchObject({ kind: "store", buffer: second.scratch[0], value: { buffer: second.inputs[2] } });
  expect(second.structure).toBeUndefined();
});

it("schedules what differs in its structure by itself", () => {
  let calls = 0;
  const alike = new AlikeKernels((b) => denseLayout(b.shape), (kernel) => { calls++; return { kernel: { ...kernel, body: block() } }; });
  alike.changed(product("p"));
  const others: readonly ((s: MatMulStructure) => MatMulStructure)[] = [
    (s) => ({ ...s, k: { name: "k", extent: 7 } }),
    (s) => ({ ...s, a: s.b }),
    (s) => ({ ...s, accumulator: { name: "sum", type: f32 } }),
    (s) => ({ ...s, others: [{ b: s.b, accumulator: s.accumulator }] }),
    (s) => ({ ...s, stores: s.stores.map((x) => ({ ...x, value: constant(0, f32) })) }),
    (s) => ({ ...s, quantized: { weight: s.stores[0]?.buffer ?? expect.fail(), scales: s.stores[0]?.buffer ?? expect.fail(), block: 4, transposed: false } }),
  ];
  others.forEach((change, i) => { alike.changed(product("q", change)); expect(calls).toBe(i + 2); });
});
