/**
 * The order of a file's nodes: any topological order is accepted, and brought to one where producers come first, as
 * near to the file's own as possible. Refuses cycles, values computed twice and values nothing computes, by name.
 */
import { fail } from "../core/diagnostic.ts";
import type { AttributeProto, GraphProto, NodeProto } from "./schema/onnx_pb.ts";

/** A node with its name (made up where the file gives none). */
export interface NamedNode { readonly proto: NodeProto; readonly name: string }

/** Nodes with names: unnamed ones are called after their operator and their place in the file. */
export const nameNodes = (nodes: readonly NodeProto[]): NamedNode[] =>
  nodes.map((proto, i) => ({ proto, name: proto.name === "" ? `${proto.opType}_${i}` : proto.name }));

/**
 * Nodes with producers first; stable. `given` are the names that are there from the start, `outside` tells whether a
 * name comes from around the graph. Fails with OF2020 (cycle), OF2021 (defined twice), OF2022 (nothing computes it).
 */
export function orderNodes(nodes: readonly NamedNode[], given: ReadonlySet<string>, outside: (name: string) => boolean): NamedNode[] {
  const producers = new Map<string, NamedNode>();
  for (const node of nodes) for (const output of node.proto.output) {
    if (output === "") continue;
    const other = producers.get(output);
    if (other) fail("OF2021", `'${output}' is computed twice, by '${other.name}' and by '${node.name}'`, { place: { node: node.name, value: output } });
    if (given.has(output)) fail("OF2021", `'${output}' is computed by '${node.name}', but it is an input or an initializer too`, { place: { node: node.name, value: output } });
    producers.set(output, node);
  }
  const dependencies = (node: NamedNode): NamedNode[] => readNames(node.proto).flatMap((name) => {
    const producer = producers.get(name);
    if (!producer && !given.has(name) && !outside(name))
      fail("OF2022", `'${name}' is read by '${node.name}', but nothing computes it`, { place: { node: node.name, value: name } });
    return producer ? [producer] : [];
  });
  return depthFirst(nodes, dependencies);
}

function depthFirst(nodes: readonly NamedNode[], dependencies: (node: NamedNode) => NamedNode[]): NamedNode[] {
  const order = new Set<NamedNode>();
  const open = new Set<NamedNode>();
  for (const root of nodes) {
    if (order.has(root)) continue;
    const stack = [{ node: root, left: dependencies(root), at: 0 }];
    open.add(root);
    for (let top = stack.at(-1); top; top = stack.at(-1)) {
      const next = top.left[top.at++];
      if (!next) { order.add(top.node); open.delete(top.node); stack.pop(); continue; }
      if (order.has(next)) continue;
      if (open.has(next)) {
        const cycle = stack.slice(stack.findIndex((s) => s.node === next)).map((s) => `'${s.node.name}'`);
        fail("OF2020", `the graph has a cycle: ${[...cycle, cycle[0]].join(" needs ")}`, { place: { node: next.name } });
      }
      open.add(next);
      stack.push({ node: next, left: dependencies(next), at: 0 });
    }
  }
  return [...order];
}

/** Names a node reads: its inputs and what its subgraphs capture, each once. */
export function readNames(node: NodeProto): string[] {
  const names = new Set(node.input.filter((n) => n !== ""));
  for (const graph of subgraphProtos(node.attribute)) for (const name of capturedNames(graph)) names.add(name);
  return [...names];
}

export const subgraphProtos = (attributes: readonly AttributeProto[]): GraphProto[] => attributes.flatMap((a) => (a.g ? [a.g, ...a.graphs] : a.graphs));

/** Names that a subgraph reads and does not define. */
function capturedNames(graph: GraphProto): Set<string> {
  const own = new Set([...graph.input.map((v) => v.name), ...graph.initializer.map((t) => t.name), ...graph.node.flatMap((n) => n.output)]);
  const used = new Set([...graph.node.flatMap(readNames), ...graph.output.map((v) => v.name)]);
  return new Set([...used].filter((name) => !own.has(name)));
}
