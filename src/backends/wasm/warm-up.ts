/**
 * The exported function `warm_up`: calls each kernel that computes long on ranges that are empty. Engines start with quick
 * code and compile again, beside what runs, what has been called often; so the better code is on its way while weights
 * are still read, and the first run finds it there. An empty range computes, reads and writes nothing (emit-kernel.ts).
 */
import { evaluateDim } from "../../core/dim.ts";
import type { PhaseSplit } from "../../kernel/kernel.ts";
import { FunctionBuilder } from "./assembler.ts";
import type { Opcode } from "./opcodes.ts";
import type { KernelCall } from "./plain-segment.ts";

/** A function that is worth warming up, with the parameters it takes and its bytes. */
interface Candidate { readonly index: number; readonly parameters: number; readonly bytes: number; instructions: number }

/**
 * Instructions that a run must have for each byte of a kernel's code: with fewer to do it is over before better code is
 * there, and compiling it would only hold up the others.
 */
const leastForByte = 600;
/** Bytes of code that a call runs of each function, by which V8 counted a function as hot up to version 11 (Node 20). */
const bytesRun = 900_000;

/** The function; undefined where no kernel is worth it. `bytesOf` tells the size of a function's code. */
export function emitWarmUp(calls: readonly KernelCall[], bytesOf: (index: number) => number, set: ReadonlyMap<string, Opcode>): FunctionBuilder | undefined {
  const found = candidates(calls, bytesOf).filter((c) => c.instructions >= leastForByte * c.bytes);
  if (found.length === 0) return undefined;
  const f = new FunctionBuilder("warm_up", { params: [], results: [] }, set), left = f.local("i32");
  for (const { index, parameters, bytes } of found) {
    f.constant("i32", Math.ceil(bytesRun / bytes));
    f.setLocal(left);
    f.begin("loop");
    for (let i = 0; i < parameters; i++) f.constant("i32", 0);
    f.call(index);
    f.get(left);
    f.constant("i32", -1);
    f.op("i32.add");
    f.tee(left);
    f.branch("br_if", 0);
    f.end();
  }
  return f;
}

/** In the order in which a run first calls them. */
function candidates(calls: readonly KernelCall[], bytesOf: (index: number) => number): readonly Candidate[] {
  const found = new Map<number, Candidate>();
  for (const { phases } of calls) for (const { call, index } of phases) {
    const { split } = call.phase;
    if (!split) continue;
    const known = found.get(index) ?? { index, parameters: call.function.type.params.length, bytes: bytesOf(index), instructions: 0 };
    known.instructions += instructionsOf(split);
    found.set(index, known);
  }
  return [...found.values()];
}

/** Sizes that are known only when running count as 16. */
const instructionsOf = ({ outer, inner, work }: PhaseSplit): number => [outer, inner].map((d) => evaluateDim(d, () => 16)).reduce((a, b) => a * b, work);
