/**
 * Pull-based lowering: the element of a value at given indices, as one expression. A value computed by one of the given
 * nodes is that node's element function, inlined; any other value is a load of its buffer. Scalars that are constants
 * and elements that inference knows are written out. Every (value, indices) pair is computed once.
 */
import { invariant } from "../core/assert.ts";
import { isHeld } from "../core/container.ts";
import type { Dim } from "../core/dim.ts";
import type { DType } from "../core/dtype.ts";
import { numericData, sizeOf, toNumbers, type Tensor } from "../core/tensor.ts";
import { cast, computeScalar, constant, dimExpr, eq, i32, lift, load, scalarType, select, type Buffer, type Expr } from "../kernel/expr.ts";
import { rowMajor } from "../kernel/kernel.ts";
import { linearAddress, type ExprTable } from "../kernel/share.ts";
import { dimMul } from "../core/dim.ts";
import type { Node, Value } from "./graph.ts";
import { named, type AnchorOperand, type ElementFunction, type LowerContext, type OpDef } from "./op.ts";

/** The attributes of a node as its operator's functions take them. */
export const attributesOf = (node: Node): Parameters<NonNullable<OpDef["lower"]>>[1] => node.attributes as Parameters<NonNullable<OpDef["lower"]>>[1];
export const lowerContext = (node: Node): LowerContext => ({ outputs: node.outputs.map((v) => v.type) });

/** A value given from outside: at exactly these indices it is this expression. */
export interface Given { readonly value: Value; readonly indices: readonly Expr[]; readonly element: Expr }

export interface ElementsOptions {
  readonly table: ExprTable;
  /** Nodes whose element functions are inlined. */
  readonly inline: ReadonlySet<Node>;
  readonly bufferOf: (value: Value) => Buffer;
  readonly given?: readonly Given[];
}

/** Known elements up to this many are chosen by index without memory. */
const chosenElements = 8;
/** Constants up to this size are checked for being one value throughout. */
const uniformSize = 65536;

export class Elements {
  readonly table: ExprTable;
  readonly #options: ElementsOptions;
  readonly #functions = new Map<Node, readonly ElementFunction[]>();
  readonly #elements = new Map<Value, Map<string, Expr>>();
  readonly #given: ReadonlyMap<Value, { readonly key: string; readonly element: Expr }>;

  constructor(options: ElementsOptions) {
    this.table = options.table;
    this.#options = options;
    this.#given = new Map((options.given ?? []).map((g) => [g.value, { key: this.#key(g.indices), element: g.element }]));
  }

  /** The element of `value` at `indices`, shared through the table. */
  at(value: Value, indices: readonly Expr[]): Expr {
    invariant(indices.length === value.type.shape.length, `${value.name} has rank ${value.type.shape.length}, read at ${indices.length} indices`);
    const key = this.#key(indices);
    let own = this.#elements.get(value);
    if (!own) this.#elements.set(value, (own = new Map()));
    let e = own.get(key);
    if (!e) {
      e = this.table.make(this.#pull(value, indices.map((i) => this.table.make(i)), key));
      own.set(key, e);
    }
    return e;
  }
  #key(indices: readonly Expr[]): string { return indices.map((i) => this.table.id(i)).join(","); }

  #pull(value: Value, indices: readonly Expr[], key: string): Expr {
    const given = this.#given.get(value);
    if (given) {
      invariant(given.key === key, `${value.name} is read at other indices than it is accumulated at`);
      return given.element;
    }
    const known = this.#known(value, indices);
    if (known) return known;
    const producer = value.producer;
    if (producer && this.#options.inline.has(producer.node)) {
      const f = this.#functionsOf(producer.node)[producer.index];
      invariant(f, `${producer.node.op.type} does not lower output ${producer.index}`);
      return f(...indices);
    }
    return load(this.#options.bufferOf(value), indices);
  }

  #functionsOf(node: Node): readonly ElementFunction[] {
    let functions = this.#functions.get(node);
    if (!functions) {
      const { lower } = node.op;
      invariant(lower, `${node.op.type} has no element functions`);
      functions = node.op.lower?.(named(node.op, node.inputs.map((v) => v && this.operand(v))), attributesOf(node), lowerContext(node)) ?? [];
      this.#functions.set(node, functions);
    }
    return functions;
  }

  /** What a node reads an input through. With `stored`, as an anchor does: only single elements are written out. */
  operand(value: Value, stored = false): AnchorOperand {
    const size = value.constant ? sizeOf(value.constant.dims) : 1;
    return {
      ...value.type,
      at: (...indices) => (stored && value.constant && size > 1 ? load(this.#options.bufferOf(value), indices.map((i) => this.table.make(i))) : this.at(value, indices)),
      buffer: () => {
        invariant(!value.producer || !this.#options.inline.has(value.producer.node), `${value.name} is wanted whole by a node of its own region`);
        return this.#options.bufferOf(value);
      },
    };
  }

  #known(value: Value, indices: readonly Expr[]): Expr | undefined {
    const { dtype, elements, shape } = value.type;
    if (isHeld(value.type)) return undefined;
    if (value.constant) {
      const uniform = uniformElement(value.constant);
      if (uniform !== undefined) return constant(uniform, scalarType(computeScalar(dtype)));
    }
    if (!elements || elements.length === 0) return undefined;
    const layout = rowMajor(shape, dimMul);
    const address = linearAddress(this.table, indices, layout.strides, 0);
    if (address.terms.length === 0 && typeof address.constant === "number") {
      const element = elements[address.constant];
      invariant(element !== undefined, `element ${address.constant} of ${value.name} is out of bounds`);
      return sizeExpr(element, dtype);
    }
    if (elements.length > chosenElements) return undefined;
    const at = this.table.fromLinear(address);
    const all = elements.map((e) => sizeExpr(e, dtype));
    return all.reduceRight((rest, e, i) => (i === all.length - 1 ? e : select(eq(at, lift(i, i32)), e, rest)));
  }
}

/** A size as an element of an integer or bool tensor. */
function sizeExpr(d: Dim, dtype: DType): Expr {
  const scalar = computeScalar(dtype);
  if (typeof d !== "number") return cast(dimExpr(d), scalar);
  return constant(scalar === "i64" || scalar === "u64" ? BigInt(d) : d, scalarType(scalar));
}

/** The value that all elements have bit for bit, when there is one and the tensor is not large. */
export function uniformElement(t: Tensor): number | bigint | undefined {
  const size = sizeOf(t.dims);
  if (size === 0 || t.dtype === "string" || size > uniformSize) return undefined;
  const data = numericData(t);
  const first = data[0];
  for (let i = 1; i < size; i++) if (!Object.is(data[i], first)) return undefined;
  return typeof first === "bigint" ? first : toNumbers({ ...t, dims: [1], data: data.subarray(0, 1) })[0];
}
