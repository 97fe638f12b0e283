/**
 * How compile time grows with the model: transformers of 1,000 to 64,000 nodes, of the same small layer repeated, compiled
 * once each. Prints JSON: seconds and microseconds a node for each, and what is spent in the parts. Run it with
 * `npx tsx bench/scaling.ts [--publish] [nodes…]`.
 */
import { parseArgs } from "node:util";
import { compileModel } from "../src/compiler/compile.ts";
import type { Tensor } from "../src/core/tensor.ts";
import { modelBytes, type ModelSpec, type NodeSpec } from "../test/support/model-spec.ts";
import { randomFrom } from "../test/support/random.ts";
import { machine } from "./fresh.ts";
import { publish, table, taken } from "./page.ts";

const width = 16, heads = 2;
const random = randomFrom(1);
const f32 = (...dims: readonly number[]): Tensor => ({ dtype: "float32", dims, data: Float32Array.from({ length: dims.reduce((a, b) => a * b, 1) }, () => random.normal() / 4) });
const i64 = (...values: readonly number[]): Tensor => ({ dtype: "int64", dims: [values.length], data: BigInt64Array.from(values, BigInt) });

/** A transformer's encoder, spelled as exporters do, of about `nodes` nodes. */
export function transformer(nodes: number): ModelSpec {
  const initializers: Record<string, Tensor> = { split: i64(0, 0, heads, width / heads), joined: i64(0, 0, width), scale: { dtype: "float32", dims: [], data: Float32Array.of(Math.sqrt(width / heads)) }, epsilon: { dtype: "float32", dims: [], data: Float32Array.of(1e-5) }, two: { dtype: "float32", dims: [], data: Float32Array.of(2) }, last: i64(-1) };
  const list: NodeSpec[] = [];
  let layer = 0;
  const add = (type: string, inputs: readonly string[], attributes: NodeSpec["attributes"] = {}): string => {
    const out = `v${list.length}`;
    list.push({ type, inputs, outputs: [out], name: `n${list.length}`, attributes });
    return out;
  };
  const weight = (name: string, ...dims: readonly number[]): string => { initializers[`${name}${layer}`] = f32(...dims); return `${name}${layer}`; };
  const dense = (x: string, name: string, from = width, to = width): string => add("Add", [add("MatMul", [x, weight(`w${name}`, from, to)]), weight(`b${name}`, to)]);
  const normalised = (x: string, name: string): string => {
    const d = add("Sub", [x, add("ReduceMean", [x], { axes: [-1] })]);
    const deviation = add("Sqrt", [add("Add", [add("ReduceMean", [add("Pow", [d, "two"])], { axes: [-1] }), "epsilon"])]);
    return add("Add", [add("Mul", [add("Div", [d, deviation]), weight(`g${name}`, width)]), weight(`h${name}`, width)]);
  };
  let x = "x";
  for (; list.length < nodes - 40; layer++) {
    const [q = "", k = "", v = ""] = ["q", "k", "v"].map((name) => add("Transpose", [add("Reshape", [dense(x, name), "split"])], { perm: name === "k" ? [0, 2, 3, 1] : [0, 2, 1, 3] }));
    const p = add("Softmax", [add("Div", [add("MatMul", [q, k]), "scale"])], { axis: -1 });
    const attended = dense(add("Reshape", [add("Transpose", [add("MatMul", [p, v])], { perm: [0, 2, 1, 3] }), "joined"]), "o");
    x = normalised(add("Add", [x, attended]), "a");
    x = normalised(add("Add", [x, dense(add("Relu", [dense(x, "u", width, 2 * width)]), "d", 2 * width)]), "f");
  }
  return { opset: 17, inputs: { x: { dtype: "float32", dims: ["batch", "sequence", width] } }, outputs: { [x]: undefined }, initializers, nodes: list };
}

function measure(nodes: number) {
  const spec = transformer(nodes), bytes = modelBytes(spec), parts: Record<string, number> = {};
  const start = performance.now();
  let last = start;
  const compiled = compileModel(bytes, { onStage: ({ name }) => { const now = performance.now(); parts[name] = Math.round(now - last); last = now; } });
  parts["packaged"] = Math.round(performance.now() - last);
  const seconds = (performance.now() - start) / 1000;
  return { nodes: spec.nodes.length, calls: compiled.report.nodes.compiled, seconds: Number(seconds.toFixed(2)), microsecondsPerNode: Math.round(seconds * 1e6 / spec.nodes.length), milliseconds: parts, artifactBytes: compiled.artifact.length };
}

const { values, positionals } = parseArgs({ allowPositionals: true, options: { publish: { type: "boolean", default: false } } });
const measured = (positionals.length ? positionals.map(Number) : [1000, 4000, 16000, 64000]).map((nodes) => {
  const m = measure(nodes);
  process.stdout.write(`${JSON.stringify(m)}\n`);
  return m;
});
if (values.publish) publish("scaling", { machine: machine(), sizes: measured }, [taken(machine()), "", ...table(["nodes", "calls", "seconds", "µs a node", "artifact KB"], measured.map((m) => [m.nodes, m.calls, m.seconds, m.microsecondsPerNode, (m.artifactBytes / 1024).toFixed(0)]))]);
