/**
 * One operator held against itself: its inference, its evaluation and its lowering (run by the kernel interpreter) on the
 * same inputs, with sizes as numbers and as symbols.
 */
import { invariant, present } from "../../src/core/assert.ts";
import { asTensor } from "../../src/core/datum.ts";
import { evaluateDim, symbol, type Dim } from "../../src/core/dim.ts";
import { byteSize, isFloat, viewBytes } from "../../src/core/dtype.ts";
import { bytesOf, rowMajorStrides, sizeOf, toBigInts, toNumbers, type Tensor } from "../../src/core/tensor.ts";
import { completeAttributes, inferTypes } from "../../src/graph/infer-node.ts";
import { evaluationOf, named, type Attributes, type OpDef, type Operand, type TypeInfo } from "../../src/graph/op.ts";
import { axisOf, constant, dimExpr, i32, load, type Axis, type Buffer } from "../../src/kernel/expr.ts";
import { interpret, type BufferPlace } from "../../src/kernel/interpret.ts";
import { loop, type Stmt } from "../../src/kernel/stmt.ts";

export interface OpRun {
  readonly op: OpDef;
  readonly inputs: readonly (Tensor | undefined)[];
  readonly attributes?: Attributes;
  /** Inputs that inference knows in full, as constants are. */
  readonly known?: readonly number[];
  /** Inputs whose sizes are symbols. */
  readonly symbolic?: readonly number[];
  /** Inputs whose elements are known as symbols (those of at least 0) and numbers. */
  readonly followed?: readonly number[];
  readonly outputCount?: number;
}
export interface OpResult {
  readonly types: readonly TypeInfo[];
  readonly evaluated: readonly Tensor[];
  /** Absent where the operator has no lowering for this node. */
  readonly lowered: readonly Tensor[] | undefined;
  /** The size that a symbol stands for. */
  readonly binding: (symbol: string) => number;
}

/** Infers, evaluates and lowers. Fails when inference contradicts evaluation. */
export function runOp({ op, inputs, attributes = {}, known = [], symbolic = [], followed = [], outputCount = 1 }: OpRun): OpResult {
  const sizes = new Map<string, number>();
  const types = inputs.map((t, i): TypeInfo | undefined => {
    if (!t) return undefined;
    const shape = t.dims.map((d, axis): Dim => {
      if (!symbolic.includes(i)) return d;
      const name = `n${d}`;
      sizes.set(name, d);
      return d === 1 && axis % 2 === 0 ? d : symbol(name);
    });
    const follow = (v: number, k: number): Dim => { if (v < 0) return v; sizes.set(`e${i}_${k}`, v); return symbol(`e${i}_${k}`); };
    return { dtype: t.dtype, shape, ...(known.includes(i) ? { constant: t } : {}), ...(followed.includes(i) ? { elements: Array.from(toNumbers(t), follow) } : {}) };
  });
  const fresh = new Set<string>();
  const place = { node: op.type };
  const complete = completeAttributes(op, attributes, place);
  const outputs = inferTypes(op, types, attributes, outputCount, { place, fresh: (hint) => { fresh.add(hint); return symbol(`?${hint}${fresh.size}`); } });
  const evaluated = present(evaluationOf(op), `${op.type}.evaluate`)(inputs, complete as Parameters<NonNullable<OpDef["evaluate"]>>[1], { outputCount }).map((d) => asTensor(d));
  const binding = (s: string): number => sizes.get(s) ?? invariant(false, `size ${s}`) as never;
  checkInference(op, outputs, evaluated, binding);
  const context = { outputs };
  const filled = complete as Parameters<OpDef["infer"]>[1];
  if (!op.lower || (op.lowerable && !op.lowerable(named(op, types), filled, context))) return { types: outputs, evaluated, lowered: undefined, binding };
  const buffers = types.map((t, i): Buffer | undefined => t && { name: `in${i}`, dtype: t.dtype, shape: t.shape });
  const operands = types.map((t, i): Operand | undefined => t && { ...t, at: (...indices) => load(present(buffers[i], "buffer"), indices) });
  const elements = op.lower(named(op, operands), filled, context);
  const lowered = outputs.map((type, o) => {
    const out: Buffer = { name: `out${o}`, dtype: type.dtype, shape: type.shape };
    const axes = type.shape.map((extent, d): Axis => ({ name: `i${d}`, extent }));
    const store: Stmt = { kind: "store", buffer: out, indices: axes.map(axisOf), value: present(elements[o], `element ${o}`)(...axes.map(axisOf)) };
    const body = axes.reduceRight<Stmt>((inner, axis) => loop(axis, constant(0, i32), dimExpr(axis.extent), 1, inner), store);
    return runBody(op.type, body, buffers, inputs, out, type.shape.map((d) => evaluateDim(d, binding)), binding);
  });
  return { types: outputs, evaluated, lowered, binding };
}

function checkInference(op: OpDef, types: readonly TypeInfo[], evaluated: readonly Tensor[], binding: (s: string) => number): void {
  types.forEach((type, i) => {
    const t = present(evaluated[i], `output ${i}`);
    invariant(type.dtype === t.dtype, `${op.type} inferred ${type.dtype}, evaluated ${t.dtype}`);
    invariant(type.shape.length === t.dims.length, `${op.type} inferred rank ${type.shape.length}, evaluated [${t.dims}]`);
    const bind = (s: string): number => (s.startsWith("?") ? NaN : binding(s));
    type.shape.forEach((d, axis) => {
      const size = evaluateDim(d, bind);
      invariant(Number.isNaN(size) || size === t.dims[axis], `${op.type} inferred size ${size} of axis ${axis}, evaluated [${t.dims}]`);
    });
    type.elements?.forEach((e, k) => {
      const value = evaluateDim(e, bind);
      invariant(Number.isNaN(value) || value === Number(toBigInts(t)[k]), `${op.type} inferred element ${k} as ${value}, evaluated ${String(toBigInts(t)[k])}`);
    });
  });
}

function runBody(name: string, body: Stmt, buffers: readonly (Buffer | undefined)[], inputs: readonly (Tensor | undefined)[], out: Buffer, dims: readonly number[], binding: (s: string) => number): Tensor {
  const places = new Map<Buffer, BufferPlace>();
  let end = 0;
  const room = (b: Buffer, own: readonly number[]): number => {
    const address = end;
    places.set(b, { address, strides: rowMajorStrides(own) });
    end += Math.ceil((sizeOf(own) * byteSize(b.dtype)) / 16) * 16;
    return address;
  };
  const filled = buffers.flatMap((b, i): [number, Tensor][] => { const t = inputs[i]; return b && t && t.dtype !== "string" ? [[room(b, t.dims), t]] : []; });
  const address = room(out, dims), memory = new ArrayBuffer(end);
  for (const [at, t] of filled) new Uint8Array(memory).set(bytesOf(t), at);
  interpret({ name, inputs: buffers.filter((b) => b !== undefined), outputs: [out], scratch: [], body }, memory, places, binding);
  return { dtype: out.dtype, dims, data: viewBytes(out.dtype, new Uint8Array(memory).slice(address, address + sizeOf(dims) * byteSize(out.dtype))) };
}

/**
 * The largest difference of float elements, relative where they are above 1; 0 where both are NaN or equal. Infinity
 * where integers or dims differ, or one is NaN or infinite alone.
 */
export function distance(expected: Tensor, actual: Tensor): number {
  if (expected.dtype !== actual.dtype || expected.dims.join() !== actual.dims.join()) return Infinity;
  if (!isFloat(expected.dtype)) {
    const x = toBigInts(expected), y = toBigInts(actual);
    return x.every((v, i) => v === y[i]) ? 0 : Infinity;
  }
  const x = toNumbers(expected), y = toNumbers(actual);
  let worst = 0;
  for (let i = 0; i < x.length; i++) {
    const a = x[i] ?? 0, b = y[i] ?? 0;
    if (a === b || (Number.isNaN(a) && Number.isNaN(b))) continue;
    worst = Math.max(worst, Number.isFinite(a) && Number.isFinite(b) ? Math.abs(a - b) / Math.max(Math.abs(a), 1) : Infinity);
  }
  return worst;
}
