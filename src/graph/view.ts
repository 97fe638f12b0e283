/**
 * Which nodes only look at memory that is there already: every element of the result is one element of one input, at an
 * address that is a sum of multiples of the result's indices. Found from the node's lowering, so Reshape, Transpose,
 * Slice, Split, Squeeze, Expand and a Gather of one index need no rules of their own.
 */
import { isHeld } from "../core/container.ts";
import { dimAdd, dimEqual, dimMul, dimProduct, type Dim } from "../core/dim.ts";
import { axisOf, constant, i32, type Axis, type Buffer, type Expr } from "../kernel/expr.ts";
import { rowMajor, type Layout } from "../kernel/kernel.ts";
import { linearAddress, ExprTable } from "../kernel/share.ts";
import { visitExpr } from "../kernel/traverse.ts";
import { Elements } from "./elements.ts";
import type { Node, Value } from "./graph.ts";

export type { Layout } from "../kernel/kernel.ts";

/** Where the elements from `offset` on along `axis` lie in a dense tensor of `shape`. */
export function partLayout(shape: readonly Dim[], axis: number, offset: Dim): Layout {
  const { strides, offset: start } = rowMajor(shape, dimMul);
  return { strides, offset: dimAdd(start, dimMul(offset, strides[axis] ?? 1)) };
}

/** Element (axes…) of the result is element `indices` of `source`. */
export interface View {
  readonly source: Value;
  readonly axes: readonly (Axis | undefined)[];
  readonly indices: readonly Expr[];
  readonly table: ExprTable;
}

/** How output `index` of a node looks at one of its inputs; undefined where it computes or chooses. */
export function viewOf(node: Node, index: number): View | undefined {
  const pulled = pullOutput(node, index);
  if (!pulled) return undefined;
  const { element, sources, axes, table } = pulled;
  const source = element.kind === "load" ? sources.get(element.buffer) : undefined;
  const output = node.outputs[index];
  if (element.kind !== "load" || !source || source.type.dtype !== output?.type.dtype) return undefined;
  return { source, axes, indices: element.indices, table };
}

/** Where the result lies when its source lies at `layout`; undefined when its strides cannot say it. */
export function viewLayout(view: View, shape: readonly Dim[], layout: Layout): Layout | undefined {
  const address = linearAddress(view.table, view.indices, layout.strides, layout.offset);
  const strides = new Map<Axis, Dim>();
  for (const { atom, coefficient } of address.terms) {
    if (atom.kind !== "axis") return undefined;
    strides.set(atom.axis, coefficient);
  }
  const out: Dim[] = [];
  for (let d = shape.length - 1; d >= 0; d--) {
    const axis = view.axes[d];
    out.unshift(axis ? strides.get(axis) ?? 0 : dimMul(out[0] ?? 1, shape[d + 1] ?? 1));
  }
  return { strides: out, offset: address.constant };
}

/** Where the source lies when the result lies at `layout`; undefined when its strides cannot say it, or elements are left out. */
export function invertView(view: View, shape: readonly Dim[], layout: Layout): Layout | undefined {
  const strides: Dim[] = [];
  const sizes = view.source.type.shape;
  for (let d = sizes.length - 1; d >= 0; d--) {
    const index = view.indices[d];
    const origin = index && axisOfIndex(view.table, index);
    const at = origin && view.axes.findIndex((a) => a === origin.axis);
    if (sizes[d] !== 1 && (!origin || at === undefined || at < 0)) return undefined;
    strides.unshift(sizes[d] === 1 || !origin ? dimMul(strides[0] ?? 1, sizes[d + 1] ?? 1) : dimMul(layout.strides[at ?? 0] ?? 0, origin.multiple));
  }
  const whole = dimEqual(dimProduct(sizes), dimProduct(shape));
  const inverse = { strides, offset: layout.offset };
  const back = whole ? viewLayout(view, shape, inverse) : undefined;
  const same = back && dimEqual(back.offset, layout.offset) && shape.every((size, d) => size === 1 || dimEqual(back.strides[d] ?? 0, layout.strides[d] ?? 0));
  return same ? inverse : undefined;
}
/** The axis whose steps an index follows, and how many of them make one step of the index. */
function axisOfIndex(table: ExprTable, index: Expr): { readonly axis: Axis; readonly multiple: Dim } | undefined {
  if (index.kind === "axis") return { axis: index.axis, multiple: 1 };
  if (index.kind === "binary" && (index.op === "div" || index.op === "rem")) {
    const by = table.linear(index.b);
    const inner = by.terms.length === 0 ? axisOfIndex(table, index.a) : undefined;
    return inner && { axis: inner.axis, multiple: index.op === "rem" ? inner.multiple : dimMul(inner.multiple, by.constant) };
  }
  const unit = table.linear(index).terms.find((t) => t.coefficient === 1);
  return unit && unit.atom !== index ? axisOfIndex(table, unit.atom) : undefined;
}

/** A result that is its inputs side by side along one axis. */
export interface Placement { readonly axis: number; readonly parts: readonly { readonly source: Value; readonly offset: Dim }[] }

/** How a node with one output lays its inputs side by side; undefined when it does anything else. */
export function concatenationOf(node: Node): Placement | undefined {
  if (node.inputs.length < 2 || node.outputs.length !== 1) return undefined;
  const pulled = pullOutput(node, 0);
  if (!pulled) return undefined;
  const { element, sources, axes, table } = pulled;
  const shape = node.outputs[0]?.type.shape ?? [];
  const parts: { source: Value; offset: Dim }[] = [];
  let along: number | undefined;
  for (let e: Expr | undefined = element; e; e = e.kind === "select" ? e.b : undefined) {
    const leaf: Expr = e.kind === "select" ? e.a : e;
    const source = leaf.kind === "load" ? sources.get(leaf.buffer) : undefined;
    if (leaf.kind !== "load" || !source || leaf.indices.length !== shape.length) return undefined;
    let offset: Dim = 0;
    for (const [d, at] of leaf.indices.entries()) {
      const sum = table.linear(at);
      const axis = axes[d];
      const own = axis ? sum.terms.length === 1 && sum.terms[0]?.atom.kind === "axis" && sum.terms[0].atom.axis === axis && sum.terms[0].coefficient === 1 : sum.terms.length === 0;
      const single = axis !== undefined && sum.terms.length === 0 && sum.constant === 0 && source.type.shape[d] === 1;
      if (!own && !single) return undefined;
      if (dimEqual(source.type.shape[d] ?? 1, shape[d] ?? 1)) continue;
      if (along !== undefined && along !== d) return undefined;
      along = d;
      offset = single ? expectedOffset(parts, d) : dimMul(sum.constant, -1);
    }
    if (!dimEqual(offset, along === undefined ? 0 : expectedOffset(parts, along))) return undefined;
    parts.push({ source, offset });
  }
  if (along === undefined || !dimEqual(expectedOffset(parts, along), shape[along] ?? 1)) return undefined;
  return { axis: along, parts };
}
const expectedOffset = (parts: readonly { readonly source: Value }[], d: number): Dim => parts.reduce<Dim>((sum, p) => dimAdd(sum, p.source.type.shape[d] ?? 1), 0);

/** Whether neighbours along dimension `d` of a node's result come from different places, as beside a join or a border. */
export function choosesAlong(node: Node, d: number): boolean {
  const pulled = pullOutput(node, 0);
  const axis = pulled?.axes[d];
  if (!pulled || !axis) return false;
  let chooses = false;
  visitExpr(pulled.element, (e) => {
    if (e.kind !== "select" || !mentions(e.condition, axis)) return;
    for (const side of [e.a, e.b]) visitExpr(side, (x) => {
      if (x.kind === "load" && mentions(x, axis) && !x.indices.some((i, at) => i.kind === "axis" && i.axis === axis && dimEqual(x.buffer.shape[at] ?? 0, axis.extent))) chooses = true;
    });
  });
  return chooses;
}
function mentions(e: Expr, axis: Axis): boolean {
  let found = false;
  visitExpr(e, (x) => { if (x.kind === "axis" && x.axis === axis) found = true; });
  return found;
}

interface Pulled {
  readonly element: Expr;
  readonly sources: ReadonlyMap<Buffer, Value>;
  /** Per dimension of the result; none where the size is 1. */
  readonly axes: readonly (Axis | undefined)[];
  readonly table: ExprTable;
}
/** The element of an output over fresh axes, every input a buffer. */
function pullOutput(node: Node, index: number): Pulled | undefined {
  const output = node.outputs[index];
  if (!output || !node.op.lower || isHeld(output.type)) return undefined;
  const sources = new Map<Buffer, Value>();
  const buffers = new Map<Value, Buffer>();
  const bufferOf = (value: Value): Buffer => {
    let buffer = buffers.get(value);
    if (!buffer) {
      buffer = { name: value.name, dtype: value.type.dtype, shape: value.type.shape };
      buffers.set(value, buffer);
      sources.set(buffer, value);
    }
    return buffer;
  };
  const table = new ExprTable();
  const elements = new Elements({ table, inline: new Set([node]), bufferOf });
  const axes = output.type.shape.map((extent, d): Axis | undefined => (extent === 1 ? undefined : { name: `i${d}`, extent }));
  const element = elements.at(output, axes.map((a) => (a ? axisOf(a) : constant(0, i32))));
  return { element, sources, axes, table };
}
