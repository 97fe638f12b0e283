/**
 * Region → naive Kernel. Operands are pulled through the region's nodes (graph/elements.ts), the stores become loops
 * (kernel/hoist.ts). A region with an anchor keeps its structure: the epilogue is pulled at the anchor's indices with
 * the accumulator as a local, so that scheduling can rebuild the loops around it.
 */
import { invariant, present } from "../core/assert.ts";
import { elementLoops } from "../graph/element-loops.ts";
import { attributesOf, Elements, lowerContext } from "../graph/elements.ts";
import type { Node, Value } from "../graph/graph.ts";
import { named, type Anchor, type Pooling } from "../graph/op.ts";
import type { Region } from "../graph/region.ts";
import { axisOf, f32, local, type Axis, type Buffer, type Expr } from "../kernel/expr.ts";
import { buildLoops } from "../kernel/hoist.ts";
import type { Kernel } from "../kernel/kernel.ts";
import { renameLocals } from "../kernel/rename-locals.ts";
import { ExprTable } from "../kernel/share.ts";
import { block, type Stmt } from "../kernel/stmt.ts";
import type { EpilogueStore, PooledOutput, Structure } from "../kernel/structure.ts";
import { expressionsOf, visitExpr, visitStmt } from "../kernel/traverse.ts";
import { checkFloatFunctions } from "./float-functions.ts";
import { inPlacePairs } from "./in-place.ts";
import { recurrenceLoops } from "./recurrence.ts";

/** The naive kernel of a region with `execution` "kernel". `bufferOf` gives every value its one buffer. */
export function lowerRegion(region: Region, name: string, bufferOf: (value: Value) => Buffer): Kernel {
  return checkFloatFunctions(kernelOf(region, name, bufferOf), region);
}

function kernelOf(region: Region, name: string, bufferOf: (value: Value) => Buffer): Kernel {
  const anchor = region.anchor;
  if (!anchor) return elementKernel(region, name, bufferOf);
  if (anchor.op.whole) return wholeKernel(anchor, name, region, bufferOf);
  if (region.above && region.pool) return pooled(region, region.above, region.pool, name, bufferOf);
  return region.above ? inStrips(region, region.above, anchor, name, bufferOf) : anchoredKernel(region, anchor, name, bufferOf);
}

/** The kernel of a region whose anchor reads what another region within it computes: that comes first, into working memory. */
function inStrips(region: Region, above: Region, anchor: Node, name: string, bufferOf: (value: Value) => Buffer): Kernel {
  const [value] = above.outputs, between: Buffer = { ...bufferOf(present(value, "what lies between")), name: "between" };
  const of = (v: Value): Buffer => (v === value ? between : bufferOf(v));
  const first = anchoredKernel(above, present(above.anchor, "anchor"), name, of);
  const second = anchoredKernel({ ...region, nodes: region.nodes.filter((n) => !above.nodes.includes(n)) }, anchor, name, of);
  const structure = second.structure?.kind === "conv" && first.structure?.kind === "conv" ? { ...second.structure, inputFrom: first.structure } : undefined;
  const body = block(renameLocals(first.body, (local) => `${local}_above`), second.body);
  return { ...finish(name, body, second.outputs, [between], structure), shared: [between] };
}

/** The kernel of a region whose pool reads what its anchor and the epilogue compute: that comes first, into working memory. */
function pooled(region: Region, above: Region, pool: Node, name: string, bufferOf: (value: Value) => Buffer): Kernel {
  const [value] = above.outputs, between: Buffer = { ...bufferOf(present(value, "what lies between")), name: "between" };
  const of = (v: Value): Buffer => (v === value ? between : bufferOf(v));
  const rest = region.nodes.filter((n) => !above.nodes.includes(n));
  const first = anchoredKernel(above, present(above.anchor, "anchor"), name, of);
  const { body, scratch } = elementLoops(rest, region.outputs, of), { structure } = first;
  const pooling = present(pool.op.pooling, `windows of ${pool.op.type}`).call(pool.op, named(pool.op, pool.inputs.map((v) => v?.type)), attributesOf(pool));
  const all = block(renameLocals(first.body, (local) => `${local}_above`), body);
  const kernel = finish(name, all, region.outputs.map(bufferOf), [between, ...scratch], structure?.kind === "conv" && pooling ? { ...structure, pooled: pooledOutput(region, rest, pool, pooling, of) } : undefined);
  return { ...kernel, shared: [between] };
}

/** What becomes of a pool's result, over its own axes. */
function pooledOutput(region: Region, rest: readonly Node[], pool: Node, pooling: Pooling, bufferOf: (value: Value) => Buffer): PooledOutput {
  const table = new ExprTable(), result = present(pool.outputs[0], `output of ${pool.name}`);
  const [batch, channel, ...output] = result.type.shape.map((extent, d): Axis => ({ name: `pool${d}`, extent }));
  const [outer, inner] = output, accumulator = { name: "pooled", type: f32 };
  invariant(batch && channel && outer && inner, "a pool of two spatial axes");
  const indices = [batch, channel, outer, inner].map((a) => table.make(axisOf(a)));
  const elements = new Elements({ table, inline: new Set(rest.filter((n) => n !== pool)), bufferOf, given: [{ value: result, indices, element: local(accumulator.name, f32) }] });
  const stores = region.outputs.map((value): EpilogueStore => ({ buffer: bufferOf(value), indices, value: elements.at(value, indices) }));
  return { ...pooling, batch, channel, output: [outer, inner], accumulator, stores };
}

function elementKernel(region: Region, name: string, bufferOf: (value: Value) => Buffer): Kernel {
  const { body, scratch } = elementLoops(region.nodes, region.outputs, bufferOf);
  return finish(name, body, region.outputs.map(bufferOf), scratch, undefined);
}

function anchoredKernel(region: Region, node: Node, name: string, bufferOf: (value: Value) => Buffer): Kernel {
  const table = new ExprTable();
  const prologue = new Set(region.nodes.filter((n) => n !== node));
  const operands = new Elements({ table, inline: prologue, bufferOf });
  const anchor = present(node.op.anchor, `anchor of ${node.op.type}`).call(node.op, named(node.op, node.inputs.map((v) => v && operands.operand(v, true))), attributesOf(node), lowerContext(node));
  const parts = [{ element: anchor.element, accumulate: anchor.accumulate, accumulator: undefined }, ...(anchor.others ?? [])];
  const given = parts.map(({ element }, i) => ({ value: present(node.outputs[i], `output ${i} of ${node.name}`), indices: anchor.indices, element }));
  const elements = new Elements({ table, inline: prologue, bufferOf, given });
  const indices = anchor.indices.map((e) => table.make(e));
  const stores = region.outputs.map((value): EpilogueStore => ({ buffer: bufferOf(value), indices, value: elements.at(value, indices) }));
  const structure = sharedStructure(anchor, stores, table);
  const definitions = parts.map(({ accumulator = accumulatorOf(structure), accumulate }) => ({ name: accumulator, axes: anchor.axes, value: accumulate }));
  const body = buildLoops(table, stores.map((s) => ({ ...s, axes: anchor.axes })), definitions);
  const outputs = stores.map((s) => s.buffer), kernel = finish(name, body, outputs, [], structure);
  return operandsOf(structure).every((b) => kernel.inputs.includes(b)) ? kernel : finish(name, body, outputs, [], undefined);
}

/** What a structure's contraction reads. An epilogue that leaves the result out leaves these out of the loops, too. */
function operandsOf(s: Structure): readonly Buffer[] {
  if (s.kind === "recurrence") return [];
  if (s.kind === "conv") return [s.input, s.weight];
  const out: Buffer[] = [];
  for (const root of s.kind === "matmul" ? [s.a, s.b, ...(s.others ?? []).map((o) => o.b)] : [s.q, s.k, s.v]) visitExpr(root, (e) => { if (e.kind === "load") out.push(e.buffer); });
  return out;
}

/** The anchor's structure with its expressions shared and simplified. */
function sharedStructure(anchor: Anchor, stores: readonly EpilogueStore[], table: ExprTable): Structure {
  const s = anchor.structure(stores);
  const make = (e: Expr): Expr => table.make(e);
  switch (s.kind) {
    case "matmul": return { ...s, a: make(s.a), b: make(s.b), ...(s.others ? { others: s.others.map((o) => ({ ...o, b: make(o.b) })) } : {}) };
    case "conv": return s.zeroPoints ? { ...s, zeroPoints: { input: make(s.zeroPoints.input), weight: make(s.zeroPoints.weight) } } : s;
    case "attention": return {
      ...s, q: make(s.q), k: make(s.k), v: make(s.v), score: make(s.score),
      ...(s.keysFrom ? { keysFrom: make(s.keysFrom) } : {}), ...(s.keysTo ? { keysTo: make(s.keysTo) } : {}), ...(s.sink ? { sink: make(s.sink) } : {}),
    };
    case "recurrence": return s;
  }
}
function accumulatorOf(s: Structure): string {
  invariant(s.kind !== "recurrence", "a recurrence has no accumulator");
  return s.accumulator.name;
}

function wholeKernel(node: Node, name: string, region: Region, bufferOf: (value: Value) => Buffer): Kernel {
  const operands = new Elements({ table: new ExprTable(), inline: new Set(), bufferOf });
  const outputs = node.outputs.map((v) => (region.outputs.includes(v) ? bufferOf(v) : undefined));
  const structure = present(node.op.whole, `structure of ${node.op.type}`).call(node.op, named(node.op, node.inputs.map((v) => v && operands.operand(v, true))), attributesOf(node), outputs);
  if (structure.kind === "loops") return finish(name, structure.body, outputs.filter((b) => b !== undefined), structure.scratch, undefined);
  invariant(structure.kind === "recurrence", `${node.op.type} has a whole structure of kind ${structure.kind}`);
  const { body, scratch } = recurrenceLoops(structure);
  return finish(name, body, outputs.filter((b) => b !== undefined), scratch, structure);
}

/** Gathers what the loops read; an output is never an input. */
function finish(name: string, body: Stmt, outputs: readonly Buffer[], scratch: readonly Buffer[], structure: Structure | undefined): Kernel {
  const inputs = new Set<Buffer>();
  const seen = new Set<Expr>();
  visitStmt(body, (s) => expressionsOf(s).forEach((root) => visitExpr(root, (e) => {
    if (e.kind === "load" && !outputs.includes(e.buffer) && !scratch.includes(e.buffer)) inputs.add(e.buffer);
  }, seen)));
  const kernel: Kernel = { name, inputs: [...inputs], outputs, scratch, body, ...(structure ? { structure } : {}) };
  const inPlace = inPlacePairs(kernel);
  return inPlace.length ? { ...kernel, inPlace } : kernel;
}
