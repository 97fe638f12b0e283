/**
 * A wrong lowering planted for each kind of fusion is found by the random models: one function of the compiler at a
 * time is replaced by one that makes a mistake, and the first of the models that the real test runs and that differs is
 * sought. The same model without the fault is right.
 */
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import type { Region } from "../src/graph/region.ts";
import { constant, i32, local, type Expr } from "../src/kernel/expr.ts";
import type { Kernel } from "../src/kernel/kernel.ts";
import type { Stmt } from "../src/kernel/stmt.ts";
import type { EpilogueStore } from "../src/kernel/structure.ts";
import { bodiesOf, mapExpr, mapStmtExprs } from "../src/kernel/traverse.ts";
import { checkModel, modelOf, models } from "./support/differential.ts";

type Layouts = Pick<typeof import("../src/graph/view.ts"), "viewLayout" | "concatenationOf">;
type Folding = Pick<typeof import("../src/rules/affine.ts"), "affineOfBatchNorm" | "perChannel">;
interface Fault {
  /** What the naive kernel of a region becomes. */
  readonly kernel?: (kernel: Kernel, region: Region) => Kernel;
  readonly layouts?: (real: Layouts) => Partial<Layouts>;
  readonly folding?: (real: Folding) => Partial<Folding>;
  readonly pads?: (pads: readonly number[]) => readonly number[];
}
const planted = vi.hoisted((): { fault: Fault } => ({ fault: {} }));

vi.mock("../src/lower/region.ts", async (original) => {
  const real = await original<typeof import("../src/lower/region.ts")>();
  const lowerRegion: typeof real.lowerRegion = (region, ...rest) => {
    const kernel = real.lowerRegion(region, ...rest);
    return planted.fault.kernel?.(kernel, region) ?? kernel;
  };
  return { ...real, lowerRegion };
});
vi.mock("../src/graph/view.ts", async (original) => {
  const real = await original<typeof import("../src/graph/view.ts")>();
  const now = (): Layouts => ({ ...real, ...planted.fault.layouts?.(real) });
  const replaced: Layouts = { viewLayout: (...a) => now().viewLayout(...a), concatenationOf: (...a) => now().concatenationOf(...a) };
  return { ...real, ...replaced };
});
vi.mock("../src/rules/affine.ts", async (original) => {
  const real = await original<typeof import("../src/rules/affine.ts")>();
  const now = (): Folding => ({ ...real, ...planted.fault.folding?.(real) });
  const replaced: Folding = { affineOfBatchNorm: (...a) => now().affineOfBatchNorm(...a), perChannel: (...a) => now().perChannel(...a) };
  return { ...real, ...replaced };
});
vi.mock("../src/rules/pads.ts", async (original) => {
  const real = await original<typeof import("../src/rules/pads.ts")>();
  const mergedPads: typeof real.mergedPads = (...a) => {
    const pads = real.mergedPads(...a);
    return "code" in pads ? pads : planted.fault.pads?.(pads) ?? pads;
  };
  return { ...real, mergedPads };
});

const has = (region: Region, ...types: readonly string[]): boolean => region.nodes.some((n) => types.includes(n.op.type));
const elementWise = (region: Region): boolean => region.nodes.length > 1 && region.nodes.every((n) => n.op.fusionKind === "elementwise" || n.op.fusionKind === "broadcast");

/** The epilogue of a contraction's structure replaced. */
const epilogue = (kind: "conv" | "matmul", change: (store: EpilogueStore, accumulator: Expr) => EpilogueStore): Fault => ({
  kernel(kernel, region) {
    const s = kernel.structure;
    if (s?.kind !== kind || region.nodes.length < 2) return kernel;
    return { ...kernel, structure: { ...s, stores: s.stores.map((store) => change(store, local(s.accumulator.name, s.accumulator.type))) } };
  },
});
const everywhere = (kernel: Kernel, change: (e: Expr) => Expr): Kernel => ({ ...kernel, body: mapStmtExprs(kernel.body, (e) => mapExpr(e, change)) });
const floats = (e: Expr): boolean => e.type.scalar === "f32";

/** Loops that accumulate leave out their first element. */
function lateSums(s: Stmt): Stmt {
  switch (s.kind) {
    case "for": return { ...s, body: lateSums(s.body), ...(bodiesOf(s).some(accumulates) ? { begin: constant(1, i32) } : {}) };
    case "block": return { ...s, body: s.body.map(lateSums) };
    default: return s;
  }
}
const accumulates = (s: Stmt): boolean => s.kind === "accumulate" || (s.kind === "block" && s.body.some((x) => x.kind === "accumulate"));

const faults: Readonly<Record<string, Fault>> = {
  "a convolution's epilogue is left out": epilogue("conv", (store, accumulator) => ({ ...store, value: accumulator })),
  "a convolution's residual is subtracted": epilogue("conv", (store) => ({ ...store, value: mapExpr(store.value, (e) => (e.kind === "binary" && e.op === "add" && floats(e) ? { ...e, op: "sub" } : e)) })),
  "a product's epilogue is left out": epilogue("matmul", (store, accumulator) => ({ ...store, value: accumulator })),
  "a product's bias is read at its first column": epilogue("matmul", (store) => ({ ...store, value: mapExpr(store.value, (e) => (e.kind === "load" && e.buffer.shape.length === 1 ? { ...e, indices: [constant(0, i32)] } : e)) })),
  "an element-wise chain subtracts the wrong way round": { kernel: (k, r) => (elementWise(r) ? everywhere(k, (e) => (e.kind === "binary" && e.op === "sub" && floats(e) ? { ...e, a: e.b, b: e.a } : e)) : k) },
  "an element-wise chain takes the other side of a choice": { kernel: (k, r) => (elementWise(r) ? everywhere(k, (e) => (e.kind === "select" && floats(e) ? { ...e, a: e.b, b: e.a } : e)) : k) },
  "a softmax leaves out an element of its rows": { kernel: (k, r) => (has(r, "Softmax") && !k.structure ? { ...k, body: lateSums(k.body) } : k) },
  "a reduction in a chain leaves out an element": { kernel: (k, r) => (r.nodes.length > 1 && has(r, "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "GlobalAveragePool") ? { ...k, body: lateSums(k.body) } : k) },
  "a layer normalisation divides by the variance": { kernel: (k, r) => (has(r, "LayerNormalization") ? everywhere(k, (e) => (e.kind === "unary" && e.op === "sqrt" ? e.a : e)) : k) },
  "attention forgets its scale and mask": { kernel: (k) => (k.structure?.kind === "attention" ? { ...k, structure: { ...k.structure, score: local(k.structure.dot.name, k.structure.dot.type) } } : k) },
  "attention reads the values of its first key only": { kernel: (k) => (k.structure?.kind === "attention" ? { ...k, structure: { ...k.structure, v: mapExpr(k.structure.v, (e) => (e.kind === "load" ? { ...e, indices: e.indices.map((i, d) => (d === e.indices.length - 2 ? constant(0, i32) : i)) } : e)) } } : k) },
  "a slice begins where its source does": { layouts: (real) => ({ viewLayout: (view, shape, layout) => { const at = real.viewLayout(view, shape, layout); return at && { ...at, offset: layout.offset }; } }) },
  "the parts of a concatenation lie over one another": { layouts: (real) => ({ concatenationOf: (node) => { const all = real.concatenationOf(node); return all && { ...all, parts: all.parts.map((p) => ({ ...p, offset: 0 })) }; } }) },
  "a folded BatchNormalization forgets to scale the mean": { folding: () => ({ affineOfBatchNorm: (_, p) => ({ scale: numbersOf(p.gamma), shift: numbersOf(p.beta) }) }) },
  "a folded constant is that of the first channel": { folding: (real) => ({ perChannel: (...a) => { const values = real.perChannel(...a); return "code" in values ? values : values.map(() => values[0] ?? 0); } }) },
  "a folded padding stands on the other side": { pads: (pads) => [...pads.slice(pads.length / 2), ...pads.slice(0, pads.length / 2)] },
};
const numbersOf = (v: { readonly constant: { readonly data: ArrayLike<unknown> } }): Float64Array => Float64Array.from(v.constant.data, Number);

/** The models that `random-graphs.test.ts` runs, in its order. */
const keys = fc.sample(models, { seed: 1, numRuns: 1000 });

describe("the random models find that", () => {
  it.each(Object.entries(faults))("%s", { timeout: 300_000 }, async (_, fault) => {
    for (const [i, key] of keys.entries()) {
      const model = modelOf(key);
      planted.fault = fault;
      const found = await checkModel(model, [true]);
      planted.fault = {};
      if (found === undefined) continue;
      expect(found).toMatch(/is .*, not /);
      expect(await checkModel(model, [true])).toBeUndefined();
      console.log(`found by model ${i + 1}: ${found}`);
      return;
    }
    expect.unreachable("no model differs");
  });
});
