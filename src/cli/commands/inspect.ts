/** `onnxfuse inspect`: what an artifact holds: sections, inputs and outputs, memory plan, steps, host operators. */
import { formatContainer } from "../../core/container.ts";
import { readArtifact, type Artifact } from "../../artifact/artifact.ts";
import { formatDimJson } from "../../core/dim-json.ts";
import type { PortJson, StepJson } from "../../artifact/manifest.ts";
import { feedOptions, feedsFor } from "../feeds.ts";
import { loadBeside, readArtifactFile } from "../open.ts";
import { formatBytes, table } from "../table.ts";
import { jsonOption, type Command, type CommandLine } from "./command.ts";

export const inspect: Command = {
  name: "inspect", operands: "<artifact.om>", doc: "show sections, memory plan, steps and host operators",
  options: [{ flags: "steps", doc: "list every step with its kernels" }, { flags: "time", doc: "run once and give each step's share of the time" }, { flags: "dim <size...>", doc: "a named dimension's size, for --time" }, ...feedOptions, jsonOption],
  async run(line, console) {
    const bytes = readArtifactFile(line.operands[0] ?? "");
    const artifact = readArtifact(bytes);
    const hosts = hostSteps(artifact.manifest.steps);
    const shares = line.has("time") ? await timeShares(bytes, line.operands[0] ?? "", line) : undefined;
    if (line.has("json")) {
      const { manifest, sections } = artifact;
      console.out(JSON.stringify({ bytes: bytes.length, sections: sections.map((s) => ({ kind: s.kind, bytes: s.bytes.length })), manifest, hostOperators: hosts, ...(shares ? { shares } : {}) }));
      return 0;
    }
    for (const text of overview(artifact, bytes.length)) console.out(text);
    if (line.has("steps")) for (const text of ["", "Steps:", ...stepLines(artifact.manifest.steps, "  ")]) console.out(text);
    for (const text of ["", hosts.length ? `Host operators: ${hosts.join(", ")}` : "Host operators: none"]) console.out(text);
    if (shares) for (const text of ["", ...table(["step", "kind", "share"], shares.map((s) => [s.label, s.kind, `${(100 * s.share).toFixed(1)} %`]))]) console.out(text);
    return 0;
  },
};

function overview({ manifest: m, sections }: Artifact, bytes: number): string[] {
  const shape = (p: PortJson): string => `  ${p.name}: ${p.container ? formatContainer(p.container) : `${p.dtype} [${p.dims.map(formatDimJson).join(", ")}]`}`;
  const { memory } = m;
  const arena = memory.peak
    ? `arena ${formatBytes(memory.peak.bytes)} for ${memory.arena.length} blocks (at least ${formatBytes(memory.peak.lowerBound)} are needed)`
    : `arena of ${memory.arena.length} blocks, placed when sizes are known (${memory.sizes.length} sizes)`;
  return [
    `${m.model} (${formatBytes(bytes)}), made by ${m.tool}`,
    `options: ${JSON.stringify(m.options)}`,
    "", "Sections:", ...table(["section", "bytes"], sections.map((s) => [s.kind, String(s.bytes.length)])).map((t) => `  ${t}`),
    "", "Inputs:", ...m.inputs.map((p) => shape(p) + (p.default ? " (has a default)" : "")), "Outputs:", ...m.outputs.map(shape),
    ...(m.external ? ["", `Weights in ${m.external.length} files: ${m.external.slice(0, 3).map((e) => e.file).join(", ")}${m.external.length > 3 ? ", …" : ""}`] : []),
    "", `Memory: weights ${formatBytes(memory.weightBytes)}, ${arena}`,
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
