/** Results of benchmarks: JSON beside the benchmark, and a table in docs/performance.md between markers of its name. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");

/** Writes `bench/<name>.json`, and the lines into the page's part of that name. */
export function publish(name: string, results: unknown, lines: readonly string[]): void {
  writeFileSync(join(root, "bench", `${name}.json`), `${JSON.stringify(results, null, 1)}\n`);
  const page = join(root, "docs", "performance.md"), text = readFileSync(page, "utf8");
  const [open, close] = [`<!-- bench:${name} -->`, `<!-- /bench:${name} -->`];
  const from = text.indexOf(open), to = text.indexOf(close);
  if (from < 0 || to < from) throw new Error(`docs/performance.md has no part ${open}`);
  writeFileSync(page, `${text.slice(0, from + open.length)}\n${lines.join("\n")}\n${text.slice(to)}`);
}

/** A Markdown table. */
export const table = (head: readonly string[], rows: readonly (readonly (string | number)[])[]): string[] =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`);

/** Where and when figures were taken. */
export const taken = (machine: Readonly<Record<string, string | number>>): string => `Measured on ${machine["cores"]} cores of ${machine["cpu"]}, Node ${String(machine["node"]).replace(/^v/, "")}, ${machine["date"]}.`;
