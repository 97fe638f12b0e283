/**
 * Expressions of legal kernels as WebAssembly instructions that leave the value on the stack. Each occurrence is computed
 * where it stands: sharing and hoisting are legalisation's. Never traps but for accesses outside memory.
 */
import { assertNever, invariant, present } from "../../core/assert.ts";
import { isSymbolic } from "../../core/dim.ts";
import { formatType, type Expr, type Type } from "../../kernel/expr.ts";
import { isCheap, isEager } from "./expr-cost.ts";
import type { Names } from "./emit-context.ts";
import { laneLoad, putLane, scalarName, scalarOfLane, vectorName } from "./instruction-names.ts";
import type { FunctionBuilder, ValueType } from "./assembler.ts";
import { isFloating, isUnsigned, laneShape, scalarLoad, splatLoad, valueType, vectorLoad, widthOf } from "./lane-types.ts";

type Typed<K extends Expr["kind"]> = Extract<Expr, { kind: K }>;

export class ExprEmitter {
  private readonly f: FunctionBuilder;
  private readonly names: Names;
  private readonly free = new Map<ValueType, number[]>();

  constructor(f: FunctionBuilder, names: Names) {
    this.f = f;
    this.names = names;
  }

  /** A local that nothing uses, until it is released. */
  acquire(type: ValueType): number {
    return this.free.get(type)?.pop() ?? this.f.local(type);
  }
  release(type: ValueType, index: number): void {
    const list = this.free.get(type);
    if (list) list.push(index);
    else this.free.set(type, [index]);
  }

  emit(e: Expr): void {
    const { f } = this;
    switch (e.kind) {
      case "const": this.constant(e.type, e.value); return;
      case "axis": f.get(this.names.axis(e.axis)); return;
      case "dim": if (isSymbolic(e.dim)) f.get(this.names.dim(e.dim.key)); else f.constant("i32", e.dim); return;
      case "local": f.get(this.names.local(e.name)); return;
      case "address":
        invariant(e.indices.every((i) => i.kind === "const" && Number(i.value) === 0), `address within ${e.buffer.name} is not legal`);
        f.get(this.names.pointer(e.buffer));
        return;
      case "loadAt": this.load(e); return;
      case "unary": this.unary(e); return;
      case "binary": this.binary(e); return;
      case "select": this.select(e); return;
      case "cast": this.cast(e); return;
      case "bitcast": this.bitcast(e); return;
      case "madd": this.madd(e); return;
      case "splat": this.splat(e.a, e.type); return;
      case "lanes": this.lanes(e); return;
      case "extract": this.extract(e); return;
      case "shuffle": this.emit(e.a); this.emit(e.b); f.shuffle(e.bytes); return;
      case "swizzle": this.emit(e.a); this.emit(e.b); f.op("i8x16.swizzle"); return;
      case "dot": this.emit(e.a); this.emit(e.b); f.op("i32x4.dot_i16x8_s"); return;
      case "byteDot": this.emit(e.a); this.emit(e.b); this.emit(e.c); f.byteDot(); return;
      case "relaxed": f.relaxed(); return;
      case "extend": this.emit(e.a); f.op(`${laneShape(e.type)}.extend_${e.half}_${laneShape(e.a.type)}_${isUnsigned(e.a.type.scalar) ? "u" : "s"}`); return;
      case "load": case "reduce": invariant(false, `${e.kind} in a legal kernel`); return;
      default: assertNever(e);
    }
  }

  private constant(type: Type, value: number | bigint): void {
    if (type.lanes === 1) {
      const t = valueType(type);
      if (t !== "v128") this.f.constant(t, t === "i64" ? BigInt(value) : value);
      return;
    }
    this.vector(type, new Array<number | bigint>(type.lanes).fill(value));
  }
  private vector(type: Type, values: readonly (number | bigint)[]): void {
    const view = new DataView(new ArrayBuffer(16)), width = 16 / type.lanes;
    values.forEach((value, lane) => putLane(view, lane * width, laneShape(type), type.scalar === "bool" ? -Number(value) : value));
    this.f.vector([...new Uint8Array(view.buffer)]);
  }

  private load(e: Typed<"loadAt">): void {
    const { f } = this;
    if (e.type.lanes === 1) {
      this.emit(e.pointer);
      f.memory(scalarLoad(e.dtype), e.offset);
      if (e.dtype === "bool") { f.constant("i32", 0); f.op("i32.ne"); }
      return;
    }
    if (e.splat) {
      const direct = splatLoad(e.dtype, e.type);
      this.emit(e.pointer);
      if (direct) { f.memory(direct, e.offset); return; }
      f.memory(scalarLoad(e.dtype), e.offset);
      if (e.dtype === "bool") { f.constant("i32", 0); f.op("i32.ne"); f.constant("i32", -1); f.op("i32.mul"); }
      f.op(`${laneShape(e.type)}.splat`);
      return;
    }
    const [access, ...widen] = vectorLoad(e.dtype, e.type);
    this.emit(e.pointer);
    f.memory(present(access, "load instruction"), e.offset);
    widen.forEach((name) => f.op(name));
    if (e.dtype === "bool") { this.constant({ scalar: "i32", lanes: e.type.lanes }, 0); f.op(`${laneShape(e.type)}.ne`); }
  }

  private unary(e: Typed<"unary">): void {
    const { f } = this;
    const t = e.a.type, vector = t.lanes > 1;
    const shape = vector ? laneShape(t) : valueType(t);
    const { op } = e;
    switch (op) {
      case "not":
        if (vector) { this.emit(e.a); f.op("v128.not"); return; }
        this.emit(e.a);
        if (t.scalar === "bool") { f.op("i32.eqz"); return; }
        this.constant(t, -1);
        f.op(`${shape}.xor`);
        return;
      case "neg":
        if (isFloating(t.scalar) || vector) { this.emit(e.a); f.op(`${shape}.neg`); return; }
        this.constant(t, 0);
        this.emit(e.a);
        f.op(`${shape}.sub`);
        return;
      case "abs":
        if (isFloating(t.scalar) || vector) { this.emit(e.a); f.op(`${shape}.abs`); return; }
        this.twice(e.a, (again) => {
          const bits = shape === "i64" ? 63 : 31;
          const sign = (): void => { again(); this.constant(t, bits); f.op(`${shape}.shr_s`); };
          sign();
          f.op(`${shape}.xor`);
          sign();
          f.op(`${shape}.sub`);
        });
        return;
      case "isnan": this.twice(e.a, (again) => { again(); f.op(`${shape}.ne`); }); return;
      case "isinf": this.emit(e.a); f.op(`${shape}.abs`); this.constant(t, Infinity); f.op(`${shape}.eq`); return;
      case "sqrt": case "floor": case "ceil": case "trunc": case "nearest": this.emit(e.a); f.op(`${shape}.${op}`); return;
      default: invariant(false, `${op} was not legalised`);
    }
  }

  /** Emits `e`, then what `body` does; its argument pushes the same value again. */
  private twice(e: Expr, body: (again: () => void) => void): void {
    this.emit(e);
    if (isCheap(e)) { body(() => this.emit(e)); return; }
    const type = valueType(e.type), temporary = this.acquire(type);
    this.f.tee(temporary);
    body(() => this.f.get(temporary));
    this.release(type, temporary);
  }

  private binary(e: Typed<"binary">): void {
    const { f } = this;
    const t = e.a.type;
    if (t.lanes > 1) { this.vectorBinary(e); return; }
    const shape = valueType(t), { op } = e;
    if (!isFloating(t.scalar)) {
      if (op === "div" || op === "rem") { this.integerDivision(e, op); return; }
      if (op === "min" || op === "max" || op === "pmin" || op === "pmax") { this.pick(e, op === "min" || op === "pmin" ? "lt" : "gt"); return; }
    } else if (op === "pmin" || op === "pmax") { this.pick(e, op === "pmin" ? "lt" : "gt"); return; }
    this.emit(e.a);
    this.emit(e.b);
    f.op(`${shape}.${scalarName(op, t)}`);
  }
  /** b if `b op a`, else a; for integers, or for floats as pmin and pmax. */
  private pick(e: Typed<"binary">, op: "lt" | "gt"): void {
    const { f } = this;
    const t = e.a.type, shape = valueType(t);
    this.twice(e.b, (b) => {
      this.twice(e.a, (a) => {
        b();
        a();
        f.op(`${shape}.${scalarName(op, t)}`);
        f.op("select");
      });
    });
  }
  private integerDivision(e: Typed<"binary">, op: "div" | "rem"): void {
    const { f } = this;
    const t = e.a.type, shape = valueType(t), unsigned = isUnsigned(t.scalar) || t.scalar === "bool";
    const name = `${shape}.${op}_${unsigned ? "u" : "s"}`;
    if (e.b.kind === "const") {
      const divisor = BigInt(e.b.value);
      if (divisor !== 0n && (unsigned || divisor !== -1n)) {
        this.emit(e.a);
        if (unsigned && (divisor & (divisor - 1n)) === 0n) {
          this.constant(t, op === "div" ? BigInt(divisor.toString(2).length - 1) : divisor - 1n);
          f.op(`${shape}.${op === "div" ? "shr_u" : "and"}`);
          return;
        }
        this.emit(e.b);
        f.op(name);
        return;
      }
    }
    const ta = this.acquire(shape), tb = this.acquire(shape);
    this.emit(e.a);
    f.setLocal(ta);
    this.emit(e.b);
    f.setLocal(tb);
    // Safe divisors: not 0, and signed division not −1 either: there a·b is the quotient (0, or −a wrapping).
    f.get(tb);
    if (op === "div" && !unsigned) {
      this.constant(t, 1);
      f.op(`${shape}.add`);
      this.constant(t, 1);
      f.op(`${shape}.gt_u`);
    } else {
      this.constant(t, 0);
      f.op(`${shape}.ne`);
    }
    f.begin("if", shape);
    f.get(ta); f.get(tb); f.op(name);
    f.else();
    if (op === "div" && !unsigned) { f.get(ta); f.get(tb); f.op(`${shape}.mul`); } else this.constant(t, 0);
    f.end();
    this.release(shape, ta);
    this.release(shape, tb);
  }

  private vectorBinary(e: Typed<"binary">): void {
    const { f } = this;
    const t = e.a.type, shape = laneShape(t), { op } = e;
    this.emit(e.a);
    if (op === "shl" || op === "shr") {
      this.shiftCount(e.b);
      f.op(`${shape}.${op === "shl" ? "shl" : isUnsigned(t.scalar) ? "shr_u" : "shr_s"}`);
      return;
    }
    this.emit(e.b);
    f.op(vectorName(op, t, shape));
  }
  private shiftCount(e: Expr): void {
    invariant(e.type.lanes === 1, "a vector is shifted by one count for all lanes");
    this.emit(e);
  }

  private select(e: Typed<"select">): void {
    const { f } = this;
    if (e.condition.type.lanes > 1) {
      this.emit(e.a);
      this.emit(e.b);
      this.emit(e.condition);
      f.op("v128.bitselect");
      return;
    }
    if (isEager(e.a) && isEager(e.b)) {
      this.emit(e.a);
      this.emit(e.b);
      this.emit(e.condition);
      f.op("select");
      return;
    }
    this.emit(e.condition);
    f.begin("if", valueType(e.type));
    this.emit(e.a);
    f.else();
    this.emit(e.b);
    f.end();
  }

  private cast(e: Typed<"cast">): void {
    const from = e.a.type, to = e.type;
    this.emit(e.a);
    if (from.lanes > 1) this.castVector(from, to);
    else this.castScalar(from, to);
  }
  private castScalar(from: Type, to: Type): void {
    const { f } = this;
    const a = valueType(from), b = valueType(to);
    if (to.scalar === "bool") {
      if (from.scalar === "bool") return;
      this.constant(from, 0);
      f.op(`${a}.ne`);
      return;
    }
    if (isFloating(from.scalar)) {
      if (isFloating(to.scalar)) { if (a !== b) f.op(b === "f32" ? "f32.demote_f64" : "f64.promote_f32"); return; }
      invariant(widthOf(to.scalar) >= 32, `cast of ${formatType(from)} to ${formatType(to)}`);
      f.op(`${b}.trunc_sat_${a}_${isUnsigned(to.scalar) ? "u" : "s"}`);
      return;
    }
    if (isFloating(to.scalar)) { f.op(`${b}.convert_${a}_${isUnsigned(from.scalar) ? "u" : "s"}`); return; }
    if (a === "i32" && b === "i64") { f.op(isUnsigned(from.scalar) || from.scalar === "bool" ? "i64.extend_i32_u" : "i64.extend_i32_s"); return; }
    if (a === "i64" && b === "i32") f.op("i32.wrap_i64");
    switch (to.scalar) {
      case "i8": f.op("i32.extend8_s"); return;
      case "i16": f.op("i32.extend16_s"); return;
      case "u8": f.constant("i32", 0xff); f.op("i32.and"); return;
      case "u16": f.constant("i32", 0xffff); f.op("i32.and"); return;
      default: return;
    }
  }
  private castVector(from: Type, to: Type): void {
    const { f } = this;
    if (to.scalar === "bool") {
      if (from.scalar === "bool") return;
      this.constant(from, 0);
      f.op(`${laneShape(from)}.ne`);
      return;
    }
    const a = laneShape(from), b = laneShape(to);
    if (from.scalar === "bool") {
      this.constant(to, to.scalar === "i64" || to.scalar === "u64" ? 1n : 1);
      f.op("v128.and");
      return;
    }
    if (a === b) return;
    const kind = `${a}→${b}`;
    if (kind === "i32x4→f32x4") f.op(`f32x4.convert_i32x4_${isUnsigned(from.scalar) ? "u" : "s"}`);
    else if (kind === "f32x4→i32x4") f.op(`i32x4.trunc_sat_f32x4_${isUnsigned(to.scalar) ? "u" : "s"}`);
    else invariant(false, `cast of ${formatType(from)} to ${formatType(to)}`);
  }

  private bitcast(e: Typed<"bitcast">): void {
    this.emit(e.a);
    const from = valueType(e.a.type), to = valueType(e.type);
    if (from !== to) this.f.op(`${to}.reinterpret_${from}`);
  }

  private madd(e: Typed<"madd">): void {
    const { f } = this;
    const t = e.type;
    if (e.relaxed && t.scalar === "f32") {
      const part = (x: Expr): void => {
        this.emit(x);
        if (t.lanes === 1) f.op("f32x4.splat");
      };
      part(e.a);
      part(e.b);
      f.relaxable("f32x4.mul");
      part(e.c);
      f.relaxable("f32x4.add");
      if (t.lanes === 1) f.lane("f32x4.extract_lane", 0);
      return;
    }
    const shape = t.lanes > 1 ? laneShape(t) : valueType(t);
    this.emit(e.a);
    this.emit(e.b);
    f.op(`${shape}.mul`);
    this.emit(e.c);
    f.op(`${shape}.add`);
  }

  private splat(a: Expr, to: Type): void {
    const { f } = this;
    if (a.kind === "const") { this.constant(to, a.value); return; }
    if (a.kind === "loadAt") { this.load({ ...a, splat: true, type: to }); return; }
    this.emit(a);
    if (to.scalar === "bool") this.mask(to);
    f.op(`${laneShape(to)}.splat`);
  }
  /** 0 or 1 on the stack to 0 or all ones. */
  private mask(t: Type): void {
    if (laneShape(t) === "i64x2") this.f.op("i64.extend_i32_u");
    this.constant(scalarOfLane(t), laneShape(t) === "i64x2" ? -1n : -1);
    this.f.op(laneShape(t) === "i64x2" ? "i64.mul" : "i32.mul");
  }
  private lanes(e: Typed<"lanes">): void {
    const { f } = this;
    const shape = laneShape(e.type);
    if (e.elements.every((x) => x.kind === "const")) { this.vector(e.type, e.elements.map((x) => x.value)); return; }
    const [first, ...rest] = e.elements;
    const element = (x: Expr): void => { this.emit(x); if (e.type.scalar === "bool") this.mask(e.type); };
    if (first?.kind === "loadAt" && e.type.scalar !== "bool") this.load({ ...first, splat: true, type: e.type });
    else { element(present(first, "first lane")); f.op(`${shape}.splat`); }
    rest.forEach((x, i) => {
      const narrow = x.kind === "loadAt" && e.type.scalar !== "bool" ? laneLoad(x, e.type) : undefined;
      if (narrow && x.kind === "loadAt") { this.loadLane(narrow, x, i + 1); return; }
      element(x);
      f.lane(`${shape}.replace_lane`, i + 1);
    });
  }
  /** Reads one lane of the vector on the stack from memory. */
  private loadLane(name: string, x: Typed<"loadAt">, lane: number): void {
    const vector = this.acquire("v128");
    this.f.setLocal(vector);
    this.emit(x.pointer);
    this.f.get(vector);
    this.f.memory(name, x.offset, lane);
    this.release("v128", vector);
  }
  private extract(e: Typed<"extract">): void {
    const { f } = this;
    const shape = laneShape(e.a.type), narrow = shape === "i16x8" || shape === "i8x16";
    this.emit(e.a);
    f.lane(`${shape}.extract_lane${narrow ? (isUnsigned(e.a.type.scalar) ? "_u" : "_s") : ""}`, e.lane);
    if (e.type.scalar === "bool") {
      if (shape === "i64x2") f.op("i32.wrap_i64");
      f.constant("i32", 1);
      f.op("i32.and");
    }
  }
}
