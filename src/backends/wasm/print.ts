/** Modules as WebAssembly text (WAT), for people. */
import { assertNever } from "../../core/assert.ts";
import type { Instruction, ModuleSpec, WasmFunction } from "./assembler.ts";

/** The module in the text format, one instruction a line, indented by nesting. */
export function printModule(spec: ModuleSpec): string {
  const functions = spec.functions.map((f, i) => printFunction(f, i, spec.exports.filter((e) => e.function === i).map((e) => e.name)));
  const imported = spec.sharedPages === undefined ? "" : `(import "env" "memory" (memory ${spec.memoryPages} ${spec.sharedPages} shared))\n  `;
  const globals = Array.from({ length: spec.globals ?? 0 }, () => "  (global (mut i32) (i32.const 0))\n").join("");
  return `(module\n  ${imported}(memory (export "memory")${spec.sharedPages === undefined ? ` ${spec.memoryPages}` : " 0"})\n${globals}${functions.join("\n")}\n)\n`;
}

/** One function; `exports` are the names it is exported by. */
export function printFunction(f: WasmFunction, index: number, exports: readonly string[] = []): string {
  const head = [`(func $${identifier(f.name)}_${index}`, ...exports.map((e) => `(export "${e}")`)];
  if (f.type.params.length) head.push(`(param ${f.type.params.join(" ")})`);
  if (f.type.results.length) head.push(`(result ${f.type.results.join(" ")})`);
  const lines = [`  ${head.join(" ")}`];
  if (f.locals.length) lines.push(`    (local ${f.locals.join(" ")})`);
  let depth = 2;
  for (const i of f.instructions) {
    if (i.kind === "end" || i.kind === "else") depth--;
    lines.push(`${"  ".repeat(depth)}${printInstruction(i)}`);
    if (i.kind === "begin" || i.kind === "else") depth++;
  }
  return `${lines.join("\n")}\n  )`;
}

function printInstruction(i: Instruction): string {
  switch (i.kind) {
    case "plain": return i.op.name;
    case "memory": return `${i.op.name}${i.offset ? ` offset=${i.offset}` : ""}${i.lane === undefined ? "" : ` ${i.lane}`}`;
    case "lane": return `${i.op.name} ${i.lane}`;
    case "local": return `local.${i.op} ${i.index}`;
    case "global": return `global.${i.op} ${i.index}`;
    case "const": return `${i.type}.const ${number(i.value)}`;
    case "bytes": return `${i.op}${i.op === "v128.const" ? " i8x16" : ""} ${i.bytes.join(" ")}`;
    case "begin": return `${i.op}${i.result === undefined ? "" : ` (result ${i.result})`}`;
    case "else": return "else";
    case "end": return "end";
    case "branch": return `${i.op} ${i.depth}`;
    case "call": return `call ${i.target}`;
    default: return assertNever(i);
  }
}
function number(x: number | bigint): string {
  if (typeof x === "bigint" || Number.isFinite(x)) return Object.is(x, -0) ? "-0" : String(x);
  return Number.isNaN(x) ? "nan" : x > 0 ? "inf" : "-inf";
}
const identifier = (name: string): string => name.replace(/[^A-Za-z0-9_.$-]/g, "_");
