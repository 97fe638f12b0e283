/** Damage to a file that knows nothing of its form: changed, missing, repeated and moved bytes. */
import type { Random } from "../../test/support/random.ts";

const extremes = [0, 1, 0x7f, 0x80, 0xff] as const;

/** A damaged copy, and what was done. Small enough that most of the file still says what it said. */
export function mutateBytes(bytes: Uint8Array, random: Random): { readonly bytes: Uint8Array; readonly done: string } {
  if (bytes.length === 0) return { bytes, done: "left empty" };
  const at = random.int(bytes.length), length = 1 + random.int(Math.min(64, bytes.length - at));
  switch (random.int(7)) {
    case 0: return { bytes: bytes.slice(0, at), done: `cut off at ${at}` };
    case 1: return { bytes: joined(bytes.subarray(0, at), bytes.subarray(at + length)), done: `${length} bytes gone at ${at}` };
    case 2: return { bytes: joined(bytes.subarray(0, at), bytes.subarray(at, at + length), bytes.subarray(at)), done: `${length} bytes twice at ${at}` };
    case 3: {
      const to = random.int(bytes.length - length + 1), copy = bytes.slice();
      copy.copyWithin(to, at, at + length);
      return { bytes: copy, done: `${length} bytes from ${at} over ${to}` };
    }
    case 4: return changed(bytes, random, Math.min(bytes.length, 400), () => random.pick(extremes));
    // Headers and names stand at a file's ends; weights, where a change says little, between.
    case 5: return changed(bytes, random, bytes.length, () => random.int(256));
    default: return changed(bytes, random, bytes.length, (b) => b ^ (1 << random.int(8)));
  }
}

function changed(bytes: Uint8Array, random: Random, within: number, change: (b: number) => number): { readonly bytes: Uint8Array; readonly done: string } {
  const copy = bytes.slice(), places: number[] = [];
  for (let n = 1 + random.int(4); n > 0; n--) {
    const from = random() < 0.5 ? 0 : bytes.length - within, at = from + random.int(within);
    copy[at] = change(copy[at] ?? 0);
    places.push(at);
  }
  return { bytes: copy, done: `bytes changed at ${places.join(", ")}` };
}

function joined(...parts: readonly Uint8Array[]): Uint8Array {
  const out = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
  let at = 0;
  for (const p of parts) { out.set(p, at); at += p.length; }
  return out;
}
