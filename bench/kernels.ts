/**
 * Kernel benchmarks: chains of one operator, our code against onnxruntime-web in WebAssembly, one thread each,
 * interleaved, what is copied in and out included. Prints useful GFLOP/s of both and the median ratio.
 * Usage: tsx bench/kernels.ts [--rounds N] [--publish] [NAME_PART]
 */
import { parseArgs } from "node:util";
import * as ort from "onnxruntime-web";
import { compileModel } from "../src/compiler/compile.ts";
import { load } from "../src/runtime/load.ts";
import { Tensor } from "../src/runtime/tensor.ts";
import { randomFrom, randomTensor } from "../test/support/random.ts";
import { modelBytes, type ModelSpec, type NodeSpec } from "../test/support/model-spec.ts";
import type { Tensor as Data } from "../src/core/tensor.ts";
import { machine } from "./fresh.ts";
import { interleave } from "./interleave.ts";
import { publish, table, taken } from "./page.ts";

interface Case { readonly name: string; readonly spec: ModelSpec; readonly feeds: Readonly<Record<string, Data>>; readonly flops: number }

const random = randomFrom(7);
const tensor = (dims: readonly number[], scale = 1): Data => randomTensor(dims, random, scale);
const f32 = (dims: readonly number[]) => ({ dtype: "float32" as const, dims });

/** x → node → node → …; `node` adds its initializers. */
function chain(name: string, dims: readonly number[], out: readonly number[], flops: number, length: number, node: (i: number, x: string, y: string, initializers: Record<string, Data>) => readonly NodeSpec[]): Case {
  const initializers: Record<string, Data> = {};
  const nodes = Array.from({ length }, (_, i) => node(i, i === 0 ? "x" : `v${i}`, i === length - 1 ? "y" : `v${i + 1}`, initializers)).flat();
  return { name, spec: { opset: 20, inputs: { x: f32(dims) }, outputs: { y: f32(out) }, initializers, nodes }, feeds: { x: tensor(dims) }, flops: flops * length };
}

function conv(c: number, m: number, size: number, k: number, options: { stride?: number; group?: number; length?: number } = {}): Case {
  const { stride = 1, group = 1, length = c === m && stride === 1 ? (group > 1 ? 12 : 4) : 1 } = options, pad = (k - 1) >> 1, out = Math.floor((size + 2 * pad - k) / stride) + 1;
  const name = `conv ${group === c && c > 1 ? "depthwise " : ""}${k}x${k} s${stride} ${c}->${m} @${size}`;
  return chain(name, [1, c, size, size], [1, m, out, out], 2 * out * out * m * (c / group) * k * k, length, (i, x, y, init) => {
    init[`w${i}`] = tensor([m, c / group, k, k], 1 / Math.sqrt((c / group) * k * k));
    init[`b${i}`] = tensor([m]);
    return [
      { type: "Conv", inputs: [x, `w${i}`, `b${i}`], outputs: [`c${i}`], attributes: { kernel_shape: [k, k], pads: [pad, pad, pad, pad], strides: [stride, stride], group } },
      { type: "Relu", inputs: [`c${i}`], outputs: [y] },
    ];
  });
}

/** 1x1 from c to m and back. */
function pair(c: number, m: number, size: number): Case {
  return chain(`conv 1x1 ${c}<->${m} @${size}`, [1, c, size, size], [1, c, size, size], 4 * size * size * c * m, 2, (i, x, y, init) => {
    init[`u${i}`] = tensor([m, c, 1, 1], 1 / Math.sqrt(c));
    init[`d${i}`] = tensor([c, m, 1, 1], 1 / Math.sqrt(m));
    return [{ type: "Conv", inputs: [x, `u${i}`], outputs: [`u_${i}`] }, { type: "Relu", inputs: [`u_${i}`], outputs: [`r_${i}`] }, { type: "Conv", inputs: [`r_${i}`, `d${i}`], outputs: [y] }];
  });
}

function matmul(m: number, k: number, n: number): Case {
  return chain(`matmul ${m}x${k}x${n} add relu`, [m, k], [m, n], 2 * m * k * n, 1, (i, x, y, init) => {
    init[`w${i}`] = tensor([k, n], 1 / Math.sqrt(k));
    init[`b${i}`] = tensor([n]);
    return [{ type: "MatMul", inputs: [x, `w${i}`], outputs: ["p"] }, { type: "Add", inputs: ["p", `b${i}`], outputs: ["q"] }, { type: "Relu", inputs: ["q"], outputs: [y] }];
  });
}

function feedForward(m: number, k: number, n: number): Case {
  return chain(`matmul ${m}x${k}x${n} add gelu`, [m, k], [m, n], 2 * m * k * n, 1, (i, x, y, init) => {
    init[`w${i}`] = tensor([k, n], 1 / Math.sqrt(k));
    init[`b${i}`] = tensor([n]);
    return [{ type: "MatMul", inputs: [x, `w${i}`], outputs: ["p"] }, { type: "Add", inputs: ["p", `b${i}`], outputs: ["q"] }, { type: "Gelu", inputs: ["q"], outputs: [y] }];
  });
}

function attention(heads: number, sequence: number, dim: number): Case {
  const dims = [1, heads, sequence, dim];
  return {
    name: `attention ${heads} heads ${sequence}x${dim}`, flops: 4 * heads * sequence * sequence * dim,
    feeds: { q: tensor(dims), k: tensor(dims), v: tensor(dims) },
    spec: {
      opset: 17, inputs: { q: f32(dims), k: f32(dims), v: f32(dims) }, outputs: { y: f32(dims) }, initializers: { s: { dtype: "float32", dims: [], data: Float32Array.of(1 / Math.sqrt(dim)) } },
      nodes: [
        { type: "Transpose", inputs: ["k"], outputs: ["t"], attributes: { perm: [0, 1, 3, 2] } }, { type: "MatMul", inputs: ["q", "t"], outputs: ["a"] }, { type: "Mul", inputs: ["a", "s"], outputs: ["b"] },
        { type: "Softmax", inputs: ["b"], outputs: ["p"], attributes: { axis: -1 } }, { type: "MatMul", inputs: ["p", "v"], outputs: ["y"] },
      ],
    },
  };
}

function recurrence(type: "LSTM" | "GRU", sequence: number, input: number, hidden: number): Case {
  const gates = type === "LSTM" ? 4 : 3;
  return {
    name: `${type.toLowerCase()} ${sequence} steps ${input}->${hidden}`, flops: 2 * sequence * gates * hidden * (input + hidden),
    feeds: { x: tensor([sequence, 1, input]) },
    spec: {
      opset: 17, inputs: { x: f32([sequence, 1, input]) }, outputs: { y: f32([sequence, 1, 1, hidden]) },
      initializers: { w: tensor([1, gates * hidden, input], 0.1), r: tensor([1, gates * hidden, hidden], 0.1), b: tensor([1, 2 * gates * hidden], 0.1) },
      nodes: [{ type, inputs: ["x", "w", "r", "b"], outputs: ["y"], attributes: { hidden_size: hidden } }],
    },
  };
}

/** Element-wise and row operators, by one node or a few on 1024x1024. */
function rows(name: string, operations: number, nodes: readonly NodeSpec[], initializers: Readonly<Record<string, Data>> = {}): Case {
  const dims = [1024, 1024];
  return { name: `${name} 1024x1024`, spec: { opset: 20, inputs: { x: f32(dims) }, outputs: { y: f32(dims) }, initializers, nodes }, feeds: { x: tensor(dims) }, flops: operations * 1024 * 1024 };
}

/** Twelve element-wise operators in a row, of four kinds. */
function twelve(): Case {
  const types = ["Mul", "Add", "Relu", "Sub"];
  const nodes = Array.from({ length: 12 }, (_, i): NodeSpec => {
    const type = types[i % 4] ?? "Add", x = i === 0 ? "x" : `v${i}`;
    return { type, inputs: type === "Relu" ? [x] : [x, "c"], outputs: [i === 11 ? "y" : `v${i + 1}`] };
  });
  return rows("12 element-wise operators", 12, nodes, { c: tensor([1024]) });
}

const cases: readonly Case[] = [
  matmul(512, 512, 512), matmul(1024, 1024, 1024), matmul(128, 768, 3072), matmul(1, 1024, 512), matmul(7, 256, 256), feedForward(128, 256, 1024), feedForward(128, 768, 3072),
  conv(64, 64, 56, 3), conv(128, 128, 28, 3), conv(256, 256, 14, 3), conv(512, 512, 7, 3), conv(64, 64, 80, 3), conv(12, 16, 104, 3, { length: 1 }),
  pair(256, 64, 56), pair(512, 128, 28), pair(1024, 256, 14), pair(2048, 512, 7), pair(24, 144, 80),
  conv(32, 32, 112, 3, { group: 32 }), conv(96, 96, 28, 5, { group: 96 }), conv(96, 96, 56, 3, { group: 96, stride: 2 }), conv(576, 576, 7, 5, { group: 576 }),
  conv(3, 64, 224, 7, { stride: 2 }), conv(3, 32, 224, 3, { stride: 2 }), conv(64, 128, 56, 3, { stride: 2 }),
  attention(12, 128, 64), attention(12, 512, 64), attention(4, 1, 32),
  recurrence("LSTM", 40, 128, 128), recurrence("GRU", 33, 16, 16),
  rows("layer normalization", 8, [{ type: "LayerNormalization", inputs: ["x", "scale", "bias"], outputs: ["y"], attributes: { axis: -1 } }], { scale: tensor([1024]), bias: tensor([1024]) }),
  rows("gelu", 8, [{ type: "Gelu", inputs: ["x"], outputs: ["y"] }]), rows("softmax", 8, [{ type: "Softmax", inputs: ["x"], outputs: ["y"], attributes: { axis: -1 } }]), twelve(),
];

/** What is asked of some of them: how many times as fast as onnxruntime-web. */
const bars: Readonly<Record<string, number>> = {
  "conv 3x3 s1 64->64 @56": 5, "matmul 512x512x512 add relu": 1.9, "conv 1x1 256<->64 @56": 2, "conv depthwise 3x3 s1 32->32 @112": 4, "attention 12 heads 512x64": 1.8,
  "layer normalization 1024x1024": 2, "gelu 1024x1024": 2, "softmax 1024x1024": 2, "12 element-wise operators 1024x1024": 10,
};

const { values, positionals: [part = ""] } = parseArgs({ allowPositionals: true, options: { rounds: { type: "string", default: "9" }, publish: { type: "boolean", default: false } } });
ort.env.wasm.numThreads = 1;
ort.env.logLevel = "error";
const results: { readonly name: string; readonly ours: number; readonly web: number; readonly ratio: number }[] = [];
for (const c of cases.filter((x) => x.name.includes(part))) {
  const bytes = modelBytes(c.spec);
  const session = await load(compileModel(bytes).artifact);
  const peer = await ort.InferenceSession.create(bytes, { executionProviders: ["wasm"] });
  const inputs = Object.fromEntries(Object.entries(c.feeds).map(([k, t]) => [k, new Tensor(t.dtype, t.data, t.dims)]));
  const peerInputs = Object.fromEntries(Object.entries(c.feeds).map(([k, t]) => [k, new ort.Tensor("float32", t.data as Float32Array, t.dims)]));
  const { times, ratios } = await interleave([{ name: "ours", run: () => session.run(inputs) }, { name: "web", run: () => peer.run(peerInputs) }], { warmUp: 300, rounds: Number(values.rounds), sample: 10 });
  const rate = (name: string): number => c.flops / (times[name]?.q1 ?? NaN) / 1e6;
  results.push({ name: c.name, ours: rate("ours"), web: rate("web"), ratio: ratios["web"]?.median ?? NaN });
  console.log(cells(results.length - 1).join("  "));
  session.dispose();
  await peer.release();
}

function cells(i: number): string[] {
  const { name = "", ours = NaN, web = NaN, ratio = NaN } = results[i] ?? {}, bar = bars[name];
  return [name, ours.toFixed(1), web.toFixed(1), ratio.toFixed(2), bar === undefined ? "" : `${bar}${ratio >= bar ? "" : " (missed)"}`];
}
if (values.publish) publish("kernels", { machine: machine(), kernels: results }, [taken(machine()), "", ...table(["operators", "onnxfuse GFLOP/s", "onnxruntime-web GFLOP/s", "times as fast", "bar"], results.map((_, i) => cells(i)))]);
process.exit(0);
