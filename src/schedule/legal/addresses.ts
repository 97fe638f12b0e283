/**
 * Logical accesses to byte addresses: load and store become loadAt and storeAt at base + Σ stride·index, with constant
 * parts in the instruction's offset where the rest of the address cannot be negative. float16 and bfloat16 become integer
 * accesses with their conversion. Locals that only name index arithmetic are replaced by it, so that later passes see
 * whole addresses and place their parts anew.
 */
import { invariant, present } from "../../core/assert.ts";
import { dimMul, dimSub, isSymbolic, type Dim } from "../../core/dim.ts";
import { byteSize, type DType } from "../../core/dtype.ts";
import { constant, i32, local, type Buffer, type Expr, type Scalar, type Type } from "../../kernel/expr.ts";
import { decodeStored, encodeStored, storedAs } from "../../kernel/storage-types.ts";
import type { Layout } from "../../kernel/kernel.ts";
import { linearAdd, linearAtom, linearConstant, linearScale, nonNegative, nonNegativeIfNotEmpty, type Linear } from "../../kernel/linear.ts";
import type { ExprTable } from "../../kernel/share.ts";
import { block, letLocal, type Stmt } from "../../kernel/stmt.ts";
import { mapExpr, operandsOf } from "../../kernel/traverse.ts";
import { assignedLocals } from "../../kernel/unchanging.ts";

type Typed<K extends Expr["kind"]> = Extract<Expr, { kind: K }>;

export interface Addressed {
  readonly body: Stmt;
  /** Loads that are within their buffer wherever their loop variables are within their extents. */
  readonly safe: ReadonlySet<Expr>;
}

/** Rewrites every access of `body`. Expressions of the result are shared through `table`. */
export function addressAccesses(body: Stmt, table: ExprTable, layoutOf: (b: Buffer) => Layout): Addressed {
  const rewriter = new AddressRewriter(table, layoutOf, body);
  return { body: rewriter.statement(body), safe: rewriter.safe };
}

class AddressRewriter {
  readonly safe = new Set<Expr>();
  private readonly table: ExprTable;
  private readonly layoutOf: (b: Buffer) => Layout;
  private readonly assigned: ReadonlySet<string>;
  private readonly aliases = new Map<string, Expr>();
  private readonly memo = new Map<Expr, Expr>();
  private readonly index = new Map<Expr, boolean>();
  private stored = 0;

  constructor(table: ExprTable, layoutOf: (b: Buffer) => Layout, body: Stmt) {
    this.table = table;
    this.layoutOf = layoutOf;
    this.assigned = assignedLocals(body);
  }

  statement(s: Stmt): Stmt {
    switch (s.kind) {
      case "block": return block(...s.body.map((b) => this.statement(b)));
      case "for": return { ...s, begin: this.make(s.begin), end: this.make(s.end), body: this.statement(s.body) };
      case "split": return { ...s, body: this.statement(s.body) };
      case "if": return { ...s, condition: this.make(s.condition), then: this.statement(s.then), ...(s.else ? { else: this.statement(s.else) } : {}) };
      case "let": {
        const value = this.make(s.value);
        if (this.assigned.has(s.name) || !this.isIndex(value)) return { ...s, value };
        this.aliases.set(s.name, value);
        return block();
      }
      case "assign": case "accumulate": return { ...s, value: this.make(s.value) };
      case "store": return this.store(s);
      case "storeAt": return this.storeAt(this.table.linear(this.make(s.pointer)), s.offset, s.dtype, this.make(s.value));
    }
  }

  /** The shared form of an expression, with addresses in place of indices. */
  private make(e: Expr): Expr {
    return this.table.make(mapExpr(e, (x) => this.rewrite(x), this.memo));
  }
  private rewrite(e: Expr): Expr {
    switch (e.kind) {
      case "local": return this.aliases.get(e.name) ?? e;
      case "load": return this.load(e);
      case "loadAt": return this.loadAt(this.table.linear(this.table.make(e.pointer)), e.offset, e.dtype, e.type, e.splat);
      case "address": return this.table.fromLinear(this.address(e.buffer, e.indices));
      case "splat": return e.a.kind === "const" ? constant(e.a.value, e.type) : e;
      default: return e;
    }
  }

  private load(e: Typed<"load">): Expr {
    const sum = this.address(e.buffer, e.indices);
    const { dtype } = e.buffer;
    if (e.type.lanes === 1) {
      const at = this.loadAt(sum, 0, dtype, e.type, false);
      if (this.within(e)) this.safe.add(this.table.make(at));
      return at;
    }
    const stride = this.laneStride(e.buffer, e.along);
    if (stride === 1) return this.loadAt(sum, 0, dtype, e.type, false);
    const scalar: Type = { scalar: e.type.scalar, lanes: 1 };
    if (stride === 0) {
      const one = this.loadAt(sum, 0, dtype, scalar, false);
      return { kind: "splat", a: one, type: e.type };
    }
    const elements = lanesOf(e.type).map((lane) => this.loadAt(linearAdd(sum, linearConstant(dimMul(dimMul(stride, byteSize(dtype)), lane))), 0, dtype, scalar, false));
    return { kind: "lanes", elements, type: e.type };
  }
  private laneStride(buffer: Buffer, along: number | undefined): Dim {
    return present(this.layoutOf(buffer).strides[present(along, `axis that lanes of ${buffer.name} run along`)], `stride of ${buffer.name}`);
  }

  private loadAt(sum: Linear, offset: number, dtype: DType, type: Type, splat: boolean): Expr {
    const stored = storedAs(dtype);
    if (stored) return decodeStored(this.loadAt(sum, offset, stored, { scalar: "i32", lanes: type.lanes }, splat), dtype);
    const { pointer, constant: more } = this.split(sum, offset);
    return { kind: "loadAt", pointer, offset: more, dtype, splat, type };
  }

  private store(s: Extract<Stmt, { kind: "store" }>): Stmt {
    const sum = this.address(s.buffer, s.indices.map((e) => this.make(e)));
    const value = this.make(s.value), { dtype } = s.buffer;
    if (value.type.lanes === 1) return this.storeAt(sum, 0, dtype, value);
    const stride = this.laneStride(s.buffer, s.along);
    if (stride === 1) return this.storeAt(sum, 0, dtype, value);
    const vector = local(`lanes_${this.stored++}`, value.type);
    const scalar: Type = { scalar: value.type.scalar, lanes: 1 };
    return block(letLocal(vector.kind === "local" ? vector.name : "", value), ...lanesOf(value.type).map((lane) =>
      this.storeAt(linearAdd(sum, linearConstant(dimMul(dimMul(stride, byteSize(dtype)), lane))), 0, dtype, this.table.make({ kind: "extract", a: vector, lane, type: scalar }))));
  }
  private storeAt(sum: Linear, offset: number, dtype: DType, value: Expr): Stmt {
    const stored = storedAs(dtype);
    if (stored) return this.storeAt(sum, offset, stored, this.table.make(encodeStored(value, dtype)));
    const { pointer, constant: more } = this.split(sum, offset);
    return { kind: "storeAt", pointer, offset: more, dtype, value };
  }

  /** Byte address of an element. */
  private address(buffer: Buffer, indices: readonly Expr[]): Linear {
    const { strides } = this.layoutOf(buffer);
    const size = byteSize(buffer.dtype);
    invariant(indices.length === strides.length, `${buffer.name} has ${strides.length} strides, got ${indices.length} indices`);
    const base = this.table.make({ kind: "address", buffer, indices: indices.map(() => constant(0, i32)), type: i32 });
    return indices.reduce<Linear>((sum, e, d) => linearAdd(sum, linearScale(this.table.linear(this.table.make(e)), dimMul(strides[d] ?? 0, size))), linearAtom(base));
  }

  /** Moves a constant from the pointer into the offset: WebAssembly adds offsets without wrapping, so the rest must not be negative. */
  private split(sum: Linear, offset: number): { pointer: Expr; constant: number } {
    const fixed = constantPart(sum.constant);
    if (fixed > 0 && this.notNegative({ ...sum, constant: dimSub(sum.constant, fixed) })) return { pointer: this.table.fromLinear({ ...sum, constant: dimSub(sum.constant, fixed) }), constant: offset + fixed };
    return { pointer: this.table.fromLinear(sum), constant: offset };
  }
  private notNegative(sum: Linear): boolean {
    const base = sum.terms.find((t) => t.coefficient === 1 && t.atom.kind === "address") ?? sum.terms.find((t) => t.coefficient === 1 && isPointer(t.atom));
    const { lower } = this.table.bounds({ ...sum, terms: sum.terms.filter((t) => t !== base) });
    return lower !== undefined && nonNegative(lower);
  }

  private within(e: Typed<"load">): boolean {
    return e.indices.every((x, d) => {
      const { lower, upper } = this.table.bounds(this.table.linear(this.table.make(x)));
      const size = e.buffer.shape[d];
      return lower !== undefined && upper !== undefined && size !== undefined && nonNegativeIfNotEmpty(lower) && nonNegativeIfNotEmpty(dimSub(dimSub(size, 1), upper));
    });
  }

  /** Integer arithmetic on loop variables, sizes and addresses, on which computing again has no effect. */
  private isIndex(e: Expr): boolean {
    let is = this.index.get(e);
    if (is === undefined) {
      const scalars: readonly Scalar[] = ["i32", "bool"];
      is = e.type.lanes === 1 && scalars.includes(e.type.scalar) && e.kind !== "loadAt" && e.kind !== "extract" && (e.kind !== "local") && operandsOf(e).every((c) => this.isIndex(c));
      this.index.set(e, is);
    }
    return is;
  }
}

/** An address, moved or chosen, with nothing subtracted. */
function isPointer(e: Expr): boolean {
  switch (e.kind) {
    case "address": case "local": return e.type.scalar === "i32";
    case "select": return isPointer(e.a) && isPointer(e.b);
    case "binary": return e.op === "add" && (isPointer(e.a) || isPointer(e.b));
    default: return false;
  }
}
const lanesOf = (t: Type): number[] => Array.from({ length: t.lanes }, (_, lane) => lane);
const constantPart = (d: Dim): number => (isSymbolic(d) ? d.terms.find((t) => t.atoms.length === 0)?.coefficient ?? 0 : d);
