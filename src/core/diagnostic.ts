/**
 * User errors. Each carries a stable code, the place it concerns and a hint; none shows a stack trace.
 * Codes read `OF<area><number>`: 1 command line, 2 reading, 3 graph and operators, 4 fusion rules and switches,
 * 5 compiling, 6 artifact, 7 running.
 */
export interface Place {
  readonly file?: string;
  readonly node?: string;
  readonly value?: string;
  readonly line?: number;
  readonly field?: string;
}

export interface Diagnostic {
  /** Stable, e.g. `OF3002`. Documented in docs/diagnostics.md. */
  readonly code: string;
  readonly message: string;
  readonly place?: Place;
  /** One sentence: what to do about it. */
  readonly hint?: string;
}

/** One or more diagnostics that stop the work. `diagnostics[0]` is the message. */
export class DiagnosticError extends Error {
  override readonly name = "DiagnosticError";
  readonly diagnostics: readonly Diagnostic[];
  constructor(diagnostics: readonly Diagnostic[]) {
    const more = diagnostics.length - mostNamed;
    super([...diagnostics.slice(0, mostNamed).map(formatDiagnostic), ...(more > 0 ? [`and ${more} more`] : [])].join("\n"));
    this.diagnostics = diagnostics;
  }
  get code(): string {
    return this.diagnostics[0]?.code ?? "OF0000";
  }
}

/** Diagnostics that a message names; a model can have any number of them. */
const mostNamed = 100;

/** Throws a DiagnosticError with one diagnostic. */
export function fail(code: string, message: string, more: { place?: Place; hint?: string } = {}): never {
  throw new DiagnosticError([{ code, message, ...more }]);
}

/** `OF3002: message (node 'x', file y:3). Hint: …` on one line. Names and lists of any length are cut to what a person reads. */
export function formatDiagnostic({ code, message, place, hint }: Diagnostic): string {
  const p = place && Object.fromEntries(Object.entries(place).map(([what, name]) => [what, typeof name === "string" ? brief(name, 200) : name])) as Place;
  const parts: string[] = [];
  if (p?.node !== undefined) parts.push(`node '${p.node}'`);
  if (p?.value !== undefined) parts.push(`value '${p.value}'`);
  if (p?.field !== undefined) parts.push(`field '${p.field}'`);
  if (p?.file !== undefined) parts.push(p.line === undefined ? `file ${p.file}` : `file ${p.file}:${p.line}`);
  else if (p?.line !== undefined) parts.push(`line ${p.line}`);
  const where = parts.length ? ` (${parts.join(", ")})` : "";
  return `${code}: ${brief(message, 1500)}${where}${hint ? `. Hint: ${brief(hint, 500)}` : ""}`;
}

/** Words longer than 200 characters, and the whole if it has more than `most`, without their middle. */
function brief(text: string, most: number): string {
  const cut = (long: string, keep: number): string => `${long.slice(0, keep - 50)}…${long.slice(-50)}`;
  const words = text.length > 200 ? text.replace(/[^\s']{201,}/g, (word) => cut(word, 150)) : text;
  return words.length > most ? cut(words, most) : words;
}

/** The candidate nearest to `name` by edit distance, if it is near enough to be a slip of the hand. */
export function nearestName(name: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.floor(name.length / 3)) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase(), bestDistance);
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** Insertions, deletions, substitutions and swaps of neighbours; `bound` where there are more. */
function editDistance(a: string, b: string, bound: number): number {
  if (Math.abs(a.length - b.length) >= bound) return bound;
  let before: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitute = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      let least = Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, substitute);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) least = Math.min(least, (before[j - 2] ?? 0) + 1);
      next.push(least);
    }
    before = row;
    row = next;
  }
  return row[b.length] ?? bound;
}
