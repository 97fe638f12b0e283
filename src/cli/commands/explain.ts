/** `onnxfuse explain`: what fused; what did not, why, and what would make it; what became of a node. */
import { readArtifact } from "../../artifact/artifact.ts";
import { compile, type Report } from "../../api/index.ts";
import { nodesOf, siteNames, storyOf } from "../../compiler/fates.ts";
import { missedOf } from "../../compiler/missed.ts";
import { fail, nearestName } from "../../core/diagnostic.ts";
import { compileOptionsOf } from "../compile-options.ts";
import { parseDims } from "../dims.ts";
import { explanation, missedLines, ruleLines, storyLines } from "../explanation.ts";
import { readBytes, readModelFile } from "../files.ts";
import { isArtifact } from "../open.ts";
import { jsonOption, modelOptions, type Command, type CommandLine } from "./command.ts";

export const explain: Command = {
  name: "explain", operands: "<model.onnx|artifact.om>", doc: "say what fused, what did not, and why",
  options: [
    { flags: "node <name>", doc: "what became of this node, and every site it takes part in" },
    { flags: "rule <name>", doc: "every site of this rule or region kind" },
    { flags: "missed", doc: "refusals that have a remedy, by the bytes they cost" },
    ...modelOptions, jsonOption,
  ],
  async run(line, console) {
    if ([line.value("node") !== undefined, line.value("rule") !== undefined, line.has("missed")].filter(Boolean).length > 1) fail("OF1002", "--node, --rule and --missed ask different questions", { hint: "give one of them" });
    const { answer, lines } = answerOf(await reportOf(line.operands[0] ?? "", line), line);
    if (line.has("json")) console.out(JSON.stringify(answer));
    else for (const text of lines()) console.out(text);
    return 0;
  },
};

interface Answer { readonly answer: unknown; readonly lines: () => readonly string[] }

function answerOf(report: Report, line: CommandLine): Answer {
  const node = line.value("node"), rule = line.value("rule");
  if (node !== undefined) {
    const story = storyOf(report, node) ?? unknown("node", node, nodesOf(report));
    return { answer: story, lines: () => storyLines(story) };
  }
  if (rule !== undefined) {
    const sites = report.sites.filter((s) => s.name === rule);
    if (!siteNames(report).includes(rule)) unknown("rule or region kind", rule, siteNames(report));
    return { answer: { rule, sites }, lines: () => ruleLines(rule, sites) };
  }
  if (line.has("missed")) {
    const missed = missedOf(report, parseDims(line.values("dim")));
    return { answer: { missed: missed.map(({ site, bytes }) => ({ ...site, bytes })) }, lines: () => missedLines(missed) };
  }
  const { nodes, counts, sites, fates, traffic } = report;
  return { answer: { nodes, counts, sites, fates, traffic }, lines: () => explanation(report) };
}

/** The report of an artifact, or of a model that is compiled for it. */
export async function reportOf(path: string, line: CommandLine): Promise<Report> {
  const bytes = readBytes(path, "the file");
  if (!isArtifact(bytes)) return (await compile(readModelFile(path), await compileOptionsOf(line))).report;
  const report = readArtifact(bytes).report();
  return report === undefined ? fail("OF6006", `'${path}' carries no fusion report`, { hint: "it was stripped; explain the model instead" }) : (report as Report);
}

function unknown(what: string, name: string, names: readonly string[]): never {
  const near = nearestName(name, names);
  return fail("OF1016", `there is no ${what} '${name}' in this report`, { hint: near === undefined ? "explain without options lists all of them" : `did you mean '${near}'?` });
}
