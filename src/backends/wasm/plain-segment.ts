/**
 * A segment as one thread runs it. A split is called in a few ranges, one after the other, in the order in which one range
 * would have done them: an engine that starts with quick code and compiles what is hot again can then change to the
 * better code within a kernel's first call, not only at its second one.
 */
import { isSymbolic } from "../../core/dim.ts";
import type { Kernel, PhaseSplit } from "../../kernel/kernel.ts";
import type { FunctionBuilder } from "./assembler.ts";
import type { CallArguments } from "./call-arguments.ts";
import type { PhaseFunction } from "./emit-kernel.ts";

/** A call of a kernel: its phases, each with the number of its function. */
export interface KernelCall { readonly kernel: Kernel; readonly phases: readonly { readonly call: PhaseFunction; readonly index: number }[] }

/** Ranges that a split is called in, where its sizes allow. */
const ranges = 12;

/** Calls every phase in order. */
export function plainSegment(f: FunctionBuilder, calls: readonly KernelCall[], args: CallArguments): void {
  let bounds: readonly [from: number, to: number] | undefined;
  for (const { phases } of calls) for (const { call, index } of phases) {
    const given = (): void => {
      for (const buffer of call.pointers) args.address(f, buffer);
      for (const d of call.dims) args.size(f, d);
    };
    const { split } = call.phase, step = split && stepOf(split);
    if (split && step !== undefined) {
      bounds ??= [f.local("i32"), f.local("i32")];
      inRanges(f, bounds, step.size, step.total, () => {
        given();
        for (const b of bounds ?? []) f.get(b);
        f.call(index);
      });
      continue;
    }
    given();
    if (split) {
      f.constant("i32", 0);
      wholeOf(f, split, args);
    }
    f.call(index);
  }
}

/** How far a range goes: over whole groups, or within the only one where no range must prepare anew; undefined for all at once. */
function stepOf({ outer, inner, grain }: PhaseSplit): { readonly size: number; readonly total: number } | undefined {
  if (isSymbolic(outer) || isSymbolic(inner) || isSymbolic(grain)) return undefined;
  const total = outer * inner, size = outer > 1 ? Math.ceil(outer / ranges) * inner : Math.ceil(inner / ranges);
  return size < grain || size >= total || total > 2 ** 30 ? undefined : { size, total };
}

function inRanges(f: FunctionBuilder, [from, to]: readonly [number, number], step: number, total: number, call: () => void): void {
  f.constant("i32", 0);
  f.setLocal(to);
  f.begin("loop");
  f.get(to);
  f.tee(from);
  f.constant("i32", step);
  f.op("i32.add");
  f.tee(to);
  f.constant("i32", total);
  f.get(to);
  f.constant("i32", total);
  f.op("i32.lt_s");
  f.op("select");
  f.setLocal(to);
  call();
  f.get(to);
  f.constant("i32", total);
  f.op("i32.lt_s");
  f.branch("br_if", 0);
  f.end();
}

function wholeOf(f: FunctionBuilder, { outer, inner }: PhaseSplit, args: CallArguments): void {
  if (!isSymbolic(outer) && !isSymbolic(inner)) { f.constant("i32", outer * inner); return; }
  args.size(f, outer);
  args.size(f, inner);
  f.op("i32.mul");
}
