/** Comma-separated values as RFC 4180 writes them. */

/** Rows as text, each ended by a line feed. */
export const csv = (rows: readonly (readonly (string | number)[])[]): string => rows.map((row) => `${row.map((x) => cell(String(x))).join(",")}\n`).join("");

const cell = (text: string): string => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
