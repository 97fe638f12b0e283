/**
 * Graph dumps as GE makes them: `DUMP_GE_GRAPH` (1 with weights, 2 without, 3 nodes only), `DUMP_GRAPH_LEVEL` (1 every
 * stage, 2 the usual ones, 3 the last, 4 the first, or names of stages joined by `|`), `DUMP_GRAPH_PATH` and
 * `DUMP_GRAPH_FORMAT` (`onnx`, `ge_proto`, `readable`). Files are named `ge_onnx_00000001_graph_0_PreRunBegin.pbtxt`.
 */
import { join } from "node:path";
import { dumpGraph, type DumpFormat, type GraphStage } from "../../compiler/graph-dump.ts";
import type { StageObserver } from "../../compiler/stages.ts";
import { fail, nearestName } from "../../core/diagnostic.ts";
import type { OutputFile } from "../files.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** GE's names for the stages that we have, in their order. */
const stageNames: Readonly<Record<GraphStage["name"], string>> = { read: "PreRunBegin", simplified: "AfterInfershape", rewritten: "AfterGraphFusion", partitioned: "AfterUbFusion" };
const usual: readonly string[] = ["PreRunBegin", "AfterGraphFusion", "AfterUbFusion"];
const extensions: Readonly<Record<DumpFormat, string>> = { onnx: "pbtxt", ge_proto: "txt", readable: "txt" };

const contentOf = { 1: "weights", 2: "types", 3: "nodes" } as const;

export interface GraphDumps {
  /** To be told of the stages of a compilation. */
  readonly onStage: StageObserver;
  /** What is to be written; complete when the compilation is. */
  readonly files: () => readonly OutputFile[];
}

/** The dumps that the environment asks for; undefined where it asks for none. Fails with OF1010 on a value that means nothing. */
export function graphDumps(environment: Environment): GraphDumps | undefined {
  const detail = environment["DUMP_GE_GRAPH"] ?? "";
  if (detail === "" || detail === "0") return undefined;
  if (detail !== "1" && detail !== "2" && detail !== "3") return fail("OF1010", `DUMP_GE_GRAPH=${detail} is not known`, { hint: "1 dumps graphs with weights, 2 without, 3 the nodes only" });
  const format = formatOf(environment["DUMP_GRAPH_FORMAT"] || "onnx");
  const wanted = wantedStages(environment["DUMP_GRAPH_LEVEL"] || "2");
  const folder = environment["DUMP_GRAPH_PATH"] || ".";
  const contents = new Map<string, string>();
  return {
    onStage: (stage) => {
      if (!("graph" in stage) || !wanted.includes(stageNames[stage.name])) return;
      contents.set(stageNames[stage.name], dumpGraph(stage, format, contentOf[detail]));
    },
    files: () => [...contents].map(([stage, content], i) => ({ path: join(folder, `ge_${format === "ge_proto" ? "proto" : format}_${String(i + 1).padStart(8, "0")}_graph_0_${stage}.${extensions[format]}`), content })),
  };
}

function formatOf(text: string): DumpFormat {
  for (const format of ["onnx", "ge_proto", "readable"] as const) if (format === text) return format;
  return fail("OF1010", `DUMP_GRAPH_FORMAT=${text} is not known`, { hint: "use onnx, ge_proto or readable" });
}

function wantedStages(level: string): readonly string[] {
  const all = Object.values(stageNames);
  switch (level) {
    case "1": return all;
    case "2": return usual;
    case "3": return all.slice(-1);
    case "4": return all.slice(0, 1);
  }
  const names = level.split("|");
  const stranger = names.find((n) => !all.includes(n));
  if (stranger === undefined) return names;
  const near = nearestName(stranger, all);
  return fail("OF1010", `DUMP_GRAPH_LEVEL names the stage '${stranger}', which there is not`, { hint: near === undefined ? `1 to 4, or names joined by |: ${all.join(", ")}` : `did you mean '${near}'?` });
}
