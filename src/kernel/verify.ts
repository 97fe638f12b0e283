/**
 * Checks a naive kernel: types agree, locals and loop variables are bound where they are used and unique, only outputs
 * and scratch are written, every output is, nothing is read before it is written, and every access is within its buffer
 * as far as bounds can tell. Violations are bugs of lowering, so they throw.
 */
import { invariant } from "../core/assert.ts";
import { dimSub, isSymbolic } from "../core/dim.ts";
import { computeScalar, formatType, type Axis, type Buffer, type Expr, type Type } from "./expr.ts";
import type { Kernel } from "./kernel.ts";
import { nonNegative, nonNegativeIfNotEmpty, type Bounds } from "./linear.ts";
import { printExpr } from "./print.ts";
import { ExprTable } from "./share.ts";
import type { Stmt } from "./stmt.ts";
import { operandsOf } from "./traverse.ts";

/** Throws an InvariantError that names the kernel and the expression at fault. */
export function verifyKernel(kernel: Kernel): void {
  new Verifier(kernel).run();
}

interface Scope { readonly axes: ReadonlySet<Axis>; readonly locals: Map<string, Type>; readonly parent: Scope | undefined }

class Verifier {
  readonly #kernel: Kernel;
  readonly #table = new ExprTable();
  readonly #names = new Set<string>();
  readonly #written = new Set<Buffer>();

  constructor(kernel: Kernel) { this.#kernel = kernel; }

  run(): void {
    this.#statement(this.#kernel.body, { axes: new Set(), locals: new Map(), parent: undefined });
    for (const b of this.#kernel.outputs) this.#check(this.#written.has(b), `output ${b.name} is not written`);
  }
  #check(condition: boolean, message: string): void { invariant(condition, `kernel ${this.#kernel.name}: ${message}`); }

  #statement(s: Stmt, scope: Scope): void {
    switch (s.kind) {
      case "block": for (const child of s.body) this.#statement(child, scope); return;
      case "for": {
        for (const e of [s.begin, s.end]) { this.#expression(e, scope); this.#check(e.type.scalar === "i32" && e.type.lanes === 1, `a bound of ${s.axis.name} is ${formatType(e.type)}`); }
        this.#check(s.step > 0, `the step of ${s.axis.name} is ${s.step}`);
        this.#check(!isBound(scope, s.axis), `${s.axis.name} is bound twice`);
        this.#statement(s.body, { axes: new Set([s.axis]), locals: new Map(), parent: scope });
        return;
      }
      case "let":
        this.#expression(s.value, scope);
        this.#check(!this.#names.has(s.name), `${s.name} is declared twice`);
        this.#names.add(s.name);
        scope.locals.set(s.name, s.value.type);
        return;
      case "assign": case "accumulate": {
        this.#expression(s.value, scope);
        const type = localType(scope, s.name);
        this.#check(type !== undefined && sameType(type, s.value.type), `${s.name} is ${type ? formatType(type) : "not declared"}, given ${formatType(s.value.type)}`);
        return;
      }
      case "store": {
        for (const e of [...s.indices, s.value]) this.#expression(e, scope);
        const writable = this.#kernel.outputs.includes(s.buffer) || this.#kernel.scratch.includes(s.buffer);
        this.#check(writable, `${s.buffer.name} is written`);
        this.#check(s.value.type.scalar === computeScalar(s.buffer.dtype), `${s.buffer.name} holds ${s.buffer.dtype}, stored ${formatType(s.value.type)}`);
        this.#inside(s.buffer, s.indices);
        this.#written.add(s.buffer);
        return;
      }
      case "storeAt": this.#check(false, "a naive kernel stores at an address"); return;
      case "split": this.#check(false, "a naive kernel is split"); return;
      case "if":
        this.#expression(s.condition, scope);
        this.#check(s.condition.type.scalar === "bool", "a condition is not bool");
        for (const branch of [s.then, ...(s.else ? [s.else] : [])]) this.#statement(branch, { axes: new Set(), locals: new Map(), parent: scope });
        return;
    }
  }

  #expression(e: Expr, scope: Scope, guarded = false): void {
    this.#check(e.kind !== "reduce", "a reduction was left in the loops");
    if (e.kind === "axis") this.#check(isBound(scope, e.axis), `${e.axis.name} is not bound`);
    if (e.kind === "local") {
      const type = localType(scope, e.name);
      this.#check(type !== undefined && sameType(type, e.type), `${e.name} is ${type ? formatType(type) : "not declared"}, read as ${formatType(e.type)}`);
    }
    if (e.kind === "binary" || e.kind === "select") this.#check(sameType(e.a.type, e.b.type), `operands differ in type: ${printExpr(e)}`);
    if (e.kind === "load") {
      const known = [...this.#kernel.inputs, ...this.#kernel.outputs, ...this.#kernel.scratch].includes(e.buffer);
      this.#check(known, `${e.buffer.name} is read and not listed`);
      this.#check(this.#kernel.inputs.includes(e.buffer) || this.#written.has(e.buffer), `${e.buffer.name} is read before it is written`);
      if (!guarded) this.#inside(e.buffer, e.indices);
    }
    for (const c of operandsOf(e)) this.#expression(c, scope, guarded || (e.kind === "select" && c !== e.condition));
  }

  /** An index that is out of bounds for every value of the loop variables is wrong; one that may be cannot be decided here. */
  #inside(buffer: Buffer, indices: readonly Expr[]): void {
    this.#check(indices.length === buffer.shape.length, `${buffer.name} has rank ${buffer.shape.length}, got ${indices.length} indices`);
    indices.forEach((e, d) => {
      this.#check(e.type.scalar === "i32", `an index of ${buffer.name} is ${formatType(e.type)}`);
      const { lower, upper }: Bounds = this.#table.bounds(this.#table.linear(this.#table.make(e)));
      const size = buffer.shape[d] ?? 1;
      if (lower !== undefined && upper !== undefined && !nonNegativeIfNotEmpty(dimSub(upper, lower))) return;
      if (size === 0) return;
      const below = upper !== undefined && nonNegative(dimSub(-1, upper)), above = lower !== undefined && nonNegative(dimSub(lower, size));
      this.#check(!below && !(above && !isSymbolic(size)), `${printExpr(e)} is outside dimension ${d} of ${buffer.name}`);
    });
  }
}

const sameType = (a: Type, b: Type): boolean => a.scalar === b.scalar && a.lanes === b.lanes;
function isBound(scope: Scope, axis: Axis): boolean {
  for (let s: Scope | undefined = scope; s; s = s.parent) if (s.axes.has(axis)) return true;
  return false;
}
function localType(scope: Scope, name: string): Type | undefined {
  for (let s: Scope | undefined = scope; s; s = s.parent) {
    const type = s.locals.get(name);
    if (type) return type;
  }
  return undefined;
}
