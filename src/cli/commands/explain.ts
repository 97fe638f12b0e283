/** `onnxfuse explain`: what fused; what did not, why, and what would make it. */
import { readArtifact } from "../../artifact/artifact.ts";
import { compile, type Report, type Site } from "../../api/index.ts";
import { fail } from "../../core/diagnostic.ts";
import { compileOptionsOf } from "../compile-options.ts";
import { readBytes, readModelFile } from "../files.ts";
import { isArtifact } from "../open.ts";
import { jsonOption, modelOptions, type Command } from "./command.ts";

export const explain: Command = {
  name: "explain", operands: "<model.onnx|artifact.om>", doc: "say what fused, what did not, and why",
  options: [{ flags: "node <name>", doc: "only sites with this node" }, ...modelOptions, jsonOption],
  async run(line, console) {
    const path = line.operands[0] ?? "";
    const report = await reportOf(path, line);
    const node = line.value("node");
    const sites = node === undefined ? report.sites : report.sites.filter((s) => s.nodes.includes(node) || s.at === node);
    if (line.has("json")) { console.out(JSON.stringify({ nodes: report.nodes, counts: report.counts, sites })); return 0; }
    for (const text of explanation({ ...report, sites })) console.out(text);
    return 0;
  },
};

async function reportOf(path: string, line: Parameters<Command["run"]>[0]): Promise<Report> {
  const bytes = readBytes(path, "the file");
  if (!isArtifact(bytes)) return (await compile(readModelFile(path), compileOptionsOf(line))).report;
  const report = readArtifact(bytes).report();
  return report === undefined ? fail("OF6006", `'${path}' carries no fusion report`, { hint: "it was stripped; explain the model instead" }) : (report as Report);
}

/** The report for people. */
export function explanation(report: Report): string[] {
  const fired = report.sites.filter((s) => s.outcome === "fired"), refused = report.sites.filter((s) => s.outcome === "refused");
  const { original, compiled } = report.nodes;
  const lines = [`${original} nodes in the model, ${compiled} steps in the program.`, "", `Fused (${fired.length}):`];
  for (const s of fired) lines.push(`  ${s.name} at ${s.at}: ${s.nodes.join(", ")}`);
  if (fired.length === 0) lines.push("  nothing");
  lines.push("", `Not fused (${refused.length}):`);
  for (const s of refused) lines.push(...refusal(s));
  if (refused.length === 0) lines.push("  nothing was refused");
  if (report.hostOperators.length) lines.push("", "Run by the host, without a kernel:", ...report.hostOperators.map((h) => `  ${h.op}: ${h.nodes.join(", ")}`));
  return lines;
}

function refusal(s: Site): string[] {
  return [`  ${s.name} at ${s.at} [${s.code ?? ""}]`, `    nodes:  ${s.nodes.join(", ")}`, `    reason: ${s.reason ?? ""}`, ...(s.remedy === undefined ? [] : [`    remedy: ${s.remedy}`])];
}
