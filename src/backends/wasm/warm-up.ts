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
interface Candidate { readonly index: number; readonly parameters: number; readonly bytes: number; pieces: number }

/**
 * Bytes of code that may be compiled again for each smallest piece of work (schedule/split-work.ts): a kernel with less to
 * do in a run is over before better code is there, and compiling it would only hold up the others.
 */
const bytesForPiece = 108;
/** Bytes of code that are run of each function: engines count about so. */
const bytesRun = 600_000;

/** The function; undefined where no kernel is worth it. `bytesOf` tells the size of a function's code. */
export function emitWarmUp(calls: readonly KernelCall[], bytesOf: (index: number) => number, set: ReadonlyMap<string, Opcode>): FunctionBuilder | undefined {
  const found = candidates(calls, bytesOf).filter((c) => c.pieces * bytesForPiece >= c.bytes);
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
    const known = found.get(index) ?? { index, parameters: call.function.type.params.length, bytes: bytesOf(index), pieces: 0 };
    known.pieces += piecesOf(split);
    found.set(index, known);
  }
  return [...found.values()];
}

/** Sizes that are known only when running count as 16. */
const piecesOf = ({ outer, inner, grain }: PhaseSplit): number => [outer, inner].map((d) => evaluateDim(d, () => 16)).reduce((a, b) => a * b, 1) / grain;
