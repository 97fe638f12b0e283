/** Strings as bytes of an artifact: each its length in bytes as little-endian u32, then its UTF-8. */
import { invariant } from "./assert.ts";

export function encodeStrings(strings: readonly string[]): Uint8Array {
  const encoder = new TextEncoder();
  const texts = strings.map((s) => encoder.encode(s));
  const out = new Uint8Array(texts.reduce((n, t) => n + 4 + t.length, 0));
  const view = new DataView(out.buffer);
  let at = 0;
  for (const text of texts) {
    view.setUint32(at, text.length, true);
    out.set(text, at + 4);
    at += 4 + text.length;
  }
  return out;
}

/** `count` strings, which must fill the bytes exactly. */
export function decodeStrings(bytes: Uint8Array, count: number): string[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const decoder = new TextDecoder();
  const out: string[] = [];
  let at = 0;
  for (let i = 0; i < count; i++) {
    invariant(at + 4 <= bytes.length, "strings end early");
    const length = view.getUint32(at, true);
    invariant(at + 4 + length <= bytes.length, "strings end early");
    out.push(decoder.decode(bytes.subarray(at + 4, at + 4 + length)));
    at += 4 + length;
  }
  invariant(at === bytes.length, "strings end late");
  return out;
}
