/** Loops with random bodies: carried values that keep or change their size, stacked results, branches and loops inside. */
import { expect, test } from "vitest";
import { modelBytes, type ModelSpec, type NodeSpec } from "./support/model-spec.ts";
import { randomFrom, type Random } from "./support/random.ts";
import { bool, compareWays, f32, i64, type Tensors } from "./support/three-ways.ts";

const f = (...dims: (number | string)[]): ModelSpec["inputs"][string] => ({ dtype: "float32", dims });
const int: ModelSpec["inputs"][string] = { dtype: "int64", dims: [] }, flag: ModelSpec["inputs"][string] = { dtype: "bool", dims: [] };

/** Values of rank 1 by name; those that are `steady` have a size of 3 in every iteration. */
interface Known { readonly name: string; readonly steady: boolean }

class BodyWriter {
  readonly nodes: NodeSpec[] = [];
  readonly #random: Random;
  readonly #prefix: string;
  #count = 0;
  constructor(random: Random, prefix: string) { this.#random = random; this.#prefix = prefix; }

  emit(type: string, inputs: readonly string[], attributes: NodeSpec["attributes"] = {}): string {
    const name = this.fresh();
    this.nodes.push({ type, inputs, outputs: [name], attributes });
    return name;
  }
  fresh(): string { return `${this.#prefix}${this.#count++}`; }

  /** Something made of what is known, not larger than `depth` more subgraphs. */
  step(known: readonly Known[], iteration: string, depth: number): Known {
    const v = this.#random.pick([...known]), steady = known.filter((k) => k.steady);
    switch (this.#random.int(depth > 0 ? 9 : 7)) {
      case 0: return { name: this.emit("Tanh", [v.name]), steady: v.steady };
      case 1: return { name: this.emit("Add", [v.name, this.emit("ReduceMean", [this.#random.pick([...known]).name], { keepdims: 1 })]), steady: false };
      case 2: { const a = this.#random.pick(steady), b = this.#random.pick(steady); return { name: this.emit("Mul", [a.name, b.name]), steady: true }; }
      case 3: return { name: this.emit("Concat", [v.name, this.#random.pick([...known]).name], { axis: 0 }), steady: false };
      case 4: return { name: this.emit("Compress", [v.name, this.emit("Greater", [v.name, "level"])], { axis: 0 }), steady: false };
      case 5: return { name: this.emit("Sub", [this.#random.pick(steady).name, this.emit("Cast", [iteration], { to: 1 })]), steady: true };
      case 6: return { name: this.emit("Slice", [v.name, "zeros1", "twos1"]), steady: false };
      case 7: return this.#branch(known, iteration, depth - 1);
      default: return this.#loop(v, steady, depth - 1);
    }
  }
  #branch(known: readonly Known[], iteration: string, depth: number): Known {
    const condition = this.emit("Greater", [this.emit("ReduceSum", [this.#random.pick([...known]).name], { keepdims: 0 }), "level"]);
    const branch = (k: number): ModelSpec => {
      const inner = new BodyWriter(this.#random, `${this.#prefix}b${this.#count}_${k}_`);
      const result = inner.step(known, iteration, depth);
      const out = inner.emit("Identity", [result.name]);
      return { opset: 18, inputs: {}, outputs: { [out]: f(`${out}_n`) }, initializers: {}, nodes: inner.nodes };
    };
    return { name: this.emit("If", [condition], { then_branch: branch(0), else_branch: branch(1) }), steady: false };
  }
  #loop(v: Known, steady: readonly Known[], depth: number): Known {
    const out = this.fresh();
    this.nodes.push({ type: "Loop", inputs: ["two", "", v.name, this.#random.pick([...steady]).name], outputs: [out, this.fresh()], attributes: { body: bodyOf(this.#random, `${this.#prefix}l${this.#count}_`, 2, depth, false) } });
    return { name: out, steady: false };
  }
}

/** A body that carries a value of any size and a steady one, and stacks the steady one. */
function bodyOf(random: Random, prefix: string, steps: number, depth: number, stacks: boolean): ModelSpec {
  const w = new BodyWriter(random, prefix), [i, go, c, s] = ["i", "go", "c", "s"].map((n) => `${prefix}${n}`) as [string, string, string, string];
  const known: Known[] = [{ name: c, steady: false }, { name: s, steady: true }];
  for (let k = 0; k < steps; k++) known.push(w.step(known, i, depth));
  // No value outgrows the test.
  const next = w.emit("Slice", [w.emit("Tanh", [known.at(-1)?.name ?? c]), "zeros1", "most1"]);
  const steady = w.emit("Tanh", [known.findLast((k) => k.steady)?.name ?? s]), stacked = w.emit("Neg", [steady]), goes = w.emit("Identity", [go]);
  return { opset: 18, inputs: { [i]: int, [go]: flag, [c]: f(`${c}_n`), [s]: f(3) }, outputs: { [goes]: flag, [next]: f(`${next}_n`), [steady]: f(3), ...(stacks ? { [stacked]: f(3) } : {}) }, initializers: {}, nodes: w.nodes };
}

function randomLoop(seed: number): { readonly spec: ModelSpec; readonly feeds: readonly Tensors[] } {
  const random = randomFrom(seed);
  const spec: ModelSpec = {
    opset: 18, inputs: { x: f("N"), s: f(3), M: int, start: flag }, outputs: { y: f("Y"), last: f(3), all: f("T", 3) },
    initializers: { level: f32([], 0.1), two: i64([], 2), zeros1: i64([1], 0), twos1: i64([1], 2), most1: i64([1], 20) },
    nodes: [{ type: "Loop", inputs: ["M", "start", "x", "s"], outputs: ["y", "last", "all"], attributes: { body: bodyOf(random, "b_", 2 + random.int(5), 2, true) } }],
  };
  const vector = (n: number) => f32([n], ...Array.from({ length: n }, () => random.normal()));
  const feeds = [[3, 1], [1, 3], [5, 4], [4, 0]].map(([n = 1, m = 1]) => ({ x: vector(n), s: vector(3), M: i64([], m), start: bool(true) }));
  return { spec, feeds };
}

const count = 40;
test(`${count} of them agree with the reference, fused and unfused, and with onnxruntime`, { timeout: 600_000 }, async () => {
  for (let seed = 1; seed <= count; seed++) {
    const { spec, feeds } = randomLoop(seed);
    expect(await compareWays(spec, feeds), `seed ${seed}`).toBeUndefined();
  }
});
test("the same seed gives the same model, another one another", () => {
  const bytes = (seed: number): string => Buffer.from(modelBytes(randomLoop(seed).spec)).toString("hex");
  expect(bytes(3)).toBe(bytes(3));
  expect(bytes(3)).not.toBe(bytes(4));
});
