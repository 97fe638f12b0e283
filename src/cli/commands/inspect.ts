/** `onnxfuse inspect`: what an artifact holds: sections, inputs and outputs, memory plan, steps, host operators. */
import { formatContainer } from "../../core/container.ts";
import { readArtifact, type Artifact } from "../../artifact/artifact.ts";
import { formatDimJson } from "../../core/dim-json.ts";
import type { Manifest, PortJson, StepJson } from "../../artifact/manifest.ts";
import { arenaAt, type ArenaSize } from "../../compiler/accounts/arena-at.ts";
import { feedOptions, feedsFor } from "../feeds.ts";
import { parseDims } from "../options/dims.ts";
import { loadBeside, readArtifactFile } from "../open.ts";
import { formatBytes, table } from "../table.ts";
import { jsonOption, type Command, type CommandLine } from "./command.ts";

export const inspect: Command = {
  name: "inspect", operands: "<artifact.om>", doc: "show sections, memory plan, steps and host operators",
  options: [{ flags: "steps", doc: "list every step with its kernels" }, { flags: "time", doc: "run once and give each step's share of the time" }, { flags: "dim <size...>", doc: "a named dimension's size, for the memory plan and --time" }, ...feedOptions, jsonOption],
  async run(line, console) {
    const bytes = readArtifactFile(line.operands[0] ?? "");
    const artifact = readArtifact(bytes);
    const hosts = hostSteps(artifact.manifest.steps);
    const shares = line.has("time") ? await timeShares(bytes, line.operands[0] ?? "", line) : undefined;
    const arena = arenaOf(artifact.manifest, parseDims(line.values("dim")));
    if (line.has("json")) {
      const { manifest, sections } = artifact;
      console.out(JSON.stringify({ bytes: bytes.length, sections: sections.map((s) => ({ kind: s.kind, bytes: s.bytes.length })), arena: manifest.memory.peak ?? arena, manifest, hostOperators: hosts, ...(shares ? { shares } : {}) }));
      return 0;
    }
    for (const text of overview(artifact, bytes.length, arena)) console.out(text);
    if (line.has("steps")) for (const text of ["", "Steps:", ...stepLines(artifact.manifest.steps, "  ")]) console.out(text);
    for (const text of ["", hosts.length ? `Host operators: ${hosts.join(", ")}` : "Host operators: none"]) console.out(text);
    if (shares) for (const text of ["", ...table(["step", "kind", "share"], shares.map((s) => [s.label, s.kind, `${(100 * s.share).toFixed(1)} %`]))]) console.out(text);
    return 0;
  },
};

/** The arena at the sizes that are given, where these are all that inputs declare. */
function arenaOf({ inputs, memory }: Manifest, dims: Readonly<Record<string, number>>): ArenaSize | undefined {
  const known = new Map(Object.entries(dims)), needed = new Set(inputs.flatMap((p) => p.dims).filter((d): d is string => typeof d === "string"));
  return !memory.peak && [...needed].every((d) => known.has(d)) ? arenaAt(memory, known) : undefined;
}

/** What the arena takes, or why that is not known. */
function arenaText({ memory, inputs }: Manifest, at: ArenaSize | undefined): string {
  const blocks = memory.arena.length, size = memory.peak ?? at;
  if (!size) {
    const open = [...new Set(inputs.flatMap((p) => p.dims).filter((d): d is string => typeof d === "string"))];
    return `arena of ${blocks} blocks, placed when sizes are known (${memory.sizes.length} sizes; ${open.map((d) => `--dim ${d}=…`).join(" ")} says how large it is)`;
  }
  const unknown = at && at.unknown > 0 ? `, besides ${at.unknown} whose sizes only running tells` : "", thread = at && at.thread > 0 ? `, and ${formatBytes(at.thread)} for each thread besides the first` : "";
  return `arena ${formatBytes(size.bytes)} for ${blocks - (at?.unknown ?? 0)} blocks (at least ${formatBytes(size.lowerBound)} are needed)${unknown}${thread}`;
}

function overview(artifact: Artifact, bytes: number, at: ArenaSize | undefined): string[] {
  const { manifest: m, sections } = artifact;
  const shape = (p: PortJson): string => `  ${p.name}: ${p.container ? formatContainer(p.container) : `${p.dtype} [${p.dims.map(formatDimJson).join(", ")}]`}`;
  return [
    `${m.model} (${formatBytes(bytes)}), made by ${m.tool}`,
    `options: ${JSON.stringify(m.options)}`,
    "", "Sections:", ...table(["section", "bytes"], sections.map((s) => [s.kind, String(s.bytes.length)])).map((t) => `  ${t}`),
    "", "Inputs:", ...m.inputs.map((p) => shape(p) + (p.default ? " (has a default)" : "")), "Outputs:", ...m.outputs.map(shape),
    ...(m.external ? ["", `Weights in ${m.external.length} files: ${m.external.slice(0, 3).map((e) => e.file).join(", ")}${m.external.length > 3 ? ", …" : ""}`] : []),
    "", `Memory: weights ${formatBytes(m.memory.weightBytes)}, ${arenaText(m, at)}`,
    `Program: ${countSteps(m.steps)} steps in ${countSegments(m.steps)} segments, ${m.weights.length} weights`,
  ];
}

const inner = (s: StepJson): readonly StepJson[] => ("if" in s ? [...s.then, ...s.else] : "loop" in s ? s.loop : []);
const countSteps = (steps: readonly StepJson[]): number => steps.reduce((n, s) => n + ("run" in s ? s.calls.length : "check" in s ? 0 : 1) + countSteps(inner(s)), 0);
const countSegments = (steps: readonly StepJson[]): number => steps.reduce((n, s) => n + ("run" in s ? 1 : 0) + countSegments(inner(s)), 0);
const hostSteps = (steps: readonly StepJson[]): string[] => steps.flatMap((s) => ("host" in s ? [s.host] : hostSteps(inner(s))));

function stepLines(steps: readonly StepJson[], indent: string): string[] {
  return steps.flatMap((s) => {
    if ("run" in s) return s.calls.map(([kernel, label]) => `${indent}${kernel} (${label})`);
    if ("host" in s) return [`${indent}host ${s.host}`];
    if ("if" in s) return [`${indent}if`, ...stepLines(s.then, `${indent}  `), `${indent}else`, ...stepLines(s.else, `${indent}  `)];
    if ("check" in s) return [`${indent}check ${s.value}`];
    if ("move" in s) return [`${indent}move ${s.move.length} value${s.move.length === 1 ? "" : "s"}`];
    return [`${indent}loop`, ...stepLines(s.loop, `${indent}  `)];
  });
}

interface Share { readonly label: string; readonly kind: string; readonly share: number }

/** Each step's share of a second run's time. */
async function timeShares(bytes: Uint8Array, path: string, line: CommandLine): Promise<Share[]> {
  const session = await loadBeside(bytes, path);
  const { feeds } = feedsFor(session, [bytes], line);
  await session.run(feeds);
  const times: { label: string; kind: string; ms: number }[] = [];
  await session.run(feeds, { onStep: (label, kind, ms) => times.push({ label, kind, ms }) });
  const total = times.reduce((n, t) => n + t.ms, 0) || 1;
  const short = (label: string): string => (label.length > 60 ? `${label.slice(0, 57)}…` : label);
  return times.map((t) => ({ label: short(t.label), kind: t.kind, share: t.ms / total }));
}
