/**
 * One code for all engines: modules are stored for plain SIMD, with a list of the places where relaxed SIMD does better.
 * There `a b f32x4.mul c f32x4.add` becomes `a b nop nop nop c f32x4.relaxed_madd`, which has the same length. Where kernels
 * have a way of their own for such engines, `i32.const 0` that leads to the other becomes `i32.const 1`, and
 * `v128.bitselect nop`, which stands for a dot product of bytes on the way, that instruction.
 */
import { invariant } from "../../core/assert.ts";

const mul = [0xfd, 0xe6, 0x01], nops = [0x01, 0x01, 0x01];
const add = [0xfd, 0xe4, 0x01], madd = [0xfd, 0x85, 0x02];
const otherwise = [0x41, 0x00], so = [0x41, 0x01];
const bitselect = [0xfd, 0x52, 0x01], byteDot = [0xfd, 0x93, 0x02];
const changesTo: readonly (readonly [readonly number[], readonly number[]])[] = [[mul, nops], [add, madd], [otherwise, so], [bitselect, byteDot]];
const stands = (code: Uint8Array, at: number, bytes: readonly number[]): boolean => bytes.every((b, i) => code[at + i] === b);

/** Where a module for relaxed SIMD differs from `plain`, as unsigned LEB128 distances of its relaxable instructions, in order. */
export function relaxationOf(plain: Uint8Array, relaxable: readonly number[]): Uint8Array {
  const out: number[] = [];
  let before = 0;
  for (const at of relaxable) {
    for (let distance = at - before; ; distance >>>= 7) {
      out.push(distance < 128 ? distance : (distance & 127) | 128);
      if (distance < 128) break;
    }
    before = at;
  }
  const changes = Uint8Array.from(out);
  invariant(relax(plain, changes), "relaxable instructions are known");
  return changes;
}

/** The module for relaxed SIMD; undefined where the changes do not fit the code. */
export function relax(plain: Uint8Array, changes: Uint8Array): Uint8Array | undefined {
  const code = new Uint8Array(plain);
  let at = 0;
  for (let i = 0; i < changes.length; i++) {
    let distance = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = changes[i] ?? 0;
      distance |= (byte & 127) << shift;
      if (byte < 128) break;
      i++;
    }
    at += distance;
    const by = changesTo.find(([plain]) => stands(code, at, plain))?.[1];
    if (!by) return undefined;
    code.set(by, at);
  }
  return code;
}
