import { describe, expect, test } from "vitest";
import { fromNumbers } from "../core/tensor.ts";
import { Add, Identity, Relu } from "../ops/index.ts";
import { GraphBuilder } from "./build.ts";
import { Graph, type Node, type Value } from "./graph.ts";
import { If } from "../ops/if.ts";

const type = { dtype: "float32", shape: [2] } as const;
const relu = (graph: Graph, x: Value, before?: Node): Node => graph.insert({ op: Relu, inputs: [x], outputs: [type], origins: ["n"] }, before);
const outputOf = (node: Node): Value => { const [v] = node.outputs; if (!v) throw new Error("no output"); return v; };
const uses = (v: Value): string[] => v.uses.map((u) => `${u.node.name}.${u.index}`);

describe("order", () => {
  test("nodes go before the one named, or to the end", () => {
    const graph = new Graph(), x = graph.addInput("x", type);
    const a = relu(graph, x), c = relu(graph, x), b = relu(graph, x, c);
    expect(graph.nodes).toEqual([a, b, c]);
    graph.erase(b);
    expect(graph.nodes).toEqual([a, c]);
    expect([graph.has(a), graph.has(b), graph.nodeCount]).toEqual([true, false, 2]);
    graph.erase(a);
    graph.erase(c);
    expect([graph.nodes, graph.has(c)]).toEqual([[], false]);
  });
  test("sorting puts producers first and keeps the rest; a cycle is named", () => {
    const graph = new Graph(), x = graph.addInput("x", type);
    const first = relu(graph, x), last = relu(graph, x);
    graph.setInput(first, 0, outputOf(last));
    expect(graph.sort()).toBeUndefined();
    expect(graph.nodes).toEqual([last, first]);
    graph.setInput(last, 0, outputOf(first));
    expect(new Set(graph.sort())).toEqual(new Set([first.name, last.name]));
  });
  test("inserting before a node takes constant time", () => {
    const graph = new Graph(), x = graph.addInput("x", type), end = relu(graph, x);
    const start = performance.now();
    for (let i = 0; i < 50_000; i++) relu(graph, x, end);
    expect(performance.now() - start).toBeLessThan(5000);
    expect(graph.nodes.at(-1)).toBe(end);
  });
});

describe("uses", () => {
  test("follow inputs, also the same value twice", () => {
    const b = new GraphBuilder(), x = b.input("x", [2]), y = b.input("y", [2]);
    const sum = b.add(Add, [x, x], {}, "sum").producer?.node;
    expect(uses(x)).toEqual(["sum.0", "sum.1"]);
    if (!sum) throw new Error("no node");
    b.graph.setInput(sum, 0, y);
    expect([uses(x), uses(y)]).toEqual([["sum.1"], ["sum.0"]]);
    b.graph.replaceUses(x, y);
    expect([uses(x), uses(y)]).toEqual([[], ["sum.0", "sum.1"]]);
    b.graph.setInputCount(sum, 1);
    expect(uses(y)).toEqual(["sum.0"]);
  });
  test("outputs are counted for each place, here and in nested graphs", () => {
    const b = new GraphBuilder(), x = b.input("x", [2]), v = b.add(Relu, [x]), w = b.add(Relu, [x]);
    const inner = new Graph("inner", b.graph);
    inner.setOutputs([v]);
    b.build(v, v);
    expect(v.resultOf).toEqual([inner, b.graph, b.graph]);
    b.graph.replaceUses(v, w);
    expect([v.resultOf, w.resultOf.length, b.graph.outputs, inner.outputs]).toEqual([[], 3, [w, w], [w]]);
  });
  test("a node that is used cannot be erased; with its subgraphs go their uses", () => {
    const b = new GraphBuilder(), x = b.input("x", [2]), v = b.add(Relu, [x]);
    const branch = (): Graph => { const inner = new GraphBuilder(new Graph("inner", b.graph)); return inner.build(inner.add(Identity, [v])); };
    const choice = b.add(If, [b.constant(fromNumbers("bool", [], [1]))], { then_branch: branch(), else_branch: branch() });
    expect(() => b.graph.erase(v.producer?.node as Node)).toThrow(/is used/);
    expect(v.uses).toHaveLength(2);
    b.graph.erase(choice.producer?.node as Node);
    expect(v.uses).toEqual([]);
    b.graph.erase(v.producer?.node as Node);
    expect(b.graph.nodeCount).toBe(0);
  });
});

test("values and nodes have name spaces of their own, and names come free", () => {
  const graph = new Graph(), x = graph.addInput("x", type);
  const node = graph.insert({ op: Relu, inputs: [x], outputs: [type], outputNames: ["y"], name: "x", origins: ["x"] });
  expect([node.name, outputOf(node).name]).toEqual(["x", "y"]);
  expect(graph.freshName("y")).not.toBe("y");
  graph.erase(node);
  expect(graph.freshName("y")).toBe("y");
});
