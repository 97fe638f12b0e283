import { expect, test } from "vitest";
import { symbol } from "../core/dim.ts";
import { tensor } from "../core/tensor.ts";
import { Add } from "../ops/arithmetic.ts";
import { If } from "../ops/if.ts";
import { LeakyRelu, Relu } from "../ops/activation.ts";
import { Graph } from "./graph.ts";
import type { TypeInfo } from "./op.ts";
import { graphText } from "./text.ts";

test("a graph reads as onnx.printer would write it", () => {
  const type: TypeInfo = { dtype: "float32", shape: [symbol("n"), 3] };
  const graph = new Graph("main");
  const x = graph.addInput("x", type);
  const c = graph.addInput("c", { dtype: "bool", shape: [] });
  const b = graph.addConstant(tensor("float32", [3], Float32Array.of(1, 2.5, -3)), "layer/b");
  const add = graph.insert({ op: Add, inputs: [x, b], outputs: [type], outputNames: ["s"], name: "add", origins: ["add"] });
  const branch = (name: string, op: typeof Relu): Graph => {
    const inner = new Graph(name, graph);
    inner.setOutputs(inner.insert({ op, inputs: [...add.outputs], outputs: [type], outputNames: [`${name}_r`], origins: ["r"] }).outputs);
    return inner;
  };
  const choose = graph.insert({ op: If, inputs: [c], attributes: { then_branch: branch("yes", Relu), else_branch: branch("no", LeakyRelu) }, outputs: [type], outputNames: ["y"], name: "if", origins: ["if"] });
  graph.setOutputs(choose.outputs);
  expect(graphText(graph)).toBe(`main (float[n,3] x, bool c) => (float[n,3] y)
<
   float[3] "layer/b" = {1, 2.5, -3}
>
{
   ["add"] s = Add (x, "layer/b")
   ["if"] y = If <then_branch: graph = yes () => (float[n,3] yes_r)
   {
      ["Relu"] yes_r = Relu (s)
   }, else_branch: graph = no () => (float[n,3] no_r)
   {
      ["LeakyRelu"] no_r = LeakyRelu <alpha: float = 0.01> (s)
   }> (c)
}
`);
  expect(graphText(graph, { maxElements: 2 })).toContain('"layer/b" = {...}');
});
