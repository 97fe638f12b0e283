/** `onnxfuse profile`: times every kernel inside the run, beside what this machine allows for its work. */
import { basename, dirname, join } from "node:path";
import { existsSync } from "node:fs";
import { readArtifact } from "../../artifact/artifact.ts";
import { profileArtifact, type Profile, type StepProfile } from "../../profile/measure.ts";
import { compileOptionsOf } from "../options/compile-options.ts";
import { assumedLines } from "../assumed-sizes.ts";
import { feedOptions, feedsFor, type FeedPlan } from "../feeds.ts";
import { readBytes, writeFiles } from "../files.ts";
import { openArtifact } from "../open.ts";
import { chromeTrace, opStatisticCsv, opSummaryCsv, statistics } from "../evidence/profile-files.ts";
import { table } from "../table.ts";
import { jsonOption, modelOptions, type Command } from "./command.ts";

export const profileCommand: Command = {
  name: "profile", operands: "<artifact.om|model.onnx>", doc: "time every kernel of an artifact or model within its run",
  options: [
    { flags: "iterations <runs>", doc: "timed runs (default 50)" }, { flags: "warmup <runs>", doc: "runs before timing (default 10)" },
    { flags: "top <number>", doc: "print so many of the dearest kernels (default 20)" },
    { flags: "out <folder>", doc: "write op_summary.csv, op_statistic.csv and trace.json (for chrome://tracing) there" },
    ...feedOptions, ...modelOptions, jsonOption,
  ],
  async run(line, console) {
    const [path = ""] = line.operands;
    const runs = line.count("iterations", 50, 1), warmup = line.count("warmup", 10), top = line.count("top", 20, 1);
    console.progress?.(`opening ${path}`);
    const artifact = await openArtifact(path, await compileOptionsOf(line));
    let assumed: FeedPlan["assumed"] = {};
    const profile = await profileArtifact(artifact, (session) => {
      const plan = feedsFor(session, [artifact], line);
      assumed = plan.assumed;
      return plan.feeds;
    }, {
      runs, warmup,
      externalData: (file) => { const at = join(dirname(path), file); return existsSync(at) ? readBytes(at, "the artifact's weights") : undefined; },
      ...(console.progress ? { onProgress: console.progress } : {}),
    });
    console.progress?.();
    for (const text of assumedLines(assumed)) console.error(text);
    const { manifest } = readArtifact(artifact), model = manifest.model || basename(path), out = line.value("out");
    const files = out === undefined ? [] : [
      { path: join(out, "op_summary.csv"), content: opSummaryCsv(profile, model, manifest.memory.slots > 0) },
      { path: join(out, "op_statistic.csv"), content: opStatisticCsv(profile, model) },
      { path: join(out, "trace.json"), content: chromeTrace(profile, model) },
    ];
    if (files.length) writeFiles(files);
    if (line.has("json")) { console.out(JSON.stringify({ model, method, unit: "us", ...profile, statistics: statistics(profile), ...(out === undefined ? {} : { files: files.map((f) => f.path) }) })); return 0; }
    for (const text of lines(profile, top)) console.out(text);
    for (const f of files) console.out(f.path);
    return 0;
  },
};

/** How times are taken; part of every output. */
const method = "Each kernel is an exported function of its own, made from the artifact's code without changing the kernels, and is timed between two readings of the clock inside whole runs on one thread; runs of the program as it is take turns with them.";

function lines(profile: Profile, top: number): string[] {
  const { peaks, whole, sum, clock, runs } = profile;
  const ran = profile.steps.filter((s) => s.count > 0), shown = [...ran].sort((a, b) => b.total - a.total).slice(0, top);
  const us = (x: number): string => x.toFixed(1), ms = (x: number): string => (x / 1000).toFixed(3);
  const rows = shown.map((s) => [
    s.name, s.label, s.count % 1 ? s.count.toFixed(2) : String(s.count), us(s.min), us(s.mean), `${(100 * s.share).toFixed(1)} %`,
    s.gflops === undefined ? "-" : s.gflops.toFixed(1), s.gbs === undefined ? "-" : s.gbs.toFixed(1), standing(s),
  ]);
  const winograd = shown.some((s) => s.work?.kind === "conv" && !s.work.integer && (s.attained ?? 0) > 1);
  const unsized = ran.some((s) => s.kind === "kernel" && !s.work);
  return [
    method,
    `Peaks measured on this machine: ${peaks.gflops.toFixed(1)} GFLOP/s${peaks.relaxedSimd ? " (relaxed SIMD)" : ""}, ${peaks.integerGops.toFixed(1)} GOP/s of integers, ${peaks.cacheGBs.toFixed(1)} GB/s from the cache, ${peaks.memoryGBs.toFixed(1)} GB/s from memory.`,
    `${runs} runs: ${ms(whole.min)} ms at least, ${ms(whole.mean)} ms on average; ${ran.length} steps take ${ms(sum)} ms together, of which reading the clock is about ${(clock * ran.reduce((n, s) => n + s.count, 0)).toFixed(1)} us.`,
    "",
    ...table(["kernel", "region", "calls", "min us", "mean us", "share", "GFLOP/s", "GB/s", "bound"], rows),
    ...(ran.length > top ? [`… and ${ran.length - top} more (--top)`] : []),
    "",
    ...table(["region", "calls", "us in a run", "min us", "mean us", "max us", "share"], statistics(profile).map((s) => [s.label, s.count % 1 ? s.count.toFixed(2) : String(s.count), us(s.total), us(s.min), us(s.mean), us(s.max), `${(100 * s.share).toFixed(1)} %`])),
    ...(winograd ? ["", "Operations are those of the direct computation: Winograd's convolutions do fewer, and reach more than the bound."] : []),
    ...(unsized ? ["", "Rates are missing where the artifact holds no report (--strip), or where sizes are told by data."] : []),
  ];
}

/** The bound a kernel is under, and how much of it it reaches. */
const standing = (s: StepProfile): string => (s.kind === "host" ? "host" : s.bound === undefined ? "-" : `${s.bound}, ${(100 * (s.attained ?? 0)).toFixed(0)} %`);
