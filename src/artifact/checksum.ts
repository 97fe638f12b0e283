/** XXH32 (Yann Collet's xxHash, 32 bits): finds accidental damage at memory speed; not a signature. */

const p1 = 0x9e3779b1, p2 = 0x85ebca77, p3 = 0xc2b2ae3d, p4 = 0x27d4eb2f, p5 = 0x165667b1;
const rotate = (x: number, by: number): number => (x << by) | (x >>> (32 - by));
const round = (lane: number, word: number): number => Math.imul(rotate((lane + Math.imul(word, p2)) | 0, 13), p1);

/** The 32-bit checksum of `bytes`, not negative. */
export function checksum(bytes: Uint8Array): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = bytes.byteLength;
  let at = 0, hash = p5;
  if (length >= 16) {
    let a = (p1 + p2) | 0, b = p2, c = 0, d = -p1 | 0;
    for (; at + 16 <= length; at += 16) {
      a = round(a, view.getInt32(at, true));
      b = round(b, view.getInt32(at + 4, true));
      c = round(c, view.getInt32(at + 8, true));
      d = round(d, view.getInt32(at + 12, true));
    }
    hash = (rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18)) | 0;
  }
  hash = (hash + length) | 0;
  for (; at + 4 <= length; at += 4) hash = Math.imul(rotate((hash + Math.imul(view.getInt32(at, true), p3)) | 0, 17), p4);
  for (; at < length; at++) hash = Math.imul(rotate((hash + Math.imul(view.getUint8(at), p5)) | 0, 11), p1);
  hash = Math.imul(hash ^ (hash >>> 15), p2);
  hash = Math.imul(hash ^ (hash >>> 13), p3);
  return (hash ^ (hash >>> 16)) >>> 0;
}
