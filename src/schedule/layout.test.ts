import { describe, expect, it } from "vitest";
import { present } from "../core/assert.ts";
import { dimMul, dimProduct, symbol, type Dim } from "../core/dim.ts";
import { axisOf, constant, f32, load, local, type Axis, type Buffer } from "../kernel/expr.ts";
import type { Kernel, Layout } from "../kernel/kernel.ts";
import type { Placement, Program, Step, Storage } from "../kernel/program.ts";
import type { ConvStructure } from "../kernel/structure.ts";
import { denseLayout } from "./builder.ts";
import { chooseLayouts } from "./layout.ts";

const buffer = (name: string, shape: readonly Dim[]): Buffer => ({ name, dtype: "float32", shape });
const storage = (name: string, shape: readonly Dim[], kind: Storage["kind"] = "arena"): Storage => ({ name, kind, bytes: dimMul(dimProduct(shape), 4) });
const axis = (name: string, extent: Dim): Axis => ({ name, extent });

/** A kernel that is a 1x1 convolution as far as layouts are concerned. */
function convolution(x: Buffer, w: Buffer, y: Buffer): Kernel {
  const structure: ConvStructure = {
    kind: "conv", batch: axis("n", x.shape[0] ?? 1), group: axis("g", 1), channel: axis("m", y.shape[1] ?? 1), inputChannel: axis("c", x.shape[1] ?? 1),
    output: y.shape.slice(2).map((d, i) => axis(`o${i}`, d)), kernel: y.shape.slice(2).map((_, i) => axis(`k${i}`, 1)),
    strides: [1, 1], dilations: [1, 1], padsBegin: [0, 0], transposed: false, input: x, weight: w,
    accumulator: { name: "acc", type: f32 }, stores: [{ buffer: y, indices: y.shape.map((d, i) => axisOf(axis(`i${i}`, d))), value: local("acc", f32) }],
  };
  return { name: "conv", inputs: [x, w], outputs: [y], scratch: [], body: { kind: "block", body: [] }, structure };
}
const copy = (x: Buffer, y: Buffer): Kernel => ({ name: "copy", inputs: [x], outputs: [y], scratch: [], body: { kind: "store", buffer: y, indices: y.shape.map(() => constant(0, { scalar: "i32", lanes: 1 })), value: load(x, x.shape.map(() => constant(0, { scalar: "i32", lanes: 1 }))) } });
const call = (kernel: Kernel): Step => ({ kind: "call", kernel, origin: { label: kernel.name, nodes: [] } });

/** x (graph input) → conv → mid, whose views lie in the same storage → copy → y (graph output). */
function program(shape: readonly Dim[], views: readonly { readonly shape: readonly Dim[]; readonly layout: Layout }[]): { program: Program; mid: Buffer; seen: readonly Buffer[] } {
  const x = buffer("x", shape), w = buffer("w", [shape[1] ?? 1, shape[1] ?? 1, 1, 1]), mid = buffer("mid", shape), y = buffer("y", shape);
  const seen = views.map((v, i) => buffer(`view${i}`, v.shape));
  const arena = storage("mid", shape);
  const place = (b: Buffer, s: Storage): [Buffer, Placement] => [b, { storage: s, layout: denseLayout(b.shape) }];
  const placements = new Map<Buffer, Placement>([
    place(x, storage("x", shape, "input")), place(w, storage("w", w.shape, "weight")), place(mid, arena), place(y, storage("y", shape, "output")),
    ...seen.map((b, i): [Buffer, Placement] => [b, { storage: arena, layout: present(views[i], "view").layout }]),
  ]);
  return { program: { inputs: [{ name: "x", buffer: x }], outputs: [{ name: "y", buffer: y }], weights: [], steps: [call(convolution(x, w, mid)), call(copy(mid, y))], placements }, mid, seen };
}
const layoutsAfter = (p: ReturnType<typeof program>): readonly Layout[] => {
  const placements = chooseLayouts(p.program).placements;
  return [p.mid, ...p.seen].map((b) => present(placements.get(b), b.name).layout);
};

describe("layouts", () => {
  it("channels go last between convolutions, and inputs and outputs stay row-major", () => {
    const p = program([2, 8, 5, 7], []);
    expect(layoutsAfter(p)[0]).toEqual({ strides: [280, 1, 56, 8], offset: 0 });
    for (const b of [...p.program.inputs, ...p.program.outputs]) expect(chooseLayouts(p.program).placements.get(b.buffer)?.layout).toEqual(denseLayout([2, 8, 5, 7]));
  });
  it("parts of a concatenation and shuffled channels keep their elements", () => {
    const part: Layout = { strides: [280, 35, 7, 1], offset: 3 * 35 };
    const shuffle: Layout = { strides: [280, 140, 35, 7, 1], offset: 0 };
    expect(layoutsAfter(program([2, 8, 5, 7], [{ shape: [2, 5, 5, 7], layout: part }, { shape: [2, 2, 4, 5, 7], layout: shuffle }])).slice(1)).toEqual([
      { strides: [280, 1, 56, 8], offset: 3 }, { strides: [280, 4, 1, 56, 8], offset: 0 },
    ]);
  });
  it("rows of channels between convolutions are in place: what writes them stays as it is", () => {
    const lastChannel: Layout = { strides: [280, 1, 56, 8], offset: 0 };
    const p = program([2, 8, 5, 7], [{ shape: [2, 5, 7, 8], layout: { strides: [280, 7, 1, 35], offset: 0 } }]), [rows] = p.seen;
    const normal = buffer("normal", [2, 5, 7, 8]), seen = buffer("seen", [2, 8, 5, 7]), z = buffer("z", [2, 8, 5, 7]), own = storage("normal", normal.shape);
    const placements = new Map<Buffer, Placement>([...p.program.placements, [normal, { storage: own, layout: denseLayout(normal.shape) }], [seen, { storage: own, layout: lastChannel }], [z, { storage: storage("z", z.shape, "output"), layout: denseLayout(z.shape) }]]);
    const steps = [...p.program.steps, call(copy(present(rows, "rows"), normal)), call(convolution(seen, present([...placements.keys()].find((b) => b.name === "w"), "w"), z))];
    const after = chooseLayouts({ ...p.program, steps, placements }).placements;
    expect([p.mid, present(rows, "rows"), normal, seen].map((b) => after.get(b)?.layout)).toEqual([lastChannel, denseLayout(normal.shape), denseLayout(normal.shape), lastChannel]);
  });
  it("a concatenation that is read in another shape only goes by its parts", () => {
    for (const n of [1, 2]) {
      const p = program([n, 3, 5, 7], [{ shape: [n, 4, 2, 5, 7], layout: { strides: [280, 35, 140, 7, 1], offset: 0 } }]);
      const joined = storage("joined", [n, 8, 5, 7]), placements = new Map(p.program.placements), [seen] = p.seen;
      placements.set(p.mid, { storage: joined, layout: { strides: [280, 35, 7, 1], offset: 5 * 35 } });
      placements.set(present(seen, "view"), { storage: joined, layout: present(placements.get(present(seen, "view")), "place").layout });
      const image = n === 1 ? 0 : 280;
      expect(layoutsAfter({ ...p, program: { ...p.program, placements } })).toEqual([{ strides: [image, 1, 56, 8], offset: 5 }, { strides: [image, 1, 4, 56, 8], offset: 0 }]);
    }
  });
  it("all elements in another shape of the same rank stay where they are", () => {
    for (const n of [1, 2]) expect(layoutsAfter(program([n, 1, 5, 7], [{ shape: [n, 5, 7, 1], layout: { strides: [35, 7, 1, 1], offset: 0 } }]))).toEqual([
      { strides: [35, 1, 7, 1], offset: 0 }, { strides: n === 1 ? [0, 7, 1, 0] : [35, 7, 1, 0], offset: 0 },
    ]);
  });
  it("positions may be flattened", () => {
    const [, flat] = layoutsAfter(program([2, 8, 5, 7], [{ shape: [2, 35, 8], layout: { strides: [280, 1, 35], offset: 0 } }]));
    expect(flat).toEqual({ strides: [280, 8, 1], offset: 0 });
  });
  it("channels and positions together may not, unless one of them is a single element", () => {
    expect(layoutsAfter(program([2, 8, 5, 7], [{ shape: [2, 280], layout: denseLayout([2, 280]) }]))[0]).toEqual(denseLayout([2, 8, 5, 7]));
    expect(layoutsAfter(program([2, 8, 1, 1], [{ shape: [2, 8], layout: denseLayout([2, 8]) }]))[1]).toEqual({ strides: [8, 1], offset: 0 });
  });
  it("a slice that runs over the end of a channel stays where it is", () => {
    expect(layoutsAfter(program([2, 8, 5, 7], [{ shape: [2, 30], layout: { strides: [280, 1], offset: 20 } }]))[0]).toEqual(denseLayout([2, 8, 5, 7]));
  });
  it("unknown sizes", () => {
    const n = symbol("n"), h = symbol("h"), w = symbol("w"), hw = dimMul(h, w);
    const [mid, flat] = layoutsAfter(program([n, 8, h, w], [{ shape: [n, hw, 8], layout: { strides: [dimMul(8, hw), 1, hw], offset: 0 } }]));
    expect(mid).toEqual({ strides: [dimMul(8, hw), 1, dimMul(8, w), 8], offset: 0 });
    expect(flat).toEqual({ strides: [dimMul(8, hw), 8, 1], offset: 0 });
  });
});
