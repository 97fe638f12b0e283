/** docs/diagnostics.md: every user error, by its stable code. */
import type { CodedCall } from "./calls.ts";

const areas: readonly (readonly [string, string])[] = [
  ["OF1", "Command line"], ["OF2", "Reading models"], ["OF3", "Graphs and operators"], ["OF4", "Fusion rules and switches"],
  ["OF5", "Compiling"], ["OF6", "Artifacts"], ["OF7", "Running"],
];
const cell = (text: string): string => text.replaceAll("|", "\\|").replaceAll("\n", " ");

export function diagnosticsPage(calls: readonly CodedCall[]): string {
  const lines = ["# Diagnostics", "", "Generated from the sources by `npm run generate`; `…` stands for names and values. Errors go to standard error as `CODE: message (place). Hint: …`, with exit code 1."];
  for (const [prefix, title] of areas) {
    const own = calls.filter((c) => c.code.startsWith(prefix));
    if (!own.length) continue;
    lines.push("", `## ${title}`, "", "| code | message | hint |", "|---|---|---|", ...own.map((c) => `| ${c.code} | ${cell(c.message)} | ${cell(c.hint)} |`));
  }
  return `${lines.join("\n")}\n`;
}
