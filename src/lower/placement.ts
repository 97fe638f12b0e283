/**
 * Where values lie. A value has one buffer; views and the parts of a concatenation lie in the storage of another value,
 * everything else has a storage of its own. Graph outputs claim the storage of the value they lie in where that is
 * exactly row-major; others are copied.
 */
import { invariant, present } from "../core/assert.ts";
import { dimAdd, dimEqual, dimMul, dimProduct, isStatic, shapeEqual, type Dim } from "../core/dim.ts";
import { byteSize } from "../core/dtype.ts";
import type { Value } from "../graph/graph.ts";
import { concatenationOf, viewLayout, viewOf, type View } from "../graph/view.ts";
import type { Region } from "../graph/region.ts";
import type { Buffer } from "../kernel/expr.ts";
import { rowMajor, type Layout } from "../kernel/kernel.ts";
import type { Placement, Storage, Weight } from "../kernel/program.ts";

/** How a value lies in another: a view of it, or one part of a concatenation. */
type Within = { readonly kind: "view"; readonly view: View } | { readonly kind: "part"; readonly whole: Value; readonly axis: number; readonly offset: Dim };

export const denseLayout = (shape: readonly Dim[]): Layout => rowMajor(shape, dimMul);
export const storageBytes = (buffer: { readonly dtype: Buffer["dtype"]; readonly shape: readonly Dim[] }): Dim => dimMul(dimProduct(buffer.shape), byteSize(buffer.dtype));
export const sameLayout = (a: Layout, b: Layout): boolean => dimEqual(a.offset, b.offset) && shapeEqual(a.strides, b.strides);

export class Places {
  readonly #buffers = new Map<Value, Buffer>();
  readonly #within = new Map<Value, Within>();
  readonly #placed = new Map<Value, Placement>();
  readonly #dense: ReadonlySet<Value>;
  readonly weights = new Map<Storage, Weight>();

  /** `dense` values are written by something that knows row-major memory only, so they lie in nothing else. */
  constructor(dense: ReadonlySet<Value>) { this.#dense = dense; }

  /** The one buffer of a value. */
  bufferOf(value: Value): Buffer {
    let buffer = this.#buffers.get(value);
    if (!buffer) {
      invariant(value.type.dtype !== "string", `${value.name} holds strings, which no buffer can`);
      buffer = { name: value.name, dtype: value.type.dtype, shape: value.type.shape };
      this.#buffers.set(value, buffer);
    }
    return buffer;
  }
  /** Every value that has a buffer, with its placement. */
  placements(): Map<Buffer, Placement> {
    return new Map([...this.#buffers].map(([value, buffer]) => [buffer, this.of(value)]));
  }

  /** Lets the outputs of a region with execution "view" lie in what it looks at; false where that cannot be. */
  addView(region: Region): boolean {
    const node = present(region.nodes[0], "node of a view");
    const placement = concatenationOf(node);
    if (placement) return this.#addConcatenation(region, placement);
    for (const value of region.outputs) {
      const view = viewOf(node, present(value.producer, "producer").index);
      if (!view || this.#dense.has(value)) return false;
      if (!this.#add([[value, { kind: "view", view }]])) return false;
    }
    return true;
  }
  #addConcatenation(region: Region, { axis, parts }: NonNullable<ReturnType<typeof concatenationOf>>): boolean {
    const whole = present(region.outputs[0], "concatenation");
    const free = parts.every(({ source }, i) => source.producer?.node.graph === whole.graph && !this.#within.has(source) && !this.#dense.has(source) && parts.findIndex((p) => p.source === source) === i);
    return free && this.#add(parts.map(({ source, offset }) => [source, { kind: "part", whole, axis, offset }]));
  }
  /** Adds relations unless a value's place could then not be said. */
  #add(relations: readonly (readonly [Value, Within])[]): boolean {
    for (const [value, within] of relations) this.#within.set(value, within);
    if ([...this.#within.keys()].every((v) => this.#layout(v))) return true;
    for (const [value] of relations) this.#within.delete(value);
    return false;
  }

  /** Where a value's elements lie in the storage of the value it belongs to. */
  layoutOf(value: Value): Layout { return present(this.#layout(value), `layout of ${value.name}`); }
  #layout(value: Value): Layout | undefined {
    const placed = this.#placed.get(value);
    if (placed) return placed.layout;
    const within = this.#within.get(value);
    if (!within) return denseLayout(value.type.shape);
    if (within.kind === "view") {
      const source = this.#layout(within.view.source);
      return source && viewLayout(within.view, value.type.shape, source);
    }
    const whole = this.#layout(within.whole);
    return whole && { strides: whole.strides, offset: dimAdd(whole.offset, dimMul(within.offset, whole.strides[within.axis] ?? 1)) };
  }
  /** The value in whose storage this one lies. */
  rootOf(value: Value): Value {
    const within = this.#within.get(value);
    return within ? this.rootOf(within.kind === "view" ? within.view.source : within.whole) : value;
  }

  /** Gives a value that is computed, and lies in nothing else, a place from outside; false where that cannot be. */
  claim(value: Value, placement: Placement): boolean {
    const root = this.rootOf(value);
    if (!root.producer || this.#placed.has(root)) return false;
    if (root !== value && !(this.#fillsDensely(value, root) && sameLayout(placement.layout, denseLayout(value.type.shape)))) return false;
    this.#placed.set(root, root === value ? placement : { storage: placement.storage, layout: denseLayout(root.type.shape) });
    if ([...this.#within.keys()].every((v) => this.#layout(v))) return true;
    this.#placed.delete(root);
    return false;
  }
  /** A view of every element of its root, in order. */
  #fillsDensely(value: Value, root: Value): boolean {
    return sameLayout(this.layoutOf(value), denseLayout(value.type.shape)) && dimEqual(dimProduct(value.type.shape), dimProduct(root.type.shape));
  }

  of(value: Value): Placement {
    const known = this.#placed.get(value);
    if (known) return known;
    const root = this.rootOf(value);
    const placement: Placement = root === value ? { storage: this.#storage(value), layout: denseLayout(value.type.shape) } : { storage: this.of(root).storage, layout: this.layoutOf(value) };
    this.#placed.set(value, placement);
    return placement;
  }
  #storage(value: Value): Storage {
    const buffer = this.bufferOf(value);
    const stored = value.constant ?? (value.default ? { input: value.name } : undefined);
    const kind = stored ? "weight" : value.producer ? "arena" : "input";
    const storage: Storage = { name: value.name, kind, bytes: storageBytes(buffer) };
    if (stored) {
      invariant(isStatic(buffer.shape), `weight ${value.name} has an unknown size`);
      this.weights.set(storage, { buffer, source: stored, pack: { kind: "copy" } });
    }
    return storage;
  }
}
