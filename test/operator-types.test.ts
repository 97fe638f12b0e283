/**
 * Every operator on inputs of any element type, rank and size, with attributes of the right kind and any value: inference
 * accepts them or refuses them with a diagnostic. What it accepts, the operator evaluates to results of the types that
 * were inferred, or refuses by the values; and a kernel can be made of it.
 */
import { describe, expect, it } from "vitest";
import { DiagnosticError } from "../src/core/diagnostic.ts";
import { isSymbolic, symbol, type Dim } from "../src/core/dim.ts";
import { dtypes, isFloat, type DType } from "../src/core/dtype.ts";
import { fromNumbers, sizeOf, type Tensor } from "../src/core/tensor.ts";
import { Graph } from "../src/graph/graph.ts";
import { inferNode } from "../src/graph/infer-node.ts";
import { evaluationOf, type Attributes, type AttributeSpec, type OpDef } from "../src/graph/op.ts";
import { verifyKernel } from "../src/kernel/verify.ts";
import { lowerProgram } from "../src/lower/program.ts";
import { allSteps } from "../src/kernel/segments.ts";
import { operators } from "../src/ops/index.ts";
import { expandComposites } from "../src/passes/expand.ts";
import { Ledger } from "../src/passes/ledger.ts";
import { partition } from "../src/passes/partition.ts";
import { randomFrom, type Random } from "./support/random.ts";

const seed = Number(process.env["ONNXFUSE_FUZZ_SEED"] ?? 1), draws = Number(process.env["ONNXFUSE_FUZZ_CASES"] ?? 25);
const usual: readonly DType[] = ["float32", "float32", "float32", "int64", "int64", "uint8", "int8", "bool", "int32", "float16"];
const all = Object.keys(dtypes) as DType[];

function attributeOf(kind: AttributeSpec["type"], random: Random): Attributes[string] {
  const integer = (): number => random.pick([0, 1, 1, 2, 3, -1, 4, 7, -2, 100, 2 ** 31]);
  switch (kind) {
    case "int": return integer();
    case "float": return random.pick([0, 1, 0.5, -1, NaN, Infinity, 1e-5]);
    case "string": return random.pick(["", "linear", "nearest", "constructor", "NOTSET", "SAME_UPPER", "none", "add", "bilinear", "ij,jk->ik"]);
    case "ints": return Array.from({ length: random.int(5) }, integer);
    case "floats": return Array.from({ length: random.int(4) }, () => random.pick([0, 1, 0.5, -1, NaN]));
    case "strings": return Array.from({ length: random.int(3) }, () => random.pick(["a", "Tanh", "constructor"]));
    default: return undefined;
  }
}

interface Drawn { readonly graph: Graph; readonly op: OpDef; readonly feeds: readonly (Tensor | undefined)[]; readonly attributes: Attributes; readonly inputs: Parameters<typeof inferNode>[1] }

/** One node's inputs and attributes. Inputs after the first mostly have its type and rank, so that not all is refused. */
function draw(op: OpDef, random: Random): Drawn {
  const graph = new Graph(), main = random.pick(random() < 0.9 ? usual : all), rank = random.pick([0, 1, 2, 2, 3, 3, 4, 4, 5]), size = (): number => random.pick([1, 2, 2, 2, 3, 4, 0]);
  const shape = Array.from({ length: rank }, size);
  const kinds = Object.values(op.inputs), count = kinds.length + (kinds.at(-1) === "variadic" ? random.int(3) : 0);
  const names = Object.keys(op.inputs);
  const feeds: (Tensor | undefined)[] = [];
  const inputs = Array.from({ length: count }, (_, i) => {
    if (kinds[i] === "optional" && random() < 0.5) { feeds.push(undefined); return undefined; }
    const integers = (op.integers ?? []).includes(names[i] ?? "");
    const dtype = random() < 0.1 ? random.pick(all) : integers ? random.pick(["int64", "int64", "int32"] as const) : random() < 0.75 ? main : random.pick(usual);
    const dims = integers && random() < 0.8 ? [random.pick([rank, 1, 2, rank])].slice(0, random.int(4)) : random() < 0.6 ? shape : Array.from({ length: random() < 0.6 ? rank : random.int(5) }, size);
    const values = Array.from({ length: sizeOf(dims) }, () => (isFloat(dtype) ? random.normal() : random.int(3) - (dtype.startsWith("u") || dtype === "bool" ? 0 : 1)));
    const tensor: Tensor = dtype === "string" ? { dtype, dims, data: values.map(String) } : fromNumbers(dtype, dims, dtype === "bool" ? values.map((v) => v & 1) : values);
    feeds.push(tensor);
    if (random() < 0.3) return graph.addConstant(tensor);
    return graph.addInput(`x${i}`, { dtype, shape: dims.map((d, axis): Dim => (random() < 0.15 ? symbol(`s${i}_${axis}`) : d)) });
  });
  const attributes: Record<string, Attributes[string]> = {};
  for (const [name, spec] of Object.entries(op.attributes)) {
    const value = spec.required || random() < 0.3 ? attributeOf(spec.type, random) : undefined;
    if (value !== undefined) attributes[name] = value;
  }
  return { graph, op, feeds, attributes, inputs };
}

/** Does what a compilation does with one node. */
function tryNode({ graph, op, feeds, attributes, inputs }: Drawn): "accepted" | "refused" {
  try {
    let fresh = 0;
    const types = inferNode(op, inputs, attributes, 1, { place: { node: op.type }, fresh: (hint) => symbol(`${hint}_${fresh++}`) });
    const [type] = types, small = types.every((t) => t.shape.reduce<number>((n, d) => n * (isSymbolic(d) ? 1 : d), 1) < 1e6);
    const node = graph.insert({ op, inputs, attributes, outputs: types.slice(0, 1), name: op.type, origins: [op.type] });
    const evaluate = evaluationOf(op);
    if (evaluate && small && type && !type.container) {
      const [result] = evaluate(feeds, node.attributes as Parameters<typeof evaluate>[1], { outputCount: 1, outputDTypes: [type.dtype] });
      // Sizes that values decide are checked when a model runs.
      const decided = type.shape.some(isSymbolic) || (op.integers ?? []).some((name) => { const v = inputs[Object.keys(op.inputs).indexOf(name)]; return v && !v.constant; });
      if (!decided && result && typeof result === "object" && "dims" in result && type.rank === undefined) {
        const dims = result.dims as readonly number[];
        expect(dims.length, "rank").toBe(type.shape.length);
        type.shape.forEach((d, i) => { if (!isSymbolic(d)) expect(dims[i], `size ${i} of [${dims.join()}]`).toBe(d); });
        expect((result as Tensor).dtype).toBe(type.dtype);
      }
    }
    graph.setOutputs(node.outputs);
    expandComposites(graph, new Ledger());
    const { regions } = partition(graph, { fusion: false, isEnabled: () => true, opTypesOf: () => undefined });
    for (const s of allSteps(lowerProgram(graph, regions).steps)) if (s.kind === "call") verifyKernel(s.kernel);
    return "accepted";
  } catch (e) {
    if (e instanceof DiagnosticError) return "refused";
    throw e;
  }
}

const subject = operators.filter((op) => !op.containers && op.domain !== "onnxfuse" && !Object.values(op.attributes).some((a) => a.type === "graph" || a.type === "tensor"));

describe("operators on inputs of any type", () => {
  it.each(subject.map((op) => [`${op.domain}:${op.type}`, op] as const))("%s", (name, op) => {
    const random = randomFrom(seed * 1000 + [...name].reduce((n, c) => (n * 31 + c.charCodeAt(0)) % 65536, 7));
    for (let i = 0; i < draws; i++) {
      const drawn = draw(op, random);
      try {
        tryNode(drawn);
      } catch (e) {
        throw new Error(`${JSON.stringify(drawn.inputs.map((v) => v && `${v.type.dtype} [${v.type.shape.map((d) => (isSymbolic(d) ? "s" : d)).join()}]${v.constant ? " constant" : ""}`))} ${JSON.stringify(drawn.attributes)}`, { cause: e });
      }
    }
  });
});
