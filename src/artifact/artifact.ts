/** Artifacts as a whole: manifest, code by engine, weights, and the fusion report, which is parsed only when asked for. */
import { checkManifest } from "./check-manifest.ts";
import { readContainer, writeContainer, type Section } from "./container.ts";
import { inconsistent } from "./inconsistent.ts";
import type { CodeJson, Manifest } from "./manifest.ts";
import { shareTerms } from "./shared-terms.ts";

export interface ArtifactParts {
  /** All but `code`, which follows from the sections. */
  readonly manifest: Omit<Manifest, "code">;
  readonly code: Uint8Array;
  /** What to change in the code for relaxed SIMD; empty where it would be the same. */
  readonly relaxation: Uint8Array;
  /** The code is for engines with relaxed SIMD alone. */
  readonly relaxed?: boolean;
  /** What code for threads has beside the kernels; empty or absent where there is none. */
  readonly threads?: Uint8Array;
  readonly weights: Uint8Array;
  /** Anything JSON can hold; absent in stripped artifacts. */
  readonly report?: unknown;
}

export interface Artifact {
  readonly manifest: Manifest;
  /** The bytes of a section that the manifest names. */
  readonly section: (index: number) => Uint8Array;
  readonly weights: Uint8Array;
  /** The fusion report; undefined where it was stripped. */
  readonly report: () => unknown;
  /** Kind and bytes of each section in file order. */
  readonly sections: readonly Section[];
}

const encode = (value: unknown): Uint8Array => new TextEncoder().encode(JSON.stringify(value));

/** One file from its parts; deterministic. */
export function writeArtifact(parts: ArtifactParts): Uint8Array {
  const relaxed = parts.relaxation.length > 0, threads = parts.threads?.length ? parts.threads : undefined;
  const code: CodeJson = { target: "wasm", section: 1, ...(parts.relaxed ? { relaxed: true } : {}), ...(relaxed ? { relaxation: 2 } : {}), ...(threads ? { threads: relaxed ? 3 : 2 } : {}) };
  const manifest: Manifest = { ...parts.manifest, code: [code] };
  return writeContainer([
    { kind: "manifest", bytes: encode(shareTerms(manifest)) },
    { kind: "code", bytes: parts.code },
    ...(relaxed ? [{ kind: "relaxation", bytes: parts.relaxation } as const] : []),
    ...(threads ? [{ kind: "threads", bytes: threads } as const] : []),
    { kind: "weights", bytes: parts.weights },
    ...(parts.report === undefined ? [] : [{ kind: "report", bytes: encode(parts.report) } as const]),
  ]);
}

/** Opens an artifact without copying; weights that lie in other files are not read. Fails with OF6001 to OF6004 unless it is whole and consistent. */
export function readArtifact(bytes: Uint8Array): Artifact {
  const sections = readContainer(bytes);
  const find = (kind: Section["kind"]): Uint8Array | undefined => sections.find((s) => s.kind === kind)?.bytes;
  const weights = find("weights") ?? inconsistent("it has no weights section");
  const manifest = checkManifest(parseSection(find("manifest") ?? inconsistent("it has no manifest"), "manifest"), sections.map((s) => s.kind), weights.byteLength);
  return {
    manifest,
    section: (index) => sections[index]?.bytes ?? inconsistent(`section ${index} is missing`),
    weights,
    report: () => { const section = find("report"); return section && parseSection(section, "report"); },
    sections,
  };
}

/** The same artifact without its report. */
export function stripReport(bytes: Uint8Array): Uint8Array {
  return writeContainer(readContainer(bytes).filter((s) => s.kind !== "report"));
}

/** The JSON of a section. Fails with OF6004 where it is none. */
export function parseSection(section: Uint8Array, what: string): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(section));
  } catch {
    return inconsistent(`its ${what} is not JSON`);
  }
}
