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

/** Rewrites panels of pairs as panels of quads. */
export function toQuads(pairs: Int8Array, panelBytes: number): void {
  const before = new Int8Array(32);
  for (let from = 0; from < pairs.length; from += panelBytes) {
    const panel = pairs.subarray(from, from + panelBytes), least = leastOf(panel);
    for (let at = 0; at < panelBytes; at += 32) {
      before.set(panel.subarray(at, at + 32));
      for (let column = 0, to = at; column < 8; column++, to += 4) {
        const less = least[column] ?? 0, pair = 2 * column;
        panel[to] = (before[pair] ?? 0) - less;
        panel[to + 1] = (before[pair + 1] ?? 0) - less;
        panel[to + 2] = (before[pair + 16] ?? 0) - less;
        panel[to + 3] = (before[pair + 17] ?? 0) - less;
      }
    }
  }
}

/** The least element of each of a panel's 8 columns of pairs. */
function leastOf(panel: Int8Array): Int8Array {
  const least = new Int8Array(8).fill(127);
  for (let i = 0; i < panel.length; i++) {
    const column = (i & 15) >> 1, v = panel[i] ?? 0;
    if (v < (least[column] ?? 0)) least[column] = v;
  }
  return least;
}
