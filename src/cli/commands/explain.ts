/** `onnxfuse explain`: what fused; what did not, why, and what would make it; what became of a node. */
import { readArtifact } from "../../artifact/artifact.ts";
import { compile, type Report } from "../../api/index.ts";
import { nodesOf, siteNames, storyOf } from "../../compiler/accounts/fates.ts";
import { missedOf, valueOf, type TimedStep } from "../../compiler/accounts/missed.ts";
import { fail, nearestName } from "../../core/diagnostic.ts";
import { compileOptionsOf } from "../options/compile-options.ts";
import { parseDims } from "../options/dims.ts";
import { feedOptions, feedsFor } from "../feeds.ts";
import { explanation, missedLines, ruleLines, storyLines } from "../evidence/explanation.ts";
import { isArtifact, readBytes, readModelFile } from "../files.ts";
import { loadBeside } from "../open.ts";
import { profile } from "../profile.ts";
import { jsonOption, modelOptions, type Command, type CommandLine } from "./command.ts";

export const explain: Command = {
  name: "explain", operands: "<model.onnx|artifact.om>", doc: "say what fused, what did not, and why",
  options: [
    { flags: "node <name>", doc: "what became of this node, and every site it takes part in" },
    { flags: "rule <name>", doc: "every site of this rule or region kind" },
    { flags: "missed", doc: "refusals that have a remedy, by the bytes they cost" },
    { flags: "time", doc: "with --missed: run the model, and rank by time" },
    ...feedOptions, ...modelOptions, jsonOption,
  ],
  async run(line, console) {
    if ([line.value("node") !== undefined, line.value("rule") !== undefined, line.has("missed")].filter(Boolean).length > 1) fail("OF1002", "--node, --rule and --missed ask different questions", { hint: "give one of them" });
    if (line.has("time") && !line.has("missed")) fail("OF1002", "--time ranks what --missed lists", { hint: "give both" });
    const [path = ""] = line.operands;
    const { answer, lines } = answerOf(await reportOf(path, line), line, line.has("time") ? await timedSteps(path, line) : undefined);
    if (line.has("json")) console.out(JSON.stringify(answer));
    else for (const text of lines()) console.out(text);
    return 0;
  },
};

interface Answer { readonly answer: unknown; readonly lines: () => readonly string[] }

function answerOf(report: Report, line: CommandLine, timed: readonly TimedStep[] | undefined): Answer {
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
    const missed = missedOf(report, parseDims(line.values("dim")), timed);
    return { answer: { missed: missed.map(({ site, ...cost }) => ({ ...site, ...cost })) }, lines: () => missedLines(missed) };
  }
  const { nodes, counts, sites, fates, traffic } = report;
  return { answer: { nodes, counts, sites, fates, traffic }, lines: () => explanation(report) };
}

/** What each kernel of the model takes. Fails with OF1002 for an artifact, whose steps cannot be timed apart. */
async function timedSteps(path: string, line: CommandLine): Promise<readonly TimedStep[]> {
  if (isArtifact(readBytes(path, "the file"))) fail("OF1002", "--time needs the model: the steps of an artifact cannot be timed apart", { hint: "give the model that it was compiled from" });
  const sizes = parseDims(line.values("dim"));
  const { artifact, report } = await compile(readModelFile(path), { ...(await compileOptionsOf(line)), separateSteps: true });
  const session = await loadBeside(artifact, path);
  const steps = report.traffic.map((t) => ({ kind: t.region, nodes: t.nodes, bytes: valueOf(t.after.read, sizes) + valueOf(t.after.written, sizes) + valueOf(t.weights, sizes) }));
  const times = await profile(session, feedsFor(session, [artifact], line), steps);
  return steps.map(({ nodes, bytes }, i) => ({ nodes, bytes, ms: times.get(i) ?? 0 }));
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
