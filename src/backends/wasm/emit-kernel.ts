/**
 * One phase of a kernel as one WebAssembly function. Its parameters are the byte addresses of its buffers' first elements,
 * the sizes it reads, and the range of its split where it is one. Loops test at the end; locals are reused once the loop or branch that declared them is over.
 */
import { invariant, present } from "../../core/assert.ts";
import type { SymbolicDim } from "../../core/dim.ts";
import { binary, dimExpr, i32, local, type Axis, type Buffer, type Expr, type Type } from "../../kernel/expr.ts";
import type { Phase, PhaseSplit } from "../../kernel/kernel.ts";
import type { Split, Stmt } from "../../kernel/stmt.ts";
import { FunctionBuilder, type ValueType, type WasmFunction } from "./assembler.ts";
import { ExprEmitter } from "./emit-expr.ts";
import { laneShape, lowBytes, scalarStore, valueType, widthOf } from "./lane-types.ts";
import type { Opcode } from "./opcodes.ts";

/** A phase's function and what to call it with: addresses of `pointers`, then `dims`, then the range of a split. */
export interface PhaseFunction {
  readonly function: WasmFunction;
  readonly phase: Phase;
  readonly pointers: readonly Buffer[];
  readonly dims: readonly SymbolicDim[];
}

/** `phase` must be of a legal kernel: every access a loadAt or storeAt, `address` only of first elements. */
export function emitPhase(phase: Phase, name: string, set: ReadonlyMap<string, Opcode>): PhaseFunction {
  const pointers = [...phase.touched];
  const { dims } = phase;
  const range = phase.split ? [phase.split.from, phase.split.to] : [];
  const params = [...pointers, ...dims, ...range].map((): ValueType => "i32");
  const f = new FunctionBuilder(name, { params, results: [] }, set);
  new KernelEmitter(f, name, { pointers, dims, range }).statement(phase.split ? unlessEmpty(phase.split, phase.body) : phase.body);
  return { function: f, phase, pointers, dims };
}

/** An empty range does nothing at all, whatever the addresses and sizes are. */
const unlessEmpty = ({ from, to }: PhaseSplit, body: Stmt): Stmt => ({ kind: "if", condition: binary("lt", local(from, i32), local(to, i32)), then: body });

interface PhaseParameters { readonly pointers: readonly Buffer[]; readonly dims: readonly SymbolicDim[]; readonly range: readonly string[] }

class KernelEmitter {
  private readonly f: FunctionBuilder;
  private readonly where: string;
  private readonly values: ExprEmitter;
  private readonly axes = new Map<Axis, number>();
  private readonly locals = new Map<string, { index: number; type: Type }>();
  /** What each open loop or branch declared. */
  private readonly scopes: { type: ValueType; index: number; name: string | undefined }[][] = [[]];

  constructor(f: FunctionBuilder, name: string, { pointers, dims, range }: PhaseParameters) {
    this.f = f;
    this.where = name;
    range.forEach((local, i) => this.locals.set(local, { index: pointers.length + dims.length + i, type: i32 }));
    const pointerIndex = new Map(pointers.map((b, i) => [b, i]));
    const dimIndex = new Map(dims.map((d, i) => [d.key, pointers.length + i]));
    this.values = new ExprEmitter(f, {
      axis: (axis) => present(this.axes.get(axis), `${name}: axis ${axis.name}`),
      local: (l) => present(this.locals.get(l), `${name}: local ${l}`).index,
      dim: (key) => present(dimIndex.get(key), `${name}: size ${key}`),
      pointer: (buffer) => present(pointerIndex.get(buffer), `${name}: pointer of ${buffer.name}`),
    });
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
      case "split": this.wholeSplit(s); return;
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
    this.leave();
  }
  private leave(): void {
    for (const { type, index, name } of present(this.scopes.pop(), "scope")) {
      this.values.release(type, index);
      if (name !== undefined) this.locals.delete(name);
    }
  }

  /** A split within a phase of another kind: all of it at once. */
  private wholeSplit(s: Split): void {
    const { f } = this;
    this.scopes.push([]);
    const [from, to] = [s.from, s.to].map((name) => {
      const index = this.declare("i32", name);
      this.locals.set(name, { index, type: i32 });
      return index;
    });
    f.constant("i32", 0);
    f.setLocal(present(from, s.from));
    this.values.emit(binary("mul", dimExpr(s.outer), dimExpr(s.inner)));
    f.setLocal(present(to, s.to));
    this.statement(s.body);
    this.leave();
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
    this.leave();
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
