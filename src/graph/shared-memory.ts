/**
 * Which values lie in the memory of others, so that looking at them or joining them costs nothing: views, parts of a
 * concatenation that are written where the result lies, and sources laid out so that a view of them comes out dense (a
 * product stored in the order that the transposition behind it wants). An input that carries a state is the first part of
 * the concatenation that makes its next value: then a run adds what is new behind it.
 */
import { dimAdd, dimMul } from "../core/dim.ts";
import { rowMajor, type Layout } from "../kernel/kernel.ts";
import type { Node, Value } from "./graph.ts";
import { hasKernel } from "./has-kernel.ts";
import { concatenationOf, invertView, viewLayout, viewOf, type View } from "./view.ts";

/** How a value lies in another. */
type Relation =
  | { readonly kind: "view"; readonly in: Value; readonly view: View }
  | { readonly kind: "part"; readonly in: Value; readonly axis: number; readonly offset: Layout["offset"] }
  /** So that `in`, which is a view of it, lies where it should. */
  | { readonly kind: "source"; readonly in: Value; readonly view: View };

type SetRelation = (value: Value, relation: Relation | undefined) => void;

export class SharedMemory {
  readonly #relations = new Map<Value, Relation>();
  readonly #dependents = new Map<Value, Set<Value>>();
  readonly #fixed = new Map<Value, Layout>();

  /** Lets a node's results be memory that is there already, or that its inputs are written to; false where that cannot be. */
  add(node: Node): boolean {
    return this.#attempt((set) => this.#relate(node, set));
  }
  /** Makes a value that looks at another one dense itself, the other one following; false where that cannot be. */
  makeRoot(value: Value): boolean {
    return this.#attempt((set) => {
      const relation = this.#relations.get(value);
      return relation === undefined || (relation.kind === "view" && this.#turn(value, relation, set));
    });
  }
  /** Keeps what `change` does if all values it touches can still be placed. */
  #attempt(change: (set: SetRelation) => boolean): boolean {
    const before = new Map<Value, Relation | undefined>();
    const done = change((value, relation) => {
      if (!before.has(value)) before.set(value, this.#relations.get(value));
      this.#set(value, relation);
    });
    if (done && [...before.keys()].every((v) => this.#holds(v))) return true;
    for (const [value, relation] of before) this.#set(value, relation);
    return false;
  }

  #relate(node: Node, set: SetRelation): boolean {
    const joined = concatenationOf(node);
    const whole = node.outputs[0];
    if (joined && whole) {
      return joined.parts.every(({ source, offset }, i) => {
        if (joined.parts.findIndex((p) => p.source === source) !== i) return false;
        const continued = i === 0 && !this.#relations.has(source) && continues(source, whole);
        if (!continued && source.producer?.node.graph !== node.graph) return false;
        if (!continued && !this.#freeUp(source, set)) return false;
        set(source, { kind: "part", in: whole, axis: joined.axis, offset });
        return true;
      });
    }
    return node.outputs.every((value, i) => {
      const view = viewOf(node, i);
      if (!view) return false;
      set(value, { kind: "view", in: view.source, view });
      if (this.#layout(value)) return true;
      return this.#freeUp(view.source, set) && this.#layout(value) !== undefined;
    });
  }
  /** Makes a value one that lies in nothing else, its sources following it; false where something fixes their place. */
  #freeUp(value: Value, set: SetRelation): boolean {
    const relation = this.#relations.get(value);
    if (!relation) return isPlaceable(value) && !this.#fixed.has(value);
    return relation.kind === "view" && value.resultOf.length === 0 && this.#turn(value, relation, set);
  }
  #turn(value: Value, relation: Relation & { readonly kind: "view" }, set: SetRelation): boolean {
    if (!this.#freeUp(relation.in, set)) return false;
    set(value, undefined);
    set(relation.in, { kind: "source", in: value, view: relation.view });
    return true;
  }

  #set(value: Value, relation: Relation | undefined): void {
    const old = this.#relations.get(value);
    if (old) this.#dependents.get(old.in)?.delete(value);
    if (!relation) { this.#relations.delete(value); return; }
    this.#relations.set(value, relation);
    const known = this.#dependents.get(relation.in);
    if (known) known.add(value);
    else this.#dependents.set(relation.in, new Set([value]));
  }
  /** True where the value and all that lie in it have a layout. */
  #holds(value: Value): boolean {
    return this.#layout(value) !== undefined && [...(this.#dependents.get(value) ?? [])].every((v) => this.#holds(v));
  }

  /** Where a value's elements lie in the storage of its root. */
  layoutOf(value: Value): Layout | undefined { return this.#layout(value); }
  #layout(value: Value): Layout | undefined {
    const relation = this.#relations.get(value);
    if (!relation) return this.#fixed.get(value) ?? rowMajor(value.type.shape, dimMul);
    const around = this.#layout(relation.in);
    if (!around) return undefined;
    switch (relation.kind) {
      case "view": return viewLayout(relation.view, value.type.shape, around);
      case "source": return invertView(relation.view, relation.in.type.shape, around);
      case "part": return { strides: around.strides, offset: dimAdd(around.offset, dimMul(relation.offset, around.strides[relation.axis] ?? 1)) };
    }
  }
  /** The value in whose storage this one lies. */
  rootOf(value: Value): Value {
    const relation = this.#relations.get(value);
    return relation ? this.rootOf(relation.in) : value;
  }

  /** Lays a root out as the storage it is given wants; false where something that lies in it could not. */
  fix(root: Value, layout: Layout): boolean {
    if (this.#relations.has(root) || this.#fixed.has(root)) return false;
    this.#fixed.set(root, layout);
    if (this.#holds(root)) return true;
    this.#fixed.delete(root);
    return false;
  }
}

/** Whether a result is what the next run takes as this input. */
const continues = (input: Value, result: Value): boolean =>
  input.graph === result.graph && input.graph.inputs.includes(input) && input.graph.isOutput(result) && input.graph.states.some((s) => s.input === input.name && s.output === result.name);

/** Whether a node lays other values behind a state, as its next value. */
export function continuesState(node: Node): boolean {
  const [result] = node.outputs;
  const first = result && node.graph.states.some((s) => s.output === result.name) ? concatenationOf(node)?.parts[0]?.source : undefined;
  return result !== undefined && first !== undefined && continues(first, result);
}

/** Values whose producer can write them anywhere; results of the graph lie where the caller reads them. */
function isPlaceable(value: Value): boolean {
  const node = value.producer?.node;
  return node !== undefined && value.resultOf.length === 0 && hasKernel(node);
}
