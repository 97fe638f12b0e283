/**
 * Executes a kernel, naive or scheduled, on bytes in memory: the definition of the kernel language. Expressions are
 * compiled to closures once per call. f32 rounds after every operation, every logical access is checked against its
 * buffer's shape, every byte access against the memory.
 */
import { invariant, present } from "../core/assert.ts";
import { evaluateDim, type Dim, type DimBinding } from "../core/dim.ts";
import { byteSize, isFloat, type DType } from "../core/dtype.ts";
import { decoderOf, encoderOf } from "../core/float-bits.ts";
import { wrapInteger } from "../core/tensor.ts";
import { formatType, i32, type Buffer, type Expr, type Scalar, type Type } from "./expr.ts";
import type { Kernel } from "./kernel.ts";
import { packLanes, pickBytes, scalarReader, scalarWriter, sevenBits, sumsOfProducts, unpackLanes } from "./lane-bits.ts";
import {
  castFromWide, castNumber, castToWide, isFloatScalar, isWide, numberBinary, numberUnary, roundNumber, wideBinary, wideCompare, wideUnary, wrapWide,
  type NumberScalar, type WideScalar,
} from "./scalar-ops.ts";
import type { Stmt } from "./stmt.ts";
import { storedAs } from "./storage-types.ts";

/** Where a buffer lies: element (i…) is at byte `address` + byteSize(dtype) · Σ strides·i. */
export interface BufferPlace {
  readonly address: number;
  readonly strides: readonly number[];
}

/**
 * Runs `kernel` on `memory` (little-endian). Every buffer it names needs a place; every symbol of its sizes a binding; `relaxed` says what engine to be.
 * Throws an InvariantError when an access leaves its buffer, and a RangeError when it leaves the memory.
 */
export function interpret(kernel: Kernel, memory: ArrayBufferLike, places: ReadonlyMap<Buffer, BufferPlace>, binding: DimBinding = noSymbols, relaxed = false): void {
  new Interpreter(kernel.name, memory, places, binding, relaxed).statement(kernel.body)();
}
const noSymbols: DimBinding = (symbol) => invariant(false, `size ${symbol} is not bound`) as never;

type NumberFn = () => number;
type WideFn = () => bigint;
type VectorFn = () => number[];
type Typed<K extends Expr["kind"]> = Extract<Expr, { kind: K }>;

const numberScalar = (type: Type): NumberScalar => {
  const { scalar } = type;
  invariant(!isWide(scalar), `${formatType(type)} is 64 bits wide`);
  return scalar;
};
const wideScalar = (type: Type): WideScalar => {
  const { scalar } = type;
  invariant(isWide(scalar), `${formatType(type)} is not 64 bits wide`);
  return scalar;
};

class Interpreter {
  private readonly where: string;
  private readonly relaxed: boolean;
  private readonly view: DataView;
  private readonly places: ReadonlyMap<Buffer, BufferPlace>;
  private readonly binding: DimBinding;
  private readonly axes = new Map<object, { value: number }>();
  private readonly numbers = new Map<string, { value: number }>();
  private readonly wides = new Map<string, { value: bigint }>();
  private readonly vectors = new Map<string, { value: number[] }>();
  private readonly types = new Map<string, Type>();

  constructor(where: string, memory: ArrayBufferLike, places: ReadonlyMap<Buffer, BufferPlace>, binding: DimBinding, relaxed: boolean) {
    this.relaxed = relaxed;
    this.where = where;
    this.view = new DataView(memory);
    this.places = places;
    this.binding = binding;
  }

  statement(s: Stmt): () => void {
    switch (s.kind) {
      case "block": {
        const body = s.body.map((b) => this.statement(b));
        return () => { for (const run of body) run(); };
      }
      case "for": {
        const begin = this.number(s.begin), end = this.number(s.end), cell = this.axis(s.axis), { step } = s;
        invariant(step > 0, `${this.where}: loop ${s.axis.name} has step ${step}`);
        const body = this.statement(s.body);
        return () => {
          const stop = end();
          for (let i = begin(); i < stop; i += step) {
            cell.value = i;
            body();
          }
        };
      }
      case "split": {
        for (const name of [s.from, s.to]) this.types.set(name, i32);
        const from = cellOf(this.numbers, s.from, 0), to = cellOf(this.numbers, s.to, 0), all = this.dim(s.outer) * this.dim(s.inner);
        const body = this.statement(s.body);
        return () => { from.value = 0; to.value = all; body(); };
      }
      case "if": {
        const condition = this.number(s.condition), then = this.statement(s.then);
        const otherwise = s.else ? this.statement(s.else) : () => undefined;
        return () => (condition() ? then() : otherwise());
      }
      case "let": {
        this.types.set(s.name, s.value.type);
        return this.write(s.name, s.value);
      }
      case "assign": return this.write(s.name, s.value);
      case "accumulate": {
        const type = present(this.types.get(s.name), `${this.where}: local ${s.name}`);
        const before: Expr = { kind: "local", name: s.name, type };
        return this.write(s.name, { kind: "binary", op: s.op, a: before, b: s.value, type });
      }
      case "store": {
        const address = this.address(s.buffer, s.indices, s.along, s.value.type.lanes);
        return this.store(address, s.buffer.dtype, s.value);
      }
      case "storeAt": {
        const pointer = this.number(s.pointer), { offset } = s;
        const base = (): number => (pointer() >>> 0) + offset;
        return this.store((lane) => base() + lane * byteSize(s.dtype), s.dtype, s.value);
      }
    }
  }

  private write(name: string, value: Expr): () => void {
    const type = present(this.types.get(name), `${this.where}: local ${name}`);
    invariant(type.scalar === value.type.scalar && type.lanes === value.type.lanes, `${this.where}: ${formatType(value.type)} assigned to ${name}, a ${formatType(type)}`);
    if (type.lanes > 1) {
      const cell = cellOf(this.vectors, name, [] as number[]), f = this.vector(value);
      return () => { cell.value = f(); };
    }
    if (isWide(type.scalar)) {
      const cell = cellOf(this.wides, name, 0n), f = this.wide(value);
      return () => { cell.value = f(); };
    }
    const cell = cellOf(this.numbers, name, 0), f = this.number(value);
    return () => { cell.value = f(); };
  }

  private store(address: (lane: number) => number, dtype: DType, value: Expr): () => void {
    if (value.type.lanes > 1) {
      const f = this.vector(value), put = this.writer(dtype, value.type.scalar);
      return () => {
        const lanes = f();
        // All addresses first: a lane out of bounds must be found before anything is written.
        const at = lanes.map((_, lane) => address(lane));
        lanes.forEach((x, lane) => put(at[lane] ?? -1, x));
      };
    }
    if (isWide(value.type.scalar)) {
      const f = this.wide(value), { view } = this;
      invariant(dtype === "int64" || dtype === "uint64", `${this.where}: ${value.type.scalar} stored as ${dtype}`);
      return () => { view.setBigInt64(address(0), f(), true); };
    }
    const f = this.number(value), put = this.writer(dtype, value.type.scalar);
    return () => put(address(0), f());
  }

  private axis(axis: object): { value: number } {
    return cellOf(this.axes, axis, 0);
  }
  private dim(d: Dim): number {
    return evaluateDim(d, this.binding);
  }

  /** The byte address of lane `lane`, checked against the buffer's shape. */
  private address(buffer: Buffer, indices: readonly Expr[], along: number | undefined, lanes: number): (lane: number) => number {
    const place = present(this.places.get(buffer), `${this.where}: place of buffer ${buffer.name}`);
    invariant(indices.length === buffer.shape.length, `${this.where}: ${buffer.name} has rank ${buffer.shape.length}, got ${indices.length} indices`);
    invariant(lanes === 1 || along !== undefined, `${this.where}: ${lanes} lanes of ${buffer.name} along no axis`);
    const size = byteSize(buffer.dtype);
    const parts = indices.map((e, d) => ({ at: this.number(e), extent: this.dim(buffer.shape[d] ?? 0), stride: (place.strides[d] ?? 0) * size, step: d === along ? 1 : 0 }));
    return (lane) => {
      let address = place.address;
      for (const p of parts) {
        const i = p.at() + p.step * lane;
        if (!(i >= 0 && i < p.extent)) this.outside(buffer, parts.map((q) => q.at() + q.step * lane));
        address += i * p.stride;
      }
      return address;
    };
  }
  private outside(buffer: Buffer, at: readonly number[]): never {
    return invariant(false, `${this.where}: ${buffer.name}[${at}] is outside [${buffer.shape.map((d) => this.dim(d))}]`) as never;
  }

  private reader(dtype: DType): (address: number) => number {
    const { view } = this, stored = storedAs(dtype);
    if (stored) {
      const bits = this.reader(stored), decode = decoderOf(dtype);
      return decode ? (p) => decode(bits(p)) : bits;
    }
    switch (dtype) {
      case "float32": return (p) => view.getFloat32(p, true);
      case "float64": return (p) => view.getFloat64(p, true);
      case "int8": return (p) => view.getInt8(p);
      case "int16": return (p) => view.getInt16(p, true);
      case "int32": return (p) => view.getInt32(p, true);
      case "uint8": return (p) => view.getUint8(p);
      case "uint16": return (p) => view.getUint16(p, true);
      case "uint32": return (p) => view.getUint32(p, true);
      case "bool": return (p) => (view.getUint8(p) !== 0 ? 1 : 0);
      default: return invariant(false, `${this.where}: ${dtype} read as a number`) as never;
    }
  }
  private writer(dtype: DType, scalar: Scalar): (address: number, x: number) => void {
    const { view } = this, stored = storedAs(dtype);
    invariant(isFloatScalar(scalar) === isFloat(dtype) && (scalar === "f64") === (dtype === "float64"), `${this.where}: ${scalar} stored as ${dtype}`);
    if (stored) {
      const bits = this.writer(stored, "i32"), encode = encoderOf(dtype) ?? ((v: number) => wrapInteger(v, dtype));
      return (p, x) => bits(p, encode(x));
    }
    switch (dtype) {
      case "float32": return (p, x) => view.setFloat32(p, x, true);
      case "float64": return (p, x) => view.setFloat64(p, x, true);
      case "int8": case "uint8": return (p, x) => view.setUint8(p, x & 0xff);
      case "int16": case "uint16": return (p, x) => view.setUint16(p, x & 0xffff, true);
      case "int32": case "uint32": return (p, x) => view.setInt32(p, x | 0, true);
      case "bool": return (p, x) => view.setUint8(p, x !== 0 ? 1 : 0);
      default: return invariant(false, `${this.where}: ${scalar} stored as ${dtype}`) as never;
    }
  }

  /** A scalar expression that is not 64 bits wide. */
  number(e: Expr): NumberFn {
    invariant(e.type.lanes === 1, `${this.where}: ${formatType(e.type)} where a scalar is expected`);
    switch (e.kind) {
      case "const": { const value = Number(e.value); return () => value; }
      case "axis": { const cell = this.axis(e.axis); return () => cell.value; }
      case "dim": { const value = this.dim(e.dim) | 0; return () => value; }
      case "local": { const cell = this.localCell(this.numbers, e, 0); return () => cell.value; }
      case "load": { const at = this.address(e.buffer, e.indices, e.along, 1), read = this.reader(e.buffer.dtype); return () => read(at(0)); }
      case "loadAt": { const p = this.number(e.pointer), read = this.reader(e.dtype), { offset } = e; return () => read((p() >>> 0) + offset); }
      case "address": { const at = this.unchecked(e.buffer, e.indices); return () => at() | 0; }
      case "unary": {
        if (isWide(e.a.type.scalar)) return () => invariant(false, `${e.op} of ${formatType(e.a.type)}`) as never;
        const f = numberUnary(e.op, numberScalar(e.a.type)), a = this.number(e.a);
        return () => f(a());
      }
      case "binary": {
        if (isWide(e.a.type.scalar)) {
          const f = present(wideCompare(e.op), `comparison, not ${e.op}`), a = this.wide(e.a), b = this.wide(e.b);
          return () => f(a(), b());
        }
        const f = numberBinary(e.op, numberScalar(e.a.type)), a = this.number(e.a), b = this.number(e.b);
        return () => f(a(), b());
      }
      case "select": { const c = this.number(e.condition), a = this.number(e.a), b = this.number(e.b); return () => (c() ? a() : b()); }
      case "cast": {
        if (isWide(e.a.type.scalar)) { const f = castFromWide(numberScalar(e.type)), a = this.wide(e.a); return () => f(a()); }
        const f = castNumber(numberScalar(e.a.type), numberScalar(e.type)), a = this.number(e.a);
        return () => f(a());
      }
      case "bitcast": return this.bitcastScalar(e).number;
      case "madd": {
        const round = roundNumber(numberScalar(e.type)), a = this.number(e.a), b = this.number(e.b), c = this.number(e.c);
        const times = numberBinary("mul", numberScalar(e.type));
        return () => round(times(a(), b()) + c());
      }
      case "extract": { const a = this.vector(e.a), { lane } = e; return () => a()[lane] ?? NaN; }
      case "reduce": return this.reduction(e, this.number(e.init), this.number(e.body), numberBinary(e.op, numberScalar(e.type)));
      case "relaxed": return () => (this.relaxed ? 1 : 0);
      case "splat": case "lanes": case "shuffle": case "swizzle": case "dot": case "byteDot": case "extend": return invariant(false, `${this.where}: ${e.kind} gives a vector`) as never;
    }
  }

  private wide(e: Expr): WideFn {
    invariant(e.type.lanes === 1, `${this.where}: ${formatType(e.type)} where a scalar is expected`);
    const scalar = wideScalar(e.type);
    switch (e.kind) {
      case "const": { const value = wrapWide(scalar)(BigInt(e.value)); return () => value; }
      case "local": { const cell = this.localCell(this.wides, e, 0n); return () => cell.value; }
      case "load": { const at = this.address(e.buffer, e.indices, e.along, 1); return this.readWide(() => at(0), scalar); }
      case "loadAt": { const p = this.number(e.pointer), { offset } = e; return this.readWide(() => (p() >>> 0) + offset, scalar); }
      case "unary": { const f = wideUnary(e.op, scalar), a = this.wide(e.a); return () => f(a()); }
      case "binary": { const f = wideBinary(e.op, scalar), a = this.wide(e.a), b = this.wide(e.b); return () => f(a(), b()); }
      case "select": { const c = this.number(e.condition), a = this.wide(e.a), b = this.wide(e.b); return () => (c() ? a() : b()); }
      case "cast": {
        if (isWide(e.a.type.scalar)) { const a = this.wide(e.a), wrap = wrapWide(scalar); return () => wrap(a()); }
        const f = castToWide(numberScalar(e.a.type), scalar), a = this.number(e.a);
        return () => f(a());
      }
      case "bitcast": return this.bitcastScalar(e).wide;
      case "madd": { const a = this.wide(e.a), b = this.wide(e.b), c = this.wide(e.c), wrap = wrapWide(scalar); return () => wrap(a() * b() + c()); }
      case "reduce": return this.reduction(e, this.wide(e.init), this.wide(e.body), wideBinary(e.op, scalar));
      default: return invariant(false, `${this.where}: ${e.kind} gives no ${scalar}`) as never;
    }
  }
  private readWide(at: NumberFn, scalar: WideScalar): WideFn {
    const { view } = this;
    return scalar === "i64" ? () => view.getBigInt64(at(), true) : () => view.getBigUint64(at(), true);
  }

  private vector(e: Expr): VectorFn {
    const { lanes } = e.type;
    const scalar = numberScalar(e.type);
    invariant(lanes > 1, `${this.where}: ${formatType(e.type)} where a vector is expected`);
    switch (e.kind) {
      case "const": { const value = new Array<number>(lanes).fill(Number(e.value)); return () => value; }
      case "local": { const cell = this.localCell(this.vectors, e, [] as number[]); return () => cell.value; }
      case "load": {
        const at = this.address(e.buffer, e.indices, e.along, lanes), read = this.reader(e.buffer.dtype);
        return () => iota(lanes, (lane) => read(at(lane)));
      }
      case "loadAt": {
        const p = this.number(e.pointer), read = this.reader(e.dtype), { offset } = e, step = e.splat ? 0 : byteSize(e.dtype);
        return () => { const base = (p() >>> 0) + offset; return iota(lanes, (lane) => read(base + lane * step)); };
      }
      case "unary": { const f = numberUnary(e.op, numberScalar(e.a.type)), a = this.vector(e.a); return () => a().map(f); }
      case "binary": {
        const f = numberBinary(e.op, numberScalar(e.a.type)), a = this.vector(e.a);
        if ((e.op === "shl" || e.op === "shr") && e.b.type.lanes === 1) { const b = this.number(e.b); return () => { const y = b(); return a().map((x) => f(x, y)); }; }
        const b = this.vector(e.b);
        return () => { const y = b(); return a().map((x, i) => f(x, y[i] ?? NaN)); };
      }
      case "select": {
        const a = this.vector(e.a), b = this.vector(e.b);
        if (e.condition.type.lanes === 1) { const c = this.number(e.condition); return () => (c() ? a() : b()); }
        const c = this.vector(e.condition);
        return () => { const m = c(), x = a(), y = b(); return m.map((t, i) => (t ? x[i] ?? NaN : y[i] ?? NaN)); };
      }
      case "cast": { const f = castNumber(numberScalar(e.a.type), scalar), a = this.vector(e.a); return () => a().map(f); }
      case "bitcast": { const to = unpackLanes(e.type), from = packLanes(e.a.type), a = this.vector(e.a); return () => to(from(a())); }
      case "madd": {
        const times = numberBinary("mul", scalar), plus = numberBinary("add", scalar);
        const a = this.vector(e.a), b = this.vector(e.b), c = this.vector(e.c);
        return () => { const y = b(), z = c(); return a().map((x, i) => plus(times(x, y[i] ?? NaN), z[i] ?? NaN)); };
      }
      case "splat": { const a = this.number(e.a); return () => new Array<number>(lanes).fill(a()); }
      case "lanes": { const parts = e.elements.map((x) => this.number(x)); return () => parts.map((f) => f()); }
      case "shuffle": {
        const pa = packLanes(e.a.type), pb = packLanes(e.b.type), to = unpackLanes(e.type), a = this.vector(e.a), b = this.vector(e.b), { bytes } = e;
        return () => { const x = pa(a()).slice(), y = pb(b()); return to(Uint8Array.from(bytes, (i) => (i < 16 ? x[i] : y[i - 16]) ?? 0)); };
      }
      case "swizzle": { const from = packLanes(e.a.type), to = unpackLanes(e.type), a = this.vector(e.a), b = this.vector(e.b); return () => to(pickBytes(from(a()).slice(), b())); }
      case "dot": { const a = this.vector(e.a), b = this.vector(e.b); return () => sumsOfProducts(a(), b()); }
      case "byteDot": { const a = this.vector(e.a), b = this.vector(e.b), c = this.vector(e.c); return () => sumsOfProducts(a(), sevenBits(b(), this.where), c()); }
      case "extend": { const a = this.vector(e.a), from = e.half === "low" ? 0 : lanes, round = roundNumber(scalar); return () => a().slice(from, from + lanes).map(round); }
      case "axis": case "dim": case "address": case "extract": case "relaxed": case "reduce": return invariant(false, `${this.where}: ${e.kind} gives no vector`) as never;
    }
  }

  private localCell<T>(cells: Map<string, { value: T }>, e: Typed<"local">, empty: T): { value: T } {
    const type = present(this.types.get(e.name), `${this.where}: local ${e.name}`);
    invariant(type.scalar === e.type.scalar && type.lanes === e.type.lanes, `${this.where}: ${e.name} is ${formatType(type)}, read as ${formatType(e.type)}`);
    return cellOf(cells, e.name, empty);
  }

  private unchecked(buffer: Buffer, indices: readonly Expr[]): NumberFn {
    const place = present(this.places.get(buffer), `${this.where}: place of buffer ${buffer.name}`);
    const size = byteSize(buffer.dtype);
    const parts = indices.map((e, d) => ({ at: this.number(e), stride: (place.strides[d] ?? 0) * size }));
    return () => parts.reduce((p, { at, stride }) => p + at() * stride, place.address);
  }

  private reduction<T>(e: Typed<"reduce">, init: () => T, body: () => T, combine: (a: T, b: T) => T): () => T {
    const axes = e.axes.map((axis) => ({ cell: this.axis(axis), extent: this.dim(axis.extent) }));
    return () => {
      let value = init();
      const nest = (depth: number): void => {
        const axis = axes[depth];
        if (!axis) { value = combine(value, body()); return; }
        for (let i = 0; i < axis.extent; i++) { axis.cell.value = i; nest(depth + 1); }
      };
      nest(0);
      return value;
    };
  }

  private bitcastScalar(e: Typed<"bitcast">): { number: NumberFn; wide: WideFn } {
    const from = e.a.type.scalar, to = e.type.scalar;
    const view = new DataView(new ArrayBuffer(8));
    const put = isWide(from) ? this.putWide(view, e.a) : this.putNumber(view, e.a);
    const read = isWide(to) ? undefined : scalarReader(view, to);
    return {
      number: () => { put(); return read ? read(0) : NaN; },
      wide: () => { put(); return to === "u64" ? view.getBigUint64(0, true) : view.getBigInt64(0, true); },
    };
  }
  private putWide(view: DataView, e: Expr): () => void {
    const f = this.wide(e);
    return () => view.setBigInt64(0, f(), true);
  }
  private putNumber(view: DataView, e: Expr): () => void {
    const f = this.number(e), write = scalarWriter(view, numberScalar(e.type));
    return () => write(0, f());
  }
}

function cellOf<K, T>(cells: Map<K, { value: T }>, key: K, initial: T): { value: T } {
  let cell = cells.get(key);
  if (!cell) cells.set(key, (cell = { value: initial }));
  return cell;
}
function iota(n: number, f: (i: number) => number): number[] {
  const out = new Array<number>(n);
  for (let i = 0; i < n; i++) out[i] = f(i);
  return out;
}
