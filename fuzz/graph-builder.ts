/**
 * Builds a graph node by node. Each node is run by the reference interpreter when it is added, so that all sizes and
 * elements are known while the rest is drawn; one that is refused is left out.
 */
import { DiagnosticError } from "../src/core/diagnostic.ts";
import { sizeOf, type Tensor } from "../src/core/tensor.ts";
import { readModel } from "../src/onnx/read.ts";
import { operators } from "../src/ops/index.ts";
import { interpret } from "../src/reference/interpret.ts";
import { modelBytes } from "../test/support/model-spec.ts";
import type { Draw } from "./draw.ts";
import { graphSpec, nodeAlone, type GraphCase, type GraphNode, type Tensors } from "./graph-case.ts";
import type { Mode } from "./values.ts";

/** More elements than this no value has. */
const mostElements = 4000;

export interface Known { readonly name: string; readonly tensor: Tensor }

/** What one node gives for these values of its inputs. */
export function evaluateNode(c: Pick<GraphCase, "constants">, node: GraphNode, values: Tensors): Tensors {
  const alone = nodeAlone(c, node, values);
  return interpret(readModel(modelBytes(graphSpec(alone)), operators).graph, alone.feeds);
}

export class GraphBuilder {
  readonly draw: Draw;
  readonly mode: Mode;
  readonly #nodes: GraphNode[] = [];
  readonly #feeds: Record<string, Tensor> = {};
  readonly #constants: Record<string, Tensor> = {};
  /** Everything that has been computed or fed, constants apart. */
  readonly values: Known[] = [];

  constructor(draw: Draw, mode: Mode) { this.draw = draw; this.mode = mode; }

  get size(): number { return this.#nodes.length; }

  feed(tensor: Tensor): Known {
    const known = { name: `x${Object.keys(this.#feeds).length}`, tensor };
    this.#feeds[known.name] = tensor;
    this.values.push(known);
    return known;
  }
  constant(tensor: Tensor): Known {
    const known = { name: `c${Object.keys(this.#constants).length}`, tensor };
    this.#constants[known.name] = tensor;
    return known;
  }
  /** A node's results; none where the operator refuses the inputs or the results would be large. */
  emit(type: string, inputs: readonly (Known | undefined)[], attributes: GraphNode["attributes"] = {}, count = 1, domain?: string): readonly Known[] {
    const outputs = Array.from({ length: count }, (_, i) => `t${this.#nodes.length}${count > 1 ? `_${i}` : ""}`);
    const node: GraphNode = { type, ...(domain === undefined ? {} : { domain }), inputs: inputs.map((v) => v?.name ?? ""), outputs, attributes };
    const values = Object.fromEntries(inputs.flatMap((v): [string, Tensor][] => (v ? [[v.name, v.tensor]] : [])));
    let results: Tensors;
    try {
      results = evaluateNode({ constants: this.#constants }, node, values);
    } catch (error) {
      if (error instanceof DiagnosticError) return [];
      throw error;
    }
    const made = outputs.flatMap((name): Known[] => { const tensor = results[name]; return tensor ? [{ name, tensor }] : []; });
    if (made.some((v) => sizeOf(v.tensor.dims) > mostElements)) return [];
    this.#nodes.push(node);
    this.values.push(...made);
    return made;
  }

  /** The graph, with all that nothing reads and some of the rest as results; undefined where there are no nodes. */
  finish(symbolic: boolean): GraphCase | undefined {
    const read = new Set(this.#nodes.flatMap((n) => n.inputs)), computed = this.#nodes.flatMap((n) => n.outputs);
    if (!computed.length) return undefined;
    const used = (from: Tensors): Tensors => Object.fromEntries(Object.entries(from).filter(([name]) => read.has(name)));
    return { nodes: this.#nodes, feeds: used(this.#feeds), constants: used(this.#constants), outputs: computed.filter((name) => !read.has(name) || this.draw.once(6)), symbolic };
  }
}
