/**
 * Weights of at most 7 bits in the order that dot products of four bytes read, made in place of panels of pairs: eight
 * columns of pairs, [step][column][2], become eight of quads, [two steps][column][4], each element less the least of its
 * column, so that it is from 0 to 127. A kernel adds what that takes away: the sum of the other operand times that least.
 */

/** For each panel the sums of its 8 columns, then their least elements. */
export function columnTerms(out: Int32Array, pairs: Int8Array, panelBytes: number): void {
  out.fill(0);
  for (let panel = 0, to = 0; panel < pairs.length; panel += panelBytes, to += 16) {
    leastOf(pairs.subarray(panel, panel + panelBytes)).forEach((least, column) => { out[to + 8 + column] = least; });
    for (let i = 0; i < panelBytes; i++) out[to + ((i & 15) >> 1)] = (out[to + ((i & 15) >> 1)] ?? 0) + (pairs[panel + i] ?? 0);
  }
}

/** Rewrites panels of pairs as panels of quads; panels start at multiples of four bytes. */
export function toQuads(pairs: Int8Array, panelBytes: number): void {
  const words = new Int32Array(pairs.buffer, pairs.byteOffset, pairs.length / 4), first = new Int32Array(4), less = new Int32Array(8);
  for (let from = 0; from < pairs.length; from += panelBytes) {
    leastOf(pairs.subarray(from, from + panelBytes)).forEach((least, column) => { less[column] = Math.imul(least & 255, 0x01010101); });
    // A word has pairs of two columns; two steps' words of the same columns make two quads.
    for (let at = from / 4, end = (from + panelBytes) / 4; at < end; at += 8) {
      for (let i = 0; i < 4; i++) first[i] = words[at + i] ?? 0;
      for (let i = 0; i < 4; i++) {
        const a = first[i] ?? 0, b = words[at + 4 + i] ?? 0;
        words[at + 2 * i] = bytesLess((a & 0xffff) | (b << 16), less[2 * i] ?? 0);
        words[at + 2 * i + 1] = bytesLess((a >>> 16) | (b & ~0xffff), less[2 * i + 1] ?? 0);
      }
    }
  }
}

const tops = 0x80808080 | 0;
/** Four bytes less four others, without a borrow between them. */
const bytesLess = (x: number, y: number): number => ((x | tops) - (y & ~tops)) ^ ((x ^ ~y) & tops);

/** The least element of each of a panel's 8 columns of pairs. */
function leastOf(panel: Int8Array): Int8Array {
  const least = new Int8Array(8).fill(127);
  for (let i = 0; i < panel.length; i++) {
    const column = (i & 15) >> 1, v = panel[i] ?? 0;
    if (v < (least[column] ?? 0)) least[column] = v;
  }
  return least;
}
