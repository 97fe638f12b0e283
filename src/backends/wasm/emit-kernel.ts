/**
 * One kernel as one WebAssembly function. Its parameters are the byte addresses of its buffers' first elements, then the
 * sizes it reads. Loops test at the end; locals are reused once the loop or branch that declared them is over.
 */
import { invariant, present } from "../../core/assert.ts";
import type { SymbolicDim } from "../../core/dim.ts";
import { dimsOfBody } from "../../kernel/dims.ts";
import { binary, type Axis, type Buffer, type Expr, type Type } from "../../kernel/expr.ts";
import type { Kernel } from "../../kernel/kernel.ts";
import type { Stmt } from "../../kernel/stmt.ts";
import { expressionsOf, visitExpr, visitStmt } from "../../kernel/traverse.ts";
import { FunctionBuilder, type ValueType, type WasmFunction } from "./assembler.ts";
import type { EmitOptions } from "./emit-context.ts";
import { ExprEmitter } from "./emit-expr.ts";
import { laneShape, lowBytes, scalarStore, valueType, widthOf } from "./lane-types.ts";
import type { Opcode } from "./opcodes.ts";

/** A kernel's function and what to call it with: addresses of `pointers`, then `dims`. */
export interface KernelFunction {
  readonly function: WasmFunction;
  readonly pointers: readonly Buffer[];
  readonly dims: readonly SymbolicDim[];
}

/** `kernel` must be legal: every access a loadAt or storeAt, `address` only of first elements. */
export function emitKernel(kernel: Kernel, set: ReadonlyMap<string, Opcode>, options: EmitOptions): KernelFunction {
  const pointers = pointersOf(kernel.body);
  const dims = [...dimsOfBody(kernel.body).values()];
  const params = [...pointers, ...dims].map((): ValueType => "i32");
  const f = new FunctionBuilder(kernel.name, { params, results: [] }, set);
  const body = new KernelEmitter(f, kernel, pointers, dims, options);
  body.statement(kernel.body);
  return { function: f, pointers, dims };
}

class KernelEmitter {
  private readonly f: FunctionBuilder;
  private readonly where: string;
  private readonly values: ExprEmitter;
  private readonly axes = new Map<Axis, number>();
  private readonly locals = new Map<string, { index: number; type: Type }>();
  /** What each open loop or branch declared. */
  private readonly scopes: { type: ValueType; index: number; name: string | undefined }[][] = [[]];

  constructor(f: FunctionBuilder, kernel: Kernel, pointers: readonly Buffer[], dims: readonly SymbolicDim[], options: EmitOptions) {
    this.f = f;
    this.where = kernel.name;
    const pointerIndex = new Map(pointers.map((b, i) => [b, i]));
    const dimIndex = new Map(dims.map((d, i) => [d.key, pointers.length + i]));
    this.values = new ExprEmitter(f, {
      axis: (axis) => present(this.axes.get(axis), `${kernel.name}: axis ${axis.name}`),
      local: (name) => present(this.locals.get(name), `${kernel.name}: local ${name}`).index,
      dim: (key) => present(dimIndex.get(key), `${kernel.name}: size ${key}`),
      pointer: (buffer) => present(pointerIndex.get(buffer), `${kernel.name}: pointer of ${buffer.name}`),
    }, options);
  }

  statement(s: Stmt): void {
    const { f } = this;
    switch (s.kind) {
      case "block": s.body.forEach((b) => this.statement(b)); return;
      case "let": {
        const index = this.declare(valueType(s.value.type), s.name);
        this.values.emit(s.value);
        f.setLocal(index);
        this.locals.set(s.name, { index, type: s.value.type });
        return;
      }
      case "assign": {
        this.values.emit(s.value);
        f.setLocal(this.known(s.name).index);
        return;
      }
      case "accumulate": {
        const { index, type } = this.known(s.name);
        this.values.emit(binary(s.op, { kind: "local", name: s.name, type }, s.value));
        f.setLocal(index);
        return;
      }
      case "storeAt": this.store(s); return;
      case "if":
        this.values.emit(s.condition);
        f.begin("if");
        this.scoped(s.then);
        if (s.else) { f.else(); this.scoped(s.else); }
        f.end();
        return;
      case "for": this.loop(s); return;
      case "store": invariant(false, `${this.where}: logical store in a legal kernel`);
    }
  }

  private known(name: string): { index: number; type: Type } {
    return present(this.locals.get(name), `${this.where}: local ${name}`);
  }
  private declare(type: ValueType, name?: string): number {
    const index = this.values.acquire(type);
    present(this.scopes.at(-1), "scope").push({ type, index, name });
    return index;
  }
  private scoped(body: Stmt): void {
    this.scopes.push([]);
    this.statement(body);
    for (const { type, index, name } of present(this.scopes.pop(), "scope")) {
      this.values.release(type, index);
      if (name !== undefined) this.locals.delete(name);
    }
  }

  private loop(s: Extract<Stmt, { kind: "for" }>): void {
    const { f } = this;
    this.scopes.push([]);
    const axis = this.declare("i32");
    const end = this.steady(s.end);
    this.values.emit(s.begin);
    f.setLocal(axis);
    const certain = s.begin.kind === "const" && s.end.kind === "const" && Number(s.begin.value) < Number(s.end.value);
    if (!certain) {
      f.get(axis);
      end();
      f.op("i32.lt_s");
      f.begin("if");
    }
    f.begin("loop");
    this.axes.set(s.axis, axis);
    this.scoped(s.body);
    f.get(axis);
    f.constant("i32", s.step);
    f.op("i32.add");
    f.tee(axis);
    end();
    f.op("i32.lt_s");
    f.branch("br_if", 0);
    f.end();
    if (!certain) f.end();
    for (const { type, index } of present(this.scopes.pop(), "scope")) this.values.release(type, index);
    this.axes.delete(s.axis);
  }
  /** Evaluates once, now; the result pushes the value as often as it is called. */
  private steady(e: Expr): () => void {
    if (e.kind === "const" || e.kind === "dim") return () => this.values.emit(e);
    const index = this.declare("i32");
    this.values.emit(e);
    this.f.setLocal(index);
    return () => this.f.get(index);
  }

  private store(s: Extract<Stmt, { kind: "storeAt" }>): void {
    const { f } = this;
    const { type } = s.value;
    this.values.emit(s.pointer);
    this.values.emit(s.value);
    if (type.lanes === 1) {
      f.memory(scalarStore(s.dtype), s.offset);
      return;
    }
    const width = type.scalar === "bool" ? 128 / type.lanes : widthOf(type.scalar);
    const target = storedWidth(s.dtype);
    if (type.scalar === "bool") {
      f.vector(Array.from({ length: 16 }, (_, i) => ((i * 8) % width === 0 ? 1 : 0)));
      f.op("v128.and");
    }
    if (target === width) {
      f.memory("v128.store", s.offset);
      return;
    }
    invariant(target < width && laneShape(type) !== "f32x4", `${this.where}: ${type.scalar} lanes stored as ${s.dtype}`);
    const narrow = this.values.acquire("v128");
    f.tee(narrow);
    f.get(narrow);
    f.shuffle(lowBytes(type.lanes, target / 8));
    f.memory(`v128.store${target * type.lanes}_lane`, s.offset, 0);
    this.values.release("v128", narrow);
  }
}
const storedWidth = (dtype: Parameters<typeof scalarStore>[0]): number => {
  const name = scalarStore(dtype);
  return name.endsWith("8") ? 8 : name.endsWith("16") ? 16 : name.startsWith("i64") || name.startsWith("f64") ? 64 : 32;
};

/** Buffers whose address the body takes, in order of appearance. */
function pointersOf(body: Stmt): Buffer[] {
  const found = new Set<Buffer>(), seen = new Set<Expr>();
  visitStmt(body, (s) => expressionsOf(s).forEach((root) => visitExpr(root, (e) => { if (e.kind === "address") found.add(e.buffer); }, seen)));
  return [...found];
}
