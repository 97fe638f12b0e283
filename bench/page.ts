/** Results of benchmarks: JSON beside the benchmark, and a table in docs/performance.md or the README between markers of its name. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { supports } from "../src/backends/wasm/load.ts";

const root = join(import.meta.dirname, "..");

/** Figures of an engine with relaxed SIMD are others than the baseline's, and stand beside them. */
const isRelaxed = supports("relaxed-simd");

/** Writes `bench/<name>.json`, and the lines into the part of that name of a page; for engines with relaxed SIMD, `<name>-relaxed` and docs/performance.md. */
export function publish(name: string, results: unknown, lines: readonly string[], page: "README.md" | "docs/performance.md" = "docs/performance.md"): void {
  const own = isRelaxed ? `${name}-relaxed` : name, file = join(root, isRelaxed ? "docs/performance.md" : page), text = readFileSync(file, "utf8");
  const [open, close] = [`<!-- bench:${own} -->`, `<!-- /bench:${own} -->`];
  const from = text.indexOf(open), to = text.indexOf(close);
  if (from < 0 || to < from) throw new Error(`${file} has no part ${open}`);
  writeFileSync(join(root, "bench", `${own}.json`), `${JSON.stringify(results, null, 1)}\n`);
  writeFileSync(file, `${text.slice(0, from + open.length)}\n${lines.join("\n")}\n${text.slice(to)}`);
}

/** A Markdown table. */
export const table = (head: readonly string[], rows: readonly (readonly (string | number)[])[]): string[] =>
  [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`);

/** Where and when figures were taken. */
export const taken = (machine: Readonly<Record<string, string | number>>): string => `Measured on ${machine["cores"]} cores of ${machine["cpu"]}, Node ${String(machine["node"]).replace(/^v/, "")}, ${machine["date"]}.`;
