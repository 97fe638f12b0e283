/**
 * Kernels as text: loop pseudo-code for people, and a canonical form in which buffers, loop variables and locals are
 * numbered in order of appearance, so that kernels that differ in names only have the same text.
 */
import { assertNever } from "../core/assert.ts";
import { formatDim, formatShape } from "../core/dim.ts";
import { formatType, type Axis, type BinaryOp, type Buffer, type Expr } from "./expr.ts";
import type { Kernel } from "./kernel.ts";
import type { Stmt } from "./stmt.ts";

/** How names appear in a text. */
interface Names {
  axis(a: Axis): string;
  buffer(b: Buffer): string;
  local(name: string): string;
}
const plain: Names = { axis: (a) => a.name, buffer: (b) => b.name, local: (name) => name };

function numbered(): Names {
  const numbers = new Map<object | string, string>();
  const of = (key: object | string, prefix: string): string => {
    let name = numbers.get(key);
    if (name === undefined) numbers.set(key, (name = `${prefix}${numbers.size}`));
    return name;
  };
  return { axis: (a) => of(a, "i"), buffer: (b) => of(b, "b"), local: (name) => of(`local ${name}`, "t") };
}

const symbols: Partial<Record<BinaryOp, string>> = {
  add: "+", sub: "-", mul: "*", div: "/", rem: "%", and: "&", or: "|", xor: "^", shl: "<<", shr: ">>", eq: "==", ne: "!=", lt: "<", le: "<=", gt: ">", ge: ">=",
};

/** An expression, with a parenthesis around every operation inside another. */
export const printExpr = (e: Expr): string => expr(e, plain, false);
function expr(e: Expr, n: Names, inner = true): string {
  const list = (es: readonly Expr[]): string => es.map((x) => expr(x, n, false)).join(", ");
  const call = (name: string, ...es: readonly Expr[]): string => `${name}(${list(es)})`;
  switch (e.kind) {
    case "const": return literal(e);
    case "axis": return n.axis(e.axis);
    case "dim": return `{${formatDim(e.dim)}}`;
    case "local": return n.local(e.name);
    case "load": return `${n.buffer(e.buffer)}[${list(e.indices)}]${e.along === undefined ? "" : `:${formatType(e.type)}@${e.along}`}`;
    case "address": return `&${n.buffer(e.buffer)}[${list(e.indices)}]`;
    case "loadAt": return `${e.splat ? "splat" : "load"}_${e.dtype}:${formatType(e.type)}(${expr(e.pointer, n)} + ${e.offset})`;
    case "unary": return call(e.op, e.a);
    case "binary": {
      const symbol = symbols[e.op];
      if (symbol === undefined) return call(e.op, e.a, e.b);
      const text = `${expr(e.a, n)} ${symbol} ${expr(e.b, n)}`;
      return inner ? `(${text})` : text;
    }
    case "select": {
      const text = `${expr(e.condition, n)} ? ${expr(e.a, n)} : ${expr(e.b, n)}`;
      return inner ? `(${text})` : text;
    }
    case "cast": return call(formatType(e.type), e.a);
    case "bitcast": return call(`bits_${formatType(e.type)}`, e.a);
    case "madd": return call(e.relaxed ? "madd" : "mul_add", e.a, e.b, e.c);
    case "splat": return call(`splat_${formatType(e.type)}`, e.a);
    case "lanes": return `<${list(e.elements)}>:${formatType(e.type)}`;
    case "extract": return `${expr(e.a, n)}.${e.lane}`;
    case "shuffle": return `shuffle(${list([e.a, e.b])}; ${e.bytes.join(" ")})`;
    case "swizzle": case "dot": return call(e.kind, e.a, e.b);
    case "byteDot": return call("byte_dot", e.a, e.b, e.c);
    case "relaxed": return "relaxed";
    case "extend": return call(`extend_${e.half}_${formatType(e.type)}`, e.a);
    case "reduce": return `${e.op}[${e.axes.map((a) => `${n.axis(a)} < ${formatDim(a.extent)}`).join(", ")}](${expr(e.init, n, false)}; ${expr(e.body, n, false)})`;
    default: return assertNever(e);
  }
}
function literal(e: Extract<Expr, { kind: "const" }>): string {
  if (e.type.scalar === "bool") return Number(e.value) !== 0 ? "true" : "false";
  const text = Object.is(e.value, -0) ? "-0" : String(e.value);
  switch (e.type.scalar) {
    case "i32": return text;
    case "f32": return /[.e]|Infinity|NaN/.test(text) ? text : `${text}.0`;
    default: return `${text}:${formatType(e.type)}`;
  }
}

/** A statement as indented lines. */
export const printStmt = (s: Stmt): string => lines(s, plain).join("\n");
function lines(s: Stmt, n: Names): string[] {
  const e = (x: Expr): string => expr(x, n, false);
  const indented = (body: Stmt): string[] => lines(body, n).map((l) => `  ${l}`);
  switch (s.kind) {
    case "for": {
      const step = s.step === 1 ? `${n.axis(s.axis)}++` : `${n.axis(s.axis)} += ${s.step}`;
      return [`${s.mode === "parallel" ? "parallel " : ""}for (${n.axis(s.axis)} = ${e(s.begin)}; ${n.axis(s.axis)} < ${e(s.end)}; ${step}) {`, ...indented(s.body), "}"];
    }
    case "split": return [`split [${n.local(s.from)}, ${n.local(s.to)}) of ${formatDim(s.outer)} x ${formatDim(s.inner)} by ${s.grain} {`, ...indented(s.body), "}"];
    case "block": return s.body.flatMap((child) => lines(child, n));
    case "let": return [`let ${n.local(s.name)}: ${formatType(s.value.type)} = ${e(s.value)}`];
    case "assign": return [`${n.local(s.name)} = ${e(s.value)}`];
    case "accumulate": {
      const symbol = s.op === "add" ? "+=" : s.op === "mul" ? "*=" : `${s.op}=`;
      return [`${n.local(s.name)} ${symbol} ${e(s.value)}`];
    }
    case "store": return [`${n.buffer(s.buffer)}[${s.indices.map(e).join(", ")}]${s.along === undefined ? "" : `:${formatType(s.value.type)}@${s.along}`} = ${e(s.value)}`];
    case "storeAt": return [`store_${s.dtype}(${e(s.pointer)} + ${s.offset}) = ${e(s.value)}`];
    case "if": return [`if (${e(s.condition)}) {`, ...indented(s.then), ...(s.else ? ["} else {", ...indented(s.else)] : []), "}"];
    default: return assertNever(s);
  }
}

const declared = (b: Buffer, n: Names): string => `${n.buffer(b)}: ${b.dtype}${formatShape(b.shape)}`;

/** A whole kernel: its buffers, then its loops. */
export function printKernel(k: Kernel): string {
  const list = (bs: readonly Buffer[]): string => bs.map((b) => declared(b, plain)).join(", ");
  const scratch = k.scratch.length ? ` scratch(${list(k.scratch)})` : "";
  const structure = k.structure ? ` structure ${k.structure.kind}` : "";
  return [`kernel ${k.name}(${list(k.inputs)}) -> (${list(k.outputs)})${scratch}${structure} {`, ...lines(k.body, plain).map((l) => `  ${l}`), "}"].join("\n");
}

/**
 * Text that two kernels share exactly when they are the same code on other buffers. `describe` adds what else code
 * depends on, such as a buffer's strides; the kernel's `buffers` in order of appearance are the call's arguments.
 */
export function canonicalKernel(k: Kernel, describe: (b: Buffer) => string = () => ""): { readonly text: string; readonly buffers: readonly Buffer[] } {
  const names = numbered();
  const buffers: Buffer[] = [];
  const noting: Names = { ...names, buffer: (b) => { if (!buffers.includes(b)) buffers.push(b); return names.buffer(b); } };
  const body = lines(k.body, noting).join("\n");
  const signature = buffers.map((b) => `${declared(b, noting)} ${k.outputs.includes(b) ? "out" : k.scratch.includes(b) ? "scratch" : "in"} ${describe(b)}`).join("\n");
  return { text: `${signature}\n${body}`, buffers };
}

