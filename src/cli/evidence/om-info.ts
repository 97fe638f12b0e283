/** Lines that `atc --mode=6` and `--display_model_info=1` print of an artifact, in GE's words. */
import type { Artifact } from "../../artifact/artifact.ts";

/** `bytes`: the size of the artifact's file. */
export function infoLines({ manifest: m, sections, weights }: Artifact, bytes: number): string[] {
  const size = (kind: string): number => sections.filter((s) => s.kind === kind).reduce((n, s) => n + s.bytes.length, 0);
  const soc = m.options["socVersion"];
  const outside = m.external?.reduce((n, e) => n + e.length, 0);
  return [
    `system info: atc_version[${m.tool}], soc_version[${typeof soc === "string" ? soc : ""}], framework_type[5]`,
    `resource info: memory_size[${m.memory.peak?.bytes ?? "dynamic"}], weight_size[${m.memory.weightBytes}], stream_num[1], event_num[0]`,
    `om info: om_size[${bytes}], modeldef_size[${size("manifest")}], weight_data_size[${outside ?? weights.length}], kernels_size[${size("code") + size("relaxation") + size("threads")}], report_size[${size("report")}]`,
    `options: ${JSON.stringify(m.options)}`,
  ];
}
