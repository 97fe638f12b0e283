/** `atc --mode=1` on an artifact: its manifest, sections and fusion report as JSON. */
import { readArtifact } from "../../artifact/artifact.ts";

/** Fails with OF6001 to OF6004. */
export function artifactJson(bytes: Uint8Array): unknown {
  const { manifest, sections, report } = readArtifact(bytes);
  return { sections: sections.map((s) => ({ kind: s.kind, bytes: s.bytes.length })), manifest, report: report() };
}
