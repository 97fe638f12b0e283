/**
 * Where values lie. A value has one buffer; views and the parts of a concatenation lie in the storage of another value,
 * everything else has a storage of its own. Graph outputs claim the storage of the value they lie in where that is
 * exactly row-major; others are copied.
 */
import { invariant, present } from "../core/assert.ts";
import { isHeld } from "../core/container.ts";
import { dimEqual, dimMul, dimProduct, isStatic, shapeEqual, type Dim } from "../core/dim.ts";
import { byteSize } from "../core/dtype.ts";
import type { Value } from "../graph/graph.ts";
import { SharedMemory } from "../graph/shared-memory.ts";
import type { Region } from "../graph/region.ts";
import type { Buffer } from "../kernel/expr.ts";
import { rowMajor, type Layout } from "../kernel/kernel.ts";
import type { Placement, Storage, Weight } from "../kernel/program.ts";

export const denseLayout = (shape: readonly Dim[]): Layout => rowMajor(shape, dimMul);
export const storageBytes = (buffer: { readonly dtype: Buffer["dtype"]; readonly shape: readonly Dim[] }): Dim => dimMul(dimProduct(buffer.shape), byteSize(buffer.dtype));
export const sameLayout = (a: Layout, b: Layout): boolean => dimEqual(a.offset, b.offset) && shapeEqual(a.strides, b.strides);

export class Places {
  readonly #buffers = new Map<Value, Buffer>();
  readonly #shared = new SharedMemory();
  readonly #placed = new Map<Value, Placement>();
  readonly weights = new Map<Storage, Weight>();

  /** The one buffer of a value. */
  bufferOf(value: Value): Buffer {
    let buffer = this.#buffers.get(value);
    if (!buffer) {
      const { dtype, shape, container } = value.type;
      buffer = { name: value.name, dtype, shape, ...(container ? { container } : {}) };
      this.#buffers.set(value, buffer);
    }
    return buffer;
  }
  /** Every value that has a buffer, with its placement. */
  placements(): Map<Buffer, Placement> {
    const out = new Map<Buffer, Placement>();
    // Placing a view may give its root a buffer, which this then visits too.
    for (const [value, buffer] of this.#buffers) out.set(buffer, this.of(value));
    return out;
  }

  /** Lets the results of a region with execution "view" lie in other values' memory; false where that cannot be. */
  addView(region: Region): boolean { return this.#shared.add(present(region.nodes[0], "node of a view")); }
  /** The value in whose storage another lies. */
  rootOf(value: Value): Value { return this.#shared.rootOf(value); }
  layoutOf(value: Value): Layout { return this.#placed.get(value)?.layout ?? present(this.#shared.layoutOf(value), `layout of ${value.name}`); }

  /** Gives a value that is computed, and lies in nothing else, a place from outside; false where that cannot be. */
  claim(value: Value, placement: Placement): boolean {
    if (this.#placed.has(value)) return false;
    if (!this.#fillsDensely(value, this.#shared.rootOf(value))) this.#shared.makeRoot(value);
    const root = this.#shared.rootOf(value);
    if (!root.producer || this.#placed.has(root)) return false;
    const dense = denseLayout(root.type.shape);
    if (root !== value && !(this.#fillsDensely(value, root) && sameLayout(placement.layout, denseLayout(value.type.shape)))) return false;
    const layout = root === value ? placement.layout : dense;
    if (!this.#shared.fix(root, layout)) return false;
    this.#placed.set(root, { storage: placement.storage, layout });
    return true;
  }
  /** A view of every element of its root, in order. */
  #fillsDensely(value: Value, root: Value): boolean {
    return sameLayout(this.layoutOf(value), denseLayout(value.type.shape)) && dimEqual(dimProduct(value.type.shape), dimProduct(root.type.shape));
  }

  /** Lets an input of a body, which has no place yet, be the memory of another value. */
  lie(input: Value, placement: Placement): void {
    invariant(!this.#placed.has(input) && this.#shared.fix(input, placement.layout), `${input.name} has a place`);
    this.#placed.set(input, placement);
  }

  of(value: Value): Placement {
    const known = this.#placed.get(value);
    if (known) return known;
    const root = this.#shared.rootOf(value);
    const placement: Placement = root === value ? { storage: this.#storage(value), layout: denseLayout(value.type.shape) } : { storage: this.of(root).storage, layout: this.layoutOf(value) };
    this.#placed.set(value, placement);
    return placement;
  }
  #storage(value: Value): Storage {
    const buffer = this.bufferOf(value);
    // A default of open sizes is written like what is fed: weights have a place of their own, which does not grow.
    const stored = value.constant ?? (value.default && isStatic(buffer.shape) ? { input: value.name } : undefined);
    if (isHeld(buffer)) return this.#held(value, buffer);
    const kind = stored ? "weight" : value.producer || value.graph.parent ? "arena" : "input";
    const storage: Storage = { name: value.name, kind, bytes: storageBytes(buffer) };
    if (stored) {
      invariant(isStatic(buffer.shape), `weight ${value.name} has an unknown size`);
      this.weights.set(storage, { buffer, source: stored, pack: { kind: "copy" } });
    }
    return storage;
  }
  /** What has no place in memory. A constant of strings is a weight that is there from the start; a default is fed. */
  #held({ name, constant }: Value, buffer: Buffer): Storage {
    const storage: Storage = { name, kind: "held", bytes: 0 };
    if (constant) this.weights.set(storage, { buffer, source: constant, pack: { kind: "copy" } });
    return storage;
  }
}
