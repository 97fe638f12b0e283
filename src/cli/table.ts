/** Plain tables: columns as wide as their widest cell, numbers to the right. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const all = [head, ...rows];
  const widths = head.map((_, c) => Math.max(...all.map((r) => (r[c] ?? "").length)));
  const isNumber = (text: string): boolean => /^[-+]?[\d.]/.test(text);
  return all.map((row, r) => row.map((cell, c) => (r > 0 && isNumber(cell) ? cell.padStart(widths[c] ?? 0) : cell.padEnd(widths[c] ?? 0))).join("  ").trimEnd());
}

/** `1.5 MiB` */
export function formatBytes(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  return bytes < 2 ** 20 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}
